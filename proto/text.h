/* SPDX-License-Identifier: GPL-2.0-only */
/* Text of a peer into a bounded, NUL-terminated, valid UTF-8 string. */
#ifndef PROTO_TEXT_H
#define PROTO_TEXT_H

#include <stddef.h>

/*
 * Copies `src` (NUL-terminated) into dst[0..size-1]. Bytes that are no UTF-8 become U+FFFD; what
 * does not fit is cut off between characters. Control characters stay: views escape them.
 */
void text_copy(char *dst, size_t size, const char *src);

#endif
