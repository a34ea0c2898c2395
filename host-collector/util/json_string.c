/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/util/json_string.h"

#include <json-c/json.h>
#include <json-c/printbuf.h>

#include "host-collector/util/escape.h"

static int string_write(struct json_object *object, struct printbuf *out, int level, int flags)
{
	const char *text = json_object_get_string(object);
	int err = printbuf_memappend(out, "\"", 1);

	(void)level;
	(void)flags;
	while (*text && err >= 0) {
		struct character c = character_at(text);

		if (!c.valid)
			err = printbuf_memappend(out, "\xef\xbf\xbd", 3); /* U+FFFD */
		else if (c.code == '"' || c.code == '\\')
			err = sprintbuf(out, "\\%c", (int)c.code);
		else if (c.code > 0xffff && character_is_unsafe(c.code))
			err = sprintbuf(out, "\\u%04x\\u%04x", 0xd7c0 + (c.code >> 10),
					0xdc00 + (c.code & 0x3ff));
		else if (character_is_unsafe(c.code))
			err = sprintbuf(out, "\\u%04x", c.code);
		else
			err = printbuf_memappend(out, text, (int)c.bytes);
		text += c.bytes;
	}
	return err < 0 ? err : printbuf_memappend(out, "\"", 1);
}

struct json_object *json_string_new(const char *text)
{
	struct json_object *value = json_object_new_string(text);

	if (value)
		json_object_set_serializer(value, string_write, NULL, NULL);
	return value;
}
