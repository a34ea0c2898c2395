/* SPDX-License-Identifier: GPL-2.0-only */
/* Checks a JSON value against a schema. Supports the part of JSON Schema that deploy/fleet uses. It
 * is stricter than JSON Schema: an object must not have a member that its schema does not name. */
#ifndef TESTS_JSON_SCHEMA_H
#define TESTS_JSON_SCHEMA_H

#include <json.h>
#include <regex.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static bool schema_type_fits(const char *type, struct json_object *value)
{
	const enum json_type is = json_object_get_type(value);

	return (!strcmp(type, "null") && is == json_type_null) ||
	       (!strcmp(type, "string") && is == json_type_string) ||
	       (!strcmp(type, "integer") && is == json_type_int) ||
	       (!strcmp(type, "boolean") && is == json_type_boolean) ||
	       (!strcmp(type, "array") && is == json_type_array) ||
	       (!strcmp(type, "object") && is == json_type_object);
}

static bool schema_types_fit(struct json_object *types, struct json_object *value)
{
	if (json_object_is_type(types, json_type_string))
		return schema_type_fits(json_object_get_string(types), value);
	for (size_t i = 0; i < json_object_array_length(types); i++) {
		if (schema_type_fits(json_object_get_string(json_object_array_get_idx(types, i)),
				     value))
			return true;
	}
	return false;
}

/* Returns the limit `key` of a schema, or `none` if the schema does not have it. */
static int64_t schema_limit(struct json_object *schema, const char *key, int64_t none)
{
	struct json_object *limit;

	return json_object_object_get_ex(schema, key, &limit) ? json_object_get_int64(limit) : none;
}

static bool schema_bounds_fit(struct json_object *schema, struct json_object *value)
{
	struct json_object *pattern;
	const int64_t n = json_object_get_int64(value);
	regex_t regex;
	bool fits = true;

	switch (json_object_get_type(value)) {
	case json_type_string:
		if (json_object_object_get_ex(schema, "pattern", &pattern)) {
			fits = !regcomp(&regex, json_object_get_string(pattern), REG_EXTENDED);
			fits = fits && !regexec(&regex, json_object_get_string(value), 0, NULL, 0);
			regfree(&regex);
		}
		return fits && json_object_get_string_len(value) <=
				       schema_limit(schema, "maxLength", 6 * 512);
	case json_type_int:
		return n >= schema_limit(schema, "minimum", INT64_MIN) &&
		       n <= schema_limit(schema, "maximum", INT64_MAX);
	case json_type_array:
		return (int64_t)json_object_array_length(value) <=
		       schema_limit(schema, "maxItems", INT64_MAX);
	default:
		return true;
	}
}

static bool schema_fits(struct json_object *schema, struct json_object *value, const char *name);

static bool schema_object_fits(struct json_object *schema, struct json_object *value,
			       const char *name)
{
	struct json_object *properties = NULL, *required, *other = NULL, *of;
	bool fits = true;

	json_object_object_get_ex(schema, "properties", &properties);
	json_object_object_get_ex(schema, "additionalProperties", &other);
	for (size_t i = 0; json_object_object_get_ex(schema, "required", &required) &&
			   i < json_object_array_length(required);
	     i++) {
		const char *key = json_object_get_string(json_object_array_get_idx(required, i));

		if (!json_object_object_get_ex(value, key, NULL)) {
			fprintf(stderr, "%s: no member %s\n", name, key);
			fits = false;
		}
	}
	json_object_object_foreach(value, key, member)
	{
		if (json_object_object_get_ex(properties, key, &of))
			fits &= schema_fits(of, member, key);
		else if (json_object_is_type(other, json_type_object))
			fits &= schema_fits(other, member, key);
		else if (fprintf(stderr, "%s: member %s is not in the schema\n", name, key))
			fits = false;
	}
	return fits;
}

/* Returns whether the value fits the schema. Prints each mismatch. name: the name of the value. */
static bool schema_fits(struct json_object *schema, struct json_object *value, const char *name)
{
	struct json_object *part;
	bool fits = true;

	if (json_object_object_get_ex(schema, "const", &part))
		fits = json_object_equal(part, value);
	if (json_object_object_get_ex(schema, "enum", &part)) {
		fits = false;
		for (size_t i = 0; i < json_object_array_length(part); i++)
			fits |= json_object_equal(json_object_array_get_idx(part, i), value);
	}
	if (json_object_object_get_ex(schema, "type", &part))
		fits = schema_types_fit(part, value);
	fits = fits && schema_bounds_fit(schema, value);
	if (!fits)
		fprintf(stderr, "%s: %s does not fit\n", name, json_object_get_string(value));
	if (json_object_is_type(value, json_type_object))
		fits &= schema_object_fits(schema, value, name);
	for (size_t i = 0; json_object_is_type(value, json_type_array) &&
			   json_object_object_get_ex(schema, "items", &part) &&
			   i < json_object_array_length(value);
	     i++)
		fits &= schema_fits(part, json_object_array_get_idx(value, i), name);
	return fits;
}

#endif
