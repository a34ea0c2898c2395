/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/cli/fail_on.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "host-collector/analyze/stall/coverage.h"
#include "proto/program/suggest.h"

static const char any_stall[] = "stall";

/* Adds the name[0..len-1]. */
static int name_add(const char *name, size_t len, struct fail_on *out, char *why, size_t why_bytes)
{
	struct suggest s;

	if (len == strlen(any_stall) && !strncmp(name, any_stall, len)) {
		out->any = true;
		return 0;
	}
	suggest_begin(&s, name, len);
	suggest_try(&s, any_stall);
	for (int v = 0; v < VERDICT_COUNT; v++) {
		const char *known = verdict_name((enum verdict)v);

		if (strlen(known) == len && !strncmp(known, name, len)) {
			out->verdicts |= 1u << v;
			return 0;
		}
		suggest_try(&s, known);
	}
	if (s.best)
		snprintf(why, why_bytes, "--fail-on %.*s: no such verdict; did you mean '%s'?",
			 (int)len, name, s.best);
	else
		snprintf(why, why_bytes,
			 "--fail-on %.*s: expected stall or names of verdicts, separated by "
			 "commas; see vcpuscope-verdicts(7)",
			 (int)len, name);
	return -EINVAL;
}

int fail_on_parse(const char *text, struct fail_on *out, char *why, size_t why_bytes)
{
	int err = 0;

	*out = (struct fail_on){0};
	while (text && !err) {
		size_t len = strcspn(text, ",");

		err = name_add(text, len, out, why, why_bytes);
		text = text[len] ? text + len + 1 : NULL;
	}
	return err;
}

enum command_exit fail_on_exit(const struct fail_on *f, const struct report *r)
{
	bool unnamed = false;

	for (size_t i = 0; i < r->n_incidents; i++) {
		const struct incident *x = &r->incidents[i];

		if (x->healthy)
			continue;
		if (f->any || f->verdicts & 1u << x->verdict)
			return COMMAND_STALL;
		unnamed |= x->verdict == VERDICT_UNDETERMINED;
	}
	if (!coverage_supports(r) || (f->verdicts && (unnamed || r->dropped_incidents)))
		return COMMAND_CANNOT_TELL;
	return COMMAND_OK;
}
