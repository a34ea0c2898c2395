/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Reads members of a JSON object that somebody else wrote. `o` may be NULL or of another type: then
 * it has no members. Results are borrowed from the object.
 */
#ifndef UTIL_JSON_GET_H
#define UTIL_JSON_GET_H

#include <stddef.h>
#include <stdint.h>

struct json_object;

/* Returns the member, or NULL if it is absent or null. */
struct json_object *json_get(struct json_object *o, const char *key);
/* Returns the length and the elements of a member that is an array; 0 and NULL if it is none. */
size_t json_get_length(struct json_object *o, const char *key);
struct json_object *json_get_element(struct json_object *o, const char *key, size_t i);
/* Returns the text of a string, "" if the member is none. */
const char *json_get_string(struct json_object *o, const char *key);
/* Returns a member of any type as text, "" if it is absent or null. */
const char *json_get_text(struct json_object *o, const char *key);
/* Returns a number, 0 if the member is none. */
int64_t json_get_int(struct json_object *o, const char *key);
uint64_t json_get_uint(struct json_object *o, const char *key);

#endif
