/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Finds a VM by its monitor (QMP) on a thread of its own: a monitor that does not answer takes
 * seconds, which the daemon's loop must not wait.
 */
#ifndef DAEMON_VM_SEARCH_H
#define DAEMON_VM_SEARCH_H

#include <stddef.h>
#include <uv.h>

#include "host-collector/vm/vm.h"

struct vm_search;

struct vm_search_events {
	/* On the loop's thread, once; the search is freed afterwards. `vm` is the callee's; NULL: err
	 * and `why` are those of vm_open(). */
	void (*done)(void *context, struct vm *vm, int err, const char *why);
	void *context;
};

/* Begins. Strings in options are copied. 0 or -errno. */
int vm_search_begin(uv_loop_t *loop, const struct vm_options *options,
		    const struct vm_search_events *events, struct vm_search **out);
/* Nobody wants to know any more: done() is not called. The loop must run until the search is over,
 * which frees it. NULL is allowed. */
void vm_search_forget(struct vm_search *s);

#endif
