/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/util/duration.h"

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
