/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Frames in, model input out: the one path of `report` and `watch`. Unpacks and orders frames,
 * decodes what is inside, keeps what it says about each source, maps event times to the host's
 * and hands the merged events to the model. Whatever a frame says is checked; what makes no sense
 * is counted and dropped.
 *
 * Offline, a recording is read twice: pipeline_learn() takes the clocks out of every frame, then,
 * after pipeline_learned(), pipeline_frame() replays with all of that known, so that early events
 * get the map that late round trips proved. Live, the clocks grow with the frames: a guest's events
 * wait (bounded) for the next echo, which pins them down; a map that tightens never makes one CPU's
 * time run back (see timeline.h).
 */
#ifndef ENGINE_PIPELINE_H
#define ENGINE_PIPELINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "host-collector/model/model.h"
#include "host-collector/timeline/clock_book.h"
#include "host-collector/timeline/losses.h"
#include "host-collector/engine/reboots.h"
#include "host-collector/timeline/timeline.h"
#include "proto/frame.h"
#include "proto/message.h"

struct pipeline;

struct pipeline_options {
	bool live;
	struct model *model; /* gets everything, in time order; borrowed */
	/* Live: another model that gets the host's events as they come, whatever the guests do: it
	 * sees a stall while it lasts. NULL: none. Borrowed. */
	struct model *early;
	size_t memory_bytes; /* for waiting events; 0: 32 MiB live, 256 MiB offline */
	/* Every note of the collector, as it comes; may be NULL. */
	void (*note)(void *context, const struct message_note *note);
	void *context;
};

struct pipeline *pipeline_new(const struct pipeline_options *options); /* NULL on ENOMEM */
void pipeline_free(struct pipeline *p);

/* All return 0 or -ENOMEM. Frames are CRC-checked (a recording's or a frame reader's). */
int pipeline_learn(struct pipeline *p, uint32_t source, uint64_t arrival_tsc,
		   const struct frame_view *frame);
int pipeline_learned(struct pipeline *p);
int pipeline_frame(struct pipeline *p, uint32_t source, uint64_t arrival_tsc,
		   const struct frame_view *frame);
/*
 * Two threads for one recording, after pipeline_learned(): one, the reader, calls pipeline_frame()
 * for every frame and then pipeline_handed_over(). Meanwhile the other, in pipeline_take(), calls
 * the model, so that reading and the analyses go on at once. Until both have returned nothing else
 * may be called but, by the model's observers, the conversions and pipeline_hello_get(). A few
 * observers (guest_steal, guest_clock, exits_counted) are called by the reader, while the other
 * waits. 0 or -ENOMEM.
 */
int pipeline_hand_over(struct pipeline *p);
void pipeline_handed_over(struct pipeline *p);
void pipeline_take(struct pipeline *p);
/* Live: the present is `now_tsc`. Releases what need not wait any longer. */
int pipeline_tick(struct pipeline *p, uint64_t now_tsc);
/*
 * Live: this guest's half ends with its last word, and nothing waits for it any more, until it is
 * heard again. The same happens by itself when its channel closes. 0 or -ENOMEM.
 */
int pipeline_guest_end(struct pipeline *p, uint32_t source);
/* The end: everything goes to the model, whose spans are closed. */
int pipeline_finish(struct pipeline *p);

struct pipeline_source {
	uint32_t source; /* VS_SOURCE_HOST or a VM */
	const char *name;
	bool hello;                 /* said what it is */
	const char *kernel_release; /* as it said; "" if it did not */
	uint64_t suspended_ns;      /* its CLOCK_BOOTTIME less CLOCK_MONOTONIC, as it said */
	/* What it told last of a collector's wishes (message_config.h); NULL: nothing. Borrowed. */
	const struct message_config_reply *config;
	bool channel_down; /* by the collector's last note */
	bool ended;        /* nothing is known after its last word; live: until it is heard again */
	uint64_t frames;   /* good ones */
	uint64_t heard_tsc; /* arrival of the newest frame of its own, 0 never */
	/* emitted = delivered + dropped_kernel + dropped_user + lost_channel, in every case:
	 * emitted and dropped are the sender's word, as far as its batches brought it, delivered
	 * our count. overdelivered: how much more came than a sender that contradicts itself
	 * admits. */
	uint64_t emitted, delivered, dropped_kernel, dropped_user, lost_channel, overdelivered;
	uint64_t missed; /* by its kernel, without a number: in no other total */
	/* By enum event_class: handlers that it did not tell but counted, while we listened. Not
	 * lost. */
	struct message_untold untold[EVENT_CLASSES];
	uint64_t unplaced; /* of those delivered: no clock was known yet */
	/* Of those delivered: events of a type that this version does not know. They are dropped,
	 * and lost to nobody. The same for frames. */
	uint64_t unknown_events, unknown_frames;
	const struct losses *losses; /* when; borrowed */
	uint64_t lost_frames;        /* by frame_seq */
	uint64_t missing;            /* events that never came, by their sequence numbers */
	uint64_t late;               /* came after their time had been merged */
	uint64_t replayed;           /* frames and batches seen before */
	uint64_t nonsense;           /* frames and events that make no sense; dropped */
	const char *clock_method;    /* "host", or as clock_book_summary has it */
	/* The largest of any of its events, and what half of them stay below; UINT64_MAX unbounded.
	 */
	uint64_t clock_error_ns, clock_error_median_ns;
	/* Events that may lie on either side of a pause of the VM, and the largest of their errors
	 * (UINT64_MAX unbounded): in neither of the two above. */
	uint64_t beside_pauses, beside_pauses_error_ns;
	/* Pairs of instants in a necessary order, such as sent and received; those the wrong way
	 * round even at the edge of their errors. */
	uint64_t causality_pairs, causality_violations;
	uint32_t clock_epochs;
	/* Round trips that contradict the hypervisor's parameters: no time is proven then. */
	uint64_t clock_disagreements;
	int64_t clock_contradiction_ns; /* by how much at last; 0: not known, or there is none */
	bool clock_untrusted; /* a contradiction stands, or too many causality_violations */
};
/* Sources in the order of their first frame. -ENOENT past the last. */
int pipeline_source_get(const struct pipeline *p, size_t index, struct pipeline_source *out);

/* What a source said of its machine when it was learned. Borrowed. */
struct pipeline_hello {
	const char *kernel_release; /* "" if it did not say */
	uint64_t suspended_ns;
};
/* false: no such source. */
bool pipeline_hello_get(const struct pipeline *p, uint32_t source, struct pipeline_hello *out);

/* From the first to the last instant that anything is known of. false if nothing is. */
bool pipeline_span(const struct pipeline *p, struct host_ns *begin, struct host_ns *end);
bool pipeline_is_simulated(const struct pipeline *p);
bool pipeline_is_imported(const struct pipeline *p);
/* Everything known about the clocks; borrowed. */
const struct clock_book *pipeline_clocks(const struct pipeline *p);
/* Conversions for views; false if not known. */
bool pipeline_host_ns(const struct pipeline *p, uint64_t tsc, struct host_ns *out);
/* CLOCK_REALTIME less the timeline's clock, at `t`. */
bool pipeline_wall_offset(const struct pipeline *p, struct host_ns t, int64_t *offset_ns);
bool pipeline_dmesg(const struct pipeline *p, uint32_t vm, struct host_ns t,
		    struct dmesg_time *out);
/* The guest's newest kernel log lines, oldest first; at most PIPELINE_LOG_LINES. Borrowed. */
enum { PIPELINE_LOG_LINES = 256 };
const struct message_log_line *pipeline_log_line(const struct pipeline *p, uint32_t vm,
						 size_t index);
/* The boot whose kernel printed it. */
uint32_t pipeline_log_boot(const struct pipeline *p, uint32_t vm, size_t index);
/* The index-th reboot of this VM; borrowed. NULL past the last. */
const struct reboot *pipeline_reboot(const struct pipeline *p, uint32_t vm, size_t index);

/* Of the merge behind it, since it was made. */
void pipeline_timeline_stats(const struct pipeline *p, struct timeline_stats *out);

#endif
