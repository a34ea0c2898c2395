/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Simulates the capture of one kernel: stamps of that kernel's CLOCK_MONOTONIC with jitter, per-CPU
 * buffers and losses, followed by the real batcher (bpf/capture/batcher.h) and frames. So LOST
 * events, totals, gaps in sequence numbers and bounds are those of a real capture.
 */
#ifndef SIMULATE_CAPTURE_H
#define SIMULATE_CAPTURE_H

#include "bpf/capture/batcher.h"
#include "host-collector/simulate/engine.h"
#include "proto/event_fields.h"
#include "proto/message.h"

enum { SIM_CPUS_MAX = 514 };

/* The clocks of one kernel, as functions of the simulated time. */
struct sim_clock {
	uint64_t nominal_hz, true_hz; /* frequencies of its TSC */
	uint64_t tsc0, monotonic0, raw0, realtime0;
	int64_t monotonic_ppb; /* NTP's rate correction of CLOCK_MONOTONIC */
};

struct sim_capture_options {
	struct engine *engine;
	struct sim_clock clock;
	uint32_t source, n_cpus;
	int64_t boot; /* simulated time at which the machine booted */
	double loss;  /* probability that an event is lost */
	/* Receives whole frames in the order of their numbers. */
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
	uint64_t promised;       /* watermark of the last heartbeat */
	bool mute[SIM_CPUS_MAX]; /* nothing is captured on this CPU */
	int64_t no_exits_until;  /* exits of handlers are not captured before this time */
};

/* Moves all clocks of the machine ahead by `ns`. */
void sim_clock_step(struct sim_clock *c, int64_t ns);
/* Restarts the machine's clocks at 0 at time `t`; the wall clock continues. */
void sim_clock_restart(struct sim_clock *c, int64_t t);
uint64_t sim_clock_tsc(const struct sim_clock *c, int64_t t);

/* Returns 0 or -ENOMEM; call sim_capture_fini() in both cases. */
int sim_capture_init(struct sim_capture *c, const struct sim_capture_options *o);
void sim_capture_fini(struct sim_capture *c);
/* Captures an event now; sets its time, seq and cpu. Returns false if it is lost. */
bool sim_capture_event(struct sim_capture *c, uint16_t cpu, struct vs_event e);
/* Sends the events captured so far as batches. */
void sim_capture_drain(struct sim_capture *c);
/* Each sends one frame now: the HELLO, a sample of the clocks, a heartbeat. */
void sim_capture_hello(struct sim_capture *c, const char *version, const char *boot_id);
void sim_capture_sample(struct sim_capture *c);
void sim_capture_heartbeat(struct sim_capture *c);
/* Sends c->payload as a frame. err: result of packing it. */
void sim_capture_message(struct sim_capture *c, enum frame_kind kind, int err);

#endif
