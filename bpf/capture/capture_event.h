/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Events that the user chose: adds them to a running capture. Their hits are USER events
 * (proto/events.def). A host's are those in the threads of VMs, a guest's those of all tasks. The
 * caller has resolved names, fields and filters for this kernel.
 */
#ifndef CAPTURE_CAPTURE_EVENT_H
#define CAPTURE_CAPTURE_EVENT_H

#include "bpf/capture/capture.h"
#include "bpf/prog/user_slot.h"
#include "proto/user_event_kind.h"

enum { CAPTURE_EVENT_RATE = 100000 }; /* hits per second and CPU that become events, by default */

struct capture_event {
	enum user_event_kind kind;
	/* The tracepoint; a function of the kernel; for people only if there is a path. */
	char system[48], name[64];
	/* uprobe, usdt: the file, the place in it, and the place of the probe's counter, 0 none. */
	char path[256];
	uint64_t offset, counter;
	bool untraced;
	uint32_t rate;            /* hits per second and CPU; 0: the default */
	size_t n_values, n_tests; /* used of `values` and `tests` (user_slot.h) */
	uint32_t first_test;      /* if there are tests */
	struct vs_user_value values[VS_USER_SLOT_VALUES];
	struct vs_user_test tests[VS_USER_TESTS_MAX];
};

/* Attaches an event; its hits are captured from now on. Sets *id to its number, which no other
 * event of this capture gets. 0; -ENOENT: the kernel or the file does not have it; -ENOSPC: 64
 * events; -ENOTSUP: the backend cannot capture it; -ENOSYS: this kernel has no kprobes; -EEXIST:
 * VS_USER_SAME_MAX events of this tracepoint are captured already; or -errno.
 */
int capture_event_add(struct capture *c, const struct capture_event *event, uint32_t *id);

/* Tasks of no VM whose hits count, too. */
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
/* Host, not shared: also takes the hits of these tasks, of all chosen events. 0, -EBADF: no
 * directory of cgroup v2, -ENOSPC: too many, -ENOTSUP: the backend or this kernel cannot do it, or
 * another -errno. */
int capture_event_watch(struct capture *c, const struct capture_watch *watch);
/* Returns the number of new processes that are not watched because there were too many. */
uint64_t capture_event_unwatched(const struct capture *c);

/* Ends the hits of an event and keeps its state: after this and a drain, `kept` hits were drained
 * or counted as lost. Waits some ms for hits in progress. Does nothing where the capture is shared.
 */
void capture_event_stop(struct capture *c, uint32_t id);

struct capture_event_state {
	uint64_t kept;    /* hits that became events */
	uint64_t limited; /* hits that did not, because of the rate */
	bool detached;    /* it flooded: its hits are neither captured nor counted any more */
};
/* Gets the state of an event since it was added. Detaches it if most of its hits have been above
 * the limit for 10 s; so call it about once a second. 0 or -ENOENT. */
int capture_event_state_get(struct capture *c, uint32_t id, uint64_t now_ms,
			    struct capture_event_state *out);

/* Detaches an event for good; its state is gone. */
void capture_event_remove(struct capture *c, uint32_t id);
/* Limits the hits of all events together, per second and CPU, in addition to the limits of each. 0:
 * no limit, which is the initial state. */
void capture_events_limit(struct capture *c, uint32_t rate);

#endif
