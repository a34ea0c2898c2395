/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/util/duration.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct duration_text duration_text(int64_t ns)
{
	struct duration_text d;
	double us = (double)ns / 1000;

	if (us < 1000)
		snprintf(d.text, sizeof(d.text), "%.0f us", us);
	else if (us < 100000)
		snprintf(d.text, sizeof(d.text), "%.1f ms", us / 1000);
	else if (us < 10000000)
		snprintf(d.text, sizeof(d.text), "%.0f ms", us / 1000);
	else
		snprintf(d.text, sizeof(d.text), "%.1f s", us / 1000000);
	return d;
}

static const struct {
	const char *name;
	uint64_t ns;
} duration_units[] = {
	{"ns", 1},
	{"us", 1000},
	{"ms", 1000000},
	{"s", 1000000000ull},
	{"m", 60000000000ull},
	{"h", 3600000000000ull},
};

int duration_parse(const char *text, uint64_t *ns)
{
	char *end;
	double number;

	if (text[0] < '0' || text[0] > '9')
		return -EINVAL;
	errno = 0;
	number = strtod(text, &end);
	if (errno || end == text)
		return -EINVAL;
	for (size_t i = 0; i < sizeof(duration_units) / sizeof(duration_units[0]); i++) {
		double product = number * (double)duration_units[i].ns;

		if (strcmp(end, duration_units[i].name))
			continue;
		if (!(product >= 1) || product > 9.2e18)
			return -EINVAL;
		*ns = (uint64_t)(product + 0.5);
		return 0;
	}
	return -EINVAL;
}
