/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Lets a command end without waiting for the kernel to detach its probes.
 *
 * The process that closes the last descriptor of the probes waits until the kernel has detached
 * them one after another, each after an RCU grace period: about 50 ms per probe on an idle machine,
 * a second or more on a busy one. Therefore a second process shares the descriptors and closes them
 * last.
 *
 *	detach_begin(&d);
 *	...                    // close the captures: returns at once
 *	detach_end(&d, DETACH_WAIT_MS);
 */
#ifndef CLI_DETACH_H
#define CLI_DETACH_H

#include <stdbool.h>
#include <sys/types.h>

enum { DETACH_WAIT_MS = 2500 };
#define DETACH_GOES_ON                                                                             \
	"vcpuscope: the kernel is still detaching the probes; it finishes without vcpuscope\n"

struct detach {
	pid_t pid; /* the process that closes last; 0: none */
	int go_fd; /* closing it makes that process close the probes */
};

/* Starts the process. If that fails, closing the captures waits for the kernel. */
void detach_begin(struct detach *d);
/* Makes the process close its descriptors and waits at most wait_ms for its end. Returns false if
 * the kernel has not finished; the process then ends later by itself. */
bool detach_end(struct detach *d, unsigned int wait_ms);

#endif
