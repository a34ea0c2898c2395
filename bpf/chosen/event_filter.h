/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Compiles the filter of an event to the tests that the kernel's programs run at each hit
 * (bpf/prog/user_slot.h). Each test compares one field, or some of its bits, with a constant; &&,
 * || and ! become jumps between tests. A text is compared with == and !=, or with ~ if the pattern
 * has a single '*', at its end.
 */
#ifndef CHOSEN_EVENT_FILTER_H
#define CHOSEN_EVENT_FILTER_H

#include "bpf/capture/capture_event.h"
#include "bpf/capture/event_source.h"
#include "proto/query/expr.h"

/* Compiles `e`, which uses the numbers in `fields` and the common fields cpu, tid, pid and comm
 * (event_schema.h). Sets tests, n_tests, first_test and the kernel's filter of *out. Returns 0;
 * -EINVAL: the kernel cannot compute it; -E2BIG: more than VS_USER_TESTS_MAX tests. After an error,
 * *error has the reason and its position. */
int event_filter_compile(const struct expr *e, const struct source_field *fields,
			 struct capture_event *out, struct expr_error *error);

#endif
