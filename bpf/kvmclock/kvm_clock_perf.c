/* SPDX-License-Identifier: GPL-2.0-only */
#include "bpf/kvmclock/kvm_clock_perf.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bpf/capture/online_cpus.h"
#include "bpf/perf/perf_ring.h"
#include "bpf/prog/ring.h"
#include "bpf/capture/tracepoint_format.h"

enum {
	RING_PAGES = 16,
	FIELDS_MAX = 7,
	ALL_RECORDS = 1 << 16,
};

/* Fills an event's value from the values of the fields. Returns false if the event has no
 * meaning here. */
typedef bool (*event_filler)(const uint64_t *values, struct vs_kvm_clock_event *e);

struct clock_tracepoint {
	const char *name;
	const char *fields[FIELDS_MAX];
	event_filler fill;
};

struct kvm_clock_perf {
	struct tep_handle *tep;
	size_t n;
	struct {
		int id;
		const struct clock_tracepoint *source;
		struct tracepoint_field fields[FIELDS_MAX];
		size_t raw_bytes;
	} tracepoints[4];
	size_t n_cpus;
	struct perf_ring **rings; /* by CPU, NULL: offline */
	uint64_t dropped;
	void (*change)(void *context, const struct vs_kvm_clock_event *change);
	void *context;
};

static bool pvclock_fill(const uint64_t *v, struct vs_kvm_clock_event *e)
{
	e->type = VS_KVM_CLOCK_PVCLOCK;
	e->vcpu = (uint32_t)v[0];
	e->pvclock.version = (uint32_t)v[1];
	e->pvclock.tsc_timestamp = v[2];
	e->pvclock.system_time = v[3];
	e->pvclock.tsc_to_system_mul = (uint32_t)v[4];
	e->pvclock.tsc_shift = (int8_t)v[5];
	e->pvclock.flags = (uint8_t)v[6];
	return true;
}

static bool offset_fill(const uint64_t *v, struct vs_kvm_clock_event *e)
{
	e->type = VS_KVM_CLOCK_OFFSET;
	e->vcpu = (uint32_t)v[0];
	e->value = v[2];
	return v[1] != v[2];
}

static bool master_fill(const uint64_t *v, struct vs_kvm_clock_event *e)
{
	e->type = VS_KVM_CLOCK_MASTER;
	e->value = (v[0] ? 1 : 0) | (v[1] ? 2 : 0);
	return true;
}

static bool track_fill(const uint64_t *v, struct vs_kvm_clock_event *e)
{
	e->type = VS_KVM_CLOCK_MASTER;
	/* The vCPU that all others are compared with is not counted. */
	e->value = (v[2] ? 1 : 0) | (v[0] + 1 == v[1] ? 2 : 0);
	return true;
}

static const struct clock_tracepoint sources[] = {
	{"kvm_pvclock_update",
	 {"vcpu_id", "version", "tsc_timestamp", "system_time", "tsc_to_system_mul", "tsc_shift",
	  "flags"},
	 pvclock_fill},
	{"kvm_write_tsc_offset",
	 {"vcpu_id", "previous_tsc_offset", "next_tsc_offset"},
	 offset_fill},
	{"kvm_update_master_clock", {"use_master_clock", "offset_matched"}, master_fill},
	{"kvm_track_tsc", {"nr_vcpus_matched_tsc", "online_vcpus", "use_master_clock"}, track_fill},
};

/* False: this kernel has no such tracepoint, or it looks different. */
static bool tracepoint_add(struct kvm_clock_perf *p, const struct clock_tracepoint *source)
{
	struct tep_event *event;

	p->tracepoints[p->n].source = source;
	p->tracepoints[p->n].raw_bytes = 0;
	if (tracepoint_format_parse(p->tep, "kvm", source->name, &event))
		return false;
	for (size_t i = 0; i < FIELDS_MAX && source->fields[i]; i++) {
		const struct tep_format_field *field = tep_find_field(event, source->fields[i]);
		size_t end;

		if (!field || field->size <= 0 || field->size > 8 || field->offset < 0)
			return false;
		p->tracepoints[p->n].fields[i] = (struct tracepoint_field){
			.offset = (unsigned int)field->offset, .bytes = (unsigned int)field->size};
		end = (size_t)(field->offset + field->size);
		if (end > p->tracepoints[p->n].raw_bytes)
			p->tracepoints[p->n].raw_bytes = end;
	}
	p->tracepoints[p->n++].id = event->id;
	return true;
}

static int rings_open(struct kvm_clock_perf *p, char *why, size_t why_bytes)
{
	struct perf_ring_event events[4] = {0};
	struct perf_ring_options options = {
		.events = events, .n_events = p->n, .page_count = RING_PAGES};
	bool online[VS_CPUS_MAX];
	const int possible = possible_cpus_read(why, why_bytes);
	int error;

	if (possible < 0)
		return possible;
	p->n_cpus = (size_t)possible;
	p->rings = calloc(p->n_cpus, sizeof(*p->rings));
	error = p->rings ? online_cpus_read(online, p->n_cpus) : -ENOMEM;
	for (size_t i = 0; i < p->n; i++)
		events[i].id = p->tracepoints[i].id;
	for (size_t cpu = 0; cpu < p->n_cpus && error >= 0; cpu++) {
		options.cpu = (int)cpu;
		if (online[cpu])
			error = perf_ring_open(&options, &p->rings[cpu], why, why_bytes);
	}
	return error < 0 ? error : 0;
}

int kvm_clock_perf_open(struct kvm_clock_perf **out,
			void (*left_out)(void *context, const char *name), void *context, char *why,
			size_t why_bytes)
{
	struct kvm_clock_perf *p = calloc(1, sizeof(*p));
	int error = -ENOMEM;

	snprintf(why, why_bytes, "out of memory");
	if (p)
		p->tep = tep_alloc();
	if (!p || !p->tep)
		goto out;
	for (size_t i = 0; i < sizeof(sources) / sizeof(sources[0]); i++) {
		if (!tracepoint_add(p, &sources[i]))
			left_out(context, sources[i].name);
	}
	error = -EOPNOTSUPP;
	if (!p->n)
		snprintf(why, why_bytes,
			 "no KVM tracepoints in this kernel: is the kvm module loaded?");
	else
		error = rings_open(p, why, why_bytes);
out:
	if (error) {
		kvm_clock_perf_close(p);
		return error;
	}
	*out = p;
	return 0;
}

void kvm_clock_perf_close(struct kvm_clock_perf *p)
{
	if (!p)
		return;
	for (size_t cpu = 0; p->rings && cpu < p->n_cpus; cpu++)
		perf_ring_close(p->rings[cpu]);
	free(p->rings);
	tep_free(p->tep);
	free(p);
}

static void on_record(void *context, const struct perf_record *record)
{
	struct kvm_clock_perf *p = context;
	struct vs_kvm_clock_event e = {.time = record->time, .tgid = record->tgid};
	uint64_t values[FIELDS_MAX] = {0};
	uint16_t id = 0;
	size_t t = 0;

	p->dropped += record->lost;
	if (record->raw_bytes >= sizeof(id))
		memcpy(&id, record->raw, sizeof(id));
	while (t < p->n && p->tracepoints[t].id != id)
		t++;
	if (t == p->n || record->raw_bytes < p->tracepoints[t].raw_bytes)
		return;
	for (size_t i = 0; i < FIELDS_MAX; i++)
		memcpy(&values[i], record->raw + p->tracepoints[t].fields[i].offset,
		       p->tracepoints[t].fields[i].bytes);
	if (p->tracepoints[t].source->fill(values, &e))
		p->change(p->context, &e);
}

void kvm_clock_perf_read(struct kvm_clock_perf *p,
			 void (*change)(void *context, const struct vs_kvm_clock_event *change),
			 void *context)
{
	p->change = change;
	p->context = context;
	for (size_t cpu = 0; cpu < p->n_cpus; cpu++) {
		if (p->rings[cpu])
			perf_ring_read(p->rings[cpu], ALL_RECORDS, on_record, p);
	}
}

uint64_t kvm_clock_perf_dropped(const struct kvm_clock_perf *p)
{
	return p->dropped;
}
