/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/util/escape.h"

#include <stdio.h>
#include <string.h>

struct character character_at(const char *text)
{
	static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
	const uint8_t *s = (const uint8_t *)text;
	struct character bad = {.code = s[0], .bytes = 1}, c = {.valid = true};

	if (s[0] < 0x80)
		return (struct character){.code = s[0], .bytes = 1, .valid = true};
	if (s[0] >= 0xc2 && s[0] <= 0xdf)
		c.bytes = 2;
	else if ((s[0] & 0xf0) == 0xe0)
		c.bytes = 3;
	else if (s[0] >= 0xf0 && s[0] <= 0xf4)
		c.bytes = 4;
	else
		return bad;
	c.code = s[0] & (0x7f >> c.bytes);
	for (unsigned i = 1; i < c.bytes; i++) {
		if ((s[i] & 0xc0) != 0x80) /* the final NUL stops here too */
			return bad;
		c.code = c.code << 6 | (s[i] & 0x3f);
	}
	if (c.code < least[c.bytes] || c.code > 0x10ffff || (c.code >= 0xd800 && c.code <= 0xdfff))
		return bad;
	return c;
}

bool character_is_unsafe(uint32_t code)
{
	static const struct {
		uint32_t from, to;
	} ranges[] = {
		{0x00, 0x1f},       {0x7f, 0x9f},     /* controls; U+009B starts a sequence too */
		{0xad, 0xad},                         /* soft hyphen */
		{0x61c, 0x61c},     {0x200b, 0x200f}, /* marks of direction, zero width */
		{0x2028, 0x202e},                     /* line separators, overrides of direction */
		{0x2060, 0x206f},   {0xfe00, 0xfe0f}, /* invisible operators, variation */
		{0xfeff, 0xfeff},   {0xfff9, 0xfffb}, /* byte order, annotation */
		{0xe0000, 0xe0fff},                   /* tags */
	};

	for (size_t i = 0; i < sizeof(ranges) / sizeof(*ranges); i++) {
		if (code >= ranges[i].from && code <= ranges[i].to)
			return true;
	}
	return false;
}

static int spell(const struct character *c, const char *raw, char *out, size_t n)
{
	if (!c->valid)
		return snprintf(out, n, "\\x%02x", c->code);
	if (c->code == '\n')
		return snprintf(out, n, "\\n");
	if (c->code == '\\')
		return snprintf(out, n, "\\\\");
	if (!character_is_unsafe(c->code))
		return snprintf(out, n, "%.*s", (int)c->bytes, raw);
	return snprintf(out, n, c->code < 0x80 ? "\\x%02x" : "\\u{%x}", c->code);
}

/* What most text consists of: characters that stand for themselves in one byte. */
static bool is_plain(char c)
{
	return c >= ' ' && c <= '~' && c != '\\';
}

struct escaped escape(const char *text)
{
	struct escaped e;
	size_t len = 0;

	while (*text) {
		struct character c;
		char one[16];
		size_t n;

		if (is_plain(*text)) {
			if (len + 1 >= sizeof(e.text))
				break;
			e.text[len++] = *text++;
			continue;
		}
		c = character_at(text);
		n = (size_t)spell(&c, text, one, sizeof(one));
		if (len + n >= sizeof(e.text))
			break;
		memcpy(e.text + len, one, n);
		len += n;
		text += c.bytes;
	}
	e.text[len] = 0;
	return e;
}
