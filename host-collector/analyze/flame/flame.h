/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Computes weighted stacks of time: the data of `vcpuscope flame`.
 *
 * The stack of a guest task continues on the host: first the task's own stack, then what its vCPU
 * did at that time, then the host's stack where the vCPU slept, then the waker. Time is measured
 * from event to event. A sample applies to the time since the previous sample in the same run of
 * the task on its CPU. So each instant of a thread is counted exactly once, with or without stacks.
 *
 * FLAME_LOOKS is different: each look has the weight of the time since the previous tick, and all
 * other time is left out.
 */
#ifndef FLAME_FLAME_H
#define FLAME_FLAME_H

#include "host-collector/analyze/flame/folded.h"
#include "host-collector/model/narrow.h"

/* X(NAME, "name", "what it shows") */
#define FLAME_KINDS(X)                                                                             \
	X(ONCPU, "oncpu", "where time on a CPU went")                                              \
	X(OFFCPU, "offcpu", "where threads waited")                                                \
	X(WAKEUP, "wakeup", "who ended waits")                                                     \
	X(OFFWAKE, "offwake", "where threads waited, and who ended that")                          \
	X(WALL, "wall", "all time of every thread")                                                \
	X(EXITS, "exits", "what VM-exits cost, by reason")                                         \
	X(LOOKS, "looks", "what ran when a condition held (record --look)")

enum flame_kind {
#define X(NAME, ...) FLAME_##NAME,
	FLAME_KINDS(X)
#undef X
		FLAME_KIND_COUNT
};

/* The threads whose time is counted. */
enum flame_subject { FLAME_OF_TASKS = 1, FLAME_OF_VCPUS = 2 };

/* States of a guest task, as its kernel reports them. */
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
	const char *vm;   /* name or number; NULL: all. Borrowed. */
	int32_t vcpu;     /* index; -1: all */
	const char *task; /* name or pid of a guest task; NULL: all. Borrowed. */
	int32_t pid;      /* of a guest task; 0: all */
	/* Only this time is counted; NULL: all. Borrowed. The members above select the threads. */
	const struct narrow *time;
	uint32_t states; /* bits of enum flame_task_state or vcpu_state, depending on subject; 0:
			    all */
	bool threads;    /* roots are `name-pid`, not `name` */
};

/* Parses the mask flame_options.states: "runnable,blocked", "-sleeping" for all states except that
 * one, or "all". For vCPUs, `running` means guest, kvm and vmm. Returns 0, or -EINVAL with one line
 * in `why`. */
int flame_states_parse(enum flame_subject subject, const char *text, uint32_t *states, char *why,
		       size_t why_bytes);
/* Parses the name of a kind. Returns 0 or -EINVAL. */
int flame_kind_parse(const char *text, enum flame_kind *kind);
/* Returns the subject that a kind shows by default. */
enum flame_subject flame_subject_of(enum flame_kind kind);

struct flame;

/* Subscribes to the model. The caller must not feed the model after flame_free(). `options` are
 * copied. Returns NULL on ENOMEM. */
struct flame *flame_new(struct model *m, const struct flame_options *options);
void flame_free(struct flame *f);
/* Counts the time up to the end; call it after model_finish(). Returns 0, or -ENOMEM if
 * something could not be counted. */
int flame_finish(struct flame *f);
/* Returns the stacks so far. Borrowed until the next call after more time was counted. */
struct folded *flame_stacks(struct flame *f);

/* Compares the counted time of the threads, shown or filtered out, with their total time. */
struct flame_coverage {
	size_t threads;
	int64_t wall_ns;      /* time of all threads, each from its first to its last known state */
	int64_t counted_ns;   /* time in the stacks or filtered out by `states` or `vcpu` */
	int64_t unknown_ns;   /* part of counted_ns in which events were lost or not captured yet */
	size_t off;           /* threads with more than 0.5 % (and 1 ms) missing or counted twice */
	char worst[64];       /* the thread with the largest difference, "" if there is none */
	double worst_percent; /* its counted time, percent of its total time */
	uint64_t forgotten;   /* threads discarded because there were too many at once */
};
/* Fills in the coverage. Only for FLAME_WALL, after flame_finish(). */
void flame_coverage_get(const struct flame *f, struct flame_coverage *out);

#endif
