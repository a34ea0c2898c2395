/* SPDX-License-Identifier: GPL-2.0-only */
/* A file of zeros whose every read takes a set time, by a FUSE file system of its own: as slow a
 * disk as a test needs. */
#ifndef TESTS_SLOW_FILE_H
#define TESTS_SLOW_FILE_H

#include <stdbool.h>
#include <stddef.h>

/* A descriptor to map or to read, once at a time; -1 without FUSE or the right to mount. */
int slow_file_open(size_t bytes, long read_us);
/* Once the descriptor is closed. */
void slow_file_close(void);

#endif
