/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The end of a command that captured. The kernel detaches one probe after the other and waits for
 * a grace period of RCU each time: some 50 ms on a quiet machine, a second or more each on one
 *whose CPUs are taken. Whoever closes the last descriptor waits. So that the command does not, a
 *process that shares the descriptors closes them last.
 *
 *	detach_begin(&d);
 *	...                    // closes the captures: returns at once
 *	detach_end(&d, DETACH_WAIT_MS);
 */
#ifndef CLI_DETACH_H
#define CLI_DETACH_H

#include <stdbool.h>
#include <sys/types.h>

enum { DETACH_WAIT_MS = 2500 };
#define DETACH_GOES_ON "vcpuscope: the kernel still detaches the probes, and goes on by itself\n"

struct detach {
	pid_t pid; /* of the process that closes last; 0: there is none */
	int go_fd; /* it closes when this is closed */
};

/* Starts that process. If it cannot, the caller waits for the kernel, as without it. */
void detach_begin(struct detach *d);
/* Lets it close, and waits for it at most so long. False: the kernel is not done, and the process
 * ends by itself when it is. */
bool detach_end(struct detach *d, unsigned int wait_ms);

#endif
