/* SPDX-License-Identifier: GPL-2.0-only */
/* How the daemon itself fares. */
#ifndef DAEMON_VITALS_H
#define DAEMON_VITALS_H

#include <stdint.h>

struct vitals {
	uint64_t cpu_ns, rss_bytes; /* of the daemon without its decoders */
	uint64_t descriptors;
	uint64_t lag_max_ms; /* the loop came so late, at worst, in the last 10 to 20 s */
	uint64_t lag_ever_ms;
};

struct lag_meter {
	uint64_t due_ms, since_ms;
	uint64_t max_ms, before_ms, ever_ms;
};
/* Call it from a timer of `period_ms`, with a clock that does not stand still within a turn. */
void lag_meter_tick(struct lag_meter *m, uint64_t now_ms, uint64_t period_ms);

/* From now on a large table takes memory as it is touched, and gives it back when it is freed: once
 * a large one was freed, malloc() would else keep such pieces and clear them whole for the next.
 * For the whole process. */
void memory_lean(void);
/* Gives memory that was freed back to the kernel if that is much, now and then: what many small
 * pieces of a burst had taken stays with malloc() otherwise. Call it as above; *tidied_ms: when it
 * last was, 0 at first. */
void memory_tidy(uint64_t *tidied_ms, uint64_t now_ms);

/* Of this process, now. */
void vitals_read(const struct lag_meter *m, struct vitals *out);

#endif
