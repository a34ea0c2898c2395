// SPDX-License-Identifier: GPL-2.0-only
#include "host-collector/record/vm_clocks.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "bpf/kvmclock/kvm_clock.h"
#include "host-collector/timeline/vm_clock.h"

enum {
	/* A guest whose TSC KVM must correct at every entry changes thousands of times a second. */
	LOOK_AGAIN_MS = 100,
	LOOK_REGULARLY_MS = 10000,
	LOOK_WITHOUT_TRACEPOINTS_MS = 1000,
	/* Written at once, and for every ms that passes half of one more. */
	CHANGES_BURST = 1000,
};

struct vm_clocks {
	struct kvm_clock *sources;
	struct host_stream *host;
	struct vm_clock *known; /* what was written: for the live line */
	pid_t pid;
	enum vm_protection protection; /* KVM sets it before a VM has vCPUs */
	bool look;                     /* something changed whose outcome only a snapshot shows */
	uint64_t looked_ms, period_ms;
	uint64_t dropped, left_out;
	uint64_t refilled_ms;
	double allowance;
	int error; /* of the sink, during a drain */
};

static bool is_change(enum vm_clock_source source)
{
	return source == VM_CLOCK_PVCLOCK_UPDATE || source == VM_CLOCK_WRITE_TSC_OFFSET ||
	       source == VM_CLOCK_MASTER_CLOCK;
}

static bool allowed(struct vm_clocks *c)
{
	if (c->allowance >= 1) {
		c->allowance--;
		return true;
	}
	c->left_out++;
	c->look = true;
	return false;
}

static void on_value(void *context, const struct message_vm_clock *value)
{
	struct vm_clocks *c = context;
	int error = 0;

	/* A snapshot is small and rare; how many changes there are, the guest decides. */
	if (!is_change(value->source) || allowed(c)) {
		error = host_stream_vm_clock(c->host, value);
		if (!error)
			error = vm_clock_learn(c->known, value);
	}
	if (!c->error)
		c->error = error;
	/* An offset is only asked for, and who changes the rules changes what follows from them. */
	c->look |= value->source == VM_CLOCK_WRITE_TSC_OFFSET ||
		   value->source == VM_CLOCK_MASTER_CLOCK;
}

static long look(struct vm_clocks *c, char *why, size_t why_bytes)
{
	const struct kvm_clock_sink sink = {on_value, c};

	c->look = false;
	return kvm_clock_snapshot(c->sources, c->pid, &sink, why, why_bytes);
}

int vm_clocks_open(struct host_stream *host, enum backend_choice backend, pid_t pid, uint32_t vm,
		   struct vm_clocks **out, char *why, size_t why_bytes)
{
	struct vm_clocks *c = calloc(1, sizeof(*c));
	long n = -ENOMEM;
	int error;

	snprintf(why, why_bytes, "out of memory");
	if (!c)
		return -ENOMEM;
	c->host = host;
	c->pid = pid;
	c->allowance = CHANGES_BURST;
	c->known = vm_clock_new();
	if (!c->known) {
		error = -ENOMEM;
		goto fail;
	}
	error = kvm_clock_open(backend, &c->sources, why, why_bytes);
	if (error)
		goto fail;
	error = kvm_clock_follow(c->sources, pid, vm);
	if (!error) {
		n = look(c, why, why_bytes);
		error = n < 0 ? (int)n : c->error;
	}
	if (error)
		goto fail;
	c->protection = kvm_clock_protection(c->sources, pid);
	vm_clock_protect(c->known, c->protection);
	c->period_ms = LOOK_REGULARLY_MS;
	why[0] = '\0';
	if (*kvm_clock_left_out(c->sources)) {
		c->period_ms = LOOK_WITHOUT_TRACEPOINTS_MS;
		snprintf(why, why_bytes, "KVM's clocks are known less exactly, without %s",
			 kvm_clock_left_out(c->sources));
	}
	*out = c;
	return 0;
fail:
	vm_clocks_close(c);
	return error;
}

void vm_clocks_close(struct vm_clocks *c)
{
	if (!c)
		return;
	kvm_clock_close(c->sources);
	vm_clock_free(c->known);
	free(c);
}

void vm_clocks_observe(struct vm_clocks *c, const struct echo_observation *o)
{
	vm_clock_observe(c->known, o);
}

enum vm_protection vm_clocks_protection(const struct vm_clocks *c)
{
	return c->protection;
}

bool vm_clocks_exact(const struct vm_clocks *c)
{
	struct vm_clock_summary summary;

	vm_clock_summarise(c->known, &summary);
	return summary.proven;
}

bool vm_clocks_contested(const struct vm_clocks *c)
{
	struct vm_clock_summary summary;

	vm_clock_summarise(c->known, &summary);
	return summary.contested;
}

uint64_t vm_clocks_left_out(const struct vm_clocks *c)
{
	return c->left_out;
}

int vm_clocks_drain(struct vm_clocks *c, uint64_t now_ms)
{
	const struct kvm_clock_sink sink = {on_value, c};
	uint64_t dropped = kvm_clock_dropped(c->sources);
	long n;

	c->error = 0;
	c->allowance += (double)(now_ms - c->refilled_ms) / 2;
	if (c->allowance > CHANGES_BURST)
		c->allowance = CHANGES_BURST;
	c->refilled_ms = now_ms;
	n = kvm_clock_drain(c->sources, &sink);
	if (n < 0)
		return (int)n;
	c->look |= dropped != c->dropped;
	c->left_out += dropped - c->dropped;
	c->dropped = dropped;
	if (now_ms - c->looked_ms >= (c->look ? LOOK_AGAIN_MS : c->period_ms)) {
		char why[160];

		c->looked_ms = now_ms;
		n = look(c, why, sizeof(why));
		/* A VM that is going away has no vCPUs any more. */
		if (n < 0 && n != -ENOENT && n != -ESRCH)
			return (int)n;
	}
	return c->error;
}
