/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/daemon/figures_interval.h"

#include <json.h>

#include "clock/sample.h"
#include "host-collector/daemon/record_facts.h"

void figures_interval_begin(struct figures_interval *i)
{
	i->begin_ms = clock_monotonic_ms();
	i->begin_ns = (int64_t)i->begin_ms * 1000000;
	i->begin_realtime_ns = clock_realtime_ns();
}

void figures_interval_fini(struct figures_interval *i)
{
	if (i->has_before)
		metrics_vm_fini(&i->before.vm);
	i->has_before = false;
}

static int counters_get(const struct figures_of *of, struct figures_counters *out)
{
	struct incident_record counts = {0};
	const int err = metrics_vm_get(of->metrics, 0, &out->vm);

	record_counts(of->live, &counts);
	out->host_events = counts.host_events;
	out->host_events_lost = counts.host_events_lost;
	out->guest_events = counts.guest_events;
	out->guest_events_lost = counts.guest_events_lost;
	return err;
}

size_t figures_interval_line(struct figures_interval *i, const struct figures_of *of, char *line,
			     size_t bytes)
{
	const struct vm_config *config = watched_vm_config(of->vm);
	struct figures_record record = {.host = of->host, .vm = of->facts};
	struct watched_vm_status status;
	struct figures_counters now;
	struct json_object *json;
	size_t len;

	if (counters_get(of, &now)) {
		metrics_vm_fini(&now.vm);
		return 0;
	}
	watched_vm_status_get(of->vm, &status);
	record.begin_ns = i->begin_ns;
	record.begin_realtime_ns = i->begin_realtime_ns;
	record.end_realtime_ns = clock_realtime_ns();
	record.interval_ns = (int64_t)(clock_monotonic_ms() - i->begin_ms) * 1000000;
	record.summary = status.shed || config->level == CAPTURE_SUMMARY;
	record.has_agent = *config->channel;
	record.up = status.state == WATCHED_RUNNING && status.collector.agent_silent_ms &&
		    status.collector.agent_silent_ms <= COLLECTOR_SILENT_MS;
	record.before = i->has_before ? &i->before : NULL;
	record.now = &now;
	json = figures_record_json(&record);
	len = incident_record_line(json, line, bytes);
	json_object_put(json);
	figures_interval_fini(i);
	i->before = now;
	i->has_before = true;
	figures_interval_begin(i);
	return len;
}
