/* SPDX-License-Identifier: GPL-2.0-only */
/* Opens a temporary file without a name, which the kernel removes when the program ends in any way.
 */
#ifndef PROTO_UNNAMED_FILE_H
#define PROTO_UNNAMED_FILE_H

/* Opens a new file for reading and writing in $TMPDIR, or in /var/tmp if that is not set. Returns a
 * descriptor or -errno. */
int unnamed_file_open(void);

#endif
