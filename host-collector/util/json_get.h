/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Reads members of a JSON object that another program wrote. `o` may be NULL or of another type:
 * then it has no members. Results are borrowed from the object.
 */
#ifndef UTIL_JSON_GET_H
#define UTIL_JSON_GET_H

#include <stddef.h>
#include <stdint.h>

struct json_object;

/* Returns the member, or NULL if it is absent or null. */
struct json_object *json_get(struct json_object *o, const char *key);
/* Return the length of a member that is an array, and its element i. Return 0 and NULL for a member
 * of another type. */
size_t json_get_length(struct json_object *o, const char *key);
struct json_object *json_get_element(struct json_object *o, const char *key, size_t i);
/* Returns the text of a member that is a string; "" for another type. */
const char *json_get_string(struct json_object *o, const char *key);
/* Returns a member of any type as text; "" if it is absent or null. */
const char *json_get_text(struct json_object *o, const char *key);
/* Return a member that is a number; 0 if it is absent or null. */
int64_t json_get_int(struct json_object *o, const char *key);
uint64_t json_get_uint(struct json_object *o, const char *key);

#endif
