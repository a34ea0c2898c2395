/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Where time went, as weighted stacks: the data behind `vcpuscope flame`.
 *
 * A guest task's time goes through the boundary: its own stack, then what its vCPU did meanwhile,
 * then the host's stack where the vCPU slept, then who ended that. Time is measured from event to
 * event; a sample lends its stack to the time since the sample before it, within one stay of the
 * task on its CPU. So every instant of a thread is counted exactly once, with stacks or without.
 */
#ifndef FLAME_FLAME_H
#define FLAME_FLAME_H

#include "host-collector/analyze/flame/folded.h"
#include "host-collector/model/model.h"

/* X(NAME, "name", "what it shows") */
#define FLAME_KINDS(X)                                                                             \
	X(ONCPU, "oncpu", "where time on a CPU went")                                              \
	X(OFFCPU, "offcpu", "where threads waited")                                                \
	X(WAKEUP, "wakeup", "who ended waits")                                                     \
	X(OFFWAKE, "offwake", "where threads waited, and who ended that")                          \
	X(WALL, "wall", "all time of every thread")                                                \
	X(EXITS, "exits", "what VM-exits cost, by reason")

enum flame_kind {
#define X(NAME, ...) FLAME_##NAME,
	FLAME_KINDS(X)
#undef X
		FLAME_KIND_COUNT
};

/* Whose time. */
enum flame_subject { FLAME_OF_TASKS = 1, FLAME_OF_VCPUS = 2 };

/* What a guest's task does by its own kernel's account. */
#define FLAME_TASK_STATES(X)                                                                       \
	X(RUNNING, "running")                                                                      \
	X(RUNNABLE, "runnable")                                                                    \
	X(PREEMPTED, "preempted")                                                                  \
	X(SLEEPING, "sleeping")                                                                    \
	X(BLOCKED, "blocked")                                                                      \
	X(STOPPED, "stopped")                                                                      \
	X(UNKNOWN, "unknown")

enum flame_task_state {
#define X(NAME, ...) FLAME_TASK_##NAME,
	FLAME_TASK_STATES(X)
#undef X
		FLAME_TASK_STATE_COUNT
};

struct flame_options {
	enum flame_kind kind;
	enum flame_subject subject;
	const char *vm;   /* its name or number; NULL: all. Borrowed. */
	int32_t vcpu;     /* index, -1: all */
	const char *task; /* a guest task's name or pid; NULL: all. Borrowed. */
	uint32_t states;  /* bits by enum flame_task_state or vcpu_state, as subject says; 0: all */
	bool threads;     /* roots are `name-pid`, not `name` */
};

/* A mask for flame_options.states from "runnable,blocked", or "-sleeping" for all but that.
 * `running` of a vCPU means guest, kvm and vmm. 0 or -EINVAL with one line in `why`. */
int flame_states_parse(enum flame_subject subject, const char *text, uint32_t *states, char *why,
		       size_t why_bytes);
/* -EINVAL. */
int flame_kind_parse(const char *text, enum flame_kind *kind);
/* Whose time a kind shows unless told otherwise. */
enum flame_subject flame_subject_of(enum flame_kind kind);

struct flame;

/* Subscribes to the model, which must not be fed any more once this is freed. Options are copied.
 * NULL on ENOMEM. */
struct flame *flame_new(struct model *m, const struct flame_options *options);
void flame_free(struct flame *f);
/* After model_finish. 0, or -ENOMEM: something could not be counted. */
int flame_finish(struct flame *f);
/* What has been counted so far. Borrowed until more is counted and this is called again. */
struct folded *flame_stacks(struct flame *f);

/* Threads held against the clock: what was counted, whether shown or left out, and what should have
 * been. */
struct flame_coverage {
	size_t threads;
	int64_t wall_ns;      /* of them all: from where each is known to its end */
	int64_t counted_ns;   /* in the stacks, or left out by `states` or `vcpu` */
	int64_t unknown_ns;   /* of these: events were lost, or had not been captured */
	size_t off;           /* threads of which more than 0.5 % (and 1 ms) is missing or double */
	char worst[64];       /* the thread that is off most, "" if none is */
	double worst_percent; /* of its wall time that was counted */
	uint64_t forgotten;   /* threads of which there were too many at once */
};
/* For FLAME_WALL, after flame_finish. */
void flame_coverage_get(const struct flame *f, struct flame_coverage *out);

#endif
