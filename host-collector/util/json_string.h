/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef UTIL_JSON_STRING_H
#define UTIL_JSON_STRING_H

struct json_object;

/* Returns a new JSON string that is safe to print, or NULL on ENOMEM. The caller owns it. When it
 * is printed, characters that could control a terminal become \uXXXX and bytes that are not valid
 * UTF-8 become U+FFFD. json-c itself prints both unchanged. */
struct json_object *json_string_new(const char *text);

#endif
