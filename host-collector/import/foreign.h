/* SPDX-License-Identifier: GPL-2.0-only */
/* Recognizes files that contain a trace in a form other than text. Gives the command that converts
 * them to text. */
#ifndef IMPORT_FOREIGN_H
#define IMPORT_FOREIGN_H

struct foreign {
	const char *begins; /* the first bytes of such a file */
	const char *is;     /* the format, for messages */
	/* The command that prints such a file as text. The file's name follows it. */
	const char *text_by;
};

/* Returns the format of a file, which its first bytes show; NULL if it is unknown or the file
 * cannot be read. Static. */
const struct foreign *foreign_of(const char *path);

#endif
