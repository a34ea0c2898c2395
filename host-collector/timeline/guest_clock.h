/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The stream clock of one boot of one guest, against the host's TSC: what the hypervisor's
 * parameters (vm_clock.h), round trips (clock/echo.h) and arrivals say of it. Nothing of one boot
 * is used for another: a clock may restart at 0, run on, or leap when a kernel boots.
 *
 * A boot has a window of host time. It begins no earlier than the newest round trip that the boot
 * before it answered, and ends no later than its last frame arrived, once another boot is known.
 */
#ifndef TIMELINE_GUEST_CLOCK_H
#define TIMELINE_GUEST_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

#include "clock/echo.h"
#include "clock/types.h"
#include "host-collector/timeline/printk_clock.h"
#include "host-collector/timeline/vm_clock.h"
#include "proto/message.h"

struct guest_early_echoes;

struct guest_clock {
	bool hello;
	enum stream_clock clock;
	uint64_t hz;            /* of the stream clock, nominal; 0: not known yet */
	struct echo_sync *echo; /* once hz and the host's rate are known */
	uint64_t observations;  /* that echo took */
	struct guest_early_echoes *early;
	struct arrival_line { /* a message left no later than it arrived */
		bool known;
		uint64_t first_stream, first_tsc;
		double offset; /* host ticks at stream time first_stream, at most */
	} arrival;
	bool by_arrival; /* settled without an echo */
	struct printk_clock printk;
	uint64_t answered; /* host TSC: when the newest round trip was sent; 0 none */
	uint64_t heard;    /* host TSC: when the newest frame arrived; 0 none */
	struct vm_clock_window window;
};

/* All facts: 0 or -ENOMEM. `host_hz`: 0 not known yet. */
void guest_clock_init(struct guest_clock *g);
void guest_clock_fini(struct guest_clock *g);
int guest_clock_hello(struct guest_clock *g, const struct message_hello *hello, uint64_t host_hz);
int guest_clock_echo(struct guest_clock *g, const struct echo_observation *o);
/* A message that the guest stamped `stream_time` had arrived at `arrival_tsc`. */
int guest_clock_arrival(struct guest_clock *g, uint64_t stream_time, uint64_t arrival_tsc,
			uint64_t host_hz);
/* The host's rate is known: the echo map begins, if the guest's is, too. */
int guest_clock_start(struct guest_clock *g, uint64_t host_hz);
/* No more facts for now: a rate that no hello gave is estimated, and without an echo the boot is
 * placed by arrival. */
int guest_clock_settle(struct guest_clock *g, uint64_t host_hz);

/* Can times of this boot be converted at all? */
bool guest_clock_knows(const struct guest_clock *g);
/* Host ticks per tick of the stream clock, nominal. */
double guest_clock_ratio(const struct guest_clock *g, uint64_t host_hz);
/* Do the hypervisor's parameters speak of this clock? hypervisor: may be NULL. */
bool guest_clock_is_exact(const struct guest_clock *g, const struct vm_clock *hypervisor);

/* Host TSC at the guest's stream time, and the bound; where nothing bounds the error that is
 * more than an event's err_ns can hold. false if not known. */
bool guest_clock_to_tsc(const struct guest_clock *g, const struct vm_clock *hypervisor,
			uint64_t host_hz, uint64_t stream_time, struct host_tsc *tsc,
			uint64_t *err_ticks);
/* The guest's stream time at host TSC `t`, and the bound, in ticks of that clock. */
bool guest_clock_from_tsc(const struct guest_clock *g, const struct vm_clock *hypervisor,
			  struct host_tsc t, uint64_t *stream_time, uint64_t *err_ticks);

#endif
