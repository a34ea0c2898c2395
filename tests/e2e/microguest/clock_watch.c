// SPDX-License-Identifier: GPL-2.0-only
#include "clock_watch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

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
	if (part != LINE || !w->line_source || m->source == w->line_source)
		assert_int_equal(vm_clock_learn(w->clock, m), 0);
}

void watch_start(struct watch *w, bool passive, pid_t pid)
{
	char why[256] = "";

	memset(w, 0, sizeof(*w));
	w->line_source = passive ? VM_CLOCK_GUEST_PAGE : VM_CLOCK_PVCLOCK_UPDATE;
	w->pid = pid;
	if (kvm_clock_open(CAPTURE_BY_BPF, &w->sources, why, sizeof(why)))
		fail_msg("%s", why);
	assert_non_null(w->clock = vm_clock_new());
	assert_int_equal(kvm_clock_follow(w->sources, pid, VM_NUMBER), 0);
}

void watch_stop(struct watch *w)
{
	vm_clock_free(w->clock);
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
	assert_int_equal(kvm_clock_protection(w->sources, w->pid), VM_PROTECTION_NONE);
}

void watch_drain(struct watch *w)
{
	const struct kvm_clock_sink sink = {watch_value, w};
	size_t before = writes(w);

	assert_true(kvm_clock_drain(w->sources, &sink) >= 0);
	assert_int_equal(kvm_clock_dropped(w->sources), 0);
	if (writes(w) > before)
		watch_snapshot(w); /* what became of the request */
}

void watch_observe(struct watch *w, const struct vmm_pair *pair)
{
	const struct echo_observation o = {
		.sent = {pair->host_before},
		.guest_received = pair->guest_tsc,
		.guest_sent = pair->guest_tsc,
		.received = {pair->host_after},
	};

	vm_clock_observe(w->clock, &o);
}

static bool same_scale(const struct message_vm_clock_tsc *a, const struct message_vm_clock_tsc *b)
{
	return a->frac_bits == b->frac_bits && a->ratio == b->ratio;
}

/* Each vCPU's TSC is known: every offset that KVM requested took effect. */
static bool tsc_settled(const struct watch *w)
{
	for (uint32_t vcpu = 0; vcpu < VMM_VCPUS; vcpu++) {
		const struct message_vm_clock_tsc *in_force =
			&w->last[vcpu][VM_CLOCK_VCPU][TSC].tsc;

		if (!in_force->known || !same_scale(in_force, &w->last[0][VM_CLOCK_VCPU][TSC].tsc))
			return false;
		if (w->n_values[vcpu][VM_CLOCK_WRITE_TSC_OFFSET][TSC] &&
		    w->last[vcpu][VM_CLOCK_WRITE_TSC_OFFSET][TSC].tsc.offset != in_force->offset)
			return false;
	}
	return true;
}

/* New parameters may have come into force while the guest read its clocks. */
static bool changed(const struct watch *w, uint32_t vcpu, const struct vmm_pair *pair)
{
	struct vm_clock_epoch epoch;
	struct vm_clock_line line;

	for (size_t i = 1; vm_clock_epoch_get(w->clock, i, &epoch); i++)
		if (epoch.from_min <= pair->host_after && epoch.from_max >= pair->host_before)
			return true;
	for (size_t i = 0; vm_clock_line_get(w->clock, i, &line); i++)
		if (line.vcpu == vcpu && line.from_min && line.from_min <= pair->host_after &&
		    line.from_max >= pair->host_before)
			return true;
	return false;
}

/* The guest's TSC was set back and has read this value in several epochs. */
static bool read_twice(const struct watch *w, uint32_t vcpu, struct guest_tsc read)
{
	struct vm_clock_epoch epoch, next;
	size_t n = 0;

	for (size_t i = 0; vm_clock_epoch_get(w->clock, i, &epoch); i++) {
		uint64_t end =
			vm_clock_epoch_get(w->clock, i + 1, &next) ? next.from_max : UINT64_MAX;
		struct tsc_scaling tsc = epoch.tsc;
		struct host_tsc at;
		uint64_t span;

		for (size_t k = 0; k < epoch.n_offsets; k++)
			if (epoch.offsets[k].vcpu == vcpu)
				tsc.offset = epoch.offsets[k].offset;
		n += epoch.known && tsc_scaling_to_host(&tsc, read, &at, &span) &&
		     (!i || at.ticks + span >= epoch.from_min) && at.ticks <= end;
	}
	return n > 1;
}

/* So soon after or before a change of TSCs that are apart, a value may be of either epoch: without
 * the vCPUs' lines, which come later, it has an interval. */
static bool near_change(const struct watch *w, const struct vmm_pair *pair)
{
	const uint64_t reach = 4 * vm_clock_apart(w->clock);
	struct vm_clock_epoch epoch;

	for (size_t i = 1; vm_clock_epoch_get(w->clock, i, &epoch); i++)
		if (epoch.from_min <= pair->host_after + reach &&
		    epoch.from_max + reach >= pair->host_before)
			return true;
	return false;
}

/* The epoch that was in force. */
static struct vm_clock_epoch epoch_at(const struct watch *w, uint64_t host)
{
	struct vm_clock_epoch found = {0}, epoch;

	for (size_t i = 0; vm_clock_epoch_get(w->clock, i, &epoch); i++)
		if (!i || epoch.from_max <= host)
			found = epoch;
	return found;
}

/* The vCPUs' kvmclocks differ: a guest that writes its TSC moves its own, and no line follows. */
static bool kvmclocks_apart(const struct watch *w, const struct vm_clock_epoch *epoch,
			    struct host_tsc host)
{
	struct kvmclock_ns ns, first = {0};

	for (size_t i = 0; i < epoch->n_offsets; i++) {
		struct tsc_scaling tsc = epoch->tsc;

		tsc.offset = epoch->offsets[i].offset;
		if (!vm_clock_kvmclock(w->clock, epoch->offsets[i].vcpu, host,
				       tsc_scaling_to_guest(&tsc, host), &ns))
			return true;
		if (!i)
			first = ns;
		if (llabs((int64_t)(ns.ns - first.ns)) > 1000)
			return true;
	}
	return false;
}

static void check_interval(const struct vmm_pair *pair, struct host_tsc first, uint64_t span)
{
	assert_true(first.ticks <= pair->host_after && first.ticks + span >= pair->host_before);
}

/* Converts the reading's guest TSC, by its vCPU's map and as if its vCPU were unknown. Returns
 * false if the engine must not and does not. wide: its interval predicts nothing, because KVM sends
 * a vCPU's line again up to 100 ms after a change of another's. */
static bool host_tsc_of(const struct watch *w, uint32_t vcpu, const struct vmm_pair *pair,
			struct host_tsc *out, bool *wide)
{
	static const struct vm_clock_window always = {0, UINT64_MAX};
	const struct guest_tsc read = {pair->guest_tsc};
	const struct vm_clock_epoch epoch = epoch_at(w, pair->host_before);
	enum vm_clock_trust trust;
	struct guest_tsc back;
	struct host_tsc any;
	uint64_t span;

	trust = vm_clock_to_host(w->clock, &always, vcpu, read, out, &span);
	if (trust == VM_CLOCK_SILENT) {
		assert_true(!tsc_settled(w) || changed(w, vcpu, pair) ||
			    read_twice(w, vcpu, read) || near_change(w, pair));
		return false;
	}
	assert_int_equal(trust, VM_CLOCK_PROVEN);
	assert_true(tsc_settled(w) && !read_twice(w, vcpu, read));
	check_interval(pair, *out, span);
	if (epoch.apart) {
		/* The interval is as wide as the kvmclocks are apart, to either side. */
		out->ticks += span / 2;
		*wide = span >= epoch.apart && !near_change(w, pair) &&
			!kvmclocks_apart(w, &epoch, *out);
	}
	if (vm_clock_to_host(w->clock, &always, VM_CLOCK_ANY_VCPU, read, &any, &span) ==
	    VM_CLOCK_PROVEN)
		check_interval(pair, any, span);
	assert_true(vm_clock_to_guest(w->clock, *out, &back, &span));
	assert_true(read.ticks - back.ticks <= span);
	if (!epoch.apart)
		assert_int_equal(back.ticks, read.ticks);
	return true;
}

bool watch_residual(const struct watch *w, uint32_t vcpu, const struct vmm_pair *pair,
		    int64_t *residual_ns)
{
	const struct guest_tsc read = {pair->guest_tsc};
	struct host_tsc first = {pair->host_before}, last = {pair->host_after};
	struct kvmclock_ns predicted, again;
	bool wide = false;

	if (host_tsc_of(w, vcpu, pair, &first, &wide))
		last = first;
	if (wide)
		return false;
	if (!vm_clock_kvmclock(w->clock, vcpu, first, read, &predicted) ||
	    !vm_clock_kvmclock(w->clock, vcpu, last, read, &again) || predicted.ns != again.ns) {
		assert_true(changed(w, vcpu, pair));
		return false;
	}
	*residual_ns = (int64_t)(pair->kvmclock_ns - predicted.ns);
	return true;
}
