/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The predictions that the encoder and the decoder of batches share (Column in wire.proto). Most
 * events name the task that runs on the CPU, which is known from the last task switch. A field
 * that equals its prediction takes almost no space.
 */
#ifndef PROTO_CODEC_PREDICT_H
#define PROTO_CODEC_PREDICT_H

#include <stddef.h>
#include <string.h>

#include "proto/event.h"

/*
 * The slot of an event type is the index of its data in the codec's arrays. A type below
 * VS_EVENT_TYPE_LIMIT is its own slot. The first BATCH_NEW_TYPES_MAX other types of a batch (a
 * newer peer sends them) get the slots above. Any further type, and EVENT_TYPE_MAX, has no slot:
 * its events keep their time, seq and type, and lose the other fields.
 */
enum {
	BATCH_NEW_TYPES_MAX = 192,
	BATCH_SLOTS = VS_EVENT_TYPE_LIMIT + BATCH_NEW_TYPES_MAX,
	EVENT_TYPE_MAX = 0xffff, /* replaces each type that does not fit in struct vs_event */
};

struct type_slots {
	/* Indexed by type - VS_EVENT_TYPE_LIMIT; 0: no slot. */
	unsigned char of_new[EVENT_TYPE_MAX - VS_EVENT_TYPE_LIMIT];
	vs_u16 new_types[BATCH_NEW_TYPES_MAX];
	vs_u32 n_new;
};

/* Removes the slots of all new types. */
static inline void type_slots_reset(struct type_slots *s)
{
	while (s->n_new)
		s->of_new[s->new_types[--s->n_new] - VS_EVENT_TYPE_LIMIT] = 0;
}

/* Returns the slot of `type`, 0 if it has none. */
static inline vs_u32 type_slot(const struct type_slots *s, vs_u32 type)
{
	if (type < VS_EVENT_TYPE_LIMIT)
		return type;
	return type >= EVENT_TYPE_MAX ? 0 : s->of_new[type - VS_EVENT_TYPE_LIMIT];
}

/* Returns the slot of `type` and assigns one if needed; 0 if none is free. */
static inline vs_u32 type_slot_get(struct type_slots *s, vs_u32 type)
{
	vs_u32 slot = type_slot(s, type);

	if (slot || type >= EVENT_TYPE_MAX || s->n_new == BATCH_NEW_TYPES_MAX)
		return slot;
	slot = VS_EVENT_TYPE_LIMIT + s->n_new;
	s->new_types[s->n_new++] = (vs_u16)type;
	s->of_new[type - VS_EVENT_TYPE_LIMIT] = (unsigned char)slot;
	return slot;
}

static inline vs_u32 type_slots_used(const struct type_slots *s)
{
	return VS_EVENT_TYPE_LIMIT + s->n_new;
}

/* The wire format contains these bits. A reader refuses a column with unknown bits. */
enum column_predict {
	PREDICT_PID_CURRENT = 1,
	PREDICT_PID2_CURRENT = 2,
	PREDICT_ARG0_PREVIOUS = 4,
	PREDICT_ARG1_PREVIOUS = 8,
	PREDICT_KNOWN = 15,
};

struct predictor {
	vs_s32 current;
	struct {
		vs_s32 pid, pid2;
		vs_u64 arg0, arg1;
	} previous[BATCH_SLOTS];
};

/* Prepares the predictor for a batch whose types have the first `slots` slots. */
static inline void predictor_reset(struct predictor *p, vs_u32 slots)
{
	memset(p, 0, offsetof(struct predictor, previous) + slots * sizeof(p->previous[0]));
}

static inline vs_s32 wrapping_sub32(vs_s32 a, vs_s32 b)
{
	return (vs_s32)((vs_u32)a - (vs_u32)b);
}

static inline vs_s32 wrapping_add32(vs_s32 a, vs_s32 b)
{
	return (vs_s32)((vs_u32)a + (vs_u32)b);
}

static inline vs_u64 zigzag64(vs_u64 difference)
{
	return difference << 1 ^ (0 - (difference >> 63));
}

static inline vs_u64 unzigzag64(vs_u64 coded)
{
	return coded >> 1 ^ (0 - (coded & 1));
}

/* Returns the prediction of pid. slot: of the event's type, below BATCH_SLOTS. */
static inline vs_s32 predict_pid(const struct predictor *p, vs_u32 slot, vs_u32 predict)
{
	return predict & PREDICT_PID_CURRENT ? p->current : p->previous[slot].pid;
}

/* Returns the prediction of pid2. Call predictor_learn_pid() first. */
static inline vs_s32 predict_pid2(const struct predictor *p, vs_u32 slot, vs_u32 predict)
{
	return predict & PREDICT_PID2_CURRENT ? p->current : p->previous[slot].pid2;
}

static inline void predictor_learn_pid(struct predictor *p, const struct vs_event *e,
				       vs_u32 predict)
{
	if (predict & PREDICT_PID_CURRENT)
		p->current = e->pid;
}

static inline void predictor_learn(struct predictor *p, const struct vs_event *e, vs_u32 slot,
				   vs_u32 predict)
{
	if (predict & PREDICT_PID2_CURRENT || e->type == VS_EVENT_SCHED_SWITCH)
		p->current = e->pid2;
	p->previous[slot].pid = e->pid;
	p->previous[slot].pid2 = e->pid2;
	p->previous[slot].arg0 = e->arg0;
	p->previous[slot].arg1 = e->arg1;
}

#endif
