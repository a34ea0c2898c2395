/* SPDX-License-Identifier: GPL-2.0-only */
/* Recognizes files that contain a trace in another form than text, and names the command that
 * converts them to text. */
#ifndef IMPORT_FOREIGN_H
#define IMPORT_FOREIGN_H

struct foreign {
	const char *begins; /* the first bytes of such a file */
	const char *is;     /* the format, for messages */
	const char
		*text_by; /* the command that prints such a file as text; the file's name follows */
};

/* Returns the format of a file by its first bytes, NULL if it is unknown or the file cannot be
 * read. Static. */
const struct foreign *foreign_of(const char *path);

#endif
