/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/analyze/stall/coverage.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "host-collector/util/lru.h"

/* A live agent sends a frame at least this often. */
#define NEXT_WORD_NS 2000000000ll

struct piece {
	struct host_ns begin, end;
	enum unknown_reason why;
};

/* The coverage of one vCPU, also over several times at which it was plugged in. */
struct covered {
	uint32_t vm, vcpu;
	int64_t unknown_ns[UNKNOWN_REASON_COUNT], guest_unknown_ns[UNKNOWN_REASON_COUNT];
	bool stalled; /* a stall is known besides those in the report */
	bool guest;   /* events of the guest's kernel have come */
	int64_t guest_known_ns;
	struct piece host_gap, guest_gap; /* newest gaps, which may go on; end 0: none */
};

enum { KNOWN_BITS = 11, CPU_BITS = 9 };

/* The vCPU that runs a guest CPU, as found last. */
struct known_cpu {
	uint32_t vm;
	uint16_t cpu;
	uint64_t joins;      /* model_joins() at that time */
	struct host_ns from; /* time before this does not count */
	struct covered *of;  /* NULL: no guest CPU is known here */
};

struct coverage {
	struct model *model;
	int64_t than_ns;
	struct host_ns from; /* time before this does not count */
	size_t n;
	struct covered **vcpus;                     /* in the order of their first span */
	struct covered *known[1 << KNOWN_BITS];     /* found last, by known_place(); NULL: none */
	struct known_cpu known_cpus[1 << CPU_BITS]; /* by cpu_place() */
	size_t n_gaps;
	struct report_gap gaps[REPORT_GAPS_MAX];
	uint64_t dropped_gaps;
	int err;
};

static uint32_t known_place(uint32_t vm, uint32_t vcpu)
{
	return lru_place((uint64_t)vm << 32 | vcpu, KNOWN_BITS);
}

static uint32_t cpu_place(uint32_t vm, uint32_t cpu)
{
	return lru_place((uint64_t)vm << 32 | cpu, CPU_BITS);
}

static struct covered *vcpu_find(struct coverage *c, uint32_t vm, uint32_t vcpu)
{
	for (size_t i = 0; i < c->n; i++) {
		struct covered *v = c->vcpus[i];

		if (v->vm == vm && v->vcpu == vcpu)
			return c->known[known_place(vm, vcpu)] = v;
	}
	return NULL;
}

__attribute__((noinline)) static struct covered *vcpu_search(struct coverage *c, uint32_t vm,
							     uint32_t vcpu)
{
	struct covered *v = vcpu_find(c, vm, vcpu), **grown;

	if (v)
		return v;
	v = calloc(1, sizeof(*v));
	grown = v ? reallocarray(c->vcpus, c->n + 1, sizeof(struct covered *)) : NULL;
	if (!grown) {
		free(v);
		c->err = -ENOMEM;
		return NULL;
	}
	c->vcpus = grown;
	v->vm = vm;
	v->vcpu = vcpu;
	c->vcpus[c->n++] = v;
	return v;
}

/* Returns NULL if memory ran out. */
static inline struct covered *vcpu_get(struct coverage *c, uint32_t vm, uint32_t vcpu)
{
	struct covered *v = c->known[known_place(vm, vcpu)];

	return v && v->vm == vm && v->vcpu == vcpu ? v : vcpu_search(c, vm, vcpu);
}

/* ---- gaps ---- */

static int64_t length(const struct report_gap *g)
{
	return g->end.ns - g->begin.ns;
}

static void gap_keep(struct coverage *c, const struct report_gap *gap)
{
	size_t at = 0;

	if (length(gap) < c->than_ns)
		return;
	if (c->n_gaps < REPORT_GAPS_MAX) {
		c->gaps[c->n_gaps++] = *gap;
		return;
	}
	for (size_t i = 1; i < c->n_gaps; i++) {
		if (length(&c->gaps[i]) < length(&c->gaps[at]))
			at = i;
	}
	c->dropped_gaps++;
	if (length(gap) > length(&c->gaps[at]))
		c->gaps[at] = *gap;
}

static void gap_close(struct coverage *c, const struct covered *v, struct piece *open, bool host)
{
	const struct report_gap gap = {.vm = v->vm,
				       .vcpu = v->vcpu,
				       .host = host,
				       .begin = open->begin,
				       .end = open->end,
				       .why = open->why};

	gap_keep(c, &gap);
	open->end.ns = 0;
}

/* Adds a time without observation, which may continue the open gap. */
static void gap_add(struct coverage *c, const struct covered *v, struct piece *open, bool host,
		    const struct piece *piece)
{
	if (open->end.ns && piece->begin.ns == open->end.ns && piece->why == open->why) {
		open->end = piece->end;
		return;
	}
	if (open->end.ns)
		gap_close(c, v, open, host);
	*open = *piece;
}

/* ---- the two accounts ---- */

static void on_vcpu_span(void *context, const struct vcpu_span *span)
{
	struct coverage *c = context;
	struct covered *v;

	if (span->state != VCPU_UNKNOWN)
		return;
	v = vcpu_get(c, span->vm, span->vcpu);
	if (!v)
		return;
	v->unknown_ns[span->why] += span->end.ns - span->begin.ns;
	if (span->why == UNKNOWN_NOT_CAPTURED)
		return; /* before its recording began */
	gap_add(c, v, &v->host_gap, true, &(struct piece){span->begin, span->end, span->why});
}

static void guest_unobserved(struct coverage *c, struct covered *v, struct piece piece)
{
	if (piece.end.ns <= piece.begin.ns)
		return;
	v->guest_unknown_ns[piece.why] += piece.end.ns - piece.begin.ns;
	gap_add(c, v, &v->guest_gap, false, &piece);
}

/* Events that the agent kept from before the recording are not part of it. */
__attribute__((noinline)) static void cpu_search(struct coverage *c, struct known_cpu *known,
						 const struct guest_span *span)
{
	uint32_t vcpu;

	*known = (struct known_cpu){
		.vm = span->vm, .cpu = span->cpu, .joins = model_joins(c->model)};
	if (model_guest_cpu_followed(c->model, span->vm, span->cpu, &vcpu, &known->from))
		return;
	known->of = vcpu_get(c, span->vm, vcpu);
	if (known->from.ns < c->from.ns)
		known->from = c->from;
}

__attribute__((noinline)) static void guest_span_add(struct coverage *c, struct known_cpu *known,
						     const struct guest_span *span)
{
	struct host_ns begin = span->begin, from;
	struct covered *v;

	if (!known->of || known->vm != span->vm || known->cpu != span->cpu ||
	    known->joins != model_joins(c->model))
		cpu_search(c, known, span);
	v = known->of;
	from = known->from;
	if (!v || span->end.ns <= from.ns)
		return;
	if (begin.ns < from.ns)
		begin = from;
	/* Before the guest's first event nothing of it was observed. */
	if (!v->guest)
		guest_unobserved(c, v, (struct piece){from, begin, UNKNOWN_NOT_SEEN});
	v->guest = true;
	if (span->state == GUEST_CPU_UNKNOWN)
		guest_unobserved(c, v, (struct piece){begin, span->end, span->why});
	else
		v->guest_known_ns += span->end.ns - begin.ns;
}

/* Most spans are of a guest CPU that is known, lie in the time that counts, and are observed. */
static void on_guest_span(void *context, const struct guest_span *span)
{
	struct coverage *c = context;
	struct known_cpu *known = &c->known_cpus[cpu_place(span->vm, span->cpu)];

	if (known->of && known->vm == span->vm && known->cpu == span->cpu &&
	    known->joins == model_joins(c->model) && span->begin.ns >= known->from.ns &&
	    known->of->guest && span->state != GUEST_CPU_UNKNOWN)
		known->of->guest_known_ns += span->end.ns - span->begin.ns;
	else
		guest_span_add(c, known, span);
}

struct coverage *coverage_new(struct model *m, int64_t than_ns, struct host_ns from)
{
	struct coverage *c = calloc(1, sizeof(*c));
	struct model_observer observer = {
		.vcpu_span = on_vcpu_span, .guest_span = on_guest_span, .context = c};

	if (!c)
		return NULL;
	c->model = m;
	c->than_ns = than_ns;
	c->from = from;
	if (!model_observe(m, &observer))
		return c;
	free(c);
	return NULL;
}

void coverage_free(struct coverage *c)
{
	for (size_t i = 0; c && i < c->n; i++)
		free(c->vcpus[i]);
	if (c)
		free(c->vcpus);
	free(c);
}

void coverage_stall(struct coverage *c, uint32_t vm, uint32_t vcpu)
{
	struct covered *v = vcpu_get(c, vm, vcpu);

	if (v)
		v->stalled = true;
}

/* ---- what it means ---- */

double coverage_percent(int64_t observed_ns, int64_t span_ns)
{
	if (span_ns <= 0 || observed_ns <= 0)
		return 0;
	if (observed_ns >= span_ns)
		return 100;
	return (double)(int64_t)((double)observed_ns * 1000 / (double)span_ns) / 10;
}

static bool is_enough(int64_t observed_ns, int64_t span_ns, unsigned needed_percent)
{
	return span_ns > 0 && (double)observed_ns * 100 >= (double)span_ns * (double)needed_percent;
}

/* Returns ANSWER_STALLS if a stall is known, else the answer that follows from the coverage. */
static enum report_answer answer_of(const struct report *r, const struct report_vcpu *v,
				    const struct covered *of)
{
	if (of && of->stalled)
		return ANSWER_STALLS;
	for (size_t i = 0; i < r->n_incidents; i++) {
		const struct incident *x = &r->incidents[i];

		if (!x->healthy && x->vm == v->vm && x->vcpu == v->vcpu)
			return ANSWER_STALLS;
	}
	if (!v->coverage.enough)
		return ANSWER_CANNOT_TELL;
	return v->coverage.guest ? ANSWER_NO_STALL : ANSWER_NO_STALL_BY_HOST;
}

static void vcpu_judge(struct coverage *c, bool guest, unsigned needed_percent,
		       const struct report *r, struct report_vcpu *v)
{
	const struct covered *of = vcpu_find(c, v->vm, v->vcpu);
	struct report_coverage *to = &v->coverage;

	to->span_ns = v->end.ns - v->begin.ns;
	to->observed_ns = to->span_ns - v->states_ns[VCPU_UNKNOWN];
	to->guest = guest;
	if (of) {
		to->span_ns -= of->unknown_ns[UNKNOWN_NOT_CAPTURED];
		to->guest_observed_ns =
			of->guest_known_ns < to->span_ns ? of->guest_known_ns : to->span_ns;
		memcpy(to->unknown_ns, of->unknown_ns, sizeof(to->unknown_ns));
		memcpy(to->guest_unknown_ns, of->guest_unknown_ns, sizeof(to->guest_unknown_ns));
	}
	to->enough = is_enough(to->observed_ns, to->span_ns, needed_percent) &&
		     (!guest || is_enough(to->guest_observed_ns, to->span_ns, needed_percent));
	to->answer = answer_of(r, v, of);
}

static int by_begin(const void *a, const void *b)
{
	const struct report_gap *x = a, *y = b;

	return (x->begin.ns > y->begin.ns) - (x->begin.ns < y->begin.ns);
}

/* Removes the guest's gap at the end of the recording if it is short, because the agent's last
 * events were still on their way. */
static void end_excuse(struct covered *v, const struct report *r)
{
	struct piece *gap = &v->guest_gap;
	int64_t ns = gap->end.ns - gap->begin.ns;

	if (gap->end.ns != r->end.ns || gap->why != UNKNOWN_NO_AGENT || ns > NEXT_WORD_NS)
		return;
	gap->why = UNKNOWN_RECORDING_END;
	v->guest_unknown_ns[UNKNOWN_NO_AGENT] -= ns;
	v->guest_unknown_ns[UNKNOWN_RECORDING_END] += ns;
}

static int gaps_give(struct coverage *c, struct report *r)
{
	for (size_t i = 0; i < c->n; i++) {
		struct covered *v = c->vcpus[i];

		if (v->host_gap.end.ns)
			gap_close(c, v, &v->host_gap, true);
		if (v->guest_gap.end.ns)
			gap_close(c, v, &v->guest_gap, false);
	}
	r->gaps = calloc(c->n_gaps ? c->n_gaps : 1, sizeof(*r->gaps));
	if (!r->gaps)
		return -ENOMEM;
	memcpy(r->gaps, c->gaps, c->n_gaps * sizeof(*r->gaps));
	r->n_gaps = c->n_gaps;
	r->dropped_gaps = c->dropped_gaps;
	qsort(r->gaps, r->n_gaps, sizeof(*r->gaps), by_begin);
	return 0;
}

int coverage_give(struct coverage *c, unsigned needed_percent, struct report *r)
{
	if (c->err)
		return c->err;
	r->needed_percent = needed_percent;
	for (size_t i = 0; i < c->n; i++)
		end_excuse(c->vcpus[i], r);
	for (size_t i = 0; i < r->n_vcpus; i++) {
		struct report_vcpu *v = &r->vcpus[i];

		vcpu_judge(c, model_data_of(c->model, v->vm).guest_events, needed_percent, r, v);
	}
	return gaps_give(c, r);
}

bool coverage_of_vm(const struct report *r, uint32_t vm, struct report_coverage *out)
{
	bool found = false;

	*out = (struct report_coverage){.enough = true};
	for (size_t i = 0; i < r->n_vcpus; i++) {
		const struct report_coverage *from = &r->vcpus[i].coverage;

		if (r->vcpus[i].vm != vm)
			continue;
		found = true;
		out->span_ns += from->span_ns;
		out->observed_ns += from->observed_ns;
		out->guest |= from->guest;
		out->guest_observed_ns += from->guest_observed_ns;
		for (int why = 0; why < UNKNOWN_REASON_COUNT; why++) {
			out->unknown_ns[why] += from->unknown_ns[why];
			out->guest_unknown_ns[why] += from->guest_unknown_ns[why];
		}
		out->enough &= from->enough;
		if (out->answer != ANSWER_STALLS &&
		    (from->answer == ANSWER_STALLS || from->answer > out->answer))
			out->answer = from->answer;
	}
	if (!found)
		*out = (struct report_coverage){.answer = ANSWER_CANNOT_TELL};
	return found;
}

bool coverage_supports(const struct report *r)
{
	struct report_coverage of;

	for (size_t i = 0; i < r->n_vcpus; i++) {
		if (r->vcpus[i].coverage.answer == ANSWER_CANNOT_TELL)
			return false;
	}
	for (size_t i = 0; i < r->n_clocks; i++) {
		if (!coverage_of_vm(r, r->clocks[i].vm, &of))
			return false;
	}
	return r->n_vcpus > 0;
}
