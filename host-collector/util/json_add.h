/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Adds members to a JSON object. `key` is a string literal that the object does not have yet. If
 * memory runs out, the member is null.
 */
#ifndef UTIL_JSON_ADD_H
#define UTIL_JSON_ADD_H

#include <stdbool.h>
#include <stdint.h>

struct json_object;

/* Adds `value`, which the object then owns; NULL is null. */
void json_add(struct json_object *to, const char *key, struct json_object *value);
/* Adds a text that is safe to print (util/json_string.h); NULL is null. */
void json_add_text(struct json_object *to, const char *key, const char *text);
/* Adds a text unless it is empty. */
void json_add_known_text(struct json_object *to, const char *key, const char *text);
void json_add_int(struct json_object *to, const char *key, int64_t value);
void json_add_uint(struct json_object *to, const char *key, uint64_t value);
void json_add_bool(struct json_object *to, const char *key, bool value);

#endif
