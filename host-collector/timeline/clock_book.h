/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The clocks of one recording or live session: what is known about the host's TSC and about each
 * guest's stream clock, and the conversion of stream times to the timeline's nanoseconds.
 *
 *   host stream:  TSC -> raw_clock -> host_ns
 *   guest stream: stream clock -> vm_clock or echo_sync -> host TSC -> raw_clock -> host_ns
 *
 * vm_clock (the hypervisor's own parameters, exact) where round trips confirm it; else echo_sync,
 * where the hypervisor says nothing. Where the two contradict each other, nothing is proven: the
 * error is unbounded. Every boot of a guest's kernel has a clock of its own (guest_clock.h).
 *
 * Every conversion carries the sum of the errors on its way: the stamp's own, the echo map's, the
 * raw clock's. Facts may arrive before the hello that names the clock's rate; they are kept until
 * then (a bounded number). A guest that never answered an echo is placed by the arrival of its
 * messages, with an unbounded error: method "none".
 */
#ifndef TIMELINE_CLOCK_BOOK_H
#define TIMELINE_CLOCK_BOOK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "clock/echo.h"
#include "clock/types.h"
#include "host-collector/timeline/timeline.h"
#include "host-collector/timeline/vm_clock.h"
#include "proto/message.h"

/*
 * The range of all times. What a recording or a peer says lies outside of it is refused where it
 * enters, so that sums, differences and small multiples of times behind that point cannot overflow:
 * no duration of a recording exceeds 2^54 ns, and 2^9 times that fits an int64_t.
 */
#define HOST_NS_LIMIT     (1ll << 61) /* either way: 73 years, by whatever clock */
#define REALTIME_NS_LIMIT (1ll << 62) /* the year 2116 */
#define SPAN_NS_LIMIT     (1ll << 53) /* of a recording, from its first sample: 104 days */

struct clock_book;

struct clock_book *clock_book_new(void); /* NULL on ENOMEM */
void clock_book_free(struct clock_book *b);
/* From now on times further from the first sample than SPAN_NS_LIMIT are out of range too: for a
 * recording. A collector may run for longer. */
void clock_book_limit_span(struct clock_book *b);
/* Is what a clock sample says within the range of all times? */
bool clock_sample_in_range(const struct message_clock_sample *sample);

/* Facts, in order of arrival. 0 or -ENOMEM; facts that contradict themselves are ignored. `boot`
 * counts the boots of a guest's kernel (boots.h): each has a clock of its own. */
int clock_book_hello(struct clock_book *b, uint32_t source, uint32_t boot,
		     const struct message_hello *hello);
/* Any frame of this boot had arrived at `arrival_tsc`. */
void clock_book_heard(struct clock_book *b, uint32_t source, uint32_t boot, uint64_t arrival_tsc);
int clock_book_host_sample(struct clock_book *b, const struct message_clock_sample *sample);
/* Of the newest boot. */
int clock_book_echo(struct clock_book *b, const struct message_echo_observation *o);
int clock_book_vm_clock(struct clock_book *b, const struct message_vm_clock *m);
/* What the guest's own pvclock page held. */
int clock_book_guest_page(struct clock_book *b, uint32_t source,
			  const struct message_vm_clock_pvclock *m);
int clock_book_dmesg(struct clock_book *b, uint32_t source, uint32_t boot,
		     const struct message_dmesg_point *point);
/* The recording was imported: guests whose hello says STREAM_CLOCK_HOST_TSC are stamped in the
 * host's ticks already, by whoever imported them; method "stated". Without it, and live, no guest
 * is believed to know the host's clock. */
void clock_book_imported(struct clock_book *b);
/* The source's clock was stopped, or (`stops` false) went on, at host time `at`. */
void clock_book_break(struct clock_book *b, uint32_t source, struct host_tsc at, bool stops);
/* A message that the source stamped `stream_time` had arrived at `arrival_tsc`. */
int clock_book_arrival(struct clock_book *b, uint32_t source, uint32_t boot, uint64_t stream_time,
		       uint64_t arrival_tsc);
/* No more facts for now: rates that no hello gave are estimated from the facts themselves, and
 * sources without an echo are placed by arrival. 0 or -ENOMEM. */
int clock_book_settle(struct clock_book *b);

/* Can times of this source be converted? The host has one boot, 0. */
bool clock_book_knows(const struct clock_book *b, uint32_t source, uint32_t boot);
/* Those of any of its boots? */
bool clock_book_knows_any(const struct clock_book *b, uint32_t source);
/* false if not, or if it is out of range. stamp_err: what the stamp already carries, in ticks of
 * the stream clock. */
bool clock_book_to_ns(const struct clock_book *b, uint32_t source, uint32_t boot,
		      uint64_t stream_time, uint64_t stamp_err, struct host_time *out);
/* host_ns of a host TSC value, such as an arrival. false if not known or out of range. */
bool clock_book_host_ns(const struct clock_book *b, uint64_t tsc, struct host_ns *out);
/* CLOCK_REALTIME less host_ns, at `t`. false if no sample of the host's clocks was seen, or
 * none that knew the wall clock. */
bool clock_book_wall_offset(const struct clock_book *b, struct host_ns t, int64_t *offset_ns);
/* The i-th time that somebody set the host's wall clock: when, to within half of the time between
 * two samples, and by how much. False past the last; 64 are kept. */
bool clock_book_wall_step(const struct clock_book *b, size_t i, struct host_ns *t, int64_t *by_ns);
/* Point number `i` of the host's CLOCK_MONOTONIC against host_ns (raw_clock_monotonic_point). False
 * past the last. */
bool clock_book_monotonic_point(const struct clock_book *b, size_t i, struct host_ns *t,
				struct monotonic_ns *monotonic);
/*
 * Fills t and err_ns of out[0..n) for the events of one batch; the rest of out[] is left alone.
 * Maps the ends of spans of at most 1/8 s and interpolates between them: the true map is a line
 * there, so the ends' bound holds between them. Where the ends say that it is not, every event is
 * mapped by itself. false if the source's times cannot be converted.
 */
bool clock_book_map(const struct clock_book *b, uint32_t source, uint32_t boot,
		    const struct vs_event *events, size_t n, uint64_t stamp_err,
		    struct timeline_event *out);

/* Is an instant known so badly (+-err_ns) because the VM was paused then? */
bool clock_book_beside_pause(const struct clock_book *b, uint32_t source, struct host_ns t,
			     uint64_t err_ns);
/* The one pause of the VM between these stream times that the hypervisor's parameters show. false:
 * none, or more than one, or one that is not all inside. */
bool clock_book_pause_between(const struct clock_book *b, uint32_t source, uint32_t boot,
			      uint64_t from, uint64_t until, struct vm_clock_pause *out);

/* The guest's printk time at host time `t`, with the bound. */
bool clock_book_dmesg_ns(const struct clock_book *b, uint32_t source, struct host_ns t,
			 struct dmesg_time *out);

/* The next three: of the newest boot that can have had this stream time. */
/* Host TSC at the guest's stream time, and the bound. false if not known. */
bool clock_book_to_tsc(const struct clock_book *b, uint32_t source, uint64_t stream_time,
		       struct host_tsc *tsc, uint64_t *err_ticks);
bool clock_book_any_to_ns(const struct clock_book *b, uint32_t source, uint64_t stream_time,
			  struct host_time *out);
/*
 * The guest's printk clock at its stream time, and the bound. That clock follows the stream clock
 * at a constant rate, but may have been stepped once between the two points around it; a step
 * beyond the newest point is not known.
 */
bool clock_book_dmesg_at(const struct clock_book *b, uint32_t source, uint64_t stream_time,
			 uint64_t *dmesg_ns, uint64_t *err_ns);

struct clock_book_summary {
	/* "pvclock", "tsc", "echo", "stated", "none", or "untrusted": the guest's answers and the
	 * hypervisor's parameters contradict each other. Of the newest boot, but for the last. */
	const char *method;
	uint64_t epochs;
	uint64_t err_ns; /* at the newest observation; UINT64_MAX if unbounded */
	uint64_t observations;
	/* Of echo sync, whatever the method: of all epochs, then of the current one. */
	uint64_t echo_epochs, best_round_trip_ns;
	uint64_t echo_err_ns, epoch_best_round_trip_ns;
	uint64_t best_guest;         /* stream time of the best round trip of all */
	double ratio_min, ratio_max; /* ticks of the guest's stream clock per host TSC tick */
	bool unsteady; /* echo found no steady rate: only the order of round trips counts */
	bool compared; /* at the newest observation, the exact map with echo's */
	int64_t exact_from_echo_ns; /* from the middle of echo's interval */
	bool untrusted;             /* some epoch of the hypervisor's is contested */
	uint64_t disagreements;     /* round trips that contradict the hypervisor's parameters */
};
/* Method "none" and UINT64_MAX for a source that was never heard of. */
void clock_book_summarise(const struct clock_book *b, uint32_t source,
			  struct clock_book_summary *out);
/* The i-th epoch of echo's map that is kept; false beyond the last. */
bool clock_book_echo_epoch(const struct clock_book *b, uint32_t source, size_t i,
			   struct echo_epoch *out);
/* Borrowed; NULL if the hypervisor said nothing of this VM. */
const struct vm_clock *clock_book_vm(const struct clock_book *b, uint32_t source);

#endif
