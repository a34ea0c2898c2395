/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Compiles the condition of the looks (capture_look.h): an expression. A field with the name of a
 * tracepoint without its system ("sched_switch") is the number of its hits on one CPU since the
 * previous tick. The other fields are cpu, tid, pid and comm of the task that runs at the tick. A
 * condition can use the tracepoints that the capture of its side takes. The limits are those of
 * event_filter.h.
 */
#ifndef CHOSEN_LOOK_CONDITION_H
#define CHOSEN_LOOK_CONDITION_H

#include "bpf/capture/capture_look.h"
#include "proto/event_catalog.h"
#include "proto/query/expr.h"

/* Sets the counts and tests of *out and does not change its period. no_texts: the condition may not
 * compare texts. Returns 0; -ENOMEM; or -EINVAL, -E2BIG (more than VS_LOOK_COUNTS tracepoints, or
 * too many comparisons) or -EPERM (a text) with *error. */
int look_condition_compile(const char *text, enum event_side side, bool no_texts,
			   struct capture_look *out, struct expr_error *error);

#endif
