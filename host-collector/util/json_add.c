/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/util/json_add.h"

#include <json-c/json.h>

#include "host-collector/util/json_string.h"

void json_add(struct json_object *to, const char *key, struct json_object *value)
{
	json_object_object_add_ex(to, key, value,
				  JSON_C_OBJECT_ADD_KEY_IS_NEW | JSON_C_OBJECT_ADD_CONSTANT_KEY);
}

void json_add_text(struct json_object *to, const char *key, const char *text)
{
	json_add(to, key, text ? json_string_new(text) : NULL);
}

void json_add_known_text(struct json_object *to, const char *key, const char *text)
{
	if (*text)
		json_add_text(to, key, text);
}

void json_add_int(struct json_object *to, const char *key, int64_t value)
{
	json_add(to, key, json_object_new_int64(value));
}

void json_add_uint(struct json_object *to, const char *key, uint64_t value)
{
	json_add(to, key, json_object_new_uint64(value));
}

void json_add_bool(struct json_object *to, const char *key, bool value)
{
	json_add(to, key, json_object_new_boolean(value));
}
