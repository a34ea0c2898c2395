/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Text that a guest or another user chose, made safe to show: task names, symbols, VM names. What
 * could steer a terminal, hide or reorder what stands beside it (control characters, terminal
 * escapes, bidirectional overrides, invisible characters, bytes that are no UTF-8) is spelled out.
 */
#ifndef UTIL_ESCAPE_H
#define UTIL_ESCAPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The character at the beginning of a NUL-terminated, non-empty text. An overlong, surrogate or
 * broken sequence is one invalid byte. */
struct character {
	uint32_t code;
	unsigned bytes;
	bool valid;
};
struct character character_at(const char *text);

/* Would showing this character do more than show it? */
bool character_is_unsafe(uint32_t code);

enum { ESCAPED_MAX = 640 };

/* For terminals and files: unsafe characters as \n, \x1b or \u{202e}, a backslash doubled. Longer
 * texts are cut. By value, so that it can stand in an argument list. */
struct escaped {
	char text[ESCAPED_MAX];
};
struct escaped escape(const char *text);

#endif
