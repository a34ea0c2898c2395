// SPDX-License-Identifier: GPL-2.0-only
#include "host-collector/util/json_get.h"

#include <json-c/json.h>

struct json_object *json_get(struct json_object *o, const char *key)
{
	struct json_object *value = NULL;

	json_object_object_get_ex(o, key, &value);
	return value;
}

size_t json_get_length(struct json_object *o, const char *key)
{
	struct json_object *value = json_get(o, key);

	return json_object_is_type(value, json_type_array) ? json_object_array_length(value) : 0;
}

struct json_object *json_get_element(struct json_object *o, const char *key, size_t i)
{
	return i < json_get_length(o, key) ? json_object_array_get_idx(json_get(o, key), i) : NULL;
}

const char *json_get_string(struct json_object *o, const char *key)
{
	struct json_object *value = json_get(o, key);

	return json_object_is_type(value, json_type_string) ? json_object_get_string(value) : "";
}

const char *json_get_text(struct json_object *o, const char *key)
{
	const char *text = json_object_get_string(json_get(o, key));

	return text ? text : "";
}

int64_t json_get_int(struct json_object *o, const char *key)
{
	return json_object_get_int64(json_get(o, key)); /* 0 for NULL */
}

uint64_t json_get_uint(struct json_object *o, const char *key)
{
	return json_object_get_uint64(json_get(o, key));
}
