/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Decides when to reduce a VM's host capture to level summary, at which short VM-exits are counted
 * instead of emitted. It sheds detail when the rate of host events exceeds the limit in two
 * successive windows of 1 s. It restores detail after a pause of 30 s. The pause doubles, up to 16
 * minutes, each time detail lasted less than a minute, and is 30 s again after detail lasted a
 * minute. The governor does no I/O and reads no clock.
 */
#ifndef DAEMON_GOVERNOR_H
#define DAEMON_GOVERNOR_H

#include <stdbool.h>
#include <stdint.h>

struct governor {
	uint64_t limit; /* events per second; 0: no limit */
	bool shed;
	uint64_t window_ms, window_events;
	unsigned int windows_over;
	uint64_t changed_ms, pause_ms;
	uint64_t sheds; /* total number of reductions */
};

enum governor_advice { GOVERNOR_STAY, GOVERNOR_SHED, GOVERNOR_RESTORE };

/* Starts with the current value of the counter `events`. Keeps `sheds`. */
void governor_begin(struct governor *g, uint64_t limit, uint64_t now_ms, uint64_t events);
/* Returns what to do now. events: emitted so far. The governor assumes that the caller follows the
 * advice. Call it often. */
enum governor_advice governor_tick(struct governor *g, uint64_t now_ms, uint64_t events);

#endif
