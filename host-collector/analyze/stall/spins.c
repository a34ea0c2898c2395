/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/analyze/stall/spins.h"

#include <string.h>

#include "host-collector/analyze/stall/describe.h"

/* A name that ends in '*' stands for all names with this begin. Suffixes of the compiler, such as
 * ".isra.0", are ignored. The first row that fits is used. */
static const struct {
	const char *name;
	enum spin_kind kind;
	bool helper; /* it waits for its caller, which shows what for */
} functions[] = {
	/* A paravirtual lock waits in these functions after it has spun for a while. */
	{"pv_native_safe_halt", SPIN_NONE, true},
	{"native_safe_halt", SPIN_NONE, true},
	{"native_halt", SPIN_NONE, true},
	{"kvm_wait", SPIN_LOCK, false},
	{"xen_qlock_wait", SPIN_LOCK, false},
	{"hv_qlock_wait", SPIN_LOCK, false},
	{"__pv_queued_spin_lock_slowpath", SPIN_LOCK, false},
	{"pv_wait*", SPIN_LOCK, false},
	{"pv_hybrid_queued_unfair_trylock", SPIN_LOCK, false},
	{"__raw_callee_save___pv_*", SPIN_LOCK, false},
	/* Spinlocks and reader-writer locks. */
	{"native_queued_spin_lock_slowpath", SPIN_LOCK, false},
	{"queued_spin_lock_slowpath", SPIN_LOCK, false},
	{"queued_read_lock_slowpath", SPIN_LOCK, false},
	{"queued_write_lock_slowpath", SPIN_LOCK, false},
	{"do_raw_spin_lock", SPIN_LOCK, false}, /* with lock debugging */
	{"do_raw_read_lock", SPIN_LOCK, false},
	{"do_raw_write_lock", SPIN_LOCK, false},
	{"_raw_spin_lock*", SPIN_LOCK, false},
	{"_raw_read_lock*", SPIN_LOCK, false},
	{"_raw_write_lock*", SPIN_LOCK, false},
	/* Locks that sleep, and spin while their owner runs. */
	{"mutex_spin_on_owner", SPIN_LOCK, false},
	{"mutex_optimistic_spin", SPIN_LOCK, false},
	{"rwsem_spin_on_owner", SPIN_LOCK, false},
	{"rwsem_optimistic_spin", SPIN_LOCK, false},
	{"rtmutex_spin_on_owner", SPIN_LOCK, false},
	{"osq_lock", SPIN_LOCK, false},
	/* Calls of other CPUs: functions, flushes of TLBs, stop_machine(). */
	{"smp_call_function*", SPIN_CALL, false},
	{"generic_exec_single", SPIN_CALL, false},
	{"csd_lock*", SPIN_CALL, false},
	{"__csd_lock*", SPIN_CALL, false},
	{"multi_cpu_stop", SPIN_CALL, false},
};

static bool name_fits(const char *pattern, const char *symbol)
{
	size_t len = strcspn(symbol, "."), n = strlen(pattern);

	if (pattern[n - 1] == '*')
		return len >= n - 1 && !strncmp(pattern, symbol, n - 1);
	return len == n && !strncmp(pattern, symbol, n);
}

enum spin_kind spin_of_stack(const struct stack *stack, const char **function)
{
	*function = "";
	for (size_t i = 0; stack && i < stack->n_frames; i++) {
		const char *symbol = stack->frames[i].symbol;
		size_t k = 0;

		while (k < sizeof(functions) / sizeof(functions[0]) &&
		       !name_fits(functions[k].name, symbol))
			k++;
		if (!*symbol)
			return SPIN_UNKNOWN; /* the guest does not publish its kernel's symbols */
		if (!i)
			*function = symbol;
		if (k == sizeof(functions) / sizeof(functions[0]))
			return SPIN_NONE;
		if (functions[k].helper)
			continue;
		*function = symbol;
		return functions[k].kind;
	}
	return stack && stack->n_frames ? SPIN_NONE : SPIN_UNKNOWN;
}

/* At least so many samples are needed, and so many percent of them of one kind. */
enum { SAMPLES_LEAST = 3, SPINNING_PERCENT = 50, COMPUTING_PERCENT = 10 };

/* The function of most samples of the winning kind. */
struct tally {
	unsigned n;
	const char *name;
};

static void tally_add(struct tally *tally, unsigned *n, const char *name)
{
	for (unsigned i = 0; i < *n; i++) {
		if (!strcmp(tally[i].name, name)) {
			tally[i].n++;
			return;
		}
	}
	tally[(*n)++] = (struct tally){1, name};
}

static bool sample_counts(const struct stall_facts *f, const struct facts_sample *s)
{
	struct host_ns end = facts_denial_end(f);

	return s->t.ns >= end.ns - facts_denial_ns(f) && s->t.ns <= end.ns;
}

void spins_fill(struct stall_facts *f, const struct model *m)
{
	struct facts_sampled *out = &f->sampled;
	struct tally spins[FACTS_SAMPLES], others[FACTS_SAMPLES], *best = NULL;
	unsigned n_spins = 0, n_others = 0;

	*out = (struct facts_sampled){0};
	for (unsigned i = 0; i < f->n_samples; i++) {
		struct facts_sample *s = &f->samples[i];
		const char *function = "";

		s->kind = (uint8_t)(s->kernel ? spin_of_stack(model_guest_stack_of(m, f->vm, 0,
										   s->kernel),
							      &function)
				    : s->user ? SPIN_NONE
					      : SPIN_UNKNOWN);
		if (s->kind == SPIN_UNKNOWN || !sample_counts(f, s))
			continue;
		out->n++;
		out->spins += s->kind == SPIN_LOCK;
		out->calls += s->kind == SPIN_CALL;
		if (s->kind == SPIN_NONE)
			tally_add(others, &n_others, function);
		else
			tally_add(spins, &n_spins, function);
	}
	if (out->n < SAMPLES_LEAST)
		return;
	out->spinning = (out->spins + out->calls) * 100 >= out->n * SPINNING_PERCENT;
	out->computing = (out->spins + out->calls) * 100 <= out->n * COMPUTING_PERCENT;
	for (unsigned i = 0; i < (out->spinning ? n_spins : n_others); i++) {
		struct tally *t = out->spinning ? &spins[i] : &others[i];

		if (!best || t->n > best->n)
			best = t;
	}
	if (best) {
		describe(out->function, sizeof(out->function), "%s", best->name);
		out->in_function = best->n;
	}
}

bool spins_named(const struct stall_facts *f, const struct model *m)
{
	for (unsigned i = 0; i < f->n_samples; i++) {
		if (f->samples[i].kernel &&
		    !model_guest_stack_of(m, f->vm, 0, f->samples[i].kernel))
			return false;
	}
	return true;
}
