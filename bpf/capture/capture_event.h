/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Events that the user chose: adds them to a running capture. Their hits are USER events
 * (proto/events.def). A host captures the hits in the threads of VMs, a guest the hits in all
 * tasks. The caller has resolved names, fields and filters for this kernel.
 */
#ifndef CAPTURE_CAPTURE_EVENT_H
#define CAPTURE_CAPTURE_EVENT_H

#include "bpf/capture/capture.h"
#include "bpf/prog/user_slot.h"
#include "proto/user_event_kind.h"

/* Default limit: hits per second and CPU that become events. */
enum { CAPTURE_EVENT_RATE = 100000, CAPTURE_EVENT_FILTER_BYTES = 512 };

struct capture_event {
	enum user_event_kind kind;
	/* The system and name of the tracepoint, or the name of the kernel's function. With a path,
	 * only messages use them. */
	char system[48], name[64];
	/* uprobe, usdt: the file, the offset in it, and the offset of the probe's counter; 0: no
	 * counter. */
	char path[256];
	uint64_t offset, counter;
	bool untraced;
	bool stack;    /* host: take the stacks of hits; one of `values` is VS_FROM_STACK */
	uint32_t rate; /* hits per second and CPU; 0: the default */
	/* Number of used elements of `values` and `tests` (user_slot.h). */
	size_t n_values, n_tests;
	uint32_t first_test; /* index into `tests`; valid if n_tests is not 0 */
	struct vs_user_value values[VS_USER_SLOT_VALUES];
	struct vs_user_test tests[VS_USER_TESTS_MAX];
	/* The filter of a tracepoint in the kernel's own syntax (tracefs), for the perf backend;
	 * "": none. It keeps at least the hits that `tests` keep, and if it is exact only those. */
	char kernel_filter[CAPTURE_EVENT_FILTER_BYTES];
	bool kernel_filter_exact;
};

/* Attaches an event; its hits are captured from now on. Sets *id to its number, which no other
 * event of this capture gets. Returns 0; -ENOENT: the kernel or the file does not have it; -ENOSPC:
 * 64 events; -ENOTSUP: the backend cannot capture it; -ENOSYS: this kernel has no kprobes; or
 * -errno. */
int capture_event_add(struct capture *c, const struct capture_event *event, uint32_t *id);

/* The kinds of tasks that belong to no VM and whose hits are captured nevertheless. */
enum capture_watch_kind {
	CAPTURE_WATCH_THREAD = 1, /* one thread */
	/* The threads of a process and, from now on, of every process that it and its children
	 * start. */
	CAPTURE_WATCH_PROCESS = 2,
	CAPTURE_WATCH_CGROUP = 3, /* all tasks in a cgroup (v2) and in those below it */
};
struct capture_watch {
	enum capture_watch_kind kind;
	int id;           /* thread id, process id, or descriptor of the cgroup's directory */
	const char *name; /* for messages */
};
/* Also captures the hits of all chosen events in these tasks. Only for a host capture that is not
 * shared. Returns 0, -EBADF: not a directory of cgroup v2, -ENOSPC: too many, -ENOTSUP: the backend
 * or this kernel cannot do it, or another -errno. */
int capture_event_watch(struct capture *c, const struct capture_watch *watch);
/* Returns the number of new processes that are not watched because there were too many. */
uint64_t capture_event_unwatched(const struct capture *c);

/* Stops the capture of an event and keeps its state. After this call and a drain, each of the
 * `kept` hits has been drained or counted as lost. Waits a few ms for hits in progress. Does
 * nothing if the capture is shared. */
void capture_event_stop(struct capture *c, uint32_t id);

struct capture_event_state {
	uint64_t kept;    /* hits that became events */
	uint64_t limited; /* hits that did not, because of the limit */
	bool detached;    /* it had too many hits: they are neither captured nor counted any more */
};
/* Gets the state of an event since it was added. Detaches the event if most of its hits have been
 * above the limit for 10 s. Call it about once a second, so that this is detected. Returns 0 or
 * -ENOENT. */
int capture_event_state_get(struct capture *c, uint32_t id, uint64_t now_ms,
			    struct capture_event_state *out);

/* Detaches an event for good; its state is gone. */
void capture_event_remove(struct capture *c, uint32_t id);
/* Limits the hits of all events together, per second and CPU, in addition to the limit of each
 * event. 0: no limit, which is the initial state. */
void capture_events_limit(struct capture *c, uint32_t rate);

#endif
