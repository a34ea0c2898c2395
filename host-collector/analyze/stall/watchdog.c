/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/analyze/stall/watchdog.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host-collector/analyze/stall/detectors.h"

bool watchdog_parse(const char *text, struct report_watchdog *out)
{
	const char *found = strstr(text, "BUG: soft lockup - CPU#"), *open, *colon, *end;
	unsigned cpu, stuck_s;
	size_t len;
	long pid;
	char *rest;

	if (!found ||
	    sscanf(found, "BUG: soft lockup - CPU#%5u stuck for %9us!", &cpu, &stuck_s) != 2)
		return false;
	/* The name of a task may contain brackets and colons: the first bracket and the last one
	 * count. */
	open = strchr(found, '[');
	end = strrchr(found, ']');
	if (!open || !end || end < open || cpu >= VS_CPUS_MAX)
		return false;
	for (colon = end; colon > open && *colon != ':'; colon--)
		;
	pid = strtol(colon + 1, &rest, 10);
	if (colon == open || rest != end || pid < 0 || pid > INT32_MAX)
		return false;
	len = (size_t)(colon - open - 1);
	memset(out, 0, sizeof(*out));
	out->cpu = (uint16_t)cpu;
	out->stuck_s = stuck_s;
	out->pid = (int32_t)pid;
	memcpy(out->comm, open + 1, len < sizeof(out->comm) ? len : sizeof(out->comm) - 1);
	out->incident = -1;
	return true;
}

/*
 * The line gives the time since the CPU's watchdog thread ran last, in whole units of 2^30 ns. That
 * may be up to a sample period before the stall began. The line is printed while the CPU is stuck,
 * or by the first tick after that. So the stall lies in this time.
 */
enum { ROUNDING_US = 2147484, SHARE_LEAST = 10 };

/* Returns how much of the line's time this incident covers, in us. 0: the line is not about it. */
static uint64_t covers_us(const struct report_watchdog *w, const struct incident *i)
{
	uint64_t stuck_us = (uint64_t)w->stuck_s * 1000000, span_us = stuck_us + ROUNDING_US,
		 err_us = i->dmesg_err_ns / 1000, begin, end, from;

	if (i->vm != w->vm || i->guest_cpu != w->cpu || !i->dmesg_known || i->boot != w->boot ||
	    i->healthy || err_us > span_us / 2)
		return 0;
	from = w->dmesg_us > span_us ? w->dmesg_us - span_us : 0;
	begin = i->begin_dmesg_ns / 1000;
	end = i->end_dmesg_ns / 1000 + err_us;
	begin = begin > err_us ? begin - err_us : 0;
	begin = begin > from ? begin : from;
	end = end < w->dmesg_us ? end : w->dmesg_us;
	return end > begin && (end - begin) * SHARE_LEAST >= stuck_us ? end - begin : 0;
}

static bool guest_culprit(const struct incident *i, int32_t pid)
{
	for (size_t k = 0; k < i->n_culprits; k++) {
		if (!i->culprits[k].host && i->culprits[k].pid == pid)
			return true;
	}
	return false;
}

static enum watchdog_opinion opinion(const struct report_watchdog *w, const struct incident *i)
{
	if (i->verdict == VERDICT_UNDETERMINED)
		return WATCHDOG_UNPROVEN;
	return guest_culprit(i, w->pid) ? WATCHDOG_RIGHT : WATCHDOG_WRONG;
}

void watchdog_join(struct report *r)
{
	for (size_t k = 0; k < r->n_watchdogs; k++) {
		struct report_watchdog *w = &r->watchdogs[k];
		uint64_t most_us = 0;

		for (size_t n = 0; n < r->n_incidents; n++) {
			const struct incident *i = &r->incidents[n];
			uint64_t us = covers_us(w, i);

			if (us <= most_us)
				continue;
			most_us = us;
			w->incident = (int)n;
			w->opinion = opinion(w, i);
		}
		if (w->incident >= 0)
			detectors_watchdog(w, &r->incidents[w->incident]);
	}
}
