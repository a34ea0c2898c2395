// SPDX-License-Identifier: GPL-2.0-only
#include "host-collector/analyze/event/pair_definition.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "proto/query/event_spec.h"

static int event_check(const char *what, const char *text, char *why, size_t why_bytes)
{
	struct event_spec *specs = calloc(EVENT_SPECS_MAX, sizeof(*specs));
	struct expr_error error = {0};
	size_t n = 0;
	int err = -EINVAL;

	if (!specs)
		return -ENOMEM;
	if (!*text)
		snprintf(why, why_bytes, "%s is missing", what);
	else
		err = event_specs_parse(text, specs, EVENT_SPECS_MAX, &n, &error);
	free(specs);
	if (err && *text)
		snprintf(why, why_bytes, "%s, at character %zu: %s", what, error.at + 1,
			 error.text);
	return err ? -EINVAL : 0;
}

int pair_definition_check(const struct pair_definition *d, char *why, size_t why_bytes)
{
	const int err = event_check("from", d->from, why, why_bytes);

	return err ? err : event_check("to", d->to, why, why_bytes);
}

void pair_definition_text(const struct pair_definition *d, char *out, size_t out_bytes)
{
	if (*d->key)
		snprintf(out, out_bytes, "%s[%s]=%s..%s", d->name, d->key, d->from, d->to);
	else
		snprintf(out, out_bytes, "%s=%s..%s", d->name, d->from, d->to);
}
