/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A guest CPU's timer ticks, and what made them late: the host, which kept the vCPU from the guest
 * when the tick was due, or what is left: the guest had its interrupts off (a section delays a tick
 * only from when it is due, so it was at least as long), or the host's timer came late.
 *
 * Judged are ticks that follow another with no idling in between (an idle CPU has no ticks), once
 * two in a row came in time (a CPU may have stopped its tick altogether). A tick is due one
 * interval of the guest's kernel after the one before; other timers use the same vector and only
 * move that later. Late is what comes an eighth of the interval after.
 */
#ifndef TABLES_TICKS_H
#define TABLES_TICKS_H

#include "clock/histogram.h"
#include "host-collector/tables/figures_options.h"
#include "host-collector/model/model.h"

struct ticks_cpu {
	uint32_t vm;
	uint16_t cpu;
	uint64_t ticks;        /* judged */
	int64_t interval_ns;   /* 0: not known, so nothing is late */
	struct histogram late; /* by how much */
	int64_t kept_ns;       /* of it, the vCPU was kept from the guest */
	struct histogram off;  /* what is left of each, if anything is */
	uint64_t unknown;      /* late ones of which the host's part is not known */
};

struct ticks;

/* Subscribes to the model, which must not be fed any more once this is freed. With than_ns, late
 * and off count what is at least as long. NULL on ENOMEM. */
struct ticks *ticks_new(struct model *m, const struct figures_options *options);
void ticks_free(struct ticks *t);
/* Forgets all figures, but not the intervals. */
void ticks_clear(struct ticks *t);
/* No more events follow: what still waits for the host's half counts as unknown. */
void ticks_finish(struct ticks *t);
/* 0, or -ENOMEM: something could not be counted. */
int ticks_error(const struct ticks *t);
/* Item number `index`, NULL past the last. Borrowed. */
const struct ticks_cpu *ticks_cpu(const struct ticks *t, size_t index);

#endif
