// SPDX-License-Identifier: GPL-2.0-only
#include "host-collector/cli/clock_live.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "bpf/kvmclock/kvm_clock.h"
#include "clock/sample.h"
#include "host-collector/cli/commands.h"
#include "host-collector/timeline/vm_clock.h"

enum {
	VM_NUMBER = 1,
	LOOKS = 3, /* a change between two sources looks like a disagreement; it does not last */
};

static const char *const source_names[] = {
	[VM_CLOCK_VCPU] = "struct kvm_vcpu",
	[VM_CLOCK_DEBUGFS] = "debugfs",
	[VM_CLOCK_GUEST_PAGE] = "the guest's page",
};

struct values {
	size_t n;
	struct message_vm_clock *at; /* the newest of each vCPU, source and part */
	struct vm_clock *clock;
	bool out_of_memory;
};

static bool same_kind(const struct message_vm_clock *a, const struct message_vm_clock *b)
{
	return a->vcpu == b->vcpu && a->source == b->source && a->tsc.known == b->tsc.known &&
	       a->pvclock.known == b->pvclock.known && a->master.known == b->master.known;
}

static void value_keep(void *context, const struct message_vm_clock *m)
{
	struct values *v = context;
	struct message_vm_clock *more;

	v->out_of_memory |= vm_clock_learn(v->clock, m) != 0;
	for (size_t i = 0; i < v->n; i++)
		if (same_kind(&v->at[i], m)) {
			v->at[i] = *m;
			return;
		}
	more = realloc(v->at, (v->n + 1) * sizeof(*more));
	v->out_of_memory |= !more;
	if (!more)
		return;
	v->at = more;
	v->at[v->n++] = *m;
}

static bool same_part(const struct message_vm_clock *a, const struct message_vm_clock *b)
{
	const struct message_vm_clock_pvclock *p = &a->pvclock, *q = &b->pvclock;

	if (a->tsc.known && b->tsc.known)
		return a->tsc.offset == b->tsc.offset && a->tsc.frac_bits == b->tsc.frac_bits &&
		       a->tsc.ratio == b->tsc.ratio;
	if (p->known && q->known)
		return p->tsc_timestamp == q->tsc_timestamp && p->system_time == q->system_time &&
		       p->mul == q->mul && p->shift == q->shift;
	return true; /* of different things */
}

/* Two values of one vCPU that contradict each other, or none. */
static bool disagreement_find(const struct values *v, size_t *one, size_t *other)
{
	for (*one = 0; *one < v->n; ++*one)
		for (*other = *one + 1; *other < v->n; ++*other)
			if (v->at[*one].vcpu == v->at[*other].vcpu &&
			    !same_part(&v->at[*one], &v->at[*other]))
				return true;
	return false;
}

static void value_print(const struct message_vm_clock *m, FILE *out)
{
	const struct message_vm_clock_pvclock *p = &m->pvclock;

	if (m->master.known)
		fprintf(out, "vm master_clock %s, offsets %s", m->master.used ? "on" : "off",
			m->master.offsets_matched ? "matched" : "not matched");
	else
		fprintf(out, "vcpu %u ", m->vcpu);
	if (m->tsc.known)
		fprintf(out, "tsc_offset %" PRId64, (int64_t)m->tsc.offset);
	if (m->tsc.known && m->tsc.frac_bits)
		fprintf(out, " scaling %" PRIu64 "/%u", m->tsc.ratio, m->tsc.frac_bits);
	if (p->known)
		fprintf(out,
			"pvclock tsc_timestamp=%" PRIu64 ",system_time=%" PRIu64
			",mul=%u,shift=%d,flags=%u",
			p->tsc_timestamp, p->system_time, p->mul, p->shift, p->flags);
	fprintf(out, " (%s)\n", source_names[m->source]);
}

/* Every vCPU's clocks at one instant. */
static void now_print(const struct vm_clock *clock, FILE *out)
{
	const struct host_tsc now = {clock_tsc_read()};
	struct vm_clock_vcpu vcpu;

	for (size_t i = 0; vm_clock_vcpu_get(clock, i, &vcpu); i++) {
		const struct guest_tsc tsc = tsc_scaling_to_guest(&vcpu.tsc, now);
		struct kvmclock_ns kvmclock;

		if (!vcpu.known) {
			fprintf(out, "vcpu %u now: TSC scaling unknown\n", vcpu.id);
			continue;
		}
		fprintf(out, "vcpu %u now host_tsc %" PRIu64 " guest_tsc %" PRIu64, vcpu.id,
			now.ticks, tsc.ticks);
		if (vm_clock_kvmclock(clock, vcpu.id, now, tsc, &kvmclock))
			fprintf(out, " kvmclock_ns %" PRIu64, kvmclock.ns);
		fprintf(out, "\n");
	}
}

static int show(const struct values *v, enum vm_protection protection, FILE *out)
{
	size_t one, other;

	for (size_t i = 0; i < v->n; i++)
		value_print(&v->at[i], out);
	if (disagreement_find(v, &one, &other)) {
		fprintf(out, "vcpu %u sources disagree: %s and %s\n", v->at[one].vcpu,
			source_names[v->at[one].source], source_names[v->at[other].source]);
		return COMMAND_TROUBLE;
	}
	if (protection != VM_PROTECTION_NONE) {
		fprintf(out,
			"the guest is protected (%s): its page is not read, and it may use other "
			"parameters than these\n",
			vm_protection_title(protection));
		return COMMAND_OK;
	}
	now_print(v->clock, out);
	fprintf(out, "sources agree; error 0 ns as long as these parameters hold\n");
	return COMMAND_OK;
}

int clock_live_show(pid_t pid, FILE *out)
{
	struct values v = {.clock = vm_clock_new()};
	const struct kvm_clock_sink sink = {value_keep, &v};
	struct kvm_clock *sources = NULL;
	size_t one, other;
	char why[256] = "";
	int status = COMMAND_TROUBLE, looks = 0;
	long n = -ENOMEM;

	v.out_of_memory = !v.clock;
	if (v.clock)
		n = kvm_clock_open(CAPTURE_BY_ANY, &sources, why, sizeof(why));
	if (!n) {
		n = kvm_clock_follow(sources, pid, VM_NUMBER);
		snprintf(why, sizeof(why), "process %d cannot be followed", pid);
	}
	if (!n) {
		do
			n = kvm_clock_snapshot(sources, pid, &sink, why, sizeof(why));
		while (n > 0 && ++looks < LOOKS && disagreement_find(&v, &one, &other));
	}
	if (v.out_of_memory)
		snprintf(why, sizeof(why), "out of memory");
	if (n < 0 || v.out_of_memory)
		fprintf(stderr, "vcpuscope clock: %s\n", why);
	else
		status = show(&v, kvm_clock_protection(sources, pid), out);
	kvm_clock_close(sources);
	vm_clock_free(v.clock);
	free(v.at);
	return status;
}
