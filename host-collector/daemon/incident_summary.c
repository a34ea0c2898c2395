/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/daemon/incident_summary.h"

#include <json.h>
#include <sys/utsname.h>
#include <time.h>

#include "host-collector/util/json_string.h"

static void add_text(struct json_object *to, const char *name, const char *value)
{
	json_object_object_add(to, name, json_string_new(value));
}

static void add_number(struct json_object *to, const char *name, int64_t value)
{
	json_object_object_add(to, name, json_object_new_int64(value));
}

/* "stall", the trigger's name, or "snapshot"; static. */
static const char *incident_summary_trigger(const struct incident_summary *s)
{
	return s->incident ? "stall" : s->firing ? trigger_name(s->firing->trigger) : "snapshot";
}

const char *incident_summary_what(const struct incident_summary *s)
{
	return s->incident ? verdict_name(s->incident->verdict) : incident_summary_trigger(s);
}

static int64_t realtime_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

struct json_object *incident_summary_json(const struct incident_summary *s)
{
	const struct incident *incident = s->incident;
	struct json_object *o = json_object_new_object();
	struct utsname host;

	if (!o)
		return NULL;
	add_text(o, "schema", "vcpuscope.incident/1");
	add_text(o, "vm", s->vm);
	add_text(o, "trigger", incident_summary_trigger(s));
	add_number(o, "realtime_ns", realtime_ns());
	if (incident) {
		add_text(o, "verdict", verdict_name(incident->verdict));
		add_text(o, "confidence", confidence_name(incident->confidence));
		add_text(o, "because", incident->because);
		add_text(o, "denied", incident->denied);
		add_number(o, "guest_cpu", incident->guest_cpu);
		add_number(o, "vcpu", incident->vcpu);
		add_number(o, "duration_ns", incident->end.ns - incident->begin.ns);
	} else if (s->firing) {
		add_text(o, "because", s->firing->text);
	}
	add_number(o, "stalls_without_folder", (int64_t)s->stalls_without_folder);
	if (!uname(&host)) {
		add_text(o, "host", host.nodename);
		add_text(o, "host_kernel", host.release);
	}
	return o;
}
