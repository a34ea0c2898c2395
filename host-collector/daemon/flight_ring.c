/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/daemon/flight_ring.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "host-collector/util/fifo_memory.h"
#include "proto/buffer.h"
#include "proto/codec.h"
#include "proto/event_fields.h"
#include "proto/message.h"
#include "proto/recording.h"

enum {
	SOURCES_MAX = MODEL_VMS_MAX + 1,
	KEPT_SHARE = 4, /* older frames may take 1/KEPT_SHARE of the memory */
	ANSWER_S = 5,   /* a sender may need this long to find out what it sends */
	NAMES_AT_ONCE = VS_BATCH_EVENTS_MAX,
};

struct held_frame {
	struct held_frame *next;
	uint64_t arrival_tsc;
	uint32_t source;
	uint32_t len;
	uint8_t kind;
	uint8_t state; /* enum kept_state */
	uint8_t bytes[];
};

/* Two notes that begin and end one state of the VM. A reader needs the newest of the two. */
enum kept_state { NO_STATE = 0, STATE_PAUSED, STATE_MIGRATES };

struct frame_list {
	struct held_frame *first, *last;
	uint64_t n, bytes;
};

struct flight_ring {
	uint64_t age_ticks, repeat_ticks;
	size_t max_bytes;
	bool held; /* frames since held_tsc stay, whatever their age */
	uint64_t held_tsc;
	struct frame_list recent;   /* in order of arrival, in `memory` */
	struct frame_list kept;     /* from before, in order of arrival, each allocated by itself */
	struct fifo_memory *memory; /* of the recent frames */
	struct frame_unpacker *unpacker;
	uint64_t early, refused;
};

struct flight_ring *flight_ring_new(uint64_t age_ns, size_t max_bytes, uint64_t host_hz)
{
	struct flight_ring *r = calloc(1, sizeof(*r));

	if (!r)
		return NULL;
	r->unpacker = frame_unpacker_new();
	r->memory = fifo_memory_new(max_bytes, sizeof(struct held_frame) + VS_FRAME_HEADER_BYTES +
						       VS_FRAME_PAYLOAD_MAX);
	if (!r->unpacker || !r->memory) {
		flight_ring_free(r);
		return NULL;
	}
	r->age_ticks = (uint64_t)((double)age_ns / 1e9 * (double)host_hz);
	r->repeat_ticks = (VS_REPEAT_S + ANSWER_S) * host_hz;
	r->max_bytes = max_bytes;
	return r;
}

static size_t cost_of(const struct held_frame *f)
{
	return fifo_memory_room(sizeof(*f) + f->len);
}

static void list_append(struct frame_list *l, struct held_frame *f)
{
	f->next = NULL;
	if (l->last)
		l->last->next = f;
	else
		l->first = f;
	l->last = f;
	l->n++;
	l->bytes += cost_of(f);
}

/* Removes the frame that *at points to from the list. before: the frame before it, or NULL. */
static struct held_frame *list_take(struct frame_list *l, struct held_frame **at,
				    struct held_frame *before)
{
	struct held_frame *f = *at;

	*at = f->next;
	if (l->last == f)
		l->last = before;
	l->n--;
	l->bytes -= cost_of(f);
	return f;
}

/* Appends a copy of `f`, with its bytes. Returns NULL if there is no memory. */
static struct held_frame *recent_append(struct flight_ring *r, const struct held_frame *f,
					const uint8_t *bytes)
{
	struct held_frame *copy = fifo_memory_add(r->memory, cost_of(f));

	if (!copy)
		return NULL;
	*copy = *f;
	memcpy(copy->bytes, bytes, f->len);
	list_append(&r->recent, copy);
	return copy;
}

static void recent_remove(struct flight_ring *r)
{
	list_take(&r->recent, &r->recent.first, NULL);
	fifo_memory_keep(r->memory, r->recent.first);
}

void flight_ring_clear(struct flight_ring *r)
{
	while (r->recent.first)
		recent_remove(r);
	while (r->kept.first)
		free(list_take(&r->kept, &r->kept.first, NULL));
}

void flight_ring_free(struct flight_ring *r)
{
	if (!r)
		return;
	flight_ring_clear(r);
	fifo_memory_free(r->memory);
	frame_unpacker_free(r->unpacker);
	free(r);
}

/* ---- older frames that are kept ---- */

/* Without the note that began a migration, a report blames the pause at its end on an operator. */
static uint8_t state_of_note(struct flight_ring *r, const struct frame_view *view)
{
	struct message_note note;
	const uint8_t *payload;
	size_t len;

	if (frame_unpack(r->unpacker, view, &payload, &len) ||
	    message_note_unpack(payload, len, &note))
		return NO_STATE;
	switch (note.kind) {
	case NOTE_VM_PAUSED:
	case NOTE_VM_RESUMED:
		return STATE_PAUSED;
	case NOTE_MIGRATION:
	case NOTE_MIGRATION_OVER:
		return STATE_MIGRATES;
	default:
		return NO_STATE;
	}
}

static enum frame_keeping keeping_of(const struct held_frame *f)
{
	return f->state ? FRAME_KEEP_NEWEST : frame_kind_row(f->kind)->keeping;
}

static bool replaces(const struct held_frame *later, const struct held_frame *f)
{
	return later->source == f->source && later->kind == f->kind && later->state == f->state;
}

static void kept_replace(struct flight_ring *r, const struct held_frame *by)
{
	struct held_frame *before = NULL, **at = &r->kept.first;

	while (*at) {
		if (replaces(by, *at)) {
			free(list_take(&r->kept, at, before));
			return;
		}
		before = *at;
		at = &before->next;
	}
}

/* Frees frames that no recent frame needs: the sender repeated them before the oldest recent one.
 */
static void kept_expire(struct flight_ring *r)
{
	struct held_frame *before = NULL, **at = &r->kept.first;
	const uint64_t oldest_tsc = r->recent.first->arrival_tsc;

	while (*at && (int64_t)(oldest_tsc - (*at)->arrival_tsc) > (int64_t)r->repeat_ticks) {
		if (keeping_of(*at) == FRAME_KEEP_REPEATED) {
			free(list_take(&r->kept, at, before));
			continue;
		}
		before = *at;
		at = &before->next;
	}
}

/* Moves the oldest recent frame to those that are kept, or removes it. Another must be in the list.
 * Without memory, what is kept is lost, and counted as refused. */
static void recent_retire(struct flight_ring *r)
{
	const struct held_frame *f = r->recent.first;
	const enum frame_keeping keeping = keeping_of(f);
	struct held_frame *copy = NULL;

	if (keeping != FRAME_DROP) {
		copy = malloc(cost_of(f));
		if (copy)
			memcpy(copy, f, cost_of(f));
		else
			r->refused++;
	}
	recent_remove(r);
	if (!copy)
		return;
	if (keeping == FRAME_KEEP_NEWEST)
		kept_replace(r, copy);
	if (keeping == FRAME_KEEP_REPEATED)
		kept_expire(r);
	list_append(&r->kept, copy);
}

static bool is_bounded(enum frame_keeping keeping)
{
	return keeping == FRAME_KEEP_ALL || keeping == FRAME_KEEP_REPEATED;
}

/* Removes the oldest frames of kinds that later frames do not replace. HELLO and the like stay. */
static void kept_bound(struct flight_ring *r)
{
	struct held_frame *before = NULL, **at = &r->kept.first;

	while (*at && r->kept.bytes > r->max_bytes / KEPT_SHARE) {
		if (is_bounded(keeping_of(*at))) {
			free(list_take(&r->kept, at, before));
			continue;
		}
		before = *at;
		at = &before->next;
	}
}

static bool expired(const struct flight_ring *r, const struct held_frame *f, uint64_t now_tsc)
{
	return (int64_t)(now_tsc - f->arrival_tsc) > (int64_t)r->age_ticks &&
	       !(r->held && (int64_t)(f->arrival_tsc - r->held_tsc) >= 0);
}

void flight_ring_hold(struct flight_ring *r, uint64_t since_tsc)
{
	if (!r->held || (int64_t)(since_tsc - r->held_tsc) < 0)
		r->held_tsc = since_tsc;
	r->held = true;
}

void flight_ring_release(struct flight_ring *r)
{
	r->held = false;
}

void flight_ring_push(struct flight_ring *r, uint32_t source, uint64_t arrival_tsc,
		      struct frame_item *frame)
{
	struct held_frame head = {
		.arrival_tsc = arrival_tsc, .source = source, .kind = frame->kind};
	struct held_frame *f = NULL;
	struct frame_view view;

	if (!frame_item_frame(frame, &view)) {
		head.state = frame->kind == FRAME_NOTE ? state_of_note(r, &view) : NO_STATE;
		head.len = (uint32_t)view.len;
		f = recent_append(r, &head, view.bytes);
	}
	if (!f) {
		r->refused++;
		return;
	}
	while (r->recent.first != f && expired(r, r->recent.first, arrival_tsc))
		recent_retire(r);
	kept_bound(r);
	while (r->recent.first != f && r->recent.bytes + r->kept.bytes > r->max_bytes) {
		recent_retire(r);
		kept_bound(r);
		r->early++;
	}
}

/* ---- writing ---- */

/* A source's stream begins anew in the file: its first session is numbered from 0, with what is
 * kept from before in front, or a reader would count all of before as lost. */
struct place {
	uint32_t source;
	uint64_t session_id;
	uint32_t frame_seq; /* number of the next older frame in the file */
	uint32_t back;      /* is subtracted from the numbers of later frames */
	bool waits;         /* `back` is not known yet: the next frame shows it */
};

struct flight_places {
	struct place places[SOURCES_MAX];
	size_t n;
	struct byte_buffer copy;
};

struct writing {
	const struct flight_ring *ring;
	const struct held_frame *begin; /* the first that is written unchanged; NULL: none */
	const struct frame_taker *out;
	struct frame_unpacker *unpacker;
	struct batch_decoder *decoder;
	struct batch_encoder *encoder;
	struct frame_writer *frames;
	struct byte_buffer payload, frame;
	struct flight_places *places;
	struct model_name names[NAMES_AT_ONCE];
	struct vs_event events[NAMES_AT_ONCE];
};

static int writing_open(struct writing *w)
{
	w->unpacker = frame_unpacker_new();
	w->decoder = batch_decoder_new();
	w->encoder = batch_encoder_new();
	w->frames = frame_writer_new(0);
	return w->unpacker && w->decoder && w->encoder && w->frames ? 0 : -ENOMEM;
}

static void writing_close(struct writing *w)
{
	frame_unpacker_free(w->unpacker);
	batch_decoder_free(w->decoder);
	batch_encoder_free(w->encoder);
	frame_writer_free(w->frames);
	byte_buffer_fini(&w->payload);
	byte_buffer_fini(&w->frame);
	free(w);
}

/* Returns false if the frame is not a batch with events. */
static bool batch_unpack(struct writing *w, const struct held_frame *f, struct batch *out)
{
	const uint8_t *payload;
	struct frame_view view;
	size_t len;

	return !frame_parse(f->bytes, f->len, &view) &&
	       !frame_unpack(w->unpacker, &view, &payload, &len) &&
	       !batch_decode(w->decoder, payload, len, out) && out->n_events;
}

/* The first event of a source. The names that are written before it get numbers and times below
 * those of this event. */
struct edge {
	uint32_t seq;
	uint64_t time, emitted;
	struct batch like; /* has the other fields */
};

/* Finds the source's first event in the part that is written, or else the successor of its newest
 * event before that part. */
static bool edge_find(struct writing *w, uint32_t source, struct edge *out)
{
	const struct held_frame *newest = NULL;
	struct batch *b = &out->like;

	for (const struct held_frame *f = w->begin; f; f = f->next) {
		if (f->source != source || f->kind != FRAME_BATCH || !batch_unpack(w, f, b))
			continue;
		out->seq = b->events[0].seq;
		out->time = b->events[0].time;
		out->emitted = b->emitted - (b->n_events < b->emitted ? b->n_events : b->emitted);
		return true;
	}
	for (const struct held_frame *f = w->ring->recent.first; f && f != w->begin; f = f->next) {
		if (f->source == source && f->kind == FRAME_BATCH)
			newest = f;
	}
	if (!newest || !batch_unpack(w, newest, b))
		return false;
	out->seq = b->events[b->n_events - 1].seq + 1;
	out->time = b->events[b->n_events - 1].time;
	out->emitted = b->emitted;
	return true;
}

/* Makes a frame with the names that are known now, as events just before the source's others.
 * Returns 1, 0 if there are none, or -errno. */
static int names_frame(struct writing *w, const struct model *model, uint32_t source)
{
	size_t n = model_names(model, source, w->names, NAMES_AT_ONCE);
	struct batch named;
	struct edge edge;
	int err;

	if (!n || !edge_find(w, source, &edge))
		return 0;
	named = edge.like;
	named.events = w->events;
	named.n_events = n;
	named.watermark = edge.time;
	named.emitted = edge.emitted;
	for (size_t i = 0; i < n; i++) {
		w->events[i] = (struct vs_event){.time = edge.time,
						 .cpu = named.cpu,
						 .type = VS_EVENT_TASK_NAME,
						 .seq = edge.seq - (uint32_t)(n - i),
						 .pid = w->names[i].pid,
						 .pid2 = w->names[i].tgid};
		ev_set_task_comm(&w->events[i], w->names[i].comm);
	}
	w->payload.len = w->frame.len = 0;
	err = batch_encode(w->encoder, &named, &w->payload);
	if (!err)
		err = frame_write(w->frames, FRAME_BATCH, w->payload.data, w->payload.len,
				  &w->frame);
	return err ? err : 1;
}

/* Writes the frame as number `seq` of the session. */
static int put(struct flight_places *p, const struct frame_taker *out, uint32_t source,
	       uint64_t arrival_tsc, uint64_t session_id, uint32_t seq, const uint8_t *frame,
	       size_t len)
{
	int err;

	p->copy.len = 0;
	err = byte_buffer_append(&p->copy, frame, len);
	if (err)
		return err;
	frame_restamp(p->copy.data, session_id, seq);
	return out->take(out->context, source, arrival_tsc, p->copy.data, len);
}

static struct place *place_find(struct flight_places *p, uint32_t source)
{
	for (size_t i = 0; i < p->n; i++) {
		if (p->places[i].source == source)
			return &p->places[i];
	}
	return NULL;
}

int flight_places_append(struct flight_places *p, const struct frame_taker *out, uint32_t source,
			 uint64_t arrival_tsc, const uint8_t *frame, size_t len)
{
	struct place *place = place_find(p, source);
	struct frame_header header;

	/* A source that had sent nothing by then is written from its first frame. */
	if (!place || frame_header_parse(frame, len, &header) ||
	    header.session_id != place->session_id)
		return out->take(out->context, source, arrival_tsc, frame, len);
	if (place->waits)
		place->back = header.frame_seq - place->frame_seq;
	place->waits = false;
	return put(p, out, source, arrival_tsc, header.session_id, header.frame_seq - place->back,
		   frame, len);
}

void flight_places_free(struct flight_places *p)
{
	if (!p)
		return;
	byte_buffer_fini(&p->copy);
	free(p);
}

static int recording_take(void *context, uint32_t source, uint64_t arrival_tsc,
			  const uint8_t *frame, size_t len)
{
	return recording_writer_append(context, source, arrival_tsc, frame, len);
}

struct frame_taker frame_taker_of(struct recording_writer *out)
{
	return (struct frame_taker){.take = recording_take, .context = out};
}

/* Iterates over the older frames: those that are kept, then the recent ones before w->begin that
 * would be kept. f: the last one, or NULL to begin. Returns NULL at the end. */
static const struct held_frame *before_next(const struct writing *w, const struct held_frame *f)
{
	const struct flight_ring *r = w->ring;

	if (!f)
		f = r->kept.first ? r->kept.first : r->recent.first;
	else
		f = f == r->kept.last ? r->recent.first : f->next;
	while (f && f != w->begin && keeping_of(f) == FRAME_DROP)
		f = f->next;
	return f == w->begin ? NULL : f;
}

/* Returns true if a later one of the older frames replaces this one. */
static bool is_outdated(const struct writing *w, const struct held_frame *f)
{
	const struct held_frame *later = f;

	if (keeping_of(f) != FRAME_KEEP_NEWEST)
		return false;
	while ((later = before_next(w, later))) {
		if (replaces(later, f))
			return true;
	}
	return false;
}

static int before_write(struct writing *w, const struct model *model, struct place *place,
			const struct held_frame *first, uint32_t first_seq)
{
	int err = 0, names = names_frame(w, model, place->source);

	if (names < 0)
		return names;
	for (const struct held_frame *f = before_next(w, NULL); f && !err; f = before_next(w, f)) {
		if (f->source == place->source && !is_outdated(w, f))
			err = put(w->places, w->out, first->source, first->arrival_tsc,
				  place->session_id, place->frame_seq++, f->bytes, f->len);
	}
	if (!err && names)
		err = put(w->places, w->out, first->source, first->arrival_tsc, place->session_id,
			  place->frame_seq++, w->frame.data, w->frame.len);
	place->back = first_seq - place->frame_seq;
	return err;
}

static int recent_write(struct writing *w, const struct model *model, const struct held_frame *f)
{
	struct flight_places *p = w->places;
	struct frame_header header;
	struct place *place = place_find(p, f->source);
	int err = frame_header_parse(f->bytes, f->len, &header);

	if (err || (!place && p->n == SOURCES_MAX))
		return err;
	if (!place) {
		place = &p->places[p->n++];
		*place = (struct place){.source = f->source, .session_id = header.session_id};
		err = before_write(w, model, place, f, header.frame_seq);
	}
	return err ? err
		   : flight_places_append(p, w->out, f->source, f->arrival_tsc, f->bytes, f->len);
}

/* Writes a kept frame of a source that sent nothing in the time of the ring. */
static int silent_write(struct writing *w, const struct held_frame *f)
{
	struct flight_places *p = w->places;
	struct place *place = place_find(p, f->source);
	struct frame_header header;
	int err = frame_header_parse(f->bytes, f->len, &header);

	if (err || (place && !place->waits) || (!place && p->n == SOURCES_MAX) || is_outdated(w, f))
		return err;
	if (!place) {
		place = &p->places[p->n++];
		*place = (struct place){
			.source = f->source, .session_id = header.session_id, .waits = true};
	}
	return put(p, w->out, f->source, f->arrival_tsc, place->session_id, place->frame_seq++,
		   f->bytes, f->len);
}

int flight_ring_begin(const struct flight_ring *r, const struct model *names, uint64_t since_tsc,
		      const struct frame_taker *out, struct flight_places **places)
{
	struct writing *w = calloc(1, sizeof(*w));
	int err;

	*places = calloc(1, sizeof(**places));
	if (!w || !*places) {
		free(w);
		return -ENOMEM;
	}
	w->ring = r;
	w->begin = r->recent.first;
	while (w->begin && w->begin->arrival_tsc < since_tsc)
		w->begin = w->begin->next;
	w->out = out;
	w->places = *places;
	err = writing_open(w);
	for (const struct held_frame *f = w->begin; f && !err; f = f->next)
		err = recent_write(w, names, f);
	for (const struct held_frame *f = before_next(w, NULL); f && !err; f = before_next(w, f))
		err = silent_write(w, f);
	writing_close(w);
	return err;
}

uint64_t flight_ring_since(const struct flight_ring *r, size_t max_bytes)
{
	const struct held_frame *f = r->recent.first;
	uint64_t since_tsc = 0;

	for (size_t left = r->recent.bytes; f && left > max_bytes; f = f->next) {
		left -= cost_of(f);
		since_tsc = f->arrival_tsc + 1;
	}
	return since_tsc;
}

int flight_ring_write(const struct flight_ring *r, const struct model *names, const char *path,
		      uint64_t realtime_ns)
{
	struct flight_places *places;
	struct recording_writer *out;
	struct frame_taker taker;
	int err = recording_writer_open(path, 0, realtime_ns, &out), closed;

	if (err)
		return err;
	taker = frame_taker_of(out);
	err = flight_ring_begin(r, names, 0, &taker, &places);
	flight_places_free(places);
	closed = recording_writer_close(out, 0);
	return err ? err : closed;
}

void flight_ring_stats_get(const struct flight_ring *r, struct flight_ring_stats *out)
{
	*out = (struct flight_ring_stats){
		.frames = r->recent.n + r->kept.n,
		.bytes = r->recent.bytes + r->kept.bytes,
		.early = r->early,
		.refused = r->refused,
	};
}
