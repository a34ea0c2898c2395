/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/util/duration.h"

#include <inttypes.h>
#include <stdio.h>

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

struct duration_text duration_digits(uint64_t ns)
{
	static const struct {
		uint64_t ns;
		const char *unit;
	} units[] = {{1000000000, "s"}, {1000000, "ms"}, {1000, "us"}};
	struct duration_text d;

	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		const double value = (double)ns / (double)units[i].ns;

		if (ns < units[i].ns)
			continue;
		snprintf(d.text, sizeof(d.text), "%.*f %s",
			 value < 10    ? 2
			 : value < 100 ? 1
				       : 0,
			 value, units[i].unit);
		return d;
	}
	snprintf(d.text, sizeof(d.text), "%" PRIu64 " ns", ns);
	return d;
}
