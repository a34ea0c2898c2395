// SPDX-License-Identifier: GPL-2.0-only
#include "host-collector/analyze/event/state_marks.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "proto/array.h"

struct mark {
	struct host_ns t;
	uint32_t next; /* the next mark of its vCPU, or of the unused ones */
	bool ready, dropped;
	struct state_times_ns so_far; /* times since the vCPU's first span */
};

struct marked_vcpu {
	uint32_t vm, vcpu;
	struct state_times_ns so_far;
	uint32_t first, last; /* marks that are not complete, in order */
};

struct state_marks {
	struct mark *marks;
	uint32_t max, begun, unused;
	struct marked_vcpu *vcpus;
	size_t n_vcpus, capacity, vcpu_at;
};

static enum state_share share_of(enum vcpu_state state)
{
	switch (state) {
	case VCPU_GUEST:
		return SHARE_GUEST;
	case VCPU_KVM:
	case VCPU_VMM:
		return SHARE_EXITS;
	case VCPU_RUNNABLE:
	case VCPU_THROTTLED:
		return SHARE_WAITED;
	case VCPU_BLOCKED:
	case VCPU_STOPPED:
		return SHARE_BLOCKED;
	case VCPU_HALTED:
		return SHARE_HALTED;
	default:
		return SHARE_UNKNOWN;
	}
}

static bool is_vcpu(const struct marked_vcpu *v, uint32_t vm, uint32_t vcpu)
{
	return v->vm == vm && v->vcpu == vcpu;
}

/* NULL on ENOMEM. */
static struct marked_vcpu *vcpu_get(struct state_marks *s, uint32_t vm, uint32_t vcpu)
{
	if (s->vcpu_at < s->n_vcpus && is_vcpu(&s->vcpus[s->vcpu_at], vm, vcpu))
		return &s->vcpus[s->vcpu_at];
	for (s->vcpu_at = 0; s->vcpu_at < s->n_vcpus; s->vcpu_at++) {
		if (is_vcpu(&s->vcpus[s->vcpu_at], vm, vcpu))
			return &s->vcpus[s->vcpu_at];
	}
	if (ARRAY_RESERVE(&s->vcpus, s->n_vcpus, &s->capacity, 16))
		return NULL;
	s->vcpus[s->n_vcpus] = (struct marked_vcpu){
		.vm = vm, .vcpu = vcpu, .first = STATE_MARK_NONE, .last = STATE_MARK_NONE};
	return &s->vcpus[s->n_vcpus++];
}

static void mark_release(struct state_marks *s, uint32_t i)
{
	s->marks[i].next = s->unused;
	s->unused = i;
}

/* Completes the vCPU's first mark, because the times up to it are known, and removes it from the
 * list. */
static void mark_settle(struct state_marks *s, struct marked_vcpu *v, enum state_share share,
			int64_t more_ns)
{
	const uint32_t i = v->first;
	struct mark *mark = &s->marks[i];

	v->first = mark->next;
	if (v->first == STATE_MARK_NONE)
		v->last = STATE_MARK_NONE;
	mark->ready = true;
	mark->so_far = v->so_far;
	mark->so_far.ns[share] += more_ns;
	if (mark->dropped)
		mark_release(s, i);
}

static void on_vcpu_span(void *context, const struct vcpu_span *span)
{
	struct state_marks *s = context;
	struct marked_vcpu *v = vcpu_get(s, span->vm, span->vcpu);
	const enum state_share share = share_of(span->state);

	if (!v)
		return;
	while (v->first != STATE_MARK_NONE && s->marks[v->first].t.ns < span->end.ns) {
		const int64_t into = s->marks[v->first].t.ns - span->begin.ns;

		mark_settle(s, v, share, into > 0 ? into : 0);
	}
	v->so_far.ns[share] += span->end.ns - span->begin.ns;
}

struct state_marks *state_marks_new(struct model *m, uint32_t max)
{
	struct state_marks *s = calloc(1, sizeof(*s));
	const struct model_observer observer = {.vcpu_span = on_vcpu_span, .context = s};

	if (!s)
		return NULL;
	s->max = max;
	s->unused = STATE_MARK_NONE;
	s->marks = calloc(max, sizeof(*s->marks));
	if (s->marks && !model_observe(m, &observer))
		return s;
	state_marks_free(s);
	return NULL;
}

void state_marks_free(struct state_marks *s)
{
	if (!s)
		return;
	free(s->marks);
	free(s->vcpus);
	free(s);
}

uint32_t state_mark(struct state_marks *s, uint32_t vm, uint32_t vcpu, struct host_ns t)
{
	struct marked_vcpu *v = vcpu_get(s, vm, vcpu);
	uint32_t i = s->unused;

	if (!v || (i == STATE_MARK_NONE && s->begun == s->max))
		return STATE_MARK_NONE;
	if (i == STATE_MARK_NONE)
		i = s->begun++;
	else
		s->unused = s->marks[i].next;
	s->marks[i] = (struct mark){.t = t, .next = STATE_MARK_NONE};
	if (v->last == STATE_MARK_NONE)
		v->first = i;
	else
		s->marks[v->last].next = i;
	v->last = i;
	return i;
}

void state_mark_drop(struct state_marks *s, uint32_t mark)
{
	if (mark == STATE_MARK_NONE)
		return;
	/* A mark that is not complete is still on its vCPU's list. */
	s->marks[mark].dropped = true;
	if (s->marks[mark].ready)
		mark_release(s, mark);
}

bool state_mark_ready(const struct state_marks *s, uint32_t mark)
{
	return s->marks[mark].ready;
}

struct state_times_ns state_marks_between(const struct state_marks *s, uint32_t from, uint32_t to)
{
	struct state_times_ns out = s->marks[to].so_far;

	for (size_t i = 0; i < SHARE_COUNT; i++)
		out.ns[i] -= s->marks[from].so_far.ns[i];
	return out;
}

void state_marks_finish(struct state_marks *s)
{
	for (size_t i = 0; i < s->n_vcpus; i++) {
		while (s->vcpus[i].first != STATE_MARK_NONE)
			mark_settle(s, &s->vcpus[i], SHARE_UNKNOWN, 0);
	}
}
