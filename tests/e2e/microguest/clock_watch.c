// SPDX-License-Identifier: GPL-2.0-only
#include "clock_watch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static bool feeds_map(const struct watch *w, const struct message_vm_clock *m)
{
	if (m->source == VM_CLOCK_VCPU)
		return m->tsc.known; /* the offset in force */
	return m->source == w->line_source;
}

void watch_value(void *context, const struct message_vm_clock *m)
{
	struct watch *w = context;
	enum part part;

	assert_int_equal(m->vm, VM_NUMBER);
	assert_true(m->vcpu < VMM_VCPUS);
	assert_true(m->from_min <= m->from_max);
	assert_int_equal(m->tsc.known + m->pvclock.known + m->master.known, 1);
	part = m->tsc.known ? TSC : m->pvclock.known ? LINE : MASTER;
	w->last[m->vcpu][m->source][part] = *m;
	w->n_values[m->vcpu][m->source][part]++;
	if (!feeds_map(w, m))
		return;
	assert_true(w->n_pending < PENDING_MAX);
	w->pending[w->n_pending++] = *m;
}

static int older(const void *a, const void *b)
{
	const struct message_vm_clock *p = a, *q = b;

	return p->from_min < q->from_min ? -1 : p->from_min > q->from_min;
}

void watch_maps_update(struct watch *w)
{
	qsort(w->pending, w->n_pending, sizeof(*w->pending), older);
	for (size_t i = 0; i < w->n_pending; i++) {
		const struct message_vm_clock *m = &w->pending[i];
		struct clock_params *p = &w->params[m->vcpu];

		if (m->source == VM_CLOCK_VCPU) {
			p->scaling = (struct tsc_scaling){.offset = m->tsc.offset,
							  .ratio = m->tsc.ratio,
							  .frac_bits = m->tsc.frac_bits};
			w->offset_known[m->vcpu] = true;
		} else {
			p->has_pvclock = true;
			p->pvclock = (struct pvclock){.tsc_timestamp = m->pvclock.tsc_timestamp,
						      .system_time = m->pvclock.system_time,
						      .mul = m->pvclock.mul,
						      .shift = m->pvclock.shift,
						      .flags = m->pvclock.flags};
		}
		/* The vCPU is in the host from from_min to from_max: both are right. */
		if (w->offset_known[m->vcpu])
			assert_true(clock_map_push(w->maps[m->vcpu], (struct host_tsc){m->from_min},
						   p) >= 0);
	}
	w->n_pending = 0;
}

void watch_start(struct watch *w, bool passive, pid_t pid)
{
	char why[256] = "";

	memset(w, 0, sizeof(*w));
	w->line_source = passive ? VM_CLOCK_GUEST_PAGE : VM_CLOCK_PVCLOCK_UPDATE;
	w->pid = pid;
	if (kvm_clock_open(CAPTURE_BY_BPF, &w->sources, why, sizeof(why)))
		fail_msg("%s", why);
	for (uint32_t vcpu = 0; vcpu < VMM_VCPUS; vcpu++)
		assert_non_null(w->maps[vcpu] = clock_map_new());
	assert_int_equal(kvm_clock_follow(w->sources, pid, VM_NUMBER), 0);
}

void watch_stop(struct watch *w)
{
	for (uint32_t vcpu = 0; vcpu < VMM_VCPUS; vcpu++)
		clock_map_free(w->maps[vcpu]);
	kvm_clock_close(w->sources);
}

static size_t writes(const struct watch *w)
{
	size_t n = 0;

	for (uint32_t vcpu = 0; vcpu < VMM_VCPUS; vcpu++)
		n += w->n_values[vcpu][VM_CLOCK_WRITE_TSC_OFFSET][TSC];
	return n;
}

void watch_snapshot(struct watch *w)
{
	const struct kvm_clock_sink sink = {watch_value, w};
	char why[256] = "";

	if (kvm_clock_snapshot(w->sources, w->pid, &sink, why, sizeof(why)) != VMM_VCPUS)
		fail_msg("snapshot: %s", why);
	watch_maps_update(w);
}

void watch_drain(struct watch *w)
{
	const struct kvm_clock_sink sink = {watch_value, w};
	size_t before = writes(w);

	assert_true(kvm_clock_drain(w->sources, &sink) >= 0);
	assert_int_equal(kvm_clock_dropped(w->sources), 0);
	if (writes(w) > before)
		watch_snapshot(w); /* what became of the request */
	watch_maps_update(w);
}

int64_t watch_residual(const struct watch *w, uint32_t vcpu, const struct vmm_pair *pair)
{
	const struct guest_tsc read = {pair->guest_tsc};
	struct kvmclock_ns predicted;
	struct host_tsc host;
	uint64_t span;

	assert_true(clock_map_from_guest_tsc(w->maps[vcpu], read, &host, &span));
	assert_in_range(host.ticks, pair->host_before, pair->host_after);
	assert_true(clock_map_kvmclock(w->maps[vcpu], host, &predicted));
	return (int64_t)(pair->kvmclock_ns - predicted.ns);
}
