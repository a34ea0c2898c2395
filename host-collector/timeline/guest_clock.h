/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Converts between the stream clock of one boot of one guest and the host's TSC, with the
 * hypervisor's parameters (vm_clock.h), round trips (clock/echo.h) or arrival times. Observations
 * of one boot are not used for another: when a kernel boots, its clock may restart at 0, continue
 * or jump.
 *
 * A boot has a window of host time. It begins no earlier than the newest round trip that the
 * previous boot answered. Once a later boot is known, it ends no later than the arrival of the
 * boot's last frame.
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
	uint64_t hz;              /* nominal rate of the stream clock; 0: unknown */
	struct message_cpu *cpus; /* the guest's CPUs, as HELLO names them; owned */
	size_t n_cpus;
	bool short_memory;      /* of echo */
	struct echo_sync *echo; /* NULL until hz and the host's rate are known */
	uint64_t observations;  /* round trips that echo accepted */
	struct guest_early_echoes *early;
	struct arrival_line { /* a message is never sent after it arrived */
		bool known;
		uint64_t first_stream, first_tsc;
		/* Upper bound: host TSC at stream time first_stream. */
		double offset;
	} arrival;
	bool by_arrival; /* place events by arrival if there is no echo */
	struct printk_clock printk;
	uint64_t answered; /* host TSC at which the newest answered request was sent; 0: none */
	uint64_t heard;    /* host TSC at which the newest frame arrived; 0: none */
	struct vm_clock_window window;
};

/* The following functions add observations. Those that return int return 0 or -ENOMEM. `host_hz`
 * is 0 while the host's rate is unknown. short_memory: see struct echo_options. */
void guest_clock_init(struct guest_clock *g, bool short_memory);
void guest_clock_fini(struct guest_clock *g);
int guest_clock_hello(struct guest_clock *g, const struct message_hello *hello, uint64_t host_hz);
int guest_clock_echo(struct guest_clock *g, const struct echo_observation *o);
/* Notes that a message with the guest's stamp `stream_time` arrived at host TSC `arrival_tsc`. */
int guest_clock_arrival(struct guest_clock *g, uint64_t stream_time, uint64_t arrival_tsc,
			uint64_t host_hz);
/* Creates the echo map if both the host's rate and the guest's rate are known. */
int guest_clock_start(struct guest_clock *g, uint64_t host_hz);
/* Completes the clock with the observations so far: estimates a rate that no HELLO stated, and
 * allows the boot to be placed by arrival. */
int guest_clock_settle(struct guest_clock *g, uint64_t host_hz);

/* Returns true if times of this boot can be converted. */
bool guest_clock_knows(const struct guest_clock *g);
/* Returns the nominal number of host ticks per tick of the stream clock. */
double guest_clock_ratio(const struct guest_clock *g, uint64_t host_hz);
/* Returns true if the hypervisor's parameters describe this stream clock: not those of a protected
 * guest. `hypervisor` may be NULL. */
bool guest_clock_is_exact(const struct guest_clock *g, const struct vm_clock *hypervisor);

/* Returns the vCPU (KVM's vcpu_id) that runs guest CPU `tsc_cpu - 1`, or VM_CLOCK_ANY_VCPU if
 * tsc_cpu is 0 or names no CPU of HELLO. */
uint32_t guest_clock_vcpu(const struct guest_clock *g, uint32_t tsc_cpu);

/* Converts a stream time to host TSC, with its bound in host ticks. `vcpu` is the vCPU whose TSC
 * `stream_time` is, or VM_CLOCK_ANY_VCPU. If the error is unbounded, the bound is 10 s, which is
 * more than an event's err_ns can hold. Returns false if the clock is unknown. */
bool guest_clock_to_tsc(const struct guest_clock *g, const struct vm_clock *hypervisor,
			uint64_t host_hz, uint32_t vcpu, uint64_t stream_time, struct host_tsc *tsc,
			uint64_t *err_ticks);
/* Converts host TSC `t` to the guest's stream time, with its bound in ticks of the stream clock.
 * Returns false if the clock is unknown. */
bool guest_clock_from_tsc(const struct guest_clock *g, const struct vm_clock *hypervisor,
			  struct host_tsc t, uint64_t *stream_time, uint64_t *err_ticks);

#endif
