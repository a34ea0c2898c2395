/* SPDX-License-Identifier: GPL-2.0-only */
/* Processes batches: converts the times of their events, keeps the events in order and marks gaps.
 */
#include <errno.h>

#include "host-collector/timeline/chord.h"
#include "host-collector/engine/internal.h"
#include "proto/event_catalog.h"

static void event_move(struct timeline_event *e, int64_t to)
{
	uint64_t by =
		to > e->t.ns ? (uint64_t)to - (uint64_t)e->t.ns : (uint64_t)e->t.ns - (uint64_t)to;

	e->t.ns = to;
	e->err_ns = by > UINT32_MAX - e->err_ns ? UINT32_MAX : e->err_ns + (uint32_t)by;
}

/* No event is younger than its arrival, and a map that tightened since the CPU's last batch must
 * not turn back the time of its events. */
static void events_confine(struct continuity_cpu *cpu, struct timeline_event *events, size_t n,
			   int64_t limit)
{
	for (size_t i = 0; i < n; i++) {
		struct timeline_event *e = &events[i];

		if (e->t.ns > limit)
			event_move(e, limit);
		if (e->event.time < cpu->floor_stream)
			continue; /* truly older: a nested interrupt's record */
		if (e->t.ns < cpu->floor_ns)
			event_move(e, cpu->floor_ns);
		cpu->floor_stream = e->event.time;
		cpu->floor_ns = e->t.ns;
	}
}

/* Drops what an agent had kept from before it was known, except names. Returns how many stay. */
static size_t events_since(struct timeline_event *events, size_t n, int64_t since_ns)
{
	size_t kept = 0;

	for (size_t i = 0; i < n; i++) {
		if (events[i].t.ns >= since_ns || events[i].event.type == VS_EVENT_TASK_NAME)
			events[kept++] = events[i];
	}
	return kept;
}

static int events_push(struct pipeline *p, struct stream *s, uint16_t cpu,
		       const struct timeline_event *events, size_t n)
{
	int err = timeline_push(p->timeline, s->id, cpu, events, n);

	if (!err && p->early && stream_is_host(s))
		err = timeline_push(p->early, s->id, cpu, events, n);
	return err;
}

/*
 * The last event of a batch may be a LOST event. The sender read its kernel's counters at the
 * batch's watermark, so the missing events happened before that.
 */
static bool gap_is_bounded(const struct batch *b, const struct vs_event *e)
{
	return e == &b->events[b->n_events - 1] && e->type == VS_EVENT_LOST && ev_lost_count(e) &&
	       !ev_lost_end(e) && e->time < b->watermark;
}

/* From then on, silence of its CPU means that nothing happened. An event without meaning marks
 * the time. */
static int gap_close(struct pipeline *p, struct stream *s, const struct batch *b)
{
	struct timeline_event over = {
		.source = s->id,
		.event = {.time = b->watermark, .cpu = b->cpu, .type = VS_EVENT_NONE},
	};

	if (!stream_is_host(s) || !gap_is_bounded(b, &b->events[b->n_events - 1]))
		return 0;
	if (!clock_book_map(p->clocks, s->id, s->boot, b->tsc_cpu, &over.event, 1, b->time_err,
			    &over))
		return -EBADMSG;
	return events_push(p, s, b->cpu, &over, 1);
}

/*
 * A LOST event of a CPU that has sent no event yet. A sender that does not know since when sends 0.
 * Nothing is known about the time before the recording, except for events that an agent had kept.
 */
static void gap_confine(const struct pipeline *p, const struct continuity_cpu *cpu,
			struct timeline_event *events, size_t n)
{
	struct timeline_event *e = &events[0];
	struct host_ns first;

	if (!n || e->event.type != VS_EVENT_LOST || cpu->floor_ns != INT64_MIN || !p->first_tsc ||
	    !clock_book_host_ns(p->clocks, p->first_tsc, &first))
		return;
	if (n > 1 && events[1].t.ns < first.ns)
		first = events[1].t;
	if (e->t.ns < first.ns)
		e->t = first;
}

/* Neighbours' errors are mostly the same, and most VMs have no pause. 0 or -ENOMEM. */
static int errors_count(const struct pipeline *p, struct stream *s,
			const struct timeline_event *events, size_t n)
{
	const bool paused = clock_book_has_pauses(p->clocks, s->id);
	int err = 0;

	for (size_t i = 0, end; i < n && !err; i = end) {
		uint32_t err_ns = events[i].err_ns;
		bool beside =
			paused && clock_book_beside_pause(p->clocks, s->id, events[i].t, err_ns);

		for (end = i + 1; end < n && events[end].err_ns == err_ns; end++) {
			if (paused && clock_book_beside_pause(p->clocks, s->id, events[end].t,
							      err_ns) != beside)
				break;
		}
		if (!beside) {
			err = histogram_add_many(&s->errors, err_ns, end - i);
			continue;
		}
		s->beside_pauses += end - i;
		if (err_ns > s->beside_pauses_err_ns)
			s->beside_pauses_err_ns = err_ns;
	}
	return err;
}

/* Keeps the events whose types one of `sides` can report, in order. Returns how many. */
static size_t events_of(unsigned sides, struct timeline_event *events, size_t n)
{
	size_t kept = 0;

	for (size_t i = 0; i < n; i++) {
		if (event_type_of(events[i].event.type)->sides & sides)
			events[kept++] = events[i];
	}
	return kept;
}

/* What the types of a batch have in common, found once, so that most slices need no look at them.
 */
struct batch_types {
	unsigned sides;       /* can report all of them; 0: most likely a type is unknown */
	struct event_set set; /* those below VS_EVENT_TYPE_LIMIT */
	bool loss;            /* LOST is one of them */
	bool needed;          /* the model needs all of them, except in some windows */
};

static struct batch_types batch_types(const struct pipeline *p, const struct stream *s,
				      const struct batch *b)
{
	const struct event_set *needed =
		stream_is_host(s) ? &p->needs.host_types : &p->needs.guest_types;
	struct batch_types types = {.sides = EVENT_HOST | EVENT_GUEST, .needed = true};

	for (size_t i = 0; i < b->n_events; i++) {
		const uint16_t type = b->events[i].type;

		if (event_set_has(&types.set, type))
			continue;
		types.sides &= event_type_of(type)->sides;
		types.loss |= type == VS_EVENT_LOST;
		types.needed &= event_set_has(needed, type);
		if (type < VS_EVENT_TYPE_LIMIT)
			types.set.words[type / 64] |= 1ull << type % 64;
	}
	return types;
}

static uint64_t unknown_count(const struct batch *b)
{
	uint64_t n = 0;

	for (size_t i = 0; i < b->n_events; i++)
		n += !event_type_known(b->events[i].type);
	return n;
}

/* Returns true if the model needs the types that it requests at the time of some of the events. */
static bool windows_meet(const struct model_needs *needs, const struct timeline_event *events,
			 size_t n)
{
	int64_t first = INT64_MAX, last = INT64_MIN;

	if (!needs->n_windows)
		return true;
	for (size_t i = 0; i < n; i++) {
		first = events[i].t.ns < first ? events[i].t.ns : first;
		last = events[i].t.ns > last ? events[i].t.ns : last;
	}
	for (size_t i = 0; i < needs->n_windows; i++) {
		if (needs->windows[i].from.ns <= last && needs->windows[i].until.ns >= first)
			return true;
	}
	return false;
}

static bool has_loss(const struct timeline_event *events, size_t n)
{
	bool loss = false;

	for (size_t i = 0; i < n; i++)
		loss |= events[i].event.type == VS_EVENT_LOST;
	return loss;
}

static bool names_current(const struct timeline_event *events, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (event_names_host_current(events[i].event.type))
			return true;
	}
	return false;
}

/*
 * Keeps the events that the model needs, in order. Returns how many. A loss changes what the events
 * around it mean, so a slice with a loss stays whole, and so does what follows until an event has
 * named the task on the CPU. The first and the last event of a slice stay too, because a loss, the
 * recording's begin or its end may be beside them.
 */
static size_t events_needed(const struct pipeline *p, const struct stream *s,
			    struct continuity_cpu *cpu, struct timeline_event *events, size_t n,
			    const struct batch_types *of)
{
	const bool loss = of->loss && has_loss(events, n);
	struct event_set types = stream_is_host(s) ? p->needs.host_types : p->needs.guest_types;
	size_t kept = 1;

	if (loss || cpu->in_doubt) {
		cpu->in_doubt = loss || !names_current(events, n);
		return n;
	}
	if (n < 3)
		return n;
	if (!windows_meet(&p->needs, events, n))
		types = model_lasting_types();
	else if (of->needed)
		return n;
	for (size_t i = 1; i + 1 < n; i++) {
		if (event_set_has(&types, events[i].event.type))
			events[kept++] = events[i];
	}
	events[kept++] = events[n - 1];
	return kept;
}

/* `n` events at most SLICE_EVENTS: mapped, checked, pushed. */
static int slice_take(struct pipeline *p, struct stream *s, struct continuity_cpu *cpu,
		      const struct vs_event *events, size_t n, const struct batch *b,
		      const struct batch_types *types, uint64_t arrival_tsc)
{
	const int64_t limit = stream_latest_ns(p, s, arrival_tsc);
	const bool refuted = stream_is_refuted(s);
	size_t known = n, kept;

	if (!clock_book_map(p->clocks, s->id, s->boot, b->tsc_cpu, events, n, b->time_err,
			    p->slice))
		return -EBADMSG;
	for (size_t i = 0; i < n; i++) {
		struct timeline_event *e = &p->slice[i];

		e->source = s->id;
		e->event = events[i];
		if (refuted)
			e->err_ns = UINT32_MAX;
	}
	if (gap_is_bounded(b, &events[n - 1]))
		ev_set_lost_end(&p->slice[n - 1].event, b->watermark);
	if (errors_count(p, s, p->slice, n))
		return -ENOMEM;
	if (!types->sides)
		known = events_of(EVENT_HOST | EVENT_GUEST, p->slice, n);
	kept = known;
	if (!stream_is_host(s) && !(types->sides & EVENT_GUEST))
		kept = events_of(EVENT_GUEST, p->slice, known);
	s->malformed += known - kept;
	gap_confine(p, cpu, p->slice, kept);
	events_confine(cpu, p->slice, kept, limit);
	if (kept && p->slice[0].t.ns < s->since_ns)
		kept = events_since(p->slice, kept, s->since_ns);
	if (p->selects)
		kept = events_needed(p, s, cpu, p->slice, kept, types);
	return events_push(p, s, b->cpu, p->slice, kept);
}

/* Events of this CPU are missing before `next`: the model must not guess what they were. The length
 * of the gap goes with it, in microseconds. */
static int gap_push(struct pipeline *p, struct stream *s, struct continuity_cpu *cpu,
		    const struct vs_event *next, uint64_t missing, uint64_t time_err)
{
	struct timeline_event lost = {
		.source = s->id,
		.event = {.time = cpu->floor_stream ? cpu->floor_stream : next->time,
			  .seq = next->seq,
			  .cpu = next->cpu,
			  .type = VS_EVENT_LOST},
	};
	struct timeline_event end;
	int64_t us;

	cpu->in_doubt = true;
	ev_set_lost_count(&lost.event, missing);
	ev_set_lost_end(&lost.event, next->time);
	if (!clock_book_map(p->clocks, s->id, s->boot, 0, &lost.event, 1, time_err, &lost) ||
	    !clock_book_map(p->clocks, s->id, s->boot, 0, next, 1, time_err, &end))
		return -EBADMSG;
	if (cpu->floor_ns != INT64_MIN)
		lost.t.ns = cpu->floor_ns;
	us = end.t.ns > lost.t.ns ? (end.t.ns - lost.t.ns) / 1000 : 0;
	ev_set_lost_gap_us(&lost.event, us < INT32_MAX ? (vs_s32)us : INT32_MAX);
	return events_push(p, s, next->cpu, &lost, 1);
}

/* The number of this session's events that the received batches account for. */
static uint64_t accounted_for(const struct stream *s)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < s->continuity.n_cpus; i++) {
		const struct continuity_cpu *cpu = &s->continuity.cpus[i];

		if (cpu->started && cpu->session_id == s->session_id)
			sum += cpu->emitted;
	}
	return sum;
}

int batches_missed(struct pipeline *p, struct stream *s, uint64_t time, uint64_t emitted)
{
	uint64_t known;
	int err = 0;

	if (!s->frames_missing)
		return 0;
	s->frames_missing = false;
	known = accounted_for(s);
	for (size_t i = 0; i < s->continuity.n_cpus && emitted > known && !err; i++) {
		struct continuity_cpu *cpu = &s->continuity.cpus[i];
		struct vs_event next = {.time = time, .seq = cpu->next_seq, .cpu = (vs_u16)i};

		if (cpu->started && cpu->session_id == s->session_id && cpu->floor_stream < time)
			err = gap_push(p, s, cpu, &next, emitted - known, 0);
	}
	return err == -EBADMSG ? 0 : err;
}

/* Where something of this CPU lies that has no place: it had arrived by then. INT64_MIN: unknown.
 */
static int64_t arrival_ns(const struct pipeline *p, uint64_t arrival_tsc)
{
	struct host_ns t;

	return clock_book_host_ns(p->clocks, arrival_tsc ? arrival_tsc : p->last_tsc, &t)
		       ? t.ns
		       : INT64_MIN;
}

/* No way to place its events; they are counted, so that the report can say so. */
static int batch_unplaced(struct pipeline *p, struct stream *s, uint64_t arrival_tsc,
			  const struct batch *b)
{
	struct continuity_cpu *cpu = continuity_cpu(&s->continuity, b->cpu);
	const uint64_t unknown = unknown_count(b);
	uint64_t missing;

	if (!cpu)
		return -ENOMEM;
	if (continuity_check(&s->continuity, cpu, b, s->session_id, &missing) ==
	    CONTINUITY_REPEATS) {
		s->replayed++;
	} else {
		s->unknown_events += unknown;
		s->unplaced += b->n_events - unknown;
	}
	s->missing += missing;
	stream_lost(s, cpu->floor_ns, arrival_ns(p, arrival_tsc));
	return 0;
}

/* The VM was paused in the middle of this drain. */
static void chord_take(struct pipeline *p, struct stream *s, struct batch *b)
{
	struct vm_clock_pause pause;

	if (b->chord_end && !stream_is_host(s) &&
	    clock_book_pause_between(p->clocks, s->id, s->boot, b->chord_begin, b->chord_end,
				     &pause))
		chord_straighten(b, &pause);
}

int batch_events_take(struct pipeline *p, struct stream *s, uint64_t arrival_tsc, struct batch *b)
{
	struct continuity_cpu *cpu;
	enum continuity_verdict verdict;
	uint64_t missing;
	struct batch_types types;
	int64_t begin;
	int err;

	if (!b->n_events)
		return 0;
	if (!clock_book_knows(p->clocks, s->id, s->boot))
		return batch_unplaced(p, s, arrival_tsc, b);
	err = stream_join(p, s);
	if (!err)
		err = stream_announce(p, s);
	if (err)
		return err;
	cpu = continuity_cpu(&s->continuity, b->cpu);
	if (!cpu)
		return -ENOMEM;
	begin = cpu->floor_ns;
	chord_take(p, s, b);
	verdict = continuity_check(&s->continuity, cpu, b, s->session_id, &missing);
	if (verdict == CONTINUITY_REPEATS) {
		s->replayed++;
		return 0;
	}
	types = batch_types(p, s, b);
	s->unknown_events += types.sides ? 0 : unknown_count(b);
	/* Nothing is known of any CPU between the last event of the old sender and the first one
	 * of the new. */
	if (cpu->anew && s->anew_session != s->session_id) {
		s->anew_session = s->session_id;
		err = stream_cpus_end(p, s, s->greeted_ns, NULL);
	}
	if (!err && verdict == CONTINUITY_GAP) {
		s->missing += missing;
		err = gap_push(p, s, cpu, &b->events[0], missing, b->time_err);
	}
	for (size_t at = 0; at < b->n_events && !err; at += SLICE_EVENTS) {
		size_t n = b->n_events - at < SLICE_EVENTS ? b->n_events - at : SLICE_EVENTS;

		err = slice_take(p, s, cpu, b->events + at, n, b, &types, arrival_tsc);
	}
	if (!err)
		err = gap_close(p, s, b);
	stream_lost(s, begin,
		    cpu->floor_ns != INT64_MIN ? cpu->floor_ns : arrival_ns(p, arrival_tsc));
	stream_audit(p, s, b->events[b->n_events - 1].time, arrival_tsc);
	return err;
}

int batch_take(struct pipeline *p, struct stream *s, uint64_t arrival_tsc, const uint8_t *payload,
	       size_t len)
{
	struct batch b;
	int err = batch_decode(p->decoder, payload, len, &b);

	return err ? err : batch_events_take(p, s, arrival_tsc, &b);
}
