/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/analyze/exits.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "host-collector/model/lru.h"

enum { REASONS_MAX = 16384, VCPUS_MAX = 4096 };

/* The exit that a vCPU is in. */
struct exit_open {
	struct vcpu_exit exit;
	int64_t state_ns[VCPU_STATE_COUNT];
};

struct exits {
	struct figures_options options;
	struct lru reason_index, total_index, vcpu_index;
	struct exit_reason *reasons;
	int64_t *totals; /* ns */
	struct exit_open *open;
	int error;
};

static void reason_clear(struct exit_reason *r)
{
	histogram_fini(&r->handling);
	memset(r, 0, sizeof(*r));
}

static struct exit_reason *reason_get(struct exits *x, uint32_t vm, uint32_t vcpu,
				      const struct vcpu_exit *exit)
{
	uint32_t kept = x->options.per_vcpu ? vcpu : 0;
	uint64_t key = (uint64_t)vm << 46 | (uint64_t)kept << 36 | (uint64_t)(exit->isa & 3) << 32 |
		       exit->reason;
	struct exit_reason *r;
	bool fresh;

	r = &x->reasons[lru_put(&x->reason_index, key, &fresh)];
	if (fresh) {
		reason_clear(r);
		r->vm = vm;
		r->vcpu = kept;
		r->reason = exit->reason;
		r->isa = exit->isa;
	}
	return r;
}

static void total_add(struct exits *x, const struct vcpu_span *span, int64_t ns)
{
	uint32_t vcpu = x->options.per_vcpu ? span->vcpu : 0;
	bool fresh;
	uint32_t slot = lru_put(&x->total_index, (uint64_t)span->vm << 32 | vcpu, &fresh);

	x->totals[slot] = fresh ? ns : x->totals[slot] + ns;
}

static void exit_end(struct exits *x, const struct vcpu_span *next, const struct exit_open *o,
		     bool whole)
{
	const int64_t *ns = o->state_ns;
	int64_t handling_ns = ns[VCPU_KVM] + ns[VCPU_VMM];
	struct exit_reason *r;

	whole = whole && !ns[VCPU_UNKNOWN];
	if (whole)
		total_add(x, next, handling_ns);
	if (whole && handling_ns < x->options.than_ns)
		return;
	r = reason_get(x, next->vm, next->vcpu, &o->exit);
	if (!whole) {
		r->torn++;
		return;
	}
	r->kernel_ns += ns[VCPU_KVM];
	r->vmm_ns += ns[VCPU_VMM];
	r->scheduled_out_ns += ns[VCPU_RUNNABLE] + ns[VCPU_THROTTLED] + ns[VCPU_STOPPED];
	r->slept_ns += ns[VCPU_HALTED] + ns[VCPU_BLOCKED];
	if (histogram_add(&r->handling, (uint64_t)handling_ns))
		x->error = -ENOMEM;
}

static void span_take(void *context, const struct vcpu_span *span)
{
	struct exits *x = context;
	struct exit_open *o;
	bool fresh;

	o = &x->open[lru_put(&x->vcpu_index, (uint64_t)span->vm << 32 | span->vcpu, &fresh)];
	if (fresh)
		memset(o, 0, sizeof(*o));
	if (o->exit.serial && o->exit.serial != span->exit.serial)
		exit_end(x, span, o, span->state == VCPU_GUEST);
	if (o->exit.serial != span->exit.serial)
		*o = (struct exit_open){.exit = span->exit};
	if (span->exit.serial)
		o->state_ns[span->state] += span->end.ns - span->begin.ns;
}

struct exits *exits_new(struct model *m, const struct figures_options *options)
{
	struct exits *x = calloc(1, sizeof(*x));
	struct model_observer observer = {.vcpu_span = span_take, .context = x};

	if (!x)
		return NULL;
	if (options)
		x->options = *options;
	x->reasons = calloc(REASONS_MAX, sizeof(*x->reasons));
	x->totals = calloc(VCPUS_MAX, sizeof(*x->totals));
	x->open = calloc(VCPUS_MAX, sizeof(*x->open));
	if (!x->reasons || !x->totals || !x->open || lru_init(&x->reason_index, REASONS_MAX) ||
	    lru_init(&x->total_index, VCPUS_MAX) || lru_init(&x->vcpu_index, VCPUS_MAX) ||
	    model_observe(m, &observer)) {
		exits_free(x);
		return NULL;
	}
	return x;
}

void exits_free(struct exits *x)
{
	if (!x)
		return;
	for (unsigned i = 0; x->reasons && i < REASONS_MAX; i++)
		reason_clear(&x->reasons[i]);
	lru_fini(&x->reason_index);
	lru_fini(&x->total_index);
	lru_fini(&x->vcpu_index);
	free(x->reasons);
	free(x->totals);
	free(x->open);
	free(x);
}

void exits_clear(struct exits *x)
{
	for (uint32_t slot = 0; slot < REASONS_MAX; slot++) {
		if (lru_used(&x->reason_index, slot))
			lru_remove(&x->reason_index, slot);
	}
	for (uint32_t slot = 0; slot < VCPUS_MAX; slot++) {
		if (lru_used(&x->total_index, slot))
			lru_remove(&x->total_index, slot);
	}
}

int exits_error(const struct exits *x)
{
	return x->error;
}

const struct exit_reason *exits_reason(const struct exits *x, size_t index)
{
	for (uint32_t slot = 0; slot < REASONS_MAX; slot++) {
		if (lru_used(&x->reason_index, slot) && !index--)
			return &x->reasons[slot];
	}
	return NULL;
}

int64_t exits_handling_ns(const struct exits *x, uint32_t vm, uint32_t vcpu)
{
	uint32_t slot = lru_find(&x->total_index, (uint64_t)vm << 32 | vcpu);

	return slot == LRU_NONE ? 0 : x->totals[slot];
}
