/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Makes text from a guest or from another user safe to show: task names, symbols, VM names.
 * Characters that could control a terminal, or hide or reorder the text beside them, are written as
 * escapes: control characters, bidirectional overrides, invisible characters and bytes that are not
 * valid UTF-8.
 */
#ifndef UTIL_ESCAPE_H
#define UTIL_ESCAPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Decodes the first character of a non-empty, NUL-terminated text. In an overlong, surrogate or
 * incomplete sequence, the first byte is returned as one invalid character. */
struct character {
	uint32_t code;
	unsigned bytes;
	bool valid;
};
struct character character_at(const char *text);

/* Returns true if the character could control a terminal, or is invisible, or changes the
 * direction of the text. */
bool character_is_unsafe(uint32_t code);

enum { ESCAPED_MAX = 640 };

/* Escapes text for terminals and files: writes an unsafe character as \n, \x1b or \u{202e}, and a
 * backslash as two. Truncates the result to ESCAPED_MAX - 1 bytes. Returns the text by value, for
 * use in an argument list. */
struct escaped {
	char text[ESCAPED_MAX];
};
struct escaped escape(const char *text);

#endif
