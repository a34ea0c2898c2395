/* SPDX-License-Identifier: GPL-2.0-only */
/* Imitates a slow disk: a file of zeros in a FUSE file system, each read of which takes a given
 * time. Writes are not delayed. */
#ifndef TESTS_SLOW_FILE_H
#define TESTS_SLOW_FILE_H

#include <stdbool.h>
#include <stddef.h>

/* Opens the file; there is one at a time. Returns a descriptor, or -1 without FUSE or the right to
 * mount. A read-only file can be mapped. A writable file has no page cache, so each read is slow.
 */
int slow_file_open(size_t bytes, long read_us, bool writable);
/* Unmounts the file system. Close the descriptor first. */
void slow_file_close(void);

#endif
