/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/analyze/watchdog.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host-collector/analyze/detectors.h"

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
	/* A task may have brackets and colons in its name: the outermost and the last count. */
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

/* Can the line be about this incident? */
static bool is_about(const struct report_watchdog *w, const struct incident *i)
{
	return i->vm == w->vm && i->guest_cpu == w->cpu && i->dmesg_known && !i->healthy &&
	       w->dmesg_us >= i->begin_dmesg_ns / 1000 &&
	       w->dmesg_us <= i->end_dmesg_ns / 1000 + WATCHDOG_LATE_US;
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

		for (size_t n = 0; n < r->n_incidents; n++) {
			struct incident *i = &r->incidents[n];

			if (!is_about(w, i))
				continue;
			w->incident = (int)n;
			w->opinion = opinion(w, i);
		}
		if (w->incident >= 0)
			detectors_watchdog(w, &r->incidents[w->incident]);
	}
}
