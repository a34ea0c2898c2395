/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Measures the clock of the kernel's log against the TSC without writing to the log.
 *
 * printk() stamps its lines with local_clock(), and perf uses the same clock by default. A perf
 * software event that records a change of the agent's own comm, made between two TSC reads, is
 * therefore a sample of this clock.
 */
#ifndef AGENT_DMESG_CLOCK_H
#define AGENT_DMESG_CLOCK_H

#include "proto/message.h"

struct dmesg_clock;

/* Returns 0 or -errno. -EACCES: perf_event_open() needs root or a lower perf_event_paranoid. */
int dmesg_clock_open(struct dmesg_clock **out);
void dmesg_clock_close(struct dmesg_clock *c);
/* Takes several samples and returns the one with the smallest bound; known = false if the kernel
 * delivered no record. Takes some microseconds. */
void dmesg_clock_sample(struct dmesg_clock *c, struct message_dmesg_point *out);

#endif
