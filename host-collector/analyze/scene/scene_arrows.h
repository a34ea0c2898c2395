/* SPDX-License-Identifier: GPL-2.0-only */
/* Keeps the newest arrows between rows of a timeline: wake-ups and interrupts. */
#ifndef SCENE_SCENE_ARROWS_H
#define SCENE_SCENE_ARROWS_H

#include "host-collector/analyze/scene/scene.h"

enum { ARROWS_KEPT = 32768, ARROWS_PENDING = 4096 };

/* One end of an arrow: a row, before scene_row indices are assigned. */
struct arrow_end {
	enum scene_row_kind kind;
	uint32_t number;
	struct host_ns t;
};

struct arrow {
	enum scene_arrow_kind kind;
	uint32_t vm;
	struct arrow_end from, to;
	int32_t pid;
	uint32_t number;
};

/* A task that was woken and has not run yet. */
struct arrow_pending {
	uint32_t source; /* VM of the task, or VS_SOURCE_HOST */
	int32_t pid;
	uint32_t vm, vcpu; /* the vCPU, if the task is a vCPU thread */
	struct arrow_end from;
};

struct arrows {
	struct arrow *ring;            /* of ARROWS_KEPT */
	uint64_t n;                    /* arrows since arrows_init() */
	struct arrow_pending *pending; /* by pid; a newer entry replaces an older one */
};

/* Returns 0 or -ENOMEM. */
int arrows_init(struct arrows *a);
void arrows_fini(struct arrows *a);
void arrows_guest(struct arrows *a, const struct guest_instant *i);
void arrows_host(struct arrows *a, const struct host_instant *i);
void arrows_chain(struct arrows *a, const struct chain *c, const struct model *m);
/* Returns the i-th newest arrow, NULL past the oldest that is kept. */
const struct arrow *arrows_at(const struct arrows *a, uint64_t i);

#endif
