/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Orders frames, and answers queries. held.c holds what waits for a round trip; messages.c,
 * heartbeats.c and batches.c process the content of frames.
 */
#include "host-collector/engine/pipeline.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host-collector/engine/internal.h"

enum {
	SOURCES_MAX = MODEL_VMS_MAX + 1,
	MEMORY_LIVE = 32 << 20,
	MEMORY_OFFLINE = 256 << 20,
};
static const int64_t advance_ns = 5000000; /* interval between two advances of the models */

struct model *pipeline_model(struct pipeline *p)
{
	if (p->handover)
		handover_settle(p->handover);
	return p->options.model;
}

int pipeline_give(struct pipeline *p, const struct handover_fact *fact)
{
	if (!p->handover)
		return handover_fact_give(p->options.model, fact);
	handover_fact(p->handover, fact);
	return 0;
}

static void push(struct pipeline *p, struct model *m, const struct timeline_event *events, size_t n)
{
	if (model_push(m, events, n) == -ENOMEM)
		p->error = -ENOMEM;
}

static void give(struct pipeline *p, const struct timeline_event *events, size_t n)
{
	if (p->handover)
		handover_push(p->handover, events, n);
	else
		push(p, p->options.model, events, n);
}

static bool facts_due(const struct pipeline *p, struct host_ns t)
{
	return pauses_due(&p->pauses, t) || quotas_due(&p->quotas, t) || p->reboots_due;
}

/* Passes on what is known of the VMs besides events, up to and at `t`. */
static void facts_deliver(struct pipeline *p, struct host_ns t)
{
	if (pauses_due(&p->pauses, t))
		pauses_deliver(&p->pauses, pipeline_model(p), t);
	if (quotas_due(&p->quotas, t))
		quotas_deliver(&p->quotas, pipeline_model(p), t);
	if (p->reboots_due)
		reboots_deliver(p, t);
}

static void early_facts_deliver(struct pipeline *p, struct host_ns t)
{
	pauses_deliver(&p->early_pauses, p->options.early, t);
	quotas_deliver(&p->early_quotas, p->options.early, t);
}

static void emit_merged(void *context, const struct timeline_event *events, size_t n)
{
	struct pipeline *p = context;

	if (!p->any_event) {
		p->any_event = true;
		p->first_event = events[0].t;
	}
	p->last_event = events[n - 1].t;
	/* Facts come between the events: until none is due among them, one by one. */
	for (; n && facts_due(p, p->last_event); events++, n--) {
		facts_deliver(p, events->t);
		give(p, events, 1);
	}
	if (n)
		give(p, events, n);
}

static void emit_early(void *context, const struct timeline_event *events, size_t n)
{
	struct pipeline *p = context;

	for (size_t i = 0; i < n; i++) {
		early_facts_deliver(p, events[i].t);
		push(p, p->options.early, &events[i], 1);
	}
}

struct pipeline *pipeline_new(const struct pipeline_options *options)
{
	struct timeline_options merge = {
		.memory_bytes = options->live ? MEMORY_LIVE : MEMORY_OFFLINE,
		.silence_limit_ns = options->live ? 0 : INT64_MAX,
	};
	struct pipeline *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	if (options->memory_bytes)
		merge.memory_bytes = options->memory_bytes;
	p->options = *options;
	p->advanced.ns = p->early_advanced.ns = INT64_MIN;
	p->clocks = clock_book_new(options->live);
	if (p->clocks && !options->live)
		clock_book_limit_span(p->clocks);
	p->unpacker = frame_unpacker_new();
	p->decoder = batch_decoder_new();
	p->timeline = timeline_new(&merge, emit_merged, p);
	if (options->early)
		p->early = timeline_new(&merge, emit_early, p);
	if (!p->clocks || !p->unpacker || !p->decoder || !p->timeline ||
	    (options->early && !p->early)) {
		pipeline_free(p);
		return NULL;
	}
	return p;
}

void pipeline_free(struct pipeline *p)
{
	if (!p)
		return;
	for (size_t i = 0; i < p->n_streams; i++) {
		continuity_fini(&p->streams[i]->continuity);
		byte_buffer_fini(&p->streams[i]->held);
		histogram_fini(&p->streams[i]->errors);
		free(p->streams[i]->log);
		free(p->streams[i]);
	}
	free(p->streams);
	timeline_free(p->timeline);
	timeline_free(p->early);
	handover_free(p->handover);
	batch_decoder_free(p->decoder);
	frame_unpacker_free(p->unpacker);
	clock_book_free(p->clocks);
	quotas_fini(&p->quotas);
	quotas_fini(&p->early_quotas);
	free(p);
}

struct stream *stream_find(const struct pipeline *p, uint32_t source)
{
	for (size_t i = 0; i < p->n_streams; i++) {
		if (p->streams[i]->id == source)
			return p->streams[i];
	}
	return NULL;
}

int stream_get(struct pipeline *p, uint32_t source, struct stream **out)
{
	struct stream **grown;
	struct stream *s = stream_find(p, source);

	*out = s;
	if (s || p->n_streams == SOURCES_MAX)
		return 0;
	if (p->handover)
		handover_settle(p->handover); /* observers look into p->streams */
	grown = realloc(p->streams, (p->n_streams + 1) * sizeof(struct stream *));
	if (!grown)
		return -ENOMEM;
	p->streams = grown;
	s = calloc(1, sizeof(*s));
	if (!s)
		return -ENOMEM;
	s->id = source;
	s->promised_ns = INT64_MIN;
	s->since_ns = INT64_MIN;
	if (source == VS_SOURCE_HOST)
		snprintf(s->name, sizeof(s->name), "host");
	else
		snprintf(s->name, sizeof(s->name), "vm%u", source);
	grown[p->n_streams++] = s;
	*out = s;
	return 0;
}

int stream_cpus_end(struct pipeline *p, struct stream *s, int64_t t_ns, struct host_ns *last)
{
	const struct continuity *c = &s->continuity;
	int err = 0;

	for (size_t cpu = 0; cpu < c->n_cpus && !err; cpu++) {
		struct timeline_event lost = {
			.t = {t_ns},
			.source = s->id,
			.err_ns = s->errors.max_ns > UINT32_MAX ? UINT32_MAX
								: (uint32_t)s->errors.max_ns,
			.event = {.cpu = (vs_u16)cpu, .type = VS_EVENT_LOST},
		};

		/* Without a floor none of its events had a place. */
		if (!c->cpus[cpu].started || c->cpus[cpu].floor_ns == INT64_MIN)
			continue;
		if (lost.t.ns < c->cpus[cpu].floor_ns)
			lost.t.ns = c->cpus[cpu].floor_ns;
		if (last && lost.t.ns > last->ns)
			*last = lost.t;
		err = timeline_push(p->timeline, s->id, (uint16_t)cpu, &lost, 1);
	}
	return err;
}

int stream_join(struct pipeline *p, struct stream *s)
{
	struct timeline_stats stats;
	int err;

	if (s->merging)
		return 0;
	if (p->options.live && !s->joined) {
		timeline_stats_get(p->timeline, &stats);
		s->since_ns = stats.released_until.ns;
	}
	s->joined = true;
	if (p->options.live)
		s->ended = false; /* it sends again */
	err = timeline_add_source(p->timeline, s->id);
	if (!err && p->early && s->id == VS_SOURCE_HOST)
		err = timeline_add_source(p->early, s->id);
	s->merging = !err;
	return err;
}

static void stream_leave(struct pipeline *p, struct stream *s)
{
	timeline_remove_source(p->timeline, s->id);
	if (p->early && s->id == VS_SOURCE_HOST)
		timeline_remove_source(p->early, s->id);
	s->merging = false;
}

/* After its last event. */
static int stream_end(struct pipeline *p, struct stream *s)
{
	if (s->id == VS_SOURCE_HOST || s->ended || !s->joined)
		return 0; /* nothing was known about a source that never joined */
	s->ended = true;
	return stream_cpus_end(p, s, s->promised_ns, NULL);
}

/* Live: the guest's stream ends with its last event. Held events are released first: later they
 * would make the merge wait for the stream again. */
static int guest_end(struct pipeline *p, struct stream *s)
{
	int err = held_release(p, s);

	if (!err && s->merging)
		err = stream_end(p, s);
	stream_leave(p, s);
	return err;
}

int pipeline_guest_end(struct pipeline *p, uint32_t source)
{
	struct stream *s = stream_find(p, source);

	return s && !stream_is_host(s) && p->options.live ? guest_end(p, s) : 0;
}

static void models_advance(struct pipeline *p)
{
	struct timeline_stats stats;

	timeline_stats_get(p->timeline, &stats);
	if (stats.released_until.ns == INT64_MIN ||
	    (p->advanced.ns != INT64_MIN && stats.released_until.ns - p->advanced.ns < advance_ns))
		goto early;
	p->advanced = stats.released_until;
	facts_deliver(p, p->advanced);
	pipeline_give(p, &(struct handover_fact){HANDOVER_ADVANCE, .now = p->advanced});
early:
	if (!p->early)
		return;
	timeline_stats_get(p->early, &stats);
	if (stats.released_until.ns == INT64_MIN ||
	    (stats.released_until.ns == p->early_advanced.ns && !p->early_pauses.n &&
	     !p->early_quotas.n))
		return;
	p->early_advanced = stats.released_until;
	early_facts_deliver(p, stats.released_until);
	model_advance(p->options.early, stats.released_until);
}

static int present(struct pipeline *p, uint64_t now_tsc)
{
	struct host_ns now;

	if (now_tsc > p->last_tsc)
		p->last_tsc = now_tsc;
	if (clock_book_host_ns(p->clocks, p->last_tsc, &now)) {
		timeline_run(p->timeline, now);
		if (p->early)
			timeline_run(p->early, now);
		models_advance(p);
	}
	return p->error;
}

/* Judges a frame's place in its session; false: seen before. */
static bool order_admit(struct pipeline *p, struct stream *s, struct frame_order *order,
			uint64_t session_id, uint32_t frame_seq)
{
	const struct frame_header header = {.session_id = session_id, .frame_seq = frame_seq};
	int64_t verdict = frame_order_check(order, &header);

	if (verdict < 0) {
		s->replayed++;
		return false;
	}
	if (verdict > 0 && stream_is_host(s) && !s->lost_frames) {
		model_notes_lost(pipeline_model(p));
		if (p->options.early)
			model_notes_lost(p->options.early);
	}
	s->lost_frames += (uint64_t)verdict;
	s->frames_missing |= verdict > 0;
	return true;
}

int pipeline_learn(struct pipeline *p, uint32_t source, uint64_t arrival_tsc,
		   const struct frame_view *frame)
{
	const uint8_t *payload;
	struct stream *s;
	size_t len;
	int err = stream_get(p, source, &s);

	if (err || !s)
		return err;
	s->learned++;
	s->session_id = frame->header.session_id;
	s->learn_boot = boots_of(&s->learn_boots, s->session_id, s->learn_boot);
	clock_book_heard(p->clocks, source, s->learn_boot, arrival_tsc);
	if (!message_has_clock_facts(frame->header.kind) ||
	    !kind_is_admitted(frame->header.kind, source) ||
	    frame_order_check(&s->learn_order, &frame->header) < 0)
		return 0;
	err = frame_unpack(p->unpacker, frame, &payload, &len);
	if (!err)
		err = message_learn(p, s, frame->header.kind, arrival_tsc, payload, len);
	return err == -ENOMEM ? err : 0; /* the replay will blame */
}

int pipeline_learned(struct pipeline *p)
{
	int err = clock_book_settle(p->clocks);

	/* All are known now: the merge waits for each from the first event on. */
	for (size_t i = 0; i < p->n_streams && !err; i++) {
		if (clock_book_knows_any(p->clocks, p->streams[i]->id))
			err = stream_join(p, p->streams[i]);
	}
	return err;
}

static bool note_ends_guest(const struct message_note *m)
{
	return m->kind == NOTE_CHANNEL_DOWN || m->kind == NOTE_VM_GONE || note_is_reset(m);
}

static int content_take_or_hold(struct pipeline *p, struct stream *s, uint64_t arrival_tsc,
				const struct content *c)
{
	struct stream *guest;
	int err;

	if (p->options.live && s->id != VS_SOURCE_HOST &&
	    (c->kind == FRAME_BATCH || c->kind == FRAME_HEARTBEAT))
		return held_add(p, s, arrival_tsc, c);
	if (c->kind == FRAME_NOTE)
		p->in.note = (struct message_note){0}; /* it may not make sense */
	/* Another session may be another boot: what was held belongs to the one before. */
	err = c->kind == FRAME_HELLO ? held_release(p, s) : 0;
	if (!err)
		err = content_take(p, s, arrival_tsc, c);
	if (err || !p->options.live)
		return err;
	if (c->kind == FRAME_ECHO_OBSERVATION) {
		guest = stream_find(p, p->in.echo_observation.vm);
		return guest && guest != s ? held_release(p, guest) : 0;
	}
	if (c->kind == FRAME_NOTE && note_ends_guest(&p->in.note))
		return pipeline_guest_end(p, p->in.note.vm);
	return 0;
}

/* An arrival that is out of range counts as unknown. */
static uint64_t arrival_in_range(const struct pipeline *p, struct stream *s, uint64_t arrival_tsc)
{
	struct host_ns t;

	if (!arrival_tsc || !clock_book_knows(p->clocks, VS_SOURCE_HOST, 0) ||
	    clock_book_host_ns(p->clocks, arrival_tsc, &t))
		return arrival_tsc;
	s->malformed++;
	return 0;
}

static int content_receive(struct pipeline *p, uint32_t source, uint64_t arrival_tsc,
			   const struct content *c, uint32_t frame_seq)
{
	struct stream *s;
	int err = stream_get(p, source, &s);

	if (err || !s)
		return err;
	arrival_tsc = arrival_in_range(p, s, arrival_tsc);
	if (arrival_tsc && (!p->first_tsc || arrival_tsc < p->first_tsc))
		p->first_tsc = arrival_tsc;
	s->frames++;
	s->heard_tsc = arrival_tsc ? arrival_tsc : p->last_tsc;
	if (p->options.live && c->kind != FRAME_HELLO)
		clock_book_heard(p->clocks, source,
				 boots_of(&s->learn_boots, c->session_id, s->learn_boot),
				 arrival_tsc);
	s->replayed_entries++;
	if (!kind_is_admitted(c->kind, source))
		s->malformed++;
	else if (order_admit(p, s, &s->order, c->session_id, frame_seq))
		err = content_take_or_hold(p, s, arrival_tsc, c);
	if (!err && !p->options.live && s->replayed_entries == s->learned) {
		err = stream_end(p, s);
		stream_leave(p, s); /* nothing more comes from it */
	}
	return err ? err : present(p, arrival_tsc);
}

int pipeline_frame(struct pipeline *p, uint32_t source, uint64_t arrival_tsc,
		   const struct frame_view *frame)
{
	const struct content c = {.kind = frame->header.kind,
				  .session_id = frame->header.session_id,
				  .frame = *frame};

	return content_receive(p, source, arrival_tsc, &c, frame->header.frame_seq);
}

int pipeline_batch(struct pipeline *p, uint32_t source, uint64_t arrival_tsc,
		   const struct frame_item *item)
{
	const struct content c = {
		.kind = FRAME_BATCH, .session_id = item->session_id, .batch = item->batch};

	return content_receive(p, source, arrival_tsc, &c, item->frame_seq);
}

int pipeline_hand_over(struct pipeline *p)
{
	p->selects = true;
	p->needs = model_needs(p->options.model);
	p->handover = handover_new(p->options.model);
	return p->handover ? 0 : -ENOMEM;
}

void pipeline_handed_over(struct pipeline *p)
{
	int err = handover_end(p->handover);

	if (!p->error)
		p->error = err;
}

void pipeline_take(struct pipeline *p)
{
	handover_take(p->handover);
}

int pipeline_tick(struct pipeline *p, uint64_t now_tsc)
{
	int err = 0;

	for (size_t i = 0; i < p->n_streams && !err; i++) {
		struct stream *s = p->streams[i];

		if (!held_is_due(p, s, now_tsc))
			continue;
		/* Never an echo: place it by its arrivals, and say "none". */
		if (!clock_book_knows(p->clocks, s->id, s->boot))
			err = clock_book_settle(p->clocks);
		if (!err)
			err = held_release(p, s);
	}
	return err ? err : present(p, now_tsc);
}

int pipeline_finish(struct pipeline *p)
{
	const struct stream *host = stream_find(p, VS_SOURCE_HOST);
	const struct host_ns never = {INT64_MAX};
	int err = p->options.live ? clock_book_settle(p->clocks) : 0;

	handover_free(p->handover);
	p->handover = NULL;
	for (size_t i = 0; i < p->n_streams && !err; i++)
		err = held_release(p, p->streams[i]);
	for (size_t i = 0; i < p->n_streams && !err; i++)
		err = stream_end(p, p->streams[i]);
	timeline_finish(p->timeline);
	if (p->early)
		timeline_finish(p->early);
	facts_deliver(p, never);
	if (p->early)
		early_facts_deliver(p, never);
	/* The last state seen of the host lasts until the host's own last event. */
	if (host && host->promised_ns != INT64_MIN) {
		const struct host_ns end = {host->promised_ns};

		model_advance(p->options.model, end);
		if (p->early)
			model_advance(p->options.early, end);
	}
	model_finish(p->options.model);
	if (p->early)
		model_finish(p->options.early);
	return err ? err : p->error;
}

/* An event's error saturates where it is unbounded. */
static uint64_t error_bound(uint64_t ns)
{
	return ns == UINT32_MAX ? UINT64_MAX : ns;
}

bool pipeline_source_number(const struct pipeline *p, size_t index, uint32_t *source)
{
	if (index < p->n_streams)
		*source = p->streams[index]->id;
	return index < p->n_streams;
}

int pipeline_source_get(const struct pipeline *p, size_t index, struct pipeline_source *out)
{
	struct clock_book_summary clock;
	const struct stream *s;
	int64_t lost;

	if (index >= p->n_streams)
		return -ENOENT;
	s = p->streams[index];
	lost = continuity_lost(&s->continuity);
	clock_book_summarise(p->clocks, s->id, &clock);
	*out = (struct pipeline_source){
		.source = s->id,
		.name = s->name,
		.hello = s->hello,
		.kernel_release = s->kernel_release,
		.program_version = s->program_version,
		.suspended_ns = s->suspended_ns,
		.config = s->config_known ? &s->config : NULL,
		.look_period_ns = s->look_period_ns,
		.look_when = s->look_when,
		.channel_down = s->channel_down,
		.ended = s->ended,
		.frames = s->frames,
		.heard_tsc = s->heard_tsc,
		.emitted = s->continuity.emitted,
		.delivered = s->continuity.delivered,
		.dropped_kernel = s->continuity.dropped_kernel,
		.dropped_user = s->continuity.dropped_user,
		.lost_channel = lost > 0 ? (uint64_t)lost : 0,
		.overdelivered = lost < 0 ? (uint64_t)-lost : 0,
		.missed = s->missed,
		.unplaced = s->unplaced,
		.unknown_events = s->unknown_events,
		.unknown_frames = s->unknown_frames,
		.losses = &s->losses,
		.lost_frames = s->lost_frames,
		.missing = s->missing,
		.late = timeline_late(p->timeline, s->id),
		.replayed = s->replayed,
		.malformed = s->malformed,
		.clock_method = s->id == VS_SOURCE_HOST ? "host" : clock.method,
		.clock_error_ns = error_bound(s->errors.max_ns),
		.clock_error_median_ns = error_bound(histogram_quantile(&s->errors, 0.5)),
		.beside_pauses = s->beside_pauses,
		.beside_pauses_error_ns = error_bound(s->beside_pauses_err_ns),
		.causality_pairs = s->pairs,
		.causality_violations = s->violations,
		.clock_epochs = (uint32_t)clock.epochs,
		.clock_disagreements = clock.disagreements,
		.clock_contradiction_ns = clock.untrusted ? clock.exact_from_echo_ns : 0,
		.clock_untrusted = clock.untrusted || stream_is_refuted(s),
		.protection = clock.protection,
	};
	memcpy(out->aggregated, s->aggregated, sizeof(out->aggregated));
	return 0;
}

bool pipeline_hello_get(const struct pipeline *p, uint32_t source, struct pipeline_hello *out)
{
	const struct stream *s = stream_find(p, source);

	if (s)
		*out = (struct pipeline_hello){s->kernel_release, s->suspended_ns};
	return s;
}

bool pipeline_span(const struct pipeline *p, struct host_ns *begin, struct host_ns *end)
{
	bool known = p->first_tsc && clock_book_host_ns(p->clocks, p->first_tsc, begin) &&
		     clock_book_host_ns(p->clocks, p->last_tsc, end);

	if (!p->any_event)
		return known;
	if (!known || p->first_event.ns < begin->ns)
		*begin = p->first_event;
	if (!known || p->last_event.ns > end->ns)
		*end = p->last_event;
	return true;
}

bool pipeline_is_simulated(const struct pipeline *p)
{
	return p->simulated;
}

bool pipeline_is_imported(const struct pipeline *p)
{
	return p->imported;
}

const struct clock_book *pipeline_clocks(const struct pipeline *p)
{
	return p->clocks;
}

bool pipeline_host_ns(const struct pipeline *p, uint64_t tsc, struct host_ns *out)
{
	return clock_book_host_ns(p->clocks, tsc, out);
}

bool pipeline_wall_offset(const struct pipeline *p, struct host_ns t, int64_t *offset_ns)
{
	return clock_book_wall_offset(p->clocks, t, offset_ns);
}

bool pipeline_dmesg(const struct pipeline *p, uint32_t vm, struct host_ns t, struct dmesg_time *out)
{
	const struct stream *s = stream_find(p, vm);

	/* Live: the guest may have rebooted since its last event. */
	if (p->options.live && s && s->ended && t.ns > s->promised_ns)
		return false;
	return clock_book_dmesg_ns(p->clocks, vm, t, out);
}

static const struct pipeline_log *log_line(const struct pipeline *p, uint32_t vm, size_t index)
{
	const struct stream *s = stream_find(p, vm);
	uint64_t first;

	if (!s || !s->log)
		return NULL;
	first = s->n_log > PIPELINE_LOG_LINES ? s->n_log - PIPELINE_LOG_LINES : 0;
	return first + index < s->n_log ? &s->log[(first + index) % PIPELINE_LOG_LINES] : NULL;
}

const struct message_log_line *pipeline_log_line(const struct pipeline *p, uint32_t vm,
						 size_t index)
{
	const struct pipeline_log *l = log_line(p, vm, index);

	return l ? &l->line : NULL;
}

uint32_t pipeline_log_boot(const struct pipeline *p, uint32_t vm, size_t index)
{
	const struct pipeline_log *l = log_line(p, vm, index);

	return l ? l->boot : 0;
}

const struct reboot *pipeline_reboot(const struct pipeline *p, uint32_t vm, size_t index)
{
	const struct stream *s = stream_find(p, vm);

	return s && index < s->reboots.n && index < REBOOTS_KEPT ? &s->reboots.kept[index] : NULL;
}

void pipeline_timeline_stats(const struct pipeline *p, struct timeline_stats *out)
{
	timeline_stats_get(p->timeline, out);
}
