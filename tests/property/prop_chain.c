/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Interrupt chains against the truth: four vCPUs under random interrupts of devices, IPIs and
 * timers, some coalescing while the guest has interrupts off, sleeps or is preempted, some lost:
 * accepted, and not delivered until something kicks the vCPU. Then 1 % of all events are lost, and
 * the guest's stamps are off by up to the error that they state, so that effects precede causes.
 *
 * The truth. A handler counts for recall if it was recorded, and an accept of its interrupt (any of
 * those that coalesced) was: there is nothing to join else. How many those are of all that ran is
 * printed, too. An interrupt counts as lost if its accept was recorded, and the recording goes on
 * for longer than the limit: one that is held back in the last milliseconds is not late yet. A join
 * is right if its handler ran for the interrupt that its accept brought; a second join to one
 * handler is wrong.
 *
 * usage: prop_chain [--full]
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host-collector/analyze/chain/chain.h"

#define US 1000ll
#define MS 1000000ll
#define S  1000000000ll

enum {
	VM = 1,
	QEMU = 100,
	VCPUS = 4,
	TID0 = 110,
	WORKER = 700, /* + n: raises vCPU n's device interrupts, on pCPU VCPUS + n */
	HOG = 900,
	TASK = 42,
	DEVICES = 4,
	TICK = 0xec,
	CALL = 0xfb,
	VECTORS = 256,
	EVENTS_MAX = 6 << 20,
	LOST_MAX = 4096,
	LIMIT_NS = 10 * 1000 * 1000, /* what takes longer is lost */
	GUEST_ERR_NS = 3000,
};

/* One event, and what the truth knows of it: the handler run that it accepted for or is. */
struct fact {
	struct timeline_event event;
	uint32_t run; /* handler run: serves every accept that carries the same number */
	bool accept, handler, gone;
};

struct vcpu_sim {
	uint32_t index;
	int64_t next[VECTORS], off_until, away_until, next_activity;
	int64_t kick[VECTORS]; /* lost: delivered then; 0 */
	uint32_t run[VECTORS]; /* of the pending interrupt */
	bool pending[VECTORS], asleep, in_guest, idle;
};

struct world {
	uint64_t random;
	bool posted;
	int64_t end;
	size_t n;
	struct fact *facts;
	uint32_t runs;
	struct lost {
		uint32_t run;
		bool due; /* within the recording, so that it must be found */
	} lost[LOST_MAX];
	size_t n_lost;
	struct vcpu_sim vcpus[VCPUS];
};

static uint64_t draw(struct world *w)
{
	w->random ^= w->random << 13;
	w->random ^= w->random >> 7;
	w->random ^= w->random << 17;
	return w->random * 2685821657736338717ull;
}

static int64_t between(struct world *w, int64_t low, int64_t high)
{
	return low + (int64_t)((draw(w) >> 11) % (uint64_t)(high - low + 1));
}

static bool chance(struct world *w, double p)
{
	return (double)(draw(w) >> 11) / 9007199254740992.0 < p;
}

static void check(bool holds, const char *what)
{
	if (holds)
		return;
	fprintf(stderr, "prop_chain: %s\n", what);
	exit(1);
}

/* ---- the world ---- */

static struct fact *emit(struct world *w, int64_t t, bool host, uint32_t cpu,
			 enum vs_event_type type, int32_t pid, int32_t pid2, uint64_t arg0,
			 uint64_t arg1)
{
	struct fact *f = &w->facts[w->n++];

	check(w->n < EVENTS_MAX, "too many events");
	*f = (struct fact){.event = {.t = {t},
				     .source = host ? VS_SOURCE_HOST : VM,
				     .err_ns = host ? 500 : GUEST_ERR_NS,
				     .event = {.cpu = (uint16_t)cpu,
					       .type = (uint16_t)type,
					       .pid = pid,
					       .pid2 = pid2,
					       .arg0 = arg0,
					       .arg1 = arg1}}};
	return f;
}

static void host(struct world *w, const struct vcpu_sim *v, int64_t t, enum vs_event_type type,
		 uint64_t arg0, uint64_t arg1)
{
	emit(w, t, true, v->index, type, TID0 + (int32_t)v->index, 0, arg0, arg1);
}

static void guest(struct world *w, const struct vcpu_sim *v, int64_t t, enum vs_event_type type,
		  int32_t pid2, uint64_t arg0, uint64_t arg1)
{
	emit(w, t, false, v->index, type, v->idle ? 0 : TASK, pid2, arg0, arg1);
}

static bool is_device(int vector)
{
	return vector != TICK && vector != CALL;
}

static int64_t period(struct world *w, int vector)
{
	return vector == TICK ? 4 * MS : between(w, 100 * US, vector == CALL ? 6 * MS : 5 * MS);
}

static void wake(struct world *w, struct vcpu_sim *v, int64_t t, uint32_t by_cpu, int32_t by)
{
	int64_t in = t + between(w, 5 * US, 60 * US);
	int32_t tid = TID0 + (int32_t)v->index;

	emit(w, t, true, by_cpu, VS_EVENT_SCHED_WAKEUP, tid, by, v->index, 120);
	emit(w, in, true, v->index, VS_EVENT_SCHED_SWITCH, 0, tid, 0, 0);
	v->asleep = false;
	v->in_guest = false;
	v->away_until = in + US;
}

static void emit_accept(struct world *w, const struct vcpu_sim *v, int64_t t,
			enum vs_event_type type, uint32_t cpu, int32_t pid, int vector)
{
	struct fact *f =
		emit(w, t, true, cpu, type, pid, 0, (uint64_t)vector | (uint64_t)v->index << 32, 0);

	f->accept = true;
	f->run = v->run[vector];
}

/* The interrupt of this vector comes at `t`. */
static void arrive(struct world *w, struct vcpu_sim *v, int vector, int64_t t)
{
	uint32_t cpu = is_device(vector) ? VCPUS + v->index : v->index;
	int32_t pid = is_device(vector) ? WORKER + (int32_t)v->index : TID0 + (int32_t)v->index;
	bool was_asleep = v->asleep, lose = is_device(vector) && !v->pending[vector] &&
					    chance(w, 0.003) && w->n_lost < LOST_MAX;

	if (vector == CALL) { /* from a neighbour, which leaves its guest for it */
		const struct vcpu_sim *by = &w->vcpus[(v->index + 1) % VCPUS];

		cpu = by->index;
		pid = TID0 + (int32_t)by->index;
		emit(w, t - US, true, cpu, VS_EVENT_KVM_IPI, pid, 0, CALL, v->index);
	} else if (is_device(vector)) {
		emit(w, t - 2 * US, true, cpu, VS_EVENT_KVM_MSI, pid, 0, 0, (uint64_t)vector);
	} else if (v->asleep) {
		wake(w, v, t - 70 * US, v->index, 0);
	} else if (v->in_guest && t >= v->away_until) {
		host(w, v, t - US, VS_EVENT_KVM_EXIT, 0x200000060, 0);
		v->in_guest = false;
	} else if (t < v->away_until) {
		t = v->away_until + US; /* its own thread finds it when it runs again */
	}
	if (!v->pending[vector])
		v->run[vector] = ++w->runs;
	emit_accept(w, v, t, VS_EVENT_KVM_ACCEPT_IRQ, cpu, pid, vector);
	if (w->posted && v->in_guest && !lose)
		emit_accept(w, v, t + 300, VS_EVENT_KVM_APICV_ACCEPT_IRQ, cpu, pid, vector);
	v->pending[vector] = true;
	if (lose) {
		v->kick[vector] = t + between(w, 30 * MS, 60 * MS);
		/* The analysis looks every quarter of the limit. */
		w->lost[w->n_lost++] =
			(struct lost){v->run[vector], w->end - t >= LIMIT_NS + LIMIT_NS / 4};
		v->next[vector] = v->kick[vector] + period(w, vector);
		return;
	}
	v->next[vector] = t + period(w, vector);
	if (was_asleep && v->asleep)
		wake(w, v, t + US, cpu, pid);
	else if (v->in_guest && !w->posted && t >= v->away_until) {
		host(w, v, t + 2 * US, VS_EVENT_KVM_EXIT, 0x200000060, 0);
		host(w, v, t + 3 * US, VS_EVENT_KVM_ENTRY, 0, 0);
	}
}

static int64_t later(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

/* The highest pending interrupt is handled from `t` on. */
static void deliver(struct world *w, struct vcpu_sim *v, int vector, int64_t t)
{
	bool inject = !w->posted || !v->in_guest;
	int64_t length = between(w, 3 * US, 40 * US), entry = t + 5 * US;
	enum vs_event_type type = is_device(vector) ? VS_EVENT_IRQ_ENTRY : VS_EVENT_VECTOR_ENTRY;
	uint64_t arg0 = is_device(vector) ? (uint64_t)(vector - 0x22 + 24)
			: vector == TICK  ? VS_VECTOR_LOCAL_TIMER
					  : VS_VECTOR_CALL_FUNCTION_SINGLE;
	uint64_t arg1 = is_device(vector) ? 0 : (uint64_t)vector;

	/* Which of two it serves that come within the clocks' error of it, nobody could tell. */
	if (v->next[vector] < entry + 2 * GUEST_ERR_NS)
		v->next[vector] = entry + 2 * GUEST_ERR_NS;
	if (inject) {
		if (v->in_guest)
			host(w, v, t, VS_EVENT_KVM_EXIT, 0x200000064, 0);
		host(w, v, t + US, VS_EVENT_KVM_INJECT, (uint64_t)vector, 0);
		host(w, v, t + 2 * US, VS_EVENT_KVM_ENTRY, 0, 0);
		v->in_guest = true;
	}
	guest(w, v, entry, type, 0, arg0, arg1);
	w->facts[w->n - 1].handler = true;
	w->facts[w->n - 1].run = v->run[vector];
	guest(w, v, entry + length, (enum vs_event_type)(type + 1), 0, arg0, arg1);
	if (chance(w, 0.3)) {
		guest(w, v, entry + length + US, VS_EVENT_SOFTIRQ_ENTRY, 0, 3, 0);
		guest(w, v, entry + length + 9 * US, VS_EVENT_SOFTIRQ_EXIT, 0, 3, 0);
		length += 10 * US;
	}
	if (inject) {
		host(w, v, entry + length + 2 * US, VS_EVENT_KVM_EXIT, 0x200000078, 0);
		host(w, v, entry + length + 3 * US, VS_EVENT_KVM_EOI, v->index, (uint64_t)vector);
		host(w, v, entry + length + 4 * US, VS_EVENT_KVM_ENTRY, 0, 0);
	}
	v->off_until = entry + length + 6 * US;
	v->pending[vector] = false;
	v->kick[vector] = 0;
	if (v->idle) {
		guest(w, v, v->off_until, VS_EVENT_SCHED_SWITCH, TASK, 0, 0);
		v->idle = false;
		v->off_until += US;
	}
}

/* What the guest and its host do of their own accord. */
static void act(struct world *w, struct vcpu_sim *v, int64_t t)
{
	int32_t tid = TID0 + (int32_t)v->index;
	int64_t what = between(w, 0, 99);

	v->next_activity = t + between(w, 50 * US, 500 * US);
	if (v->asleep || !v->in_guest)
		return;
	if (what < 60) {
		guest(w, v, t, VS_EVENT_SCHED_SWITCH, TASK, 0, 0);
	} else if (what < 70) {
		v->off_until = t + between(w, 50 * US, 1500 * US);
	} else if (what < 72) {
		host(w, v, t, VS_EVENT_KVM_EXIT, 0x200000060, 0);
		emit(w, t + US, true, v->index, VS_EVENT_SCHED_SWITCH, tid, HOG, 0, 0);
		v->away_until = t + between(w, 100 * US, 5 * MS);
		emit(w, v->away_until - US, true, v->index, VS_EVENT_SCHED_SWITCH, HOG, tid, 0, 0);
		host(w, v, v->away_until, VS_EVENT_KVM_ENTRY, 0, 0);
	} else if (what < 80) {
		guest(w, v, t, VS_EVENT_SCHED_SWITCH, 0, 1, 0);
		v->idle = true;
		host(w, v, t + 3 * US, VS_EVENT_KVM_EXIT, 0x200000078, 0);
		emit(w, t + 5 * US, true, v->index, VS_EVENT_SCHED_SWITCH, tid, 0, 1, 0);
		v->asleep = true;
		v->in_guest = false;
		v->off_until = t + 6 * US;
	}
}

static bool deliverable(const struct vcpu_sim *v, int vector, int64_t t)
{
	return v->pending[vector] && !(v->kick[vector] && (v->kick[vector] > t || v->asleep));
}

static void vcpu_run(struct world *w, struct vcpu_sim *v, int64_t until)
{
	static const int vectors[] = {TICK, CALL, 0x25, 0x24, 0x23, 0x22};
	int64_t t = 0;

	for (size_t i = 0; i < 2 + DEVICES; i++)
		v->next[vectors[i]] = between(w, MS, 5 * MS);
	v->next_activity = MS;
	v->in_guest = true;
	emit(w, 0, true, v->index, VS_EVENT_SCHED_SWITCH, 0, TID0 + (int32_t)v->index, 0, 0);
	host(w, v, US, VS_EVENT_KVM_ENTRY, 0, 0);
	guest(w, v, 2 * US, VS_EVENT_SCHED_SWITCH, TASK, 0, 0);
	while (t < until) {
		int64_t ready = later(t, later(v->off_until, v->away_until)) + US;
		int ripe = 0, arrives = vectors[0];

		for (size_t i = 0; i < 2 + DEVICES; i++) {
			if (!ripe && deliverable(v, vectors[i], ready))
				ripe = vectors[i];
			if (v->next[vectors[i]] < v->next[arrives])
				arrives = vectors[i];
		}
		if (ripe && !v->asleep && ready <= v->next[arrives]) {
			t = ready;
			deliver(w, v, ripe, t);
		} else if (v->next[arrives] <= v->next_activity) {
			t = later(t, v->next[arrives]);
			arrive(w, v, arrives, t);
		} else {
			t = later(t, v->next_activity);
			v->next_activity = t + 50 * US;
			if (t > later(v->off_until, v->away_until) && !ripe)
				act(w, v, t);
		}
	}
}

/* ---- what of it is recorded ---- */

static int by_time(const void *a, const void *b)
{
	const struct timeline_event *x = &((const struct fact *)a)->event;
	const struct timeline_event *y = &((const struct fact *)b)->event;

	return (x->t.ns > y->t.ns) - (x->t.ns < y->t.ns);
}

static void lose(struct world *w, double share)
{
	struct gap {
		uint64_t n;
		struct host_ns last;
	} gaps[2][2 * VCPUS] = {{{0}}};
	size_t n = w->n;

	for (size_t i = 0; i < n; i++) {
		struct fact *f = &w->facts[i];
		struct gap *g = &gaps[f->event.source == VM][f->event.event.cpu];

		f->gone = chance(w, share);
		if (f->gone) {
			g->n++;
			continue;
		}
		if (g->n) { /* as a capturer marks it: where the gap begins, until the next event */
			struct fact *lost = emit(w, g->last.ns + 1, f->event.source != VM,
						 f->event.event.cpu, VS_EVENT_LOST, 0, 0, g->n, 2);

			lost->event.event.time = 1;
		}
		*g = (struct gap){.last = f->event.t};
	}
	qsort(w->facts, w->n, sizeof(*w->facts), by_time);
}

/* The guest's clock is wrong by less than it says. It drifts from one bound to the other and back,
 * 56 ppm: no CPU's own events change their order, for a TSC never goes backwards. */
static int64_t skew_ns(int64_t t)
{
	const int64_t bound = GUEST_ERR_NS - 200, turn = 100 * MS;
	int64_t in = t % (2 * turn);

	return -bound + 2 * bound * (in < turn ? in : 2 * turn - in) / turn;
}

static void skew(struct world *w)
{
	for (size_t i = 0; i < w->n; i++) {
		struct timeline_event *e = &w->facts[i].event;

		if (e->source == VM)
			e->t.ns += skew_ns(e->t.ns);
	}
}

/* ---- what the analysis makes of it ---- */

struct score {
	struct world *w;
	uint64_t ran;            /* handlers, captured or not */
	uint64_t accepts, pairs; /* captured; handlers captured with an accept of theirs */
	uint64_t joined, right;
	uint64_t lost, found, alarms, false_alarms, beyond;
	uint8_t *joined_run, *alarmed_run;
};

/* The event of this CPU at this time, by binary search. */
static const struct fact *fact_at(const struct world *w, struct host_ns t, bool accept, int vector,
				  uint32_t vcpu)
{
	size_t low = 0, high = w->n;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (w->facts[middle].event.t.ns < t.ns)
			low = middle + 1;
		else
			high = middle;
	}
	for (; low < w->n && w->facts[low].event.t.ns == t.ns; low++) {
		const struct fact *f = &w->facts[low];
		const struct vs_event *e = &f->event.event;

		if (f->gone)
			continue;
		if (accept && f->accept && e->arg0 == ((uint64_t)vector | (uint64_t)vcpu << 32))
			return f;
		if (!accept && f->handler && e->cpu == vcpu)
			return f;
	}
	return NULL;
}

static void closed_take(void *context, const struct chain *c)
{
	struct score *s = context;
	const struct fact *accept, *handler;

	if (!chain_saw(c, CHAIN_HANDLER) || !chain_saw(c, CHAIN_ACCEPT))
		return;
	accept = fact_at(s->w, c->at[CHAIN_ACCEPT], true, c->vector, c->vcpu);
	handler = fact_at(s->w, c->at[CHAIN_HANDLER], false, c->vector, c->vcpu);
	s->joined++;
	if (accept && handler && accept->run == handler->run && !s->joined_run[handler->run]) {
		s->joined_run[handler->run] = 1;
		s->right++;
	}
}

static void trouble_take(void *context, const struct chain_trouble *t)
{
	struct score *s = context;
	const struct fact *accept;

	if (t->kind != CHAIN_LOST)
		return;
	accept = fact_at(s->w, t->chain.at[CHAIN_ACCEPT], true, t->chain.vector, t->chain.vcpu);
	s->alarms++;
	s->false_alarms++;
	for (size_t i = 0; accept && i < s->w->n_lost; i++) {
		if (s->w->lost[i].run != accept->run)
			continue;
		s->false_alarms--;
		s->found += s->w->lost[i].due && !s->alarmed_run[accept->run];
		s->alarmed_run[accept->run] = 1;
		break;
	}
}

static void announce(struct model *m)
{
	static struct message_vm_info info;
	struct timeline_event name = {.source = VS_SOURCE_HOST,
				      .event = {.type = VS_EVENT_TASK_NAME}};

	info = (struct message_vm_info){.vm = VM, .name = "web1", .qemu_pid = QEMU};
	snprintf(info.accelerator, sizeof(info.accelerator), "kvm");
	for (uint32_t i = 0; i < VCPUS; i++) {
		struct message_vm_thread *thread = &info.threads[info.n_threads++];

		thread->tid = TID0 + (int32_t)i;
		thread->is_vcpu = true;
		thread->vcpu = i;
	}
	check(!model_vm(m, &info), "the model refuses the VM");
	for (int32_t i = 0; i < VCPUS; i++) {
		name.event.pid = name.event.pid2 = WORKER + i;
		memcpy(&name.event.arg0, "vhost-10", 8);
		memcpy(&name.event.arg1, "0\0\0\0\0\0\0", 8);
		check(!model_push(m, &name, 1), "the model refuses a name");
	}
}

/* What could have been joined: a handler that was captured, with an accept of its own that was. */
static void truth_count(struct score *s)
{
	const struct world *w = s->w;
	uint8_t *accepted = calloc(w->runs + 1, 1);

	check(accepted != NULL, "out of memory");
	for (size_t i = 0; i < w->n; i++) {
		const struct fact *f = &w->facts[i];

		if (f->accept && !f->gone) {
			accepted[f->run] = 1;
			s->accepts++;
		}
	}
	for (size_t i = 0; i < w->n; i++) {
		const struct fact *f = &w->facts[i];

		s->ran += f->handler;
		s->pairs += f->handler && !f->gone && accepted[f->run];
	}
	for (size_t i = 0; i < w->n_lost; i++)
		s->lost += w->lost[i].due && accepted[w->lost[i].run];
	free(accepted);
}

/* ---- shared joins ---- */

static void histograms_compare(const struct histogram *a, const struct histogram *b)
{
	check(a->count == b->count && a->sum_ns == b->sum_ns && a->min_ns == b->min_ns &&
		      a->max_ns == b->max_ns,
	      "shared chains have other totals");
	for (unsigned r = 0; r < HISTOGRAM_RANGES; r++)
		check(!a->ranges[r] == !b->ranges[r] &&
			      (!a->ranges[r] || !memcmp(a->ranges[r], b->ranges[r],
							HISTOGRAM_STEPS * sizeof(uint64_t))),
		      "shared chains have another histogram");
}

static void groups_compare(const struct chain_group *a, const struct chain_group *b)
{
	check(a->vm == b->vm && a->vcpu == b->vcpu && a->vector == b->vector &&
		      a->source == b->source && a->irq == b->irq,
	      "shared chains have another group");
	check(a->handled == b->handled && a->half == b->half && a->coalesced == b->coalesced &&
		      a->posted == b->posted && a->torn == b->torn && a->ignored == b->ignored &&
		      a->moved == b->moved && a->late == b->late && a->lost == b->lost &&
		      a->negative == b->negative && a->beyond == b->beyond,
	      "shared chains count otherwise");
	for (int s = 0; s < CHAIN_STAGE_COUNT; s++)
		histograms_compare(&a->stages[s], &b->stages[s]);
	check(!memcmp(a->place_ns, b->place_ns, sizeof(a->place_ns)),
	      "shared chains spent their time elsewhere");
}

/* Returns the number of troubles, which are the same. */
static size_t troubles_compare(const struct chains *alone, const struct chains *shared)
{
	const struct chain_trouble *t, *u;
	size_t n;

	for (n = 0; (t = chains_trouble(alone, n)); n++) {
		u = chains_trouble(shared, n);
		check(u && t->kind == u->kind && t->open == u->open && t->halted == u->halted &&
			      t->progress == u->progress && t->chain.lost == u->chain.lost &&
			      t->chain.vcpu == u->chain.vcpu &&
			      t->chain.vector == u->chain.vector &&
			      t->chain.begin.ns == u->chain.begin.ns,
		      "shared chains have another trouble");
	}
	check(!chains_trouble(shared, n), "shared chains have one trouble more");
	return n;
}

/* Chains that share the joins of others are those that join by themselves. Returns their number of
 * troubles. */
static size_t shared_compare(const struct chains *alone, const struct chains *shared)
{
	const struct chain_group *g, *h;
	size_t n = 0;

	while ((g = chains_group(alone, n))) {
		h = chains_group(shared, n++);
		check(h != NULL, "shared chains lack a group");
		groups_compare(g, h);
	}
	check(n && !chains_group(shared, n), "shared chains have one group more");
	return troubles_compare(alone, shared);
}

static void run(uint64_t seed, bool posted, double loss, int64_t length, struct score *total)
{
	static struct world w;
	struct score s = {.w = &w};
	struct chain_options options = {.limit_ns = LIMIT_NS,
					.closed = closed_take,
					.trouble = trouble_take,
					.context = &s};
	const struct chain_options others = {.limit_ns = seed % 2 ? LIMIT_NS / 3 : 3 * LIMIT_NS,
					     .merge_vcpus = true};
	const struct chain_options quiet = {.limit_ns = others.limit_ns, .uncounted = true};
	struct model *m = model_new();
	struct chains *x = chains_new(m, &options);
	struct chains *shared = chains_share(x, &others), *alone = chains_new(m, &others);
	struct chains *uncounted = chains_share(x, &quiet);
	const struct chain_group *g;
	struct fact *facts = w.facts ? w.facts : malloc(EVENTS_MAX * sizeof(*facts));

	check(m && x && shared && alone && uncounted && facts, "out of memory");
	memset(&w, 0, sizeof(w));
	w.facts = facts;
	w.random = seed * 0x9e3779b97f4a7c15ull + 1;
	w.posted = posted;
	w.end = length;
	for (uint32_t i = 0; i < VCPUS; i++) {
		w.vcpus[i].index = i;
		vcpu_run(&w, &w.vcpus[i], length);
	}
	qsort(w.facts, w.n, sizeof(*w.facts), by_time);
	lose(&w, loss);
	skew(&w);
	qsort(w.facts, w.n, sizeof(*w.facts), by_time);
	s.joined_run = calloc(w.runs + 1, 1);
	s.alarmed_run = calloc(w.runs + 1, 1);
	check(s.joined_run && s.alarmed_run, "out of memory");
	truth_count(&s);
	announce(m);
	for (size_t i = 0; i < w.n; i++) {
		if (!w.facts[i].gone)
			check(!model_push(m, &w.facts[i].event, 1), "the model refuses an event");
	}
	model_finish(m);
	chains_finish(shared); /* does nothing */
	chains_finish(x);
	chains_finish(alone);
	check(shared_compare(alone, shared), "no trouble to compare");
	troubles_compare(alone, uncounted);
	check(!chains_group(uncounted, 0) && !chains_worst(uncounted, 0), "uncounted chains count");
	for (size_t i = 0; (g = chains_group(x, i)); i++)
		s.beyond += g->beyond;
	total->ran += s.ran;
	total->accepts += s.accepts;
	total->pairs += s.pairs;
	total->joined += s.joined;
	total->right += s.right;
	total->lost += s.lost;
	total->found += s.found;
	total->alarms += s.alarms;
	total->false_alarms += s.false_alarms;
	total->beyond += s.beyond;
	free(s.joined_run);
	free(s.alarmed_run);
	chains_free(x);
	chains_free(shared);
	chains_free(uncounted);
	chains_free(alone);
	model_free(m);
}

static double share(uint64_t part, uint64_t whole)
{
	return whole ? (double)part / (double)whole : 1;
}

static void judge(const char *name, bool posted, double loss, unsigned seeds, int64_t length)
{
	struct score s = {0};
	double precision, recall, found, false_alarms;

	for (unsigned seed = 1; seed <= seeds; seed++)
		run(seed, posted, loss, length, &s);
	precision = share(s.right, s.joined);
	recall = share(s.right, s.pairs);
	found = share(s.found, s.lost);
	false_alarms = share(s.false_alarms, s.accepts);
	printf("%s, %2.0f %% of events lost: of %" PRIu64 " handlers that ran %" PRIu64
	       " were recorded with an accept; %" PRIu64
	       " of these (%.3f %%, of all %.3f %%) joined, %" PRIu64
	       " joins (%.3f %%) wrong; of %" PRIu64 " lost interrupts %" PRIu64
	       " (%.2f %%) found; of %" PRIu64 " accepts %" PRIu64
	       " (%.4f %%) falsely called lost\n",
	       name, 100 * loss, s.ran, s.pairs, s.right, 100 * recall, 100 * share(s.right, s.ran),
	       s.joined - s.right, 100 * (1 - precision), s.lost, s.found, 100 * found, s.accepts,
	       s.false_alarms, 100 * false_alarms);
	fflush(stdout);
	check(s.lost > 100, "too few interrupts were lost to judge");
	check(precision >= 0.995, "joins that are wrong");
	check(recall >= 0.995, "handlers that are not joined");
	check(found >= 0.99, "lost interrupts that are not found");
	check(false_alarms <= 0.001 && s.false_alarms <= s.alarms / 100, "false alarms");
	/* Without injections, which irq a vector has must be learnt from those that come alone. */
	check(loss > 0 || posted ||
		      (s.right == s.joined && s.right == s.pairs && s.found == s.lost &&
		       !s.false_alarms),
	      "an error although nothing is missing");
}

int main(int argc, char **argv)
{
	const char *full_asked = getenv("VCPUSCOPE_TEST_FULL");
	bool full = (argc > 1 && !strcmp(argv[1], "--full")) || (full_asked && *full_asked == '1');
	unsigned seeds = full ? 40 : 1;
	int64_t length = 20 * S;

	judge("injected", false, 0, seeds, length);
	judge("injected", false, 0.01, seeds, length);
	judge("posted", true, 0, seeds, length);
	judge("posted", true, 0.01, seeds, length);
	return 0;
}
