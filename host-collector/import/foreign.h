/* SPDX-License-Identifier: GPL-2.0-only */
/* Files that hold a trace, but not as text: what makes text of them. */
#ifndef IMPORT_FOREIGN_H
#define IMPORT_FOREIGN_H

struct foreign {
	const char *begins, *is, *text_by; /* is, text_by: for people; a command before its file */
};

/* By how the file begins; NULL: none of these, or it cannot be read. Static. */
const struct foreign *foreign_of(const char *path);

#endif
