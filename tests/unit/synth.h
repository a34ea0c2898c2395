/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Makes recordings (or feeds frames) from a script of events: a host and one guest with a clock of
 * its own, drained, framed and timed as the real capturers do it. Times are nanoseconds from the
 * scene's start, by the host's clock. What it makes is labelled simulated.
 *
 *	synth_at(s, 120 * MS);                 // frames that are due before that go out
 *	synth_guest_event(s, 0, &event);       // at 120 ms, on guest CPU 0
 */
#ifndef TESTS_SYNTH_H
#define TESTS_SYNTH_H

#include <stdbool.h>
#include <stdint.h>

#include "proto/event.h"
#include "proto/frame.h"
#include "proto/message.h"

struct synth_options {
	const char *path; /* of the recording to write, or NULL */
	/* Each frame as it would be recorded; NULL: none. */
	void (*entry)(void *context, uint32_t source, uint64_t arrival_tsc,
		      const struct frame_view *frame);
	void *context;
	uint64_t host_hz, guest_hz;     /* 0: 2.5 GHz; the host's */
	int64_t guest_tsc_offset;       /* guest TSC at the scene's start */
	uint32_t host_cpus, guest_cpus; /* 0: 2, 2 */
	uint64_t drain_ns;              /* how often the capturers drain; 0: 50 ms */
	bool no_host, no_guest;         /* leave that half out */
	bool no_echo;                   /* the guest never answers an echo */
	uint32_t tsc_cpu;               /* its batches name this (struct batch) */
	int64_t echo_lie_ns;            /* its answers to echoes are off by so much */
	uint32_t protection;            /* of the guest, as the collector says */
};

enum {
	SYNTH_VM = 1,
	SYNTH_QEMU_PID = 1000, /* its vCPU n is thread 1001 + n */
};
static const uint64_t synth_host_tsc0 = 7000000000000;
static const int64_t synth_raw_ns0 = 2000000000000;

struct synth;

struct synth *synth_new(const struct synth_options *options);
/* Moves on to `t_ns`: drains, heartbeats and echoes that fall due on the way happen. */
void synth_at(struct synth *s, int64_t t_ns);
/* An event now; e->time, seq and cpu are filled in. */
void synth_host_event(struct synth *s, uint16_t cpu, struct vs_event e);
void synth_guest_event(struct synth *s, uint16_t cpu, struct vs_event e);
/* The probes of this guest CPU lose `n` events now, unmarked. */
void synth_guest_lose(struct synth *s, uint16_t cpu, uint32_t n);
/* The guest does nothing (no drains, no echoes) until told otherwise. */
void synth_guest_silent(struct synth *s, bool silent);
/* Another kernel runs from now on: its TSC reads `tsc`, its log's clock 0, its events are counted
 * from 0. What the one before had not sent is lost. Its agent's HELLO goes out now. */
void synth_guest_boot(struct synth *s, const char *boot_id, uint64_t tsc);
/* The agent of the same kernel starts again: another session. */
void synth_guest_hello(struct synth *s);
/* The VMM pauses the VM from now on until `end_ns`: the guest's clock stops, its TSC does not. What
 * its agent drains next, after that, is stamped as an agent stamps it (clock/capture.h). */
void synth_guest_pause(struct synth *s, int64_t end_ns);
/* Somebody sets the host's wall clock: from now on it is ahead by so much more. */
void synth_wall_step(struct synth *s, int64_t by_ns);
/* What the guest's TSC reads now. */
uint64_t synth_guest_tsc(const struct synth *s);
/* Another agent greets, with counters that begin anew; what the old one had not sent is gone. */
void synth_guest_restart(struct synth *s);
/* The collector's note about the VM. */
void synth_note(struct synth *s, enum note_kind kind, const char *text);
/* vCPU 0's quota was read at `from_ns` and now: it throttled the vCPU for so long. */
void synth_quota(struct synth *s, int64_t from_ns, int64_t throttled_ns);
/* Frames of the guest made from now on are lost on their way (by their number a gap). */
void synth_channel_loses(struct synth *s, bool loses);
/* A frame of the host's or the guest's own making, with a valid CRC whatever the payload. */
void synth_frame(struct synth *s, uint32_t source, enum frame_kind kind, const uint8_t *payload,
		 size_t len);
/* A last drain, and the end of the recording; frees. */
void synth_free(struct synth *s);

/* host_ns on the timeline of a scene time. */
int64_t synth_host_ns(int64_t t_ns);

struct vs_event synth_switch(int32_t out, uint32_t state, int32_t in);
struct vs_event synth_wakeup(int32_t pid, int32_t by, uint32_t target_cpu);
struct vs_event synth_name(int32_t pid, int32_t tgid, const char *comm);

#endif
