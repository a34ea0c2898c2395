/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Writes the packets of a Perfetto trace in the order in which they come; readers sort by time.
 * Slices, instants and flows belong to machine 0, because arrows cannot connect machines. Only
 * schedules (sched_row.h) and names of tasks belong to the machine of a guest. Times are
 * CLOCK_BOOTTIME, the trace's clock.
 *
 * Errors of memory and of the file are kept until trace_file_finish().
 */
#ifndef EXPORT_TRACE_FILE_H
#define EXPORT_TRACE_FILE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "host-collector/export/perfetto_fields.h"
#include "host-collector/export/protobuf.h"
#include "host-collector/util/lru.h"

enum { TRACE_MACHINE_HOST = 0, TRACE_NAMES_MAX = 4096, TRACE_NAME_BYTES = 96 };

enum trace_sequence { SEQUENCE_META = 1, SEQUENCE_SCHED, SEQUENCE_EVENTS };

struct trace_file {
	FILE *out; /* borrowed */
	int error;
	/* Only this interval, in times of the trace's clock, is written. trace_file_init() sets it
	 * to all time. */
	uint64_t from, until;
	uint64_t bytes;     /* written to `out` */
	uint64_t last_uuid; /* newest uuid of a track */
	uint64_t last_flow;
	uint32_t last_iid;
	struct lru index; /* interned names by hash */
	struct trace_name {
		char text[TRACE_NAME_BYTES];
		uint32_t iid;
	} * names;
	/* The high part of the last event's time, and its varint. It changes each 268 ms. */
	uint64_t high;
	unsigned high_bytes;
	uint8_t high_varint[PROTOBUF_VARINT_ROOM];
	struct protobuf packets;
};

/* Takes the buffer from `out`, because it buffers itself. Returns 0 or -ENOMEM. */
int trace_file_init(struct trace_file *f, FILE *out);
/* Writes what is left. Returns 0 or -errno. */
int trace_file_finish(struct trace_file *f);
void trace_file_fini(struct trace_file *f);

/* Returns whether `t` is written. */
bool trace_has(const struct trace_file *f, uint64_t t);
/* Open and close one packet. Write its fields to f->packets in between. */
size_t trace_packet_open(struct trace_file *f, enum trace_sequence sequence, uint32_t machine);
void trace_packet_close(struct trace_file *f, size_t opened);

struct trace_clocks {
	uint64_t boottime, monotonic, raw, realtime; /* at one instant; realtime 0: unknown */
};
/* Writes what the clocks read at one instant, so that other traces can be aligned with this one. */
void trace_clock_snapshot(struct trace_file *f, const struct trace_clocks *clocks);
void trace_system_info(struct trace_file *f, uint32_t machine, const char *name,
		       const char *release);
/* Write the name of a process or thread at time `t`. Texts are escaped already. */
void trace_process(struct trace_file *f, uint32_t machine, uint64_t t, int32_t pid,
		   const char *name);
void trace_thread(struct trace_file *f, uint32_t machine, uint64_t t, int32_t tid, int32_t tgid,
		  const char *name);

/* Each creates a track and returns its uuid. parent 0: none; siblings are shown in the order of
 * `rank`. */
uint64_t trace_track_new(struct trace_file *f, uint64_t parent, const char *name, uint32_t rank);
/* Does the same for a counter of nanoseconds. */
uint64_t trace_counter_track_new(struct trace_file *f, uint64_t parent, const char *name,
				 uint32_t rank);
uint64_t trace_thread_track_new(struct trace_file *f, int32_t pid, int32_t tid, const char *name);

/* Returns the number of an event's name, for the calls below. */
uint32_t trace_name(struct trace_file *f, const char *name);

/* The begin of a slice, or an instant. Annotations and flows may be added until it is closed. */
struct trace_event {
	size_t packet, event;
};
/* Opens an event. t: ns of the trace's clock; `name`: from trace_name(). */
struct trace_event trace_event_open(struct trace_file *f, uint64_t t, uint64_t track,
				    enum track_event_type type, uint32_t name);
void trace_annotate_text(struct trace_file *f, const char *key, const char *value);
void trace_annotate_int(struct trace_file *f, const char *key, int64_t value);
/* Open a group of annotations, add to it, and close it. Readers see "KEY.KEY_IN_THE_GROUP". */
size_t trace_annotate_group_open(struct trace_file *f, const char *key);
void trace_annotate_group_text(struct trace_file *f, const char *key, const char *value);
void trace_annotate_group_int(struct trace_file *f, const char *key, int64_t value);
void trace_annotate_group_close(struct trace_file *f, size_t opened);
void trace_flow(struct trace_file *f, uint64_t flow, bool ends);
void trace_event_close(struct trace_file *f, struct trace_event e);
/* Sets a counter from `t` on. */
void trace_counter(struct trace_file *f, uint64_t t, uint64_t track, int64_t value);
/* Begins a slice without annotations and flows. */
void trace_begin(struct trace_file *f, uint64_t t, uint64_t track, uint32_t name);
/* Ends the slice that was begun last on this track. */
void trace_end(struct trace_file *f, uint64_t t, uint64_t track);

#endif
