/* SPDX-License-Identifier: GPL-2.0-only */
#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "host-collector/fleet/host_facts.h"

static bool key_is_good(const char *key, size_t len)
{
	if (!len || len >= sizeof(((struct host_label *)0)->key))
		return false;
	for (size_t i = 0; i < len; i++) {
		if (!isalnum((unsigned char)key[i]) && key[i] != '_')
			return false;
	}
	return true;
}

int host_labels_parse(const char *text, struct host_facts *out, char *why, size_t why_bytes)
{
	out->n_labels = 0;
	for (const char *at = text + strspn(text, ", \t"); *at; at += strspn(at, ", \t")) {
		const size_t len = strcspn(at, ","), key = strcspn(at, "=");
		struct host_label *to = &out->labels[out->n_labels];
		size_t value;

		if (key >= len || !key_is_good(at, key)) {
			snprintf(why, why_bytes,
				 "labels: `%.*s`: write NAME=VALUE, NAME of at most 31 letters, "
				 "digits and _",
				 (int)(len > 60 ? 60 : len), at);
			return -EINVAL;
		}
		value = len - key - 1;
		while (value && (at[key + value] == ' ' || at[key + value] == '\t'))
			value--;
		if (value >= sizeof(to->value) || out->n_labels == HOST_LABELS_MAX) {
			snprintf(why, why_bytes,
				 "labels: at most %d, with values of at most 63 characters",
				 HOST_LABELS_MAX);
			return -EINVAL;
		}
		snprintf(to->key, sizeof(to->key), "%.*s", (int)key, at);
		snprintf(to->value, sizeof(to->value), "%.*s", (int)value, at + key + 1);
		out->n_labels++;
		at += len;
	}
	return 0;
}
