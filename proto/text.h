/* SPDX-License-Identifier: GPL-2.0-only */
/* Copies text of a peer into a bounded, NUL-terminated string of valid UTF-8. */
#ifndef PROTO_TEXT_H
#define PROTO_TEXT_H

#include <stddef.h>

/*
 * Copies `src` (NUL-terminated) to dst[0..size-1]. Replaces bytes that are not UTF-8 by U+FFFD and
 * cuts text that does not fit between two characters. Keeps control characters: views escape them.
 */
void text_copy(char *dst, size_t size, const char *src);

#endif
