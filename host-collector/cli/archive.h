/* SPDX-License-Identifier: GPL-2.0-only */
/* Writes a tar archive (ustar). All its entries are regular files that belong to root and that only
 * their owner may read. */
#ifndef CLI_ARCHIVE_H
#define CLI_ARCHIVE_H

#include <stdio.h>
#include <time.h>

/* Adds the whole content of `from`. name: at most 99 characters. Returns 0, -EINVAL, -EFBIG or the
 * -errno of reading. After a failed write, ferror(to) is set. */
int archive_add(FILE *to, const char *name, int from, time_t modified);
/* Ends the archive. */
void archive_end(FILE *to);

#endif
