/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/fleet/figures_record.h"

#include <json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host-collector/fleet/incident_record.h"
#include "host-collector/util/json_add.h"

enum { KEY_BYTES = 64 };

/* An object of numbers that are not 0. */
static void known_add(struct json_object *to, const char *key, int64_t n)
{
	if (n)
		json_add_int(to, key, n);
}

static void member_add(struct json_object *to, const char *name, const char *end,
		       struct json_object *value)
{
	char key[KEY_BYTES];

	snprintf(key, sizeof(key), "%s_%s", name, end);
	json_object_object_add(to, key, value);
}

static void histogram_add_json(struct json_object *to, const char *name,
			       const struct histogram *before, const struct histogram *now)
{
	uint64_t *counts = calloc(2 * HISTOGRAM_COARSE_BUCKETS, sizeof(*counts));
	struct json_object *buckets, *numbers;
	uint64_t *old;

	if (!counts || now->count == (before ? before->count : 0)) {
		free(counts);
		return;
	}
	old = counts + HISTOGRAM_COARSE_BUCKETS;
	histogram_coarse(now, counts);
	if (before)
		histogram_coarse(before, old);
	buckets = json_object_new_array();
	numbers = json_object_new_array();
	for (int b = 0; b < HISTOGRAM_COARSE_BUCKETS; b++) {
		if (counts[b] == old[b])
			continue;
		json_object_array_add(buckets, json_object_new_int64(b));
		json_object_array_add(numbers, json_object_new_uint64(counts[b] - old[b]));
	}
	free(counts);
	member_add(to, name, "buckets", buckets);
	member_add(to, name, "counts", numbers);
	member_add(to, name, "sum_ns",
		   json_object_new_uint64(now->sum_ns - (before ? before->sum_ns : 0)));
}

static void histograms_add(struct json_object *to, const struct metrics_vm *before,
			   const struct metrics_vm *now)
{
	static const char *const causes[] = {[RUN_DELAY_WOKEN] = "run_delay_wakeup",
					     [RUN_DELAY_PREEMPTED] = "run_delay_preempted"};
	char name[KEY_BYTES];

	for (int c = 0; c < RUN_DELAY_CAUSES; c++)
		histogram_add_json(to, causes[c], before ? &before->delays[c] : NULL,
				   &now->delays[c]);
	histogram_add_json(to, "exit_handling", before ? &before->exits : NULL, &now->exits);
	for (int s = 0; s < CHAIN_SOURCE_COUNT; s++) {
		snprintf(name, sizeof(name), "interrupt_latency_%s",
			 chain_source_name((enum chain_source)s));
		histogram_add_json(to, name, before ? &before->interrupts[s] : NULL,
				   &now->interrupts[s]);
	}
	for (int s = 0; s < CHAIN_STAGE_COUNT; s++) {
		if (s == CHAIN_STAGE_LATENCY)
			continue; /* by source, above */
		snprintf(name, sizeof(name), "interrupt_%s", chain_stage_name((enum chain_stage)s));
		histogram_add_json(to, name, before ? &before->stages[s] : NULL, &now->stages[s]);
	}
}

static const struct metrics_reason *reason_before(const struct metrics_vm *before, const char *name)
{
	for (size_t i = 0; before && i < before->n_reasons; i++) {
		if (!strcmp(before->reasons[i].name, name))
			return &before->reasons[i];
	}
	return NULL;
}

static void exits_add(struct json_object *to, const struct metrics_vm *before,
		      const struct metrics_vm *now)
{
	struct json_object *exits = json_object_new_object(), *ns = json_object_new_object();

	for (size_t i = 0; i < now->n_reasons; i++) {
		const struct metrics_reason *r = &now->reasons[i];
		const struct metrics_reason *b = reason_before(before, r->name);

		if (r->exits == (b ? b->exits : 0))
			continue;
		/* The names are from a fixed set, but json_add wants literals. */
		json_object_object_add(exits, r->name,
				       json_object_new_uint64(r->exits - (b ? b->exits : 0)));
		json_object_object_add(
			ns, r->name,
			json_object_new_int64(r->handling_ns - (b ? b->handling_ns : 0)));
	}
	json_add(to, "exits", exits);
	json_add(to, "exits_ns", ns);
}

static void states_add(struct json_object *to, const struct metrics_vm *before,
		       const struct metrics_vm *now)
{
	struct json_object *states = json_object_new_object();
	int64_t observed = 0;

	for (int s = 0; s < VCPU_STATE_COUNT; s++) {
		const int64_t ns = now->state_ns[s] - (before ? before->state_ns[s] : 0);

		json_add_int(states, vcpu_state_name((enum vcpu_state)s), ns);
		observed += s == VCPU_UNKNOWN ? 0 : ns;
	}
	json_add_int(to, "observed_ns", observed);
	json_add(to, "states_ns", states);
}

static void incidents_add(struct json_object *to, const struct metrics_vm *before,
			  const struct metrics_vm *now)
{
	struct json_object *n = json_object_new_object(), *ns = json_object_new_object();

	for (int v = 0; v < VERDICT_COUNT; v++) {
		const char *name = verdict_name((enum verdict)v);

		known_add(n, name,
			  (int64_t)(now->incidents[v] - (before ? before->incidents[v] : 0)));
		known_add(ns, name, now->incident_ns[v] - (before ? before->incident_ns[v] : 0));
	}
	json_add(to, "incidents", n);
	json_add(to, "incident_ns", ns);
}

static void counts_add(struct json_object *to, const struct figures_record *r)
{
	static const struct figures_counters none;
	const struct figures_counters *b = r->before ? r->before : &none, *n = r->now;

	if (r->has_agent)
		json_add_bool(to, "agent_up", r->up);
	else
		json_add(to, "agent_up", NULL);
	json_add_uint(to, "host_events", n->host_events - b->host_events);
	json_add_uint(to, "host_events_lost", n->host_events_lost - b->host_events_lost);
	json_add_uint(to, "guest_events", n->guest_events - b->guest_events);
	json_add_uint(to, "guest_events_lost", n->guest_events_lost - b->guest_events_lost);
}

struct json_object *figures_record_json(const struct figures_record *r)
{
	const struct metrics_vm *before = r->before ? &r->before->vm : NULL, *now = &r->now->vm;
	struct json_object *o = json_object_new_object();
	char text[256], id[HOST_ID_BYTES];

	if (!o)
		return NULL;
	fleet_hash(text,
		   (size_t)snprintf(text, sizeof(text), "%s %s %s %s %lld figures", r->host->id,
				    r->host->boot_id, r->vm->uuid, r->vm->name,
				    (long long)r->begin_ns),
		   id);
	json_add_text(o, "schema", "vcpuscope.figures/1");
	json_add_text(o, "figures_id", id);
	json_add_int(o, "begin_realtime_ns", r->begin_realtime_ns);
	json_add_int(o, "end_realtime_ns", r->end_realtime_ns);
	json_add_int(o, "interval_ns", r->interval_ns);
	record_host_add(o, r->host);
	record_vm_add(o, r->vm);
	json_add_text(o, "level", r->summary ? "summary" : "detail");
	json_add_int(o, "vcpus", now->vcpus);
	states_add(o, before, now);
	counts_add(o, r);
	incidents_add(o, before, now);
	exits_add(o, before, now);
	json_add_uint(o, "interrupts_late",
		      now->interrupts_late - (before ? before->interrupts_late : 0));
	json_add_uint(o, "interrupts_lost",
		      now->interrupts_lost - (before ? before->interrupts_lost : 0));
	histograms_add(o, before, now);
	return o;
}
