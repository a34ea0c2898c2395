/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Measures how long a vCPU was in each state between two times. The caller marks a time when the
 * model reaches it. The mark is ready when the model has delivered the spans up to this time, which
 * may be MODEL_HOLD_NS later. Each mark takes a fixed amount of memory, however long the time
 * between two marks is.
 */
#ifndef EVENT_STATE_MARKS_H
#define EVENT_STATE_MARKS_H

#include "host-collector/model/model.h"

/* X(NAME, "name", heading): what a vCPU's time goes to. */
#define STATE_SHARES(X)                                                                            \
	X(GUEST, "guest", "guest ran")                                                             \
	X(EXITS, "exits", "in exits")                                                              \
	X(WAITED, "not_scheduled", "not scheduled")                                                \
	X(BLOCKED, "blocked", "blocked")                                                           \
	X(HALTED, "halted", "halted")                                                              \
	X(UNKNOWN, "unknown", "unknown")

enum state_share {
#define X(NAME, ...) SHARE_##NAME,
	STATE_SHARES(X)
#undef X
		SHARE_COUNT
};

struct state_times_ns {
	int64_t ns[SHARE_COUNT];
};

struct state_marks;

enum { STATE_MARK_NONE = UINT32_MAX };

/* Allocates room for `max` marks and subscribes to the model. Returns NULL on ENOMEM. */
struct state_marks *state_marks_new(struct model *m, uint32_t max);
void state_marks_free(struct state_marks *s); /* NULL is allowed */
/* Marks time `t` of a vCPU. `t` must not precede the vCPU's previous marks. Returns STATE_MARK_NONE
 * if there is no room. */
uint32_t state_mark(struct state_marks *s, uint32_t vm, uint32_t vcpu, struct host_ns t);
/* Frees a mark that is not needed any more. */
void state_mark_drop(struct state_marks *s, uint32_t mark);
/* Returns true if the times up to this mark are known. */
bool state_mark_ready(const struct state_marks *s, uint32_t mark);
/* Returns the times between two marks that are ready. */
struct state_times_ns state_marks_between(const struct state_marks *s, uint32_t from, uint32_t to);
/* Call it after model_finish(): all marks are ready. */
void state_marks_finish(struct state_marks *s);

#endif
