/* SPDX-License-Identifier: GPL-2.0-only */
/* A file, at first of zeros, whose every read takes a set time, by a FUSE file system of its own:
 * as slow a disk as a test needs. Writes take no time. */
#ifndef TESTS_SLOW_FILE_H
#define TESTS_SLOW_FILE_H

#include <stdbool.h>
#include <stddef.h>

/* Returns a descriptor, of one file at a time; -1 without FUSE or the right to mount. A file that
 * is not writable can be mapped; one that is has no page cache, so each read is slow. */
int slow_file_open(size_t bytes, long read_us, bool writable);
/* Once the descriptor is closed. */
void slow_file_close(void);

#endif
