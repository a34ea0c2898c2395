/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/daemon/incident_summary.h"

#include <json.h>
#include <sys/utsname.h>

#include "clock/sample.h"
#include "host-collector/util/json_add.h"
#include "host-collector/view/finding_text.h"

/* "stall", the trigger's name, or "snapshot"; static. */
static const char *incident_summary_trigger(const struct incident_summary *s)
{
	return s->incident ? "stall" : s->firing ? trigger_name(s->firing->trigger) : "snapshot";
}

const char *incident_summary_what(const struct incident_summary *s)
{
	return s->incident ? verdict_name(s->incident->verdict) : incident_summary_trigger(s);
}

struct json_object *incident_summary_json(const struct incident_summary *s)
{
	const struct incident *incident = s->incident;
	struct json_object *o = json_object_new_object();
	struct utsname host;

	if (!o)
		return NULL;
	json_add_text(o, "schema", "vcpuscope.incident/1");
	json_add_text(o, "vm", s->vm);
	json_add_text(o, "trigger", incident_summary_trigger(s));
	json_add_int(o, "realtime_ns", clock_realtime_ns());
	if (incident) {
		json_add_text(o, "verdict", verdict_name(incident->verdict));
		json_add_text(o, "confidence", confidence_name(incident->confidence));
		json_add_text(o, "because", because_text(incident).text);
		json_add_text(o, "denied", denied_text(incident).text);
		json_add_int(o, "guest_cpu", incident->guest_cpu);
		json_add_int(o, "vcpu", incident->vcpu);
		json_add_int(o, "duration_ns", incident->end.ns - incident->begin.ns);
	} else if (s->firing) {
		json_add_text(o, "because", s->firing->text);
	}
	json_add_int(o, "stalls_without_folder", (int64_t)s->stalls_without_folder);
	if (!uname(&host)) {
		json_add_text(o, "host", host.nodename);
		json_add_text(o, "host_kernel", host.release);
	}
	return o;
}
