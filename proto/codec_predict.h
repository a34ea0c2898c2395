/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The prediction that both halves of the batch codec make (wire.proto, Column). Most events name
 * the task that is on the CPU, and that is known from the last switch: those fields cost nothing.
 */
#ifndef PROTO_CODEC_PREDICT_H
#define PROTO_CODEC_PREDICT_H

#include "proto/event.h"

/* Part of the wire format. A reader refuses bits it does not know. */
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
	} previous[VS_EVENT_TYPE_LIMIT];
};

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

static inline vs_s32 predict_pid(const struct predictor *p, const struct vs_event *e,
				 vs_u32 predict)
{
	return predict & PREDICT_PID_CURRENT ? p->current : p->previous[e->type].pid;
}

/* After pid was learned. */
static inline vs_s32 predict_pid2(const struct predictor *p, const struct vs_event *e,
				  vs_u32 predict)
{
	return predict & PREDICT_PID2_CURRENT ? p->current : p->previous[e->type].pid2;
}

static inline void predictor_learn_pid(struct predictor *p, const struct vs_event *e,
				       vs_u32 predict)
{
	if (predict & PREDICT_PID_CURRENT)
		p->current = e->pid;
}

static inline void predictor_learn(struct predictor *p, const struct vs_event *e, vs_u32 predict)
{
	if (predict & PREDICT_PID2_CURRENT || e->type == VS_EVENT_SCHED_SWITCH)
		p->current = e->pid2;
	p->previous[e->type].pid = e->pid;
	p->previous[e->type].pid2 = e->pid2;
	p->previous[e->type].arg0 = e->arg0;
	p->previous[e->type].arg1 = e->arg1;
}

#endif
