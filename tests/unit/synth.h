/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Makes recordings, or feeds frames, from a script of events: of a host and of one guest with a
 * clock of its own. It drains, frames and stamps the events as the real captures do. Times are
 * nanoseconds since synth_new(), by the host's clock. The recordings are labelled as simulated.
 *
 *	synth_at(s, 120 * MS);                 // sends the frames that are due up to 120 ms
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
	int64_t guest_tsc_offset;       /* guest TSC at synth_new() */
	uint32_t host_cpus, guest_cpus; /* 0: 2, 2 */
	uint64_t drain_ns;              /* time between two drains; 0: 50 ms */
	bool no_host, no_guest;         /* leave out that side */
	bool no_echo;                   /* the guest never answers an echo */
	uint32_t tsc_cpu;               /* batch.tsc_cpu of the guest's batches */
	int64_t echo_lie_ns;            /* added to the times in the guest's echo replies */
	uint32_t protection;            /* enum vm_protection that the recording has for the VM */
};

enum {
	SYNTH_VM = 1,
	SYNTH_QEMU_PID = 1000, /* its vCPU n is thread 1001 + n */
};
static const uint64_t synth_host_tsc0 = 7000000000000;
static const int64_t synth_raw_ns0 = 2000000000000;

struct synth;

struct synth *synth_new(const struct synth_options *options);
/* Advances the time to `t_ns`, and makes the drains, heartbeats and echoes that are due until then.
 */
void synth_at(struct synth *s, int64_t t_ns);
/* Emits an event now. Fills in e->time, seq and cpu. */
void synth_host_event(struct synth *s, uint16_t cpu, struct vs_event e);
void synth_guest_event(struct synth *s, uint16_t cpu, struct vs_event e);
/* The capture of this guest CPU loses `n` events now, without a LOST event. */
void synth_guest_lose(struct synth *s, uint16_t cpu, uint32_t n);
/* The guest does nothing (no drains, no echoes) until told otherwise. */
void synth_guest_silent(struct synth *s, bool silent);
/* The guest boots another kernel: its TSC reads `tsc` now, the clock of its log reads 0, and its
 * events are counted from 0. Events that the old kernel had not sent are lost. The new agent sends
 * its HELLO now. */
void synth_guest_boot(struct synth *s, const char *boot_id, uint64_t tsc);
/* The agent sends its HELLO again, which begins another session. Its counters go on. */
void synth_guest_hello(struct synth *s);
/* The VMM pauses the VM from now on until `end_ns`: the guest's clock stops, its TSC does not. The
 * events of the agent's next drain get the stamps and errors that a real agent would give them
 * (clock/capture.h). */
void synth_guest_pause(struct synth *s, int64_t end_ns);
/* Sets the host's wall clock forward by `by_ns`. */
void synth_wall_step(struct synth *s, int64_t by_ns);
/* Returns the current value of the guest's TSC. */
uint64_t synth_guest_tsc(const struct synth *s);
/* A new agent of the same kernel sends its HELLO. Its counters begin at 0; events that the old
 * agent had not sent are lost. */
void synth_guest_restart(struct synth *s);
/* The collector writes a note about the VM. */
void synth_note(struct synth *s, enum note_kind kind, const char *text);
/* The quota of vCPU 0 was read at `from_ns` and is read now: between both it throttled the vCPU for
 * `throttled_ns`. */
void synth_quota(struct synth *s, int64_t from_ns, int64_t throttled_ns);
/* While `loses` is true, frames of the guest are lost on the channel: their numbers are missing. */
void synth_channel_loses(struct synth *s, bool loses);
/* Sends a frame with this payload, which need not be valid, and a valid CRC. */
void synth_frame(struct synth *s, uint32_t source, enum frame_kind kind, const uint8_t *payload,
		 size_t len);
/* Drains once more, ends the recording and frees `s`. */
void synth_free(struct synth *s);

/* Returns the timeline's host_ns for a time of the script. */
int64_t synth_host_ns(int64_t t_ns);

struct vs_event synth_switch(int32_t out, uint32_t state, int32_t in);
struct vs_event synth_wakeup(int32_t pid, int32_t by, uint32_t target_cpu);
struct vs_event synth_name(int32_t pid, int32_t tgid, const char *comm);

#endif
