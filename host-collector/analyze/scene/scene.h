/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a timeline of an incident shows: the pieces of its VM's vCPUs, of the guest CPUs that they
 * run and of the pCPUs that they used, from a moment before the incident to one after it, and the
 * arrows between them. Gathered while the events pass, in bounded memory: each row's history
 * (track.h) is copied soon after the incident's end. The longest incidents have a scene.
 */
#ifndef SCENE_SCENE_H
#define SCENE_SCENE_H

#include "host-collector/analyze/chain/chain.h"
#include "host-collector/analyze/stall/report.h"
#include "host-collector/analyze/scene/track.h"
#include "host-collector/model/model.h"

enum {
	SCENES_MAX = 24,
	SCENE_VCPUS_MAX = 16,
	SCENE_PCPUS_MAX = 16,
	SCENE_ROWS_MAX = SCENE_PCPUS_MAX + 2 * SCENE_VCPUS_MAX,
	SCENE_ARROWS_MAX = 300,
};

/* X(NAME, "name", what `pid`, `number` and `where` of its pieces are) */
#define SCENE_ROW_KINDS(X)                                                                         \
	X(PCPU, "pcpu", "state: enum scene_pcpu_state; pid: the task")                             \
	X(VCPU, "vcpu", "state: enum vcpu_state; pid: who held its pCPU; where: the pCPU")         \
	X(GUEST, "guest",                                                                          \
	  "state: enum guest_cpu_state; pid: the guest's task; number: its "                       \
	  "interrupt; where: 1 if that is an enum vs_vector")

enum scene_row_kind {
#define X(NAME, ...) SCENE_ROW_##NAME,
	SCENE_ROW_KINDS(X)
#undef X
};

/* X(NAME, "name", meaning) */
#define SCENE_PCPU_STATES(X)                                                                       \
	X(IDLE, "idle", "nothing to run")                                                          \
	X(VCPU, "vcpu", "a vCPU's thread")                                                         \
	X(TASK, "task", "another task")                                                            \
	X(UNSEEN, "unseen", "not captured: no vCPU wanted this pCPU")

enum scene_pcpu_state {
#define X(NAME, ...) SCENE_PCPU_##NAME,
	SCENE_PCPU_STATES(X)
#undef X
		SCENE_PCPU_STATE_COUNT
};
/* As in the page's data; static. */
const char *scene_row_name(enum scene_row_kind k);

struct scene_row {
	enum scene_row_kind kind;
	uint32_t number; /* of the pCPU, vCPU or guest CPU */
	size_t n;
	struct track_piece *pieces;
};

/* X(NAME, "name", meaning) */
#define SCENE_ARROW_KINDS(X)                                                                       \
	X(WAKEUP, "wakeup", "a guest task was woken, and ran")                                     \
	X(KICK, "kick", "the vCPU's thread was woken, and ran")                                    \
	X(INTERRUPT, "interrupt", "the vCPU's APIC took an interrupt, and its handler ran")

enum scene_arrow_kind {
#define X(NAME, ...) SCENE_ARROW_##NAME,
	SCENE_ARROW_KINDS(X)
#undef X
		SCENE_ARROW_KIND_COUNT
};

struct scene_arrow {
	enum scene_arrow_kind kind;
	struct host_ns from, to;
	size_t from_row, to_row; /* indices of scene.rows */
	int32_t pid;             /* woken; of an INTERRUPT: who raised it */
	uint32_t number;         /* of an INTERRUPT: its vector */
};

struct scene_name {
	bool host; /* else a task of the guest */
	int32_t pid;
	char comm[16];
};

struct scene {
	uint32_t vm;
	struct host_ns begin, end;
	int64_t grain_ns; /* shorter pieces are merged; 0: all are there */
	bool cut;         /* its beginning lies before what is kept */
	size_t n_rows;
	struct scene_row rows[SCENE_ROWS_MAX];
	size_t rows_left_out; /* vCPUs and pCPUs beyond the limits */
	size_t n_arrows;
	struct scene_arrow arrows[SCENE_ARROWS_MAX];
	uint64_t arrows_left_out;
	size_t n_names;
	struct scene_name *names;
};

struct scenes;

/* Subscribes to the model, which must not be fed any more once this is freed. What its rows do is
 * noted apart (model_observe_apart) if a thread can be had. NULL on ENOMEM. */
struct scenes *scenes_new(struct model *m);
void scenes_free(struct scenes *s);
/* An incident that has just been found (report_options.noticed). */
void scenes_incident(struct scenes *s, const struct incident *i);
/* A chain that has been closed (chain_options.closed). */
void scenes_chain(struct scenes *s, const struct chain *c);
/* After model_finish. All scenes together then have about `pieces_max` pieces: each is thinned to
 * its share. 0, or -ENOMEM: something is missing. */
int scenes_finish(struct scenes *s, size_t pieces_max);
/* Item number `index` in order of begin, NULL past the last. Borrowed. After scenes_finish. */
const struct scene *scenes_at(const struct scenes *s, size_t index);
/* The index of the scene that shows this incident, -1 none. */
int scenes_find(const struct scenes *s, const struct incident *i);

#endif
