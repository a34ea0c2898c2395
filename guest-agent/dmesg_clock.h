/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Where the clock of the kernel's log stands against the TSC, without writing to the log.
 *
 * printk stamps with local_clock(), and so does perf by default: a software event that records
 * our own comm change, made between two TSC reads, is a bracketed sample of that clock.
 */
#ifndef AGENT_DMESG_CLOCK_H
#define AGENT_DMESG_CLOCK_H

#include "proto/message.h"

struct dmesg_clock;

/* 0 or -errno (-EACCES: perf_event_open needs root or perf_event_paranoid). */
int dmesg_clock_open(struct dmesg_clock **out);
void dmesg_clock_close(struct dmesg_clock *c);
/* A fresh point, the tightest of a few attempts; known = false if the kernel gave no record.
 * Takes some microseconds. */
void dmesg_clock_sample(struct dmesg_clock *c, struct message_dmesg_point *out);

#endif
