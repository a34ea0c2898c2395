// SPDX-License-Identifier: GPL-2.0-only
/* UTF-8 of RFC 3629: no overlong forms, no surrogates, nothing above U+10FFFF. */
#include "proto/text.h"

#include <stdint.h>
#include <string.h>

static const char replacement[] = "\xef\xbf\xbd";

/* First bytes, how many follow, and the range of the second byte (RFC 3629, section 4). */
static const struct utf8_form {
	uint8_t first_min, first_max, following, second_min, second_max;
} utf8_forms[] = {
	{0x01, 0x7f, 0, 0, 0},       {0xc2, 0xdf, 1, 0x80, 0xbf}, {0xe0, 0xe0, 2, 0xa0, 0xbf},
	{0xe1, 0xec, 2, 0x80, 0xbf}, {0xed, 0xed, 2, 0x80, 0x9f}, {0xee, 0xef, 2, 0x80, 0xbf},
	{0xf0, 0xf0, 3, 0x90, 0xbf}, {0xf1, 0xf3, 3, 0x80, 0xbf}, {0xf4, 0xf4, 3, 0x80, 0x8f},
};

/* Bytes of the character at s, 0 if there is none. Never looks past a NUL. */
static size_t utf8_length(const uint8_t *s)
{
	const struct utf8_form *f;
	size_t i;

	for (f = utf8_forms; f < utf8_forms + sizeof(utf8_forms) / sizeof(*utf8_forms); f++)
		if (s[0] >= f->first_min && s[0] <= f->first_max)
			break;
	if (f == utf8_forms + sizeof(utf8_forms) / sizeof(*utf8_forms))
		return 0;
	for (i = 1; i <= f->following; i++) {
		uint8_t min = i == 1 ? f->second_min : 0x80, max = i == 1 ? f->second_max : 0xbf;

		if (s[i] < min || s[i] > max)
			return 0;
	}
	return i;
}

void text_copy(char *dst, size_t size, const char *src)
{
	size_t used = 0;

	if (!size)
		return;
	while (*src) {
		size_t n = utf8_length((const uint8_t *)src);
		const char *from = n ? src : replacement;
		size_t bytes = n ? n : sizeof(replacement) - 1;

		if (bytes > size - 1 - used)
			break;
		memcpy(dst + used, from, bytes);
		used += bytes;
		src += n ? n : 1;
	}
	dst[used] = '\0';
}
