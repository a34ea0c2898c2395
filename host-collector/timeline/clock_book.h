/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Collects what is known about the host's clocks and about each guest's stream clock, for one
 * recording or live session, and converts stream times to the timeline's nanoseconds:
 *
 *   host stream:  TSC -> raw_clock -> host_ns
 *   guest stream: stream clock -> vm_clock or echo_sync -> host TSC -> raw_clock -> host_ns
 *
 * vm_clock uses the hypervisor's own parameters and is exact. It is used where round trips confirm
 * these parameters. echo_sync uses the round trips and is used where the parameters are unknown. If
 * the round trips contradict the parameters, the error of a time is unbounded. Each boot of a
 * guest's kernel has its own clock (guest_clock.h).
 *
 * The bound of a converted time is the sum of the bounds of all steps: that of the stamp, of the
 * echo map and of the raw clock. Observations may arrive before the HELLO with the clock's rate: a
 * limited number of them is kept until then. If a guest never answered an echo request, its events
 * are placed by the arrival times of its messages, with an unbounded error (method "none").
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
 * The range of all times. A value outside this range is rejected when it is read from a recording
 * or a peer, so that later sums, differences and small multiples of times cannot overflow: no
 * duration of a recording exceeds 2^54 ns, and 2^9 times that fits an int64_t.
 */
#define HOST_NS_LIMIT     (1ll << 61) /* 73 years, before and after 0, for each clock */
#define REALTIME_NS_LIMIT (1ll << 62) /* the year 2116 */
#define SPAN_NS_LIMIT     (1ll << 53) /* 104 days from the first sample of a recording */

struct clock_book;

/* Returns NULL on ENOMEM. short_memory: see struct echo_options. */
struct clock_book *clock_book_new(bool short_memory);
void clock_book_free(struct clock_book *b);
/* Also rejects times that are further than SPAN_NS_LIMIT from the first sample, from now on. For
 * recordings: a collector may run for longer. */
void clock_book_limit_span(struct clock_book *b);
/* Returns true if all values of a clock sample are in the range of all times. */
bool clock_sample_in_range(const struct message_clock_sample *sample);

/* The following functions add observations in order of arrival and ignore those that contradict
 * themselves. Those that return int return 0 or -ENOMEM. `boot` counts the boots of the guest's
 * kernel (boots.h). */
int clock_book_hello(struct clock_book *b, uint32_t source, uint32_t boot,
		     const struct message_hello *hello);
/* Notes that a frame of this boot arrived at host TSC `arrival_tsc`. */
void clock_book_heard(struct clock_book *b, uint32_t source, uint32_t boot, uint64_t arrival_tsc);
int clock_book_host_sample(struct clock_book *b, const struct message_clock_sample *sample);
/* Adds a round trip. It belongs to the newest boot. */
int clock_book_echo(struct clock_book *b, const struct message_echo_observation *o);
int clock_book_vm_clock(struct clock_book *b, const struct message_vm_clock *m);
/* Notes how the VM is protected from its host, according to KVM. A protection that was noted stays.
 */
int clock_book_protect(struct clock_book *b, uint32_t source, uint32_t protection);
/* Adds the content of the pvclock page that the guest itself read. */
int clock_book_guest_page(struct clock_book *b, uint32_t source,
			  const struct message_vm_clock_pvclock *m);
int clock_book_dmesg(struct clock_book *b, uint32_t source, uint32_t boot,
		     const struct message_dmesg_point *point);
/* Declares that the recording was imported. Events of a guest whose HELLO says
 * STREAM_CLOCK_HOST_TSC are then stamped in host TSC ticks already (method "stated"). In other
 * recordings and in live sessions such a stamp is not trusted. */
void clock_book_imported(struct clock_book *b);
/* Notes that the source's clock was stopped (`stops`) or restarted at host TSC `at`. */
void clock_book_break(struct clock_book *b, uint32_t source, struct host_tsc at, bool stops);
/* Notes that a message with the source's stamp `stream_time` arrived at host TSC `arrival_tsc`. */
int clock_book_arrival(struct clock_book *b, uint32_t source, uint32_t boot, uint64_t stream_time,
		       uint64_t arrival_tsc);
/* Completes the clocks with the observations so far: estimates rates that no HELLO stated, and
 * places sources without a round trip by arrival. Returns 0 or -ENOMEM. */
int clock_book_settle(struct clock_book *b);

/* Returns true if times of this boot of the source can be converted. The host has one boot, 0. */
bool clock_book_knows(const struct clock_book *b, uint32_t source, uint32_t boot);
/* Returns true if times of any boot of the source can be converted. */
bool clock_book_knows_any(const struct clock_book *b, uint32_t source);
/* Converts a stream time. stamp_err is the bound that the stamp already has, in ticks of the
 * stream clock. Returns false if the clock is unknown or the result is out of range. */
bool clock_book_to_ns(const struct clock_book *b, uint32_t source, uint32_t boot,
		      uint64_t stream_time, uint64_t stamp_err, struct host_time *out);
/* Returns how far the TSCs of the guest's vCPUs are or were apart: the greatest distance in any
 * kept epoch, ns. Stamps of one instant may differ by twice as much. */
uint64_t clock_book_apart_ns(const struct clock_book *b, uint32_t source);
/* Converts a host TSC value, for example an arrival time. Returns false if the host's clock is
 * unknown or the result is out of range. */
bool clock_book_host_ns(const struct clock_book *b, uint64_t tsc, struct host_ns *out);
/* Sets *offset_ns to CLOCK_REALTIME minus host_ns at time `t`. Returns false if no sample of
 * CLOCK_REALTIME is known. */
bool clock_book_wall_offset(const struct clock_book *b, struct host_ns t, int64_t *offset_ns);
/* Returns the i-th step of the host's wall clock: its size, and its time as the middle between the
 * two samples around it. Returns false after the last. At most 64 steps are kept. */
bool clock_book_wall_step(const struct clock_book *b, size_t i, struct host_ns *t, int64_t *by_ns);
/* Returns the i-th point that relates the host's CLOCK_MONOTONIC to host_ns
 * (raw_clock_monotonic_point). Returns false after the last. */
bool clock_book_monotonic_point(const struct clock_book *b, size_t i, struct host_ns *t,
				struct monotonic_ns *monotonic);
/*
 * Converts the times of one batch's events: sets t and err_ns of out[0..n) and leaves the other
 * members alone. tsc_cpu: 1 + the guest CPU whose TSC the stamps are, 0 if unknown (struct batch).
 * Converts the first and last event of each interval of at most 1/8 s and interpolates between
 * them: the true map is a straight line there, so the larger bound of the two holds for all events
 * between them. If the slope shows that the map is not a straight line, or if the clock is known to
 * change its rate or offset, converts each event separately. Returns false if a time of the source
 * cannot be converted.
 */
bool clock_book_map(const struct clock_book *b, uint32_t source, uint32_t boot, uint32_t tsc_cpu,
		    const struct vs_event *events, size_t n, uint64_t stamp_err,
		    struct timeline_event *out);

/* Returns true if the VM may have been paused at time `t` +- err_ns and this pause explains such a
 * large error. */
bool clock_book_beside_pause(const struct clock_book *b, uint32_t source, struct host_ns t,
			     uint64_t err_ns);
/* Returns false if no pause of the VM is known, so that clock_book_beside_pause() is always false.
 */
bool clock_book_has_pauses(const struct clock_book *b, uint32_t source);
/* Finds the pause of the VM between two stream times, as the hypervisor's parameters show it.
 * Returns false if there is no pause or more than one, or if it is not entirely inside. */
bool clock_book_pause_between(const struct clock_book *b, uint32_t source, uint32_t boot,
			      uint64_t from, uint64_t until, struct vm_clock_pause *out);

/* Converts host time `t` to the guest's printk time, with its bound. Returns false if it is
 * unknown. */
bool clock_book_dmesg_ns(const struct clock_book *b, uint32_t source, struct host_ns t,
			 struct dmesg_time *out);

/* The next three functions use the newest boot in which the stream time is possible. */
/* Converts a guest's stream time to host TSC, with its bound in ticks. Returns false if the clock
 * is unknown. */
bool clock_book_to_tsc(const struct clock_book *b, uint32_t source, uint64_t stream_time,
		       struct host_tsc *tsc, uint64_t *err_ticks);
bool clock_book_any_to_ns(const struct clock_book *b, uint32_t source, uint64_t stream_time,
			  struct host_time *out);
/*
 * Converts a guest's stream time to its printk time, with its bound. The printk clock runs at a
 * constant rate relative to the stream clock, but may have been stepped once between the two known
 * points around `stream_time`. A step after the newest point is not detected.
 */
bool clock_book_dmesg_at(const struct clock_book *b, uint32_t source, uint64_t stream_time,
			 uint64_t *dmesg_ns, uint64_t *err_ns);

struct clock_book_summary {
	/* How times of the newest boot are converted: "pvclock", "tsc", "echo", "stated", "none",
	 * or "untrusted" if round trips contradict the hypervisor's parameters. */
	const char *method;
	uint64_t epochs;
	uint64_t err_ns; /* at the newest round trip; UINT64_MAX: unbounded */
	uint64_t observations;
	/* About the round trips, whatever the method: first of all epochs, then of the current
	 * epoch. */
	uint64_t echo_epochs, best_round_trip_ns;
	uint64_t echo_err_ns, epoch_best_round_trip_ns;
	uint64_t best_guest;         /* stream time of the best round trip */
	double ratio_min, ratio_max; /* stream clock ticks per host TSC tick */
	/* The round trips fit no steady rate, so only their order is used. */
	bool unsteady;
	bool compared; /* the next member is valid */
	/* The exact map minus the middle of echo's interval, at the newest round trip. */
	int64_t exact_from_echo_ns;
	bool untrusted;         /* round trips contradict an epoch of the parameters */
	uint64_t disagreements; /* round trips that contradict the parameters */
	/* enum vm_protection: not VM_PROTECTION_NONE if the guest is protected, so that the
	 * hypervisor's parameters are not used. */
	uint32_t protection;
};
/* Summarises the newest boot's clock. For an unknown source the method is "none" and err_ns is
 * UINT64_MAX. */
void clock_book_summarise(const struct clock_book *b, uint32_t source,
			  struct clock_book_summary *out);
/* Returns the i-th kept epoch of echo's maps, over all boots. Returns false after the last. */
bool clock_book_echo_epoch(const struct clock_book *b, uint32_t source, size_t i,
			   struct echo_epoch *out);
/* Returns the VM's vm_clock, or NULL if no parameters of this VM are known. Borrowed. */
const struct vm_clock *clock_book_vm(const struct clock_book *b, uint32_t source);

#endif
