/* SPDX-License-Identifier: GPL-2.0-only */
/* What pipeline.c (order, holding, queries) and messages.c (what frames say) share. */
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
	KIND_LIMIT = FRAME_TASK_ORIGINS + 1,
};

struct pipeline_log {
	struct message_log_line line;
	uint64_t session_id;
	uint32_t boot;
};

struct stream {
	uint32_t id;
	char name[VS_TEXT_MAX];
	char kernel_release[VS_TEXT_MAX];
	uint64_t suspended_ns;
	bool config_known;
	struct message_config_reply config;
	bool hello, channel_down;
	bool announced;        /* the model knows this VM */
	bool merging;          /* the timelines wait for this source */
	bool joined;           /* and have before */
	bool ended;            /* its last word has been marked; live: until it is heard again */
	int64_t promised_ns;   /* everything before is here; INT64_MIN: no promise yet */
	int64_t greeted_ns;    /* promised_ns when the newest HELLO came */
	uint64_t anew_session; /* the newest in which its sender counted from the start */
	int64_t since_ns;      /* live: what happened before was merged before anybody knew of it */
	struct frame_order order, learn_order;
	uint64_t learned, replayed_entries; /* entries in the recording, and replayed so far */
	uint64_t session_id;                /* of the frame in hand */
	uint32_t boot, learn_boot;          /* its guest's: as replayed, as learned */
	struct continuity continuity;       /* knows the boots that were replayed */
	struct boots learn_boots;
	struct stream_reboots reboots;
	struct byte_buffer held; /* see pipeline.c */
	uint64_t held_since_tsc;
	bool frames_missing; /* since the newest heartbeat; of which CPU events were in them is
				unknown */
	uint64_t frames, heard_tsc, lost_frames, missing, replayed, nonsense;
	uint64_t unknown_events, unknown_frames; /* of a type or kind that this version lacks */
	uint64_t unplaced; /* events that came before any clock of this source was known */
	uint64_t missed, missed_before; /* without a number; at its sender's last word */
	bool missed_known;
	struct message_untold untold[EVENT_CLASSES], untold_before[EVENT_CLASSES]; /* the same */
	bool untold_known, untold_learned;
	uint64_t untold_count; /* of all classes, as learned last */
	bool handlers_counted; /* it does not tell short handlers, or did not at some time */
	bool handlers_known;   /* and the model knows */
	struct losses losses;
	struct loss_counts noted; /* the sum of losses */
	uint64_t pairs, violations;
	struct audit audit;    /* of them */
	struct clock_reading { /* of its kernel's own clock, the newest */
		bool known;
		struct host_ns t;
		uint64_t err_ns, raw_ns;
	} reading;
	struct histogram errors;                      /* of its events' times, but... */
	uint64_t beside_pauses, beside_pauses_err_ns; /* of these, and the largest of theirs */
	struct pipeline_log *log;                     /* ring of PIPELINE_LOG_LINES */
	uint64_t n_log;                               /* ever */
};

struct pipeline {
	struct pipeline_options options;
	struct clock_book *clocks;
	struct frame_unpacker *unpacker;
	struct batch_decoder *decoder;
	struct timeline *timeline, *early;
	struct handover *handover; /* NULL: the model is called at once */
	struct pauses pauses, early_pauses;
	struct quotas quotas, early_quotas;
	size_t reboots_due; /* streams whose reboot the model has not heard of */
	struct stream **streams;
	size_t n_streams;
	bool simulated, imported;
	uint64_t hold_ticks;
	uint64_t first_tsc, last_tsc;
	bool any_event;
	struct host_ns first_event, last_event;
	struct host_ns advanced;
	int error; /* of a callback: -ENOMEM */
	struct timeline_event slice[SLICE_EVENTS];
	struct {
		struct message_hello hello;
		struct message_heartbeat heartbeat;
		struct message_clock_sample sample;
		struct message_echo_observation echo;
		struct message_kernel_log log;
		struct message_vm_info vm;
		struct message_stack stack;
		struct message_note note;
		struct message_vm_clock vm_clock;
		struct message_cpu_quota cpu_quota;
		struct message_task_origins origins;
		struct message_config_reply config;
		struct message_exit_summary exits; /* its cells: until it was taken */
	} in; /* what was unpacked last; large, so not on the stack */
};

/* This version does not know the kind, or the source may send it. */
static inline bool kind_is_admitted(uint8_t kind, uint32_t source)
{
	const unsigned int senders = frame_kind_senders(kind);

	return !senders ||
	       senders & (source == VS_SOURCE_HOST ? FRAME_BY_COLLECTOR : FRAME_BY_AGENT);
}

/* The model, which has been told everything up to now. */
struct model *pipeline_model(struct pipeline *p);
/* 0 and *out (NULL if there are too many sources), or -ENOMEM. */
int stream_get(struct pipeline *p, uint32_t source, struct stream **out);
struct stream *stream_find(const struct pipeline *p, uint32_t source);
/* From now on the timelines wait for this source. 0 or -ENOMEM. */
int stream_join(struct pipeline *p, struct stream *s);
/* From `t_ns` on, or its last event if that is later, nothing is known of any CPU of this guest.
 * last: the latest such instant of any of them, if that is later; may be NULL. 0 or -ENOMEM. */
int stream_cpus_end(struct pipeline *p, struct stream *s, int64_t t_ns, struct host_ns *last);
/* Is the map that places its events false, whatever error it claims? */
static inline bool stream_is_refuted(const struct stream *s)
{
	return audit_refutes(&s->audit);
}
static inline bool stream_is_host(const struct stream *s)
{
	return s->id == VS_SOURCE_HOST;
}
/* The models hear of its VM, if they have not. 0 or -errno. */
int stream_announce(struct pipeline *p, struct stream *s);
/* Another boot's HELLO has arrived: the boot before it ends at its own last word, and the model
 * hears of it in time order. 0 or -ENOMEM. */
int stream_reboot(struct pipeline *p, struct stream *s, uint64_t arrival_tsc);
/* The model hears of the reboots before `t`. */
void reboots_deliver(struct pipeline *p, struct host_ns t);
/* What a guest says cannot be younger than its arrival: a lie must not push the merge ahead.
 * INT64_MAX: no limit. */
int64_t stream_latest_ns(const struct pipeline *p, const struct stream *s, uint64_t arrival_tsc);
/* A guest's stamp and the host TSC when it had arrived (0: nobody saw): counts the pair, and
 * whether it is out of order by more than the error. */
void stream_audit(struct pipeline *p, struct stream *s, uint64_t stream_time, uint64_t arrival_tsc);
/* The sender has emitted so many events by `time`, and promises that none from before follow. What
 * frames that were lost held of it does not follow either: each CPU is unknown since its last
 * event, if what came does not account for all. 0 or -ENOMEM. */
int batches_missed(struct pipeline *p, struct stream *s, uint64_t time, uint64_t emitted);
/* The payload of a BATCH frame. 0, -ENOMEM, or another -errno: it makes no sense. */
int batch_take(struct pipeline *p, struct stream *s, uint64_t arrival_tsc, const uint8_t *payload,
	       size_t len);
/* What a batch has just told of losses lies between the CPU's last event before it (INT64_MIN:
 * none) and its own last (INT64_MIN: nobody knows when; it comes with the next that has a place).
 */
void stream_lost(struct stream *s, int64_t begin_ns, int64_t end_ns);

/* Takes what a frame of `kind` says. 0, -ENOMEM, or another -errno: it makes no sense. */
int message_take(struct pipeline *p, struct stream *s, uint8_t kind, uint64_t arrival_tsc,
		 const uint8_t *payload, size_t len);
/* The same for its clock facts alone. */
int message_learn(struct pipeline *p, struct stream *s, uint8_t kind, uint64_t arrival_tsc,
		  const uint8_t *payload, size_t len);
bool message_has_clock_facts(uint8_t kind);

#endif
