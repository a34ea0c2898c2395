/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/cli/narrow_options.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "host-collector/analyze/stall/builder.h"
#include "host-collector/cli/stalls_read.h"
#include "proto/program/value.h"

#define SECOND_NS        1000000000ll
#define DAY_S            86400
#define CONTEXT_LEAST_NS 100000000ll
#define CONTEXT_MOST_NS  SECOND_NS

/* A time as it was written. */
struct moment {
	bool given, wall, dated, zoned;
	int64_t ns;    /* since the start of the recording */
	struct tm tm;  /* if wall; of the date only if dated */
	long offset_s; /* if zoned: of the zone, east of UTC */
	int64_t fraction_ns;
};

static int wrong(const char *command, const char *option, const char *value, const char *why)
{
	fprintf(stderr, "vcpuscope %s: %s %s: %s\n", command, option, value, why);
	return COMMAND_USAGE;
}

/* "+8.861543 s" as reports print it, "8.5s", "850ms", "0". */
static bool offset_parse(const char *text, int64_t *ns)
{
	char plain[64];
	size_t len = 0;
	uint64_t parsed;

	text += *text == '+';
	for (; *text && len + 1 < sizeof(plain); text++) {
		if (*text != ' ')
			plain[len++] = *text;
	}
	plain[len] = '\0';
	if (*text)
		return false;
	if (!strcmp(plain, "0") || strspn(plain, "0.") == strcspn(plain, "nums")) {
		/* duration_parse() accepts no length of zero */
		*ns = 0;
		return len > 0 && (plain[len - 1] == '0' || plain[len - 1] == 's');
	}
	if (duration_parse(plain, &parsed))
		return false;
	*ns = (int64_t)parsed;
	return true;
}

static bool fraction_parse(const char **text, int64_t *ns)
{
	int64_t unit = SECOND_NS;

	*ns = 0;
	if (**text != '.' && **text != ',')
		return true;
	for (++*text; isdigit((unsigned char)**text); ++*text) {
		unit /= 10;
		*ns += (**text - '0') * unit;
	}
	return unit < SECOND_NS;
}

/* "", "Z", "UTC", "+01:00", "+0100"; the name of the local zone is accepted, too. */
static bool zone_parse(const char *text, struct moment *m)
{
	unsigned hours, minutes;
	time_t now = time(NULL);
	struct tm local;

	text += strspn(text, " ");
	if (!*text)
		return true;
	m->zoned = true;
	if (!strcmp(text, "Z") || !strcmp(text, "UTC"))
		return true;
	if ((*text == '+' || *text == '-') &&
	    (sscanf(text + 1, "%2u:%2u", &hours, &minutes) == 2 ||
	     (strlen(text) == 5 && sscanf(text + 1, "%2u%2u", &hours, &minutes) == 2))) {
		m->offset_s = (long)(hours * 3600 + minutes * 60) * (*text == '-' ? -1 : 1);
		return hours < 24 && minutes < 60;
	}
	m->zoned = false;
	return localtime_r(&now, &local) && (!strcmp(text, tzname[0]) || !strcmp(text, tzname[1]));
}

static bool wall_parse(const char *text, struct moment *m)
{
	const char *rest = strptime(text, "%Y-%m-%d", &m->tm);

	m->wall = true;
	m->dated = rest != NULL;
	if (rest) {
		if (*rest != 'T' && *rest != ' ')
			return false;
		text = rest + 1;
	}
	rest = strptime(text, "%H:%M:%S", &m->tm);
	return rest && fraction_parse(&rest, &m->fraction_ns) && zone_parse(rest, m);
}

/* Returns an exit code. */
static int moment_parse(const char *command, const char *option, const char *text, struct moment *m)
{
	*m = (struct moment){.given = text != NULL};
	if (!text || offset_parse(text, &m->ns))
		return COMMAND_OK;
	if (wall_parse(text, m))
		return COMMAND_OK;
	return wrong(command, option, text,
		     "expected a time since the start of the recording with a unit, such as +8.5s, "
		     "or a wall-clock time, such as 10:34:57.5 or \"2026-11-22 10:34:57\"");
}

/* ---- from wall-clock time to the timeline ---- */

static time_t seconds_of(const struct moment *m, struct tm tm)
{
	tm.tm_isdst = -1;
	return m->zoned ? timegm(&tm) - m->offset_s : mktime(&tm);
}

/* Without a date: the first such time from the start of the recording on. */
static int64_t realtime_of(const struct moment *m, const struct report *r)
{
	const int64_t begin_ns = report_wall_ns(r, r->begin);
	time_t seconds = (time_t)(begin_ns / SECOND_NS) + m->offset_s;
	struct tm tm = m->tm;

	if (!m->dated) {
		struct tm day;

		if (m->zoned)
			gmtime_r(&seconds, &day);
		else
			localtime_r(&seconds, &day);
		tm.tm_year = day.tm_year;
		tm.tm_mon = day.tm_mon;
		tm.tm_mday = day.tm_mday;
	}
	seconds = seconds_of(m, tm);
	/* Hours before it, it is more likely that the recording goes on after midnight. */
	if (!m->dated && (int64_t)seconds * SECOND_NS < begin_ns - DAY_S / 2 * SECOND_NS)
		seconds += DAY_S;
	return (int64_t)seconds * SECOND_NS + m->fraction_ns;
}

/* The clock may have been set during the recording: the first time at which it read so. */
static struct host_ns host_of(const struct report *r, int64_t realtime_ns)
{
	int64_t ns = realtime_ns - r->wall_offset_ns;

	for (size_t i = 0; i < r->n_wall_steps && ns >= r->wall_steps[i].t.ns; i++)
		ns -= r->wall_steps[i].by_ns;
	return (struct host_ns){ns};
}

/* Returns an exit code. */
static int moment_place(const char *command, const char *option, const struct moment *m,
			const struct report *r, const char *text, struct host_ns *out)
{
	if (!m->given)
		return COMMAND_OK;
	if (m->wall && !r->wall_known)
		return wrong(command, option, text,
			     "this recording has no wall-clock times; give a time since its start, "
			     "such as +8.5s");
	if (m->wall)
		*out = host_of(r, realtime_of(m, r));
	else
		out->ns = r->begin.ns + m->ns;
	return COMMAND_OK;
}

/* ---- the window ---- */

static const struct incident *incident_find(const struct report *r, uint64_t number)
{
	for (size_t i = 0; i < r->n_incidents; i++) {
		if (r->incidents[i].ordinal == number)
			return &r->incidents[i];
	}
	return NULL;
}

static int around_place(const char *command, const struct narrow_arguments *a,
			const struct report *r, struct narrow *out)
{
	const struct incident *i = incident_find(r, a->around);
	int64_t context_ns;

	if (!i) {
		fprintf(stderr,
			"vcpuscope %s: --around %llu: `vcpuscope report` finds %zu stall%s in this "
			"recording\n",
			command, (unsigned long long)a->around, r->n_incidents,
			r->n_incidents == 1 ? "" : "s");
		return COMMAND_USAGE;
	}
	context_ns = i->end.ns - i->begin.ns;
	if (context_ns < CONTEXT_LEAST_NS)
		context_ns = CONTEXT_LEAST_NS;
	if (context_ns > CONTEXT_MOST_NS)
		context_ns = CONTEXT_MOST_NS;
	out->from.ns = i->begin.ns - context_ns;
	out->until.ns = i->end.ns + context_ns;
	return COMMAND_OK;
}

static int window_place(const char *command, const struct narrow_arguments *a,
			const struct moment *from, const struct moment *to, const struct report *r,
			struct narrow *out)
{
	int result;

	out->cut = true;
	out->from = r->begin;
	out->until = r->end;
	if (a->around != UINT64_MAX)
		result = around_place(command, a, r, out);
	else
		result = moment_place(command, "--from", from, r, a->from, &out->from);
	if (!result)
		result = moment_place(command, a->to_name, to, r, a->to, &out->until);
	if (result)
		return result;
	if (out->from.ns < r->begin.ns)
		out->from = r->begin;
	if (out->until.ns > r->end.ns)
		out->until = r->end;
	if (out->from.ns < out->until.ns)
		return COMMAND_OK;
	fprintf(stderr,
		"vcpuscope %s: nothing of the recording lies between --from and %s: it has %.6f "
		"s%s\n",
		command, a->to_name, (double)(r->end.ns - r->begin.ns) / 1e9,
		from->wall || to->wall ? "; `vcpuscope report` shows its wall-clock times" : "");
	return COMMAND_USAGE;
}

bool narrow_is_given(const struct narrow_arguments *a)
{
	return a->vm || a->task || a->from || a->to || a->vcpu != UINT64_MAX ||
	       a->pid != UINT64_MAX || a->around != UINT64_MAX;
}

int narrow_read(const char *command, const struct narrow_arguments *a, const char *recording,
		const struct narrow_stalls *stalls, struct narrow *out)
{
	struct moment from, to;
	struct report *report;
	int result = moment_parse(command, "--from", a->from, &from);

	*out = NARROW_NOTHING;
	out->vm = a->vm;
	out->task = a->task;
	if (a->vcpu != UINT64_MAX)
		out->vcpu = a->vcpu < VS_CPUS_MAX ? (int64_t)a->vcpu : VS_CPUS_MAX;
	if (a->pid != UINT64_MAX)
		out->pid = (int32_t)a->pid;
	if (!result)
		result = moment_parse(command, a->to_name, a->to, &to);
	if (result)
		return result;
	if (a->around != UINT64_MAX && (a->from || a->to)) {
		fprintf(stderr,
			"vcpuscope %s: --around selects the time by itself; omit --from and %s\n",
			command, a->to_name);
		return COMMAND_USAGE;
	}
	if (a->around == UINT64_MAX && !a->from && !a->to)
		return COMMAND_OK;
	report = stalls_read(command, recording, stalls ? stalls->than_ns : 0,
			     stalls && stalls->all);
	if (!report)
		return COMMAND_TROUBLE;
	result = window_place(command, a, &from, &to, report, out);
	report_free(report);
	return result;
}
