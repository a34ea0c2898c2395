/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Turns frames into the input of a model. `report` and `watch` both use this path. Unpacks and
 * orders the frames, decodes their content and keeps their data about each source. Converts the
 * times of events to the host's time, and passes the merged events to the model. All content is
 * validated: what is malformed is counted and dropped.
 *
 * Offline, a recording is read twice. pipeline_learn() takes the clock data from every frame. After
 * pipeline_learned(), pipeline_frame() replays the frames with all clock data known, so early
 * events benefit from late round trips. Live, the clock data arrives with the frames: a guest's
 * events wait for the next echo, which bounds their times, but only for a limited time. When a
 * clock map becomes more precise, the times of one CPU still never decrease (timeline.h).
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
#include "proto/frame_item.h"
#include "proto/message.h"

struct pipeline;

struct pipeline_options {
	bool live;
	struct model *model; /* gets everything in time order; borrowed */
	/* Live: a second model that gets the host's events without waiting for the guests, so that
	 * it sees a stall while it lasts. NULL: none. Borrowed. */
	struct model *early;
	size_t memory_bytes; /* memory for waiting events; 0: 32 MiB live, 256 MiB offline */
	/* Called with every note of the collector, when it arrives. May be NULL. */
	void (*note)(void *context, const struct message_note *note);
	void *context;
};

struct pipeline *pipeline_new(const struct pipeline_options *options); /* NULL on ENOMEM */
void pipeline_free(struct pipeline *p);

/* These functions return 0 or -ENOMEM. The caller has checked the CRC of the frame. */
int pipeline_learn(struct pipeline *p, uint32_t source, uint64_t arrival_tsc,
		   const struct frame_view *frame);
int pipeline_learned(struct pipeline *p);
int pipeline_frame(struct pipeline *p, uint32_t source, uint64_t arrival_tsc,
		   const struct frame_view *frame);
/* Does the same as pipeline_frame() for a batch that is already decoded (item->batch). Live only.
 * The events are valid (batch_validate()); they are not changed. */
int pipeline_batch(struct pipeline *p, uint32_t source, uint64_t arrival_tsc,
		   const struct frame_item *item);
/*
 * Lets two threads process one recording, after pipeline_learned() and after all observers were
 * added: events that none of them needs do not reach the model. The reader thread calls
 * pipeline_frame() for every frame and then pipeline_handed_over(). In parallel the other thread
 * calls pipeline_take(), which runs the model. Until both have returned, no other function may be
 * called, except that the model's observers may call the conversions and pipeline_hello_get(). The
 * reader calls the observers' guest_steal, guest_clock and exits_counted itself, while the other
 * thread waits. Returns 0 or -ENOMEM.
 */
int pipeline_hand_over(struct pipeline *p);
void pipeline_handed_over(struct pipeline *p);
void pipeline_take(struct pipeline *p);
/* Live: advances the time to host TSC `now_tsc` and releases what need not wait any longer.
 * Returns 0 or -ENOMEM. */
int pipeline_tick(struct pipeline *p, uint64_t now_tsc);
/*
 * Live: ends the guest side after its last event. The merge does not wait for it until it sends
 * again. This also happens when its channel closes. Returns 0 or -ENOMEM.
 */
int pipeline_guest_end(struct pipeline *p, uint32_t source);
/* Passes everything that waits to the models and closes their spans. Returns 0 or -ENOMEM. */
int pipeline_finish(struct pipeline *p);

struct pipeline_source {
	uint32_t source; /* VS_SOURCE_HOST or a VM */
	const char *name;
	bool hello;                  /* it sent a HELLO */
	const char *kernel_release;  /* from its HELLO, or "" */
	const char *program_version; /* the same */
	uint64_t suspended_ns;       /* its CLOCK_BOOTTIME minus CLOCK_MONOTONIC */
	/* Its newest answer to a collector's request (message_config.h); NULL: none. Borrowed. */
	const struct message_config_reply *config;
	uint64_t look_period_ns; /* period of the looks at the host's threads; 0: none */
	const char *look_when;   /* their condition */
	bool channel_down;       /* according to the collector's newest note */
	bool ended;         /* nothing is known after its last event; live: until it sends again */
	uint64_t frames;    /* frames with a valid checksum */
	uint64_t heard_tsc; /* host TSC at which its newest frame arrived; 0: none */
	/* Always: emitted = delivered + dropped_kernel + dropped_user + lost_channel -
	 * overdelivered. The counters of emitted and dropped events are the sender's. Delivered
	 * events are counted here. overdelivered is the excess if the sender's counters are too
	 * small. */
	uint64_t emitted, delivered, dropped_kernel, dropped_user, lost_channel, overdelivered;
	uint64_t missed; /* missed by its kernel without a sequence number; in no other total */
	/* By enum event_class: handlers that the sender counted instead of sending. They are not
	 * lost. */
	struct message_aggregated aggregated[EVENT_CLASSES];
	uint64_t unplaced; /* delivered events whose time is unknown: no clock was known yet */
	/* Delivered events of types and frames of kinds that this version does not know. They are
	 * dropped and do not count as lost. */
	uint64_t unknown_events, unknown_frames;
	const struct losses *losses; /* when events were lost; borrowed */
	uint64_t lost_frames;        /* lost frames, by frame_seq */
	uint64_t missing;            /* events that did not arrive, by their sequence numbers */
	uint64_t late;               /* events that arrived after the merge had passed their time */
	uint64_t replayed;           /* repeated frames and batches */
	uint64_t malformed;          /* malformed frames and events, which were dropped */
	const char *clock_method;    /* "host", or as in clock_book_summary */
	/* The largest error of its events' times, and their median error. UINT64_MAX: unbounded.
	 */
	uint64_t clock_error_ns, clock_error_median_ns;
	/* The number of events that may lie on either side of a pause of the VM, and the largest
	 * of their errors (UINT64_MAX: unbounded). The two members above do not include them. */
	uint64_t beside_pauses, beside_pauses_error_ns;
	/* The number of pairs of times with a necessary order, for example sent and received, and
	 * the number of pairs that violate this order by more than their errors. */
	uint64_t causality_pairs, causality_violations;
	uint32_t clock_epochs;
	/* Round trips that contradict the hypervisor's parameters. The error of all times is then
	 * unbounded. */
	uint64_t clock_disagreements;
	int64_t clock_contradiction_ns; /* size of the newest contradiction; 0: none or unknown */
	bool clock_untrusted;           /* contradicted, or too many causality_violations */
	uint32_t protection;            /* as in clock_book_summary */
};
/* Describes the index-th source in the order of their first frames. Returns 0, or -ENOENT after
 * the last. */
int pipeline_source_get(const struct pipeline *p, size_t index, struct pipeline_source *out);
/* Gets only the number of that source, which costs less. Returns false after the last. */
bool pipeline_source_number(const struct pipeline *p, size_t index, uint32_t *source);

/* What the HELLO of a source says about its machine. Borrowed. */
struct pipeline_hello {
	const char *kernel_release; /* "" if unknown */
	uint64_t suspended_ns;
};
/* Returns false if there is no such source. */
bool pipeline_hello_get(const struct pipeline *p, uint32_t source, struct pipeline_hello *out);

/* Returns the first and last time about which anything is known. Returns false if there is none.
 */
bool pipeline_span(const struct pipeline *p, struct host_ns *begin, struct host_ns *end);
bool pipeline_is_simulated(const struct pipeline *p);
bool pipeline_is_imported(const struct pipeline *p);
/* Returns all clock data. Borrowed. */
const struct clock_book *pipeline_clocks(const struct pipeline *p);
/* Converts a host TSC value to the timeline's time. Returns false if the host's clock is unknown.
 */
bool pipeline_host_ns(const struct pipeline *p, uint64_t tsc, struct host_ns *out);
/* Sets *offset_ns to CLOCK_REALTIME minus the timeline's clock at `t`. Returns false if it is
 * unknown. */
bool pipeline_wall_offset(const struct pipeline *p, struct host_ns t, int64_t *offset_ns);
bool pipeline_dmesg(const struct pipeline *p, uint32_t vm, struct host_ns t,
		    struct dmesg_time *out);
/* Returns the index-th of the guest's newest kernel log lines, oldest first, or NULL after the
 * last. At most PIPELINE_LOG_LINES are kept. Borrowed. */
enum { PIPELINE_LOG_LINES = 256 };
const struct message_log_line *pipeline_log_line(const struct pipeline *p, uint32_t vm,
						 size_t index);
/* Returns the boot whose kernel printed the line. */
uint32_t pipeline_log_boot(const struct pipeline *p, uint32_t vm, size_t index);
/* Returns the index-th reboot of this VM, or NULL after the last. Borrowed. */
const struct reboot *pipeline_reboot(const struct pipeline *p, uint32_t vm, size_t index);

/* Returns the statistics of the merge since pipeline_new(). */
void pipeline_timeline_stats(const struct pipeline *p, struct timeline_stats *out);

#endif
