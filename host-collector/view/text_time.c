/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/view/text_time.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "host-collector/util/duration.h"

bool time_wall(int64_t wall_ns, bool with_date, struct time_text *out)
{
	const time_t seconds = (time_t)(wall_ns / 1000000000);
	char date[32], zone[8];
	struct tm tm;

	if (!localtime_r(&seconds, &tm))
		return false;
	strftime(date, sizeof(date), with_date ? "%F %T" : "%T", &tm);
	strftime(zone, sizeof(zone), "%z", &tm);
	snprintf(out->text, sizeof(out->text), "%s.%06" PRId64 "%.3s:%.2s", date,
		 wall_ns / 1000 % 1000000, zone, zone + 3);
	return true;
}

struct time_text time_when(const struct report *r, struct host_ns t, bool with_date)
{
	struct time_text text;

	if (!r->wall_known || !time_wall(report_wall_ns(r, t), with_date, &text))
		snprintf(text.text, sizeof(text.text), "+%.6f s",
			 (double)(t.ns - r->begin.ns) / 1e9);
	return text;
}

struct time_text time_since(struct host_ns from, struct host_ns t)
{
	struct time_text text;
	int64_t ns = t.ns - from.ns;

	snprintf(text.text, sizeof(text.text), "%c%s", ns < 0 ? '-' : '+',
		 duration_text(llabs(ns)).text);
	return text;
}

struct time_text time_dmesg(uint64_t ns)
{
	struct time_text text;

	snprintf(text.text, sizeof(text.text), "[%5" PRIu64 ".%06" PRIu64 "]", ns / 1000000000,
		 ns / 1000 % 1000000);
	return text;
}

struct time_text time_error(uint64_t err_ns)
{
	struct time_text text;

	if (err_ns >= UINT32_MAX) /* where the error of an event saturates */
		snprintf(text.text, sizeof(text.text), "error unbounded");
	else
		snprintf(text.text, sizeof(text.text), "+-%s", duration_text((int64_t)err_ns).text);
	return text;
}
