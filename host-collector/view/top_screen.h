/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The lines of `top`: VMs, or one VM's vCPUs, by what they suffer. Nothing here knows a terminal:
 * lines go to a callback, so that a screen, a script's output and a test get the same.
 */
#ifndef VIEW_TOP_SCREEN_H
#define VIEW_TOP_SCREEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One VM, or one vCPU of the VM that is looked into. Shares are of the time that is known. */
struct top_row {
	uint32_t vm, vcpu;
	char name[128]; /* of the VM; escaped when drawn */
	char state[16]; /* of a vCPU now; of a VM "" */
	unsigned n_vcpus;
	int32_t tid;
	double ran, delay, blocked, stopped, halted, steal; /* percent */
	bool known, steal_known, latency_known;
	double exits_per_s;
	int64_t latency_ns;
	uint64_t open; /* incidents that go on */
};

#define TOP_SORTS(X)                                                                               \
	X(DELAY, "delay")                                                                          \
	X(BLOCKED, "blocked")                                                                      \
	X(STEAL, "steal")                                                                          \
	X(EXITS, "exits")                                                                          \
	X(IRQ, "irq")                                                                              \
	X(OPEN, "open")                                                                            \
	X(RAN, "ran")                                                                              \
	X(NAME, "name")

enum top_sort {
#define X(NAME, ...) TOP_SORT_##NAME,
	TOP_SORTS(X)
#undef X
		TOP_SORT_COUNT
};
/* As for --sort and in the head; static. */
const char *top_sort_name(enum top_sort s);
/* -EINVAL: no such column. */
int top_sort_parse(const char *word, enum top_sort *out);

struct top_screen {
	unsigned columns, lines; /* lines 0: as many as there are rows */
	enum top_sort sort;
	const char *filter;        /* "" : none; in the VM's name */
	const char *inside;        /* name of the VM that is looked into; NULL: all VMs */
	size_t selected;           /* row; moved so that it exists */
	bool paused, help, typing; /* typing: a filter */
	bool plain;                /* for scripts: no selection, no keys */
	const char *when;          /* "12:00:01", what the head says of the time */
	const char *notice;        /* the newest thing that happened, "" none */
};

enum top_look { TOP_PLAIN, TOP_HEAD, TOP_COLUMNS, TOP_SELECTED, TOP_ALARM };

/* Sorts `rows`, takes those out that the filter does not want; returns how many are left. */
size_t top_rows_prepare(struct top_row *rows, size_t n, const struct top_screen *s);
/* Draws prepared rows. Lines come from top to bottom; none is wider than s->columns. */
void top_screen_draw(struct top_screen *s, const struct top_row *rows, size_t n,
		     void (*line)(void *context, enum top_look look, const char *text),
		     void *context);

#endif
