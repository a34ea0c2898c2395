/* SPDX-License-Identifier: GPL-2.0-only */
/* Measures the daemon's own resource usage and manages its heap. */
#ifndef DAEMON_VITALS_H
#define DAEMON_VITALS_H

#include <stdint.h>

struct vitals {
	uint64_t cpu_ns, rss_bytes; /* CPU time and memory, without the decoders */
	uint64_t descriptors;
	uint64_t lag_max_ms; /* largest delay of the loop in the last 10 to 20 s */
	uint64_t lag_ever_ms;
	/* The same two, less the run delay of the loop's thread: the delay that the daemon itself
	 * causes. */
	uint64_t lag_own_max_ms, lag_own_ever_ms;
};

struct lag_meter {
	uint64_t due_ms, since_ms;
	uint64_t max_ms, before_ms, ever_ms;
	uint64_t own_max_ms, own_before_ms, own_ever_ms;
	uint64_t run_delay_ns; /* at the last tick */
};
/* Measures the delay of a timer of period_ms. Call it from that timer; now_ms must come from a
 * clock that advances during a turn of the loop. run_delay_ns: run_delay_read() of its thread. */
void lag_meter_tick(struct lag_meter *m, uint64_t now_ms, uint64_t period_ms,
		    uint64_t run_delay_ns);
/* Returns how long the calling thread has waited for a CPU since it began, in ns; 0 on a kernel
 * without schedstat. */
uint64_t run_delay_read(void);

/* Makes malloc() map each allocation of 32 KiB or more separately, so that its pages use memory
 * only when touched and are returned when freed. Without this, malloc() raises that threshold after
 * the first large free(). Affects the whole process. */
void memory_lean(void);
/* Returns freed memory to the kernel if there is more than 8 MiB of it, at most every 30 s.
 * *tidied_ms: time of the last check, initially 0. Call it regularly. */
void memory_tidy(uint64_t *tidied_ms, uint64_t now_ms);

/* Reads the values of this process. */
void vitals_read(const struct lag_meter *m, struct vitals *out);

#endif
