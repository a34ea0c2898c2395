/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Finds a VM through its monitor (QMP) on a worker thread, because a monitor that does not answer
 * would block the daemon's loop for seconds.
 */
#ifndef DAEMON_VM_SEARCH_H
#define DAEMON_VM_SEARCH_H

#include <stddef.h>
#include <uv.h>

#include "host-collector/vm/vm.h"

struct vm_search;

struct vm_search_events {
	/* Reports the result, once, on the loop's thread; afterwards the search is freed. The
	 * callee owns `vm`. If `vm` is NULL, err and `why` come from vm_open(). */
	void (*done)(void *context, struct vm *vm, int err, const char *why);
	void *context;
};

/* Starts a search. Copies the QMP path. Returns 0 or -errno. */
int vm_search_begin(uv_loop_t *loop, const struct vm_options *options,
		    const struct vm_search_events *events, struct vm_search **out);
/* Cancels the search: done() is not called. The loop must run until the search ends, which frees
 * it. NULL is allowed. */
void vm_search_forget(struct vm_search *s);

#endif
