/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef UTIL_JSON_STRING_H
#define UTIL_JSON_STRING_H

struct json_object;

/* A JSON string that is safe to print: what could steer a terminal is written as \uXXXX, bytes that
 * are no UTF-8 as U+FFFD; json-c itself passes both through. NULL on ENOMEM. */
struct json_object *json_string_new(const char *text);

#endif
