// SPDX-License-Identifier: GPL-2.0-only
/* Fuzzes the parser of a domain's XML: its output is valid in a line for the daemon, and a
 * domain with a channel has the element of the channel. */
#include "fuzz.h"

#include <json.h>
#include <libxml/parser.h>
#include <stdlib.h>
#include <string.h>

#include "host-collector/libvirt/domain_xml.h"

static void texts_check(struct json_object *o)
{
	json_object_object_foreach(o, key, value)
	{
		FUZZ_CHECK(*key && json_object_is_type(value, json_type_string));
	}
}

static void line_check(struct json_object *o)
{
	const char *line = json_object_to_json_string_ext(o, JSON_C_TO_STRING_PLAIN);
	struct json_object *again, *part;

	FUZZ_CHECK(!strchr(line, '\n'));
	again = json_tokener_parse(line);
	FUZZ_CHECK(json_object_equal(o, again));
	if (json_object_object_get_ex(again, "settings", &part))
		texts_check(part);
	if (json_object_object_get_ex(again, "channel", &part))
		texts_check(part);
	json_object_put(again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	char *text = malloc(len + 1), *element;
	struct json_object *o = json_object_new_object();

	FUZZ_CHECK(text && o);
	if (len)
		memcpy(text, data, len);
	text[len] = 0;
	domain_xml_channel(text, o);
	domain_xml_settings(text, o);
	domain_xml_owner(text, o);
	line_check(o);
	element = domain_xml_channel_element(text);
	FUZZ_CHECK(element || !json_object_object_get_ex(o, "channel", NULL));
	free(element);
	json_object_put(o);
	free(text);
	xmlResetLastError();
	return 0;
}
