/* SPDX-License-Identifier: GPL-2.0-only */
/* Definitions that the files of the pipeline share: pipeline.c orders and holds frames and answers
 * queries, messages.c, heartbeats.c and batches.c process the content of frames. */
#ifndef ENGINE_INTERNAL_H
#define ENGINE_INTERNAL_H

#include "clock/audit.h"
#include "clock/histogram.h"
#include "host-collector/timeline/clock_book.h"
#include "host-collector/timeline/continuity.h"
#include "host-collector/engine/handover.h"
#include "host-collector/timeline/losses.h"
#include "host-collector/engine/pauses.h"
#include "host-collector/engine/quotas.h"
#include "host-collector/engine/reboots.h"
#include "host-collector/engine/pipeline.h"
#include "proto/buffer.h"
#include "proto/codec.h"
#include "proto/recording.h"

enum {
	SLICE_EVENTS = 512,
	HOLD_MS = 500,
	AUDIT_WINDOW = 1024,
};

struct pipeline_log {
	struct message_log_line line;
	uint64_t session_id;
	uint32_t boot;
};

struct stream {
	uint32_t id;
	char name[VS_TEXT_MAX];
	char kernel_release[VS_TEXT_MAX], program_version[VS_TEXT_MAX];
	uint64_t suspended_ns;
	uint64_t look_period_ns;
	char look_when[VS_LOOK_WHEN_MAX];
	bool config_known;
	struct message_config_reply config;
	bool hello, channel_down;
	bool announced; /* the model knows this VM */
	bool merging;   /* the timelines wait for this source */
	bool joined;    /* the timelines have waited for it at some time */
	/* Its CPUs are marked as unknown after its last event; live: until a new frame arrives. */
	bool ended;
	/* All events before this time have arrived; INT64_MIN: no promise yet. */
	int64_t promised_ns;
	int64_t greeted_ns; /* promised_ns at the newest HELLO */
	/* The newest session in which its sender restarted its counters. */
	uint64_t anew_session;
	/* Live: older events are dropped, because the merge had passed them before this source
	 * joined. */
	int64_t since_ns;
	struct frame_order order, learn_order;
	uint64_t learned, replayed_entries; /* entries of the recording: all, and replayed so far */
	uint64_t session_id;                /* session of the current frame */
	/* Boot of the current frame: in the replay, and while learning. */
	uint32_t boot, learn_boot;
	struct continuity continuity; /* includes the boots that were replayed */
	struct boots learn_boots;
	struct stream_reboots reboots;
	struct byte_buffer held; /* what waits for a round trip, see held.c */
	uint64_t held_since_tsc;
	/* Frames were lost since the newest heartbeat. The CPUs of the events in them are unknown.
	 */
	bool frames_missing;
	uint64_t frames, heard_tsc, lost_frames, missing, replayed, malformed;
	/* Events of types and frames of kinds that this version does not know. */
	uint64_t unknown_events, unknown_frames;
	uint64_t unplaced; /* events that arrived before any clock of this source was known */
	/* Events without a sequence number that its kernel missed: in total, and by its newest
	 * heartbeat. */
	uint64_t missed, missed_before;
	bool missed_known;
	/* Counters of aggregated events: in total, and in its newest heartbeat. */
	struct message_aggregated aggregated[EVENT_CLASSES], aggregated_before[EVENT_CLASSES];
	bool aggregated_known, aggregated_learned;
	uint64_t aggregated_count; /* sum of all classes, as learned last */
	/* Its agent counts short handlers instead of sending them, or did so at some time. */
	bool handlers_counted;
	bool handlers_known; /* the model was notified of handlers_counted */
	struct losses losses;
	struct loss_counts noted; /* the sum of all losses in `losses` */
	uint64_t pairs, violations;
	struct audit audit;    /* audit of these pairs */
	struct clock_reading { /* the newest reading of its kernel's clock */
		bool known;
		struct host_ns t;
		uint64_t err_ns, raw_ns;
		bool arrival_known;
		struct host_ns arrival;
	} reading;
	/* Errors of its events' times, except for events beside pauses. */
	struct histogram errors;
	/* The number of events beside pauses, and the largest of their errors. */
	uint64_t beside_pauses, beside_pauses_err_ns;
	struct pipeline_log *log; /* ring of PIPELINE_LOG_LINES */
	uint64_t n_log;           /* total number of lines */
};

/* What a frame brings: the events of a batch, or a frame to unpack. */
struct content {
	uint8_t kind;
	uint64_t session_id;
	const struct batch *batch; /* NULL: `frame` holds it */
	struct frame_view frame;
};

struct pipeline {
	struct pipeline_options options;
	struct clock_book *clocks;
	struct frame_unpacker *unpacker;
	struct batch_decoder *decoder;
	struct timeline *timeline, *early;
	struct handover *handover; /* NULL: the model is called directly */
	struct pauses pauses, early_pauses;
	struct quotas quotas, early_quotas;
	/* The number of streams with a reboot of which the model was not yet notified. */
	size_t reboots_due;
	struct stream **streams;
	size_t n_streams;
	bool simulated, imported;
	uint64_t hold_ticks;
	uint64_t first_tsc, last_tsc;
	bool any_event;
	struct host_ns first_event, last_event;
	struct host_ns advanced, early_advanced; /* of the two models */
	int error;                               /* of a callback: 0 or -ENOMEM */
	bool selects;                            /* only events in `needs` reach the model */
	struct model_needs needs;
	struct timeline_event slice[SLICE_EVENTS];
	struct {
		struct message_hello hello;
		struct message_heartbeat heartbeat;
		struct message_clock_sample clock_sample;
		struct message_kernel_log kernel_log;
		struct message_stack stack;
		struct message_config_reply config_reply;
		struct message_vm_info vm_info;
		struct message_echo_observation echo_observation;
		struct message_note note;
		struct message_vm_clock vm_clock;
		struct message_cpu_quota cpu_quota;
		struct message_exit_summary exit_summary; /* its cells: until it is processed */
		struct message_task_origins task_origins;
		struct message_user_events user_events;
	} in; /* the message that was unpacked last; too large for the stack */
};

/* Returns true if the source may send frames of this kind, or if this version does not know the
 * kind. */
static inline bool kind_is_admitted(uint8_t kind, uint32_t source)
{
	const unsigned int senders = frame_kind_senders(kind);

	return !senders ||
	       senders & (source == VS_SOURCE_HOST ? FRAME_BY_COLLECTOR : FRAME_BY_AGENT);
}

/* Returns the model after it has processed all input so far. */
struct model *pipeline_model(struct pipeline *p);
/* Gives a fact to the model after all input so far, but does not wait until the model has it.
 * Returns 0 or -errno. */
int pipeline_give(struct pipeline *p, const struct handover_fact *fact);
/* Sets *out to the stream of a source, which is created if necessary, or to NULL if there are too
 * many sources. Returns 0 or -ENOMEM. */
int stream_get(struct pipeline *p, uint32_t source, struct stream **out);
struct stream *stream_find(const struct pipeline *p, uint32_t source);
/* Makes the timelines wait for this source. Returns 0 or -ENOMEM. */
int stream_join(struct pipeline *p, struct stream *s);
/* Marks every CPU of this guest as unknown from `t_ns`, or from its last event if that is later.
 * Raises *last to the latest of these times; `last` may be NULL. Returns 0 or -ENOMEM. */
int stream_cpus_end(struct pipeline *p, struct stream *s, int64_t t_ns, struct host_ns *last);
/* Returns true if the audit proves that the clock map of this stream is wrong by more than its
 * bound. */
static inline bool stream_is_refuted(const struct stream *s)
{
	return audit_refutes(&s->audit);
}
static inline bool stream_is_host(const struct stream *s)
{
	return s->id == VS_SOURCE_HOST;
}
/* Announces the stream's VM to the models once. Returns 0 or -errno. */
int stream_announce(struct pipeline *p, struct stream *s);
/* Notifies the model, once and before the events of an announced VM, that its agent counts short
 * handlers. Does nothing if the agent is not known to do that. Returns 0 or -errno. */
int stream_handlers_emit(struct pipeline *p, struct stream *s);
/* Handles the HELLO of another boot: ends the previous boot after its last event, and schedules
 * the notification of the model for that time. Returns 0 or -ENOMEM. */
int stream_reboot(struct pipeline *p, struct stream *s, uint64_t arrival_tsc);
/* Notifies the model of the reboots before `t`. */
void reboots_deliver(struct pipeline *p, struct host_ns t);
/* Returns the latest time that an event in a frame with this arrival can have: an event cannot be
 * younger than its arrival, so a guest's false time cannot push the merge ahead. INT64_MAX: no
 * limit. */
int64_t stream_latest_ns(const struct pipeline *p, const struct stream *s, uint64_t arrival_tsc);
/* Counts the pair of a guest's stamp and its arrival time (host TSC; 0: unknown), and counts a
 * violation if the stamp is later by more than its error. */
void stream_audit(struct pipeline *p, struct stream *s, uint64_t stream_time, uint64_t arrival_tsc);
/* Handles a sender's promise: it has emitted `emitted` events by stream time `time` and will send
 * no older ones. If frames were lost and the batches that arrived contain fewer events, marks each
 * CPU as unknown since its last event. Returns 0 or -ENOMEM. */
int batches_missed(struct pipeline *p, struct stream *s, uint64_t time, uint64_t emitted);
/* Processes the payload of a BATCH frame. Returns 0, -ENOMEM, or another -errno if it is
 * malformed. */
int batch_take(struct pipeline *p, struct stream *s, uint64_t arrival_tsc, const uint8_t *payload,
	       size_t len);
/* Does the same for decoded events, which it may change if a chord is set (codec.h). */
int batch_events_take(struct pipeline *p, struct stream *s, uint64_t arrival_tsc, struct batch *b);

/* Processes a content; an error of the sender is counted. These three return 0 or -ENOMEM. */
int content_take(struct pipeline *p, struct stream *s, uint64_t arrival_tsc,
		 const struct content *c);
/* Keeps a copy of a guest's content until held_release(). If much is held, releases it before. */
int held_add(struct pipeline *p, struct stream *s, uint64_t arrival_tsc, const struct content *c);
/* Processes all that is held, in order. */
int held_release(struct pipeline *p, struct stream *s);
/* Returns true if what is held has waited long enough for its round trip. */
bool held_is_due(const struct pipeline *p, const struct stream *s, uint64_t now_tsc);
/* Records the losses that the newest batch of a CPU revealed, as an interval from the CPU's last
 * event before the batch (INT64_MIN: none) to the last event in it (INT64_MIN: unknown; the next
 * batch with a known time then records them). */
void stream_lost(struct stream *s, int64_t begin_ns, int64_t end_ns);

/* Processes the payload of a frame of `kind`. Returns 0, -ENOMEM, or another -errno if it is
 * malformed. */
int message_take(struct pipeline *p, struct stream *s, uint8_t kind, uint64_t arrival_tsc,
		 const uint8_t *payload, size_t len);
/* Processes only what the frame says about clocks. Returns as message_take(). */
int message_learn(struct pipeline *p, struct stream *s, uint8_t kind, uint64_t arrival_tsc,
		  const uint8_t *payload, size_t len);
bool message_has_clock_facts(uint8_t kind);

/* heartbeats.c: process the unpacked message in p->in; rows of the table in messages.c. They return
 * as message_take() does. */
int heartbeat_take(struct pipeline *p, struct stream *s, uint64_t arrival_tsc);
int heartbeat_learn(struct pipeline *p, struct stream *s, uint64_t arrival_tsc);
int heartbeat_check(const struct pipeline *p, const struct stream *s);
int echo_take(struct pipeline *p, struct stream *s, uint64_t arrival_tsc);

#endif
