/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/export/sched_row.h"

#include <stdlib.h>

#include "proto/event.h"

struct sched_row *sched_row_new(uint32_t machine, uint16_t cpu)
{
	struct sched_row *r = calloc(1, sizeof(*r));

	if (r) {
		r->machine = machine;
		r->cpu = cpu;
		r->oldest = UINT64_MAX;
	}
	return r;
}

void sched_row_free(struct sched_row *r)
{
	if (!r)
		return;
	byte_buffer_fini(&r->explicit.bytes);
	free(r);
}

/* As the tracepoint of Linux 4.14 and later reports it, which readers expect. */
static uint32_t state_reported(uint32_t state)
{
	if (state & (VS_TASK_EXIT | VS_TASK_DEAD))
		return VS_TASK_EXIT & -VS_TASK_EXIT;    /* dead */
	if (state == (0x400 | VS_TASK_UNINTERRUPTIBLE)) /* counts for no load: idle */
		return 0x80;
	state &= 0x4f | VS_TASK_FROZEN;
	return state == VS_TASK_FROZEN ? VS_TASK_UNINTERRUPTIBLE : state & 0x4f;
}

static void row_flush(struct sched_row *r, struct trace_file *f);

static uint32_t name_index(struct sched_row *r, struct trace_file *f, int32_t pid, const char *name)
{
	struct sched_row_name *n;

	for (unsigned i = r->n_names; i-- > 0;) {
		if (r->names[i].pid == pid && !strcmp(r->names[i].text, name))
			return i;
	}
	if (r->n_names == SCHED_ROW_NAMES)
		row_flush(r, f);
	n = &r->names[r->n_names];
	n->pid = pid;
	snprintf(n->text, sizeof(n->text), "%s", name);
	return r->n_names++;
}

static void switch_add(struct sched_row *r, struct trace_file *f, const struct sched_switch *s)
{
	uint32_t name;

	if (r->n_switches == SCHED_ROW_EVENTS ||
	    (r->n_switches && s->t < r->switches[r->n_switches - 1].t))
		row_flush(r, f);
	name = name_index(r, f, s->next, s->name);
	r->switches[r->n_switches++] = (struct sched_row_switch){
		s->t, state_reported(s->prev_state), s->next, s->next_prio, name};
}

static void switch_write(struct sched_row *r, struct trace_file *f, const struct sched_switch *s)
{
	/* A reader drops a CPU's oldest compact switch, because it does not know who was there
	 * before. */
	if (s->t < r->oldest) {
		switch_add(r, f, s);
		r->oldest = s->t;
	}
	switch_add(r, f, s);
}

/* The time that is written begins. */
static void before_write(struct sched_row *r, struct trace_file *f)
{
	if (!r->before_known)
		return;
	r->before_known = false;
	r->before.t = f->from;
	r->before.prev_state = 0;
	r->before.name = r->before_name;
	switch_write(r, f, &r->before);
}

void sched_row_switch(struct sched_row *r, struct trace_file *f, const struct sched_switch *s)
{
	if (s->t < f->from) {
		if (r->before_known && s->t < r->before.t)
			return;
		r->before_known = true;
		r->before = *s;
		snprintf(r->before_name, sizeof(r->before_name), "%s", s->name);
	} else if (s->t < f->until) {
		before_write(r, f);
		switch_write(r, f, s);
	}
}

void sched_row_waking(struct sched_row *r, struct trace_file *f, const struct sched_waking *w)
{
	uint32_t name;

	if (!trace_has(f, w->t))
		return;
	if (r->n_wakings == SCHED_ROW_EVENTS ||
	    (r->n_wakings && w->t < r->wakings[r->n_wakings - 1].t))
		row_flush(r, f);
	name = name_index(r, f, w->pid, w->name);
	r->wakings[r->n_wakings++] =
		(struct sched_row_waking){w->t, w->target_cpu, w->pid, w->prio, name};
}

void sched_row_waking_by(struct sched_row *r, struct trace_file *f, const struct sched_waking *w,
			 int32_t waker)
{
	struct protobuf *p = &r->explicit;
	size_t event, waking;

	if (!trace_has(f, w->t))
		return;
	event = protobuf_open(p, BUNDLE_EVENT);
	protobuf_uint(p, FTRACE_TIME, w->t);
	protobuf_uint(p, FTRACE_PID, (uint32_t)waker);
	waking = protobuf_open(p, FTRACE_SCHED_WAKING);
	protobuf_text(p, WAKING_COMM, w->name);
	protobuf_uint(p, WAKING_PID, (uint32_t)w->pid);
	protobuf_uint(p, WAKING_PRIO, (uint32_t)w->prio);
	protobuf_uint(p, WAKING_SUCCESS, 1);
	protobuf_uint(p, WAKING_TARGET_CPU, w->target_cpu);
	protobuf_close(p, waking);
	protobuf_close(p, event);
	if (p->bytes.len >= 8192)
		row_flush(r, f);
}

#define PACK(p, number, count, element)                                                            \
	do {                                                                                       \
		size_t opened_ = protobuf_open(p, number);                                         \
		uint8_t *at_ = protobuf_room(p, (size_t)(count)*PROTOBUF_VARINT_ROOM);             \
		if (at_) {                                                                         \
			for (unsigned i = 0; i < (count); i++)                                     \
				at_ = protobuf_put_varint(at_, element);                           \
			p->bytes.len = (size_t)(at_ - p->bytes.data);                              \
		}                                                                                  \
		protobuf_close(p, opened_);                                                        \
	} while (0)

static void switches_write(const struct sched_row *r, struct protobuf *p)
{
	const struct sched_row_switch *s = r->switches;
	unsigned n = r->n_switches;

	if (!n)
		return;
	PACK(p, COMPACT_SWITCH_TIME, n, s[i].t - (i ? s[i - 1].t : 0));
	PACK(p, COMPACT_SWITCH_PREV_STATE, n, s[i].prev_state);
	PACK(p, COMPACT_SWITCH_NEXT_PID, n, (uint32_t)s[i].next);
	PACK(p, COMPACT_SWITCH_NEXT_PRIO, n, (uint32_t)s[i].prio);
	PACK(p, COMPACT_SWITCH_NEXT_NAME, n, s[i].name);
}

static void wakings_write(const struct sched_row *r, struct protobuf *p)
{
	const struct sched_row_waking *w = r->wakings;
	unsigned n = r->n_wakings;

	if (!n)
		return;
	PACK(p, COMPACT_WAKING_TIME, n, w[i].t - (i ? w[i - 1].t : 0));
	PACK(p, COMPACT_WAKING_PID, n, (uint32_t)w[i].pid);
	PACK(p, COMPACT_WAKING_CPU, n, w[i].target_cpu);
	PACK(p, COMPACT_WAKING_PRIO, n, (uint32_t)w[i].prio);
	PACK(p, COMPACT_WAKING_NAME, n, w[i].name);
}

static void row_flush(struct sched_row *r, struct trace_file *f)
{
	struct protobuf *p = &f->packets;
	size_t packet, bundle, compact;

	if (!r->n_switches && !r->n_wakings && !r->explicit.bytes.len && !r->lost)
		return;
	packet = trace_packet_open(f, SEQUENCE_SCHED, r->machine);
	bundle = protobuf_open(p, PACKET_FTRACE_EVENTS);
	protobuf_uint(p, BUNDLE_CPU, r->cpu);
	if (r->explicit.bytes.len) {
		uint8_t *at = protobuf_room(p, r->explicit.bytes.len);

		if (at) {
			memcpy(at, r->explicit.bytes.data, r->explicit.bytes.len);
			p->bytes.len += r->explicit.bytes.len;
		}
		r->explicit.bytes.len = 0;
	}
	if (r->explicit.error)
		p->error = r->explicit.error;
	if (r->lost)
		protobuf_uint(p, BUNDLE_LOST_EVENTS, 1);
	compact = protobuf_open(p, BUNDLE_COMPACT_SCHED);
	for (unsigned i = 0; i < r->n_names; i++)
		protobuf_text(p, COMPACT_NAMES, r->names[i].text);
	switches_write(r, p);
	wakings_write(r, p);
	protobuf_close(p, compact);
	protobuf_close(p, bundle);
	trace_packet_close(f, packet);
	r->n_switches = r->n_wakings = r->n_names = 0;
	r->lost = false;
}

void sched_row_finish(struct sched_row *r, struct trace_file *f)
{
	before_write(r, f);
	row_flush(r, f);
}
