/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a capturer of one kernel makes of the events that the simulation emits: stamps of that
 * kernel's CLOCK_MONOTONIC with jitter, per-CPU buffers, losses, then the real batcher
 * (bpf/batcher) and frames. So LOST markers, totals, sequence gaps and error bounds are the real
 * capturers' own.
 */
#ifndef SIMULATE_CAPTURE_H
#define SIMULATE_CAPTURE_H

#include "bpf/capture/batcher.h"
#include "host-collector/simulate/engine.h"
#include "proto/message.h"

enum { SIM_CPUS_MAX = 16 };

/* One kernel's clocks as functions of the run's time. */
struct sim_clock {
	uint64_t nominal_hz, true_hz; /* of its TSC */
	uint64_t tsc0, monotonic0, raw0, realtime0;
	int64_t monotonic_ppb; /* NTP's opinion */
};

struct sim_capture_options {
	struct engine *engine;
	struct sim_clock clock;
	uint32_t source, n_cpus;
	int64_t boot; /* when the machine booted, of this run's time */
	double loss;  /* of each event */
	/* Whole frames, in the order of their numbers. */
	void (*frame)(void *context, uint32_t source, const uint8_t *frame, size_t len);
	void *context;
};

struct sim_ring {
	struct vs_event *events;
	size_t n, capacity;
	uint64_t attempted, dropped, newest_ns;
};

struct sim_capture {
	struct sim_capture_options o;
	struct sim_ring rings[SIM_CPUS_MAX];
	struct frame_writer *writer;
	struct batcher *batcher;
	struct batch_encoder *encoder;
	struct byte_buffer payload, frames;
	uint64_t promised;       /* by the last heartbeat */
	bool mute[SIM_CPUS_MAX]; /* nothing is captured there */
	int64_t no_exits_until;  /* handlers' exits are not captured yet */
};

/* The whole machine's clocks leap ahead. */
void sim_clock_step(struct sim_clock *c, int64_t ns);
/* The machine's clocks begin at 0 again at `t`; the wall clock goes on. */
void sim_clock_restart(struct sim_clock *c, int64_t t);
uint64_t sim_clock_tsc(const struct sim_clock *c, int64_t t);

/* 0 or -ENOMEM; sim_capture_fini in any case. */
int sim_capture_init(struct sim_capture *c, const struct sim_capture_options *o);
void sim_capture_fini(struct sim_capture *c);
/* An event now; its time, seq and cpu are filled in. False: it got lost. */
bool sim_capture_event(struct sim_capture *c, uint16_t cpu, struct vs_event e);
/* Everything captured so far as batches. */
void sim_capture_drain(struct sim_capture *c);
void sim_capture_hello(struct sim_capture *c, const char *version, const char *boot_id);
void sim_capture_sample(struct sim_capture *c);
void sim_capture_heartbeat(struct sim_capture *c);
/* Frames what lies in c->payload; err: what packing it said. */
void sim_capture_message(struct sim_capture *c, enum frame_kind kind, int err);

#endif
