/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * When to give up detail: a VM whose host events come faster than its budget for two seconds is to
 * be captured in summary (short VM-exits are then counted in the kernel, not told), and after a
 * while in detail again; the while doubles as long as that does not last. No I/O and no clock of
 * its own.
 */
#ifndef DAEMON_GOVERNOR_H
#define DAEMON_GOVERNOR_H

#include <stdbool.h>
#include <stdint.h>

struct governor {
	uint64_t limit; /* events per second; 0: none */
	bool shed;
	uint64_t window_ms, window_events;
	unsigned int windows_over;
	uint64_t changed_ms, pause_ms;
	uint64_t sheds; /* so far */
};

enum governor_advice { GOVERNOR_STAY, GOVERNOR_SHED, GOVERNOR_RESTORE };

/* Begins anew, at a counter of `events`. */
void governor_begin(struct governor *g, uint64_t limit, uint64_t now_ms, uint64_t events);
/* Call it often; events: told so far. What is advised counts as done. */
enum governor_advice governor_tick(struct governor *g, uint64_t now_ms, uint64_t events);

#endif
