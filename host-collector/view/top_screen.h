/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Draws the lines of `top`: VMs, or the vCPUs of one VM, sorted by one column. This module does not
 * use a terminal: it passes lines to a callback, so that a screen, a script's output and a test get
 * the same lines.
 */
#ifndef VIEW_TOP_SCREEN_H
#define VIEW_TOP_SCREEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { TOP_HISTORY = 10 };

/* The last stall of a VM. */
struct top_stall {
	bool known, wall_known;
	char verdict[32], culprit[96]; /* culprit "": none; escaped when drawn */
	uint32_t guest_cpu;
	int64_t duration_ns;
	int64_t wall_ns; /* its begin, CLOCK_REALTIME */
};

/* One VM, or one vCPU of the VM that the screen shows. Shares are percentages of the observed
 * time. */
struct top_row {
	uint32_t vm, vcpu;
	char name[128]; /* name of the VM; escaped when drawn */
	char state[16]; /* current state of the vCPU; "" for a VM */
	unsigned n_vcpus;
	int32_t tid;
	double ran, delay, blocked, stopped, halted, steal; /* percent */
	bool known, steal_known, latency_known;
	double exits_per_s;
	int64_t latency_ns;
	uint64_t open; /* number of incidents in progress */
	/* Run delay and steal of the last refreshes, the newest last, percent; -1: unknown. */
	signed char delays[TOP_HISTORY], steals[TOP_HISTORY];
	struct top_stall last;
	char absent[96]; /* why nothing is known of a VM, such as "waiting"; "": it is observed */
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
/* Parses the name of a column. Returns 0, or -EINVAL if there is no such column. */
int top_sort_parse(const char *word, enum top_sort *out);

struct top_screen {
	unsigned columns, lines; /* lines 0: one for each row */
	enum top_sort sort;
	const char *filter;        /* shows only VMs whose name contains it; "": all */
	const char *inside;        /* name of the VM whose vCPUs are shown; NULL: all VMs */
	size_t selected;           /* index of the selected row; corrected if it does not exist */
	bool paused, help, typing; /* typing: the user types a filter */
	bool plain;                /* output for scripts: no selection, no keys */
	bool blocks;               /* the terminal has the characters of sparklines */
	const char *when;          /* time in the head, for example "12:00:01" */
	const char *notice;        /* newest message; "": none */
};

enum top_look { TOP_PLAIN, TOP_HEAD, TOP_COLUMNS, TOP_SELECTED, TOP_ALARM };

/* Removes the rows that do not match the filter and sorts the others. Returns their number. */
size_t top_rows_prepare(struct top_row *rows, size_t n, const struct top_screen *s);
/* Draws prepared rows: calls `line` for each line from top to bottom. No line is wider than
 * s->columns. */
void top_screen_draw(struct top_screen *s, const struct top_row *rows, size_t n,
		     void (*line)(void *context, enum top_look look, const char *text),
		     void *context);

#endif
