/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The table `ticks`: counts a guest CPU's timer ticks and finds what delayed the late ones. The
 * delay of a tick begins when the tick was due and ends with its handler. The part of the delay in
 * which the vCPU was outside the guest is the host's. In the rest, the guest had interrupts off
 * (possibly also before the tick was due), or the host's timer was late.
 *
 * A tick is due one tick interval of the guest's kernel after the previous tick. Other timers use
 * the same vector; they can only make the due time later. A tick is late if its delay is at least
 * an eighth of the interval. A tick is judged only if the CPU was not idle since the tick before
 * it, because an idle CPU has no ticks. It is judged only after two consecutive ticks came in time,
 * because the CPU may have stopped its tick.
 */
#ifndef TABLES_TICKS_H
#define TABLES_TICKS_H

#include "clock/histogram.h"
#include "host-collector/tables/analysis.h"
#include "host-collector/model/model.h"

struct ticks_cpu {
	uint32_t vm;
	uint16_t cpu;
	uint64_t ticks;        /* ticks that followed another without idling */
	int64_t interval_ns;   /* tick interval; 0: unknown, then no tick is late */
	struct histogram late; /* delays of late ticks */
	int64_t kept_ns;       /* part of the delays in which the vCPU was outside the guest */
	struct histogram off;  /* the rest of each delay, if there is one */
	uint64_t unknown;      /* late ticks whose host part is unknown */
};

struct ticks;

/* With than_ns, `late` and `off` leave out shorter times. clear() keeps the tick intervals.
 * finish() counts late ticks that still wait for the host side as unknown. */
extern const struct analysis ticks_analysis;
/* Returns guest CPU number `index`, NULL past the last. Borrowed. Keeps 4096 guest CPUs; further
 * ones replace the least recently seen. */
const struct ticks_cpu *ticks_cpu(const struct ticks *t, size_t index);

#endif
