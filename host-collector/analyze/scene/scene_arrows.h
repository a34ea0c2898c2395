/* SPDX-License-Identifier: GPL-2.0-only */
/* The newest arrows between rows of a timeline, for scene.c: who woke whom, what interrupted. */
#ifndef SCENE_SCENE_ARROWS_H
#define SCENE_SCENE_ARROWS_H

#include "host-collector/analyze/scene/scene.h"

enum { ARROWS_KEPT = 32768, ARROWS_PENDING = 4096 };

/* An end of an arrow: a row before it has an index. */
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
	uint32_t source; /* its VM, VS_SOURCE_HOST */
	int32_t pid;
	uint32_t vm, vcpu; /* if it is the thread of one */
	struct arrow_end from;
};

struct arrows {
	struct arrow *ring;            /* ARROWS_KEPT */
	uint64_t n;                    /* ever */
	struct arrow_pending *pending; /* by pid; a newer one displaces an older one */
};

/* 0 or -ENOMEM. */
int arrows_init(struct arrows *a);
void arrows_fini(struct arrows *a);
void arrows_guest(struct arrows *a, const struct guest_instant *i);
void arrows_host(struct arrows *a, const struct host_instant *i);
void arrows_chain(struct arrows *a, const struct chain *c, const struct model *m);
/* The i-th newest, NULL past the last that is kept. */
const struct arrow *arrows_at(const struct arrows *a, uint64_t i);

#endif
