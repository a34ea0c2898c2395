/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Collects what the timeline of an incident shows: the spans of the VM's vCPUs, of their guest CPUs
 * and of the pCPUs that they used, from shortly before the incident to shortly after it, and arrows
 * between them. Only the SCENES_MAX longest incidents have a scene.
 *
 * An incident is known only when it ends. So each row keeps its history in bounded memory
 * (track.h), and the part of the incident is copied soon after its end.
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
	SCENE_LANES_MAX = 24,
	SCENE_PAIRS_MAX = 16,     /* pairs that the user named */
	SCENE_MARKS_ALL = 12000,  /* marks of all scenes together */
	SCENE_LANE_MARKS_MIN = 8, /* of a lane, however many lanes there are */
	LANE_NAME_BYTES = 128,
};

/* X(NAME, "name", meaning of the members state, pid, number and where of its pieces) */
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
/* Returns the name in the page's data. Static. */
const char *scene_row_name(enum scene_row_kind k);

struct scene_row {
	enum scene_row_kind kind;
	uint32_t number; /* number of the pCPU, vCPU or guest CPU */
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
	size_t from_row, to_row; /* indices into scene.rows */
	int32_t pid;             /* task that was woken; for INTERRUPT: task that raised it */
	uint32_t number;         /* for INTERRUPT: its vector */
};

/* Below the rows of the CPUs: the events that the user chose, and pairs of events. */
enum lane_kind { LANE_EVENT, LANE_PAIR };

/* What a lane shows. */
struct lane_key {
	enum lane_kind kind;
	uint64_t number; /* of the event, unique among all streams; of the pair, in the user's order
			  */
	bool of_vm, of_vcpu; /* it concerns this VM, and this vCPU of it */
	uint32_t vm, vcpu;
};

enum { LANE_DOUBTS = 3 };

/* An event, or a pair from its first event to its second. */
struct lane_mark {
	struct host_ns begin; /* of the longest that is folded into it */
	int64_t ns;           /* its length; of an event: 0 */
	uint32_t n;           /* number of marks that are folded into it, including itself */
	int64_t sum_ns;       /* their lengths */
	/* Of a pair: 0: it is a call. 1: it is a call if pairs past losses are calls. 2: it is a
	 * call if pairs past both are calls. */
	uint8_t doubt;
	uint32_t column; /* used while marks are folded */
};

struct scene_lane {
	struct lane_key key;
	char name[LANE_NAME_BYTES];
	bool cut; /* older marks within the scene were not kept */
	size_t n, capacity;
	struct lane_mark *marks; /* by begin, after scenes_finish() */
};

struct scene_name {
	bool host; /* a host task; else a guest task */
	int32_t pid;
	char comm[16];
};

struct scene {
	uint32_t vm;
	struct host_ns begin, end;
	int64_t grain_ns; /* pieces shorter than this are merged; 0: no piece is */
	bool cut;         /* its begin is older than the kept history */
	size_t n_rows;
	struct scene_row rows[SCENE_ROWS_MAX];
	size_t rows_left_out; /* vCPUs and pCPUs beyond the limits */
	size_t n_arrows;
	struct scene_arrow arrows[SCENE_ARROWS_MAX];
	uint64_t arrows_left_out;
	size_t n_lanes;
	struct scene_lane lanes[SCENE_LANES_MAX];
	uint64_t marks_left_out; /* of lanes beyond SCENE_LANES_MAX */
	size_t n_names;
	struct scene_name *names;
};

struct scenes;

/* Subscribes to the model. The caller must not feed the model after scenes_free(). Keeps the
 * rows' histories on a worker thread (model_observe_on_worker) if it can create one. Returns NULL
 * on ENOMEM. */
struct scenes *scenes_new(struct model *m);
void scenes_free(struct scenes *s);
/* Adds an incident when it was found (report_options.noticed). */
void scenes_incident(struct scenes *s, const struct incident *i);
/* Adds the arrow of a closed chain (chain_options.closed). */
void scenes_chain(struct scenes *s, const struct chain *c);
/* Adds a pair as soon as it is known. number: of its definition, below SCENE_PAIRS_MAX; `name` is
 * copied. */
void scenes_pair(struct scenes *s, const struct lane_key *key, const char *name,
		 const struct lane_mark *mark);
/* States that pairs of this definition with at most this doubt (struct lane_mark) are calls.
 * Without this call, only pairs without doubt are shown. Call it before scenes_finish(). */
void scenes_pair_accept(struct scenes *s, unsigned number, uint8_t doubt);
/* Completes all scenes; call it after model_finish(). Merges short pieces until all scenes
 * together have about `pieces_max`; each scene gets its share. Returns 0, or -ENOMEM if
 * something is missing. */
int scenes_finish(struct scenes *s, size_t pieces_max);
/* Returns scene number `index` in order of begin, NULL past the last. Borrowed. Only after
 * scenes_finish(). */
const struct scene *scenes_at(const struct scenes *s, size_t index);
/* Returns the index of the scene that shows this incident, or -1. */
int scenes_find(const struct scenes *s, const struct incident *i);

#endif
