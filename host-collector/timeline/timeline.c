/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Each pair of source and CPU has a run: its waiting events in time order, in a list of chunks of
 * fixed size. The runs that are not empty form a binary heap, ordered by the time of their first
 * event. To release events up to a limit, the first run of the heap is emptied until its next event
 * is younger than the first event of the second run. So the heap is reordered once per burst, not
 * once per event. The merged events are emitted in portions, not one by one.
 *
 * The limit is the oldest promise of all live sources, or the silence limit if that is later.
 * Chunks come from a pool that never exceeds memory_bytes and is freed only by timeline_free(), so
 * in steady state nothing is allocated. When the pool is exhausted, the oldest events are released
 * without a promise until an eighth of the pool is free.
 *
 * Invariant: no event in any run is older than `released`, the time of the last emitted event or
 * the last limit that was reached.
 */
#include "host-collector/timeline/timeline.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "proto/event_catalog.h"
#include "proto/message.h"

enum {
	CHUNK_EVENTS = 72, /* 4 KiB */
	CHUNKS_MIN = 8,
	PORTION_EVENTS = 128,
	MEMORY_DEFAULT = 32 << 20,
};
static const int64_t silence_default_ns = 30ll * 1000 * 1000 * 1000;
static const int64_t trim_ns = 10ll * 1000 * 1000 * 1000;

struct chunk {
	struct chunk *next, *prev;
	struct timeline_event events[CHUNK_EVENTS];
};

struct run {
	uint32_t source;
	uint16_t cpu;
	/* The index of its first event in `first`, and of the end of its events in `last`. All
	 * other chunks are full. Both are here and not in the chunks, whose heads are rarely in a
	 * cache. */
	uint32_t begin, end;
	struct chunk *first, *last; /* NULL, or first holds an event */
	size_t heap_index;          /* only while first */
	uint64_t late;              /* dropped since the last event that was merged */
};

struct source {
	uint32_t id;
	bool live;
	int64_t promise;
	uint64_t late;
	struct run **runs; /* by CPU, n_runs of them, NULL where never seen */
	size_t n_runs;
};

struct heap_entry {
	int64_t t; /* of the run's first event */
	struct run *run;
};

struct timeline {
	timeline_emit emit;
	void *context;
	int64_t silence_limit_ns;
	size_t chunks_max, n_chunks; /* allocated, those in `free` too */
	size_t n_free;
	size_t used, used_before; /* at most, since the last trim; between it and the one before */
	int64_t trim_due;
	struct chunk *free;
	struct source *sources;
	size_t n_sources;
	struct heap_entry *heap;
	size_t n_heap, heap_capacity;
	size_t n_runs;
	int64_t released;
	struct timeline_stats stats;
	size_t n_portion; /* merged, but not yet emitted; 0 outside of release() */
	struct timeline_event portion[PORTION_EVENTS];
};

struct timeline *timeline_new(const struct timeline_options *options, timeline_emit emit,
			      void *context)
{
	size_t bytes = options->memory_bytes ? options->memory_bytes : MEMORY_DEFAULT;
	struct timeline *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	t->emit = emit;
	t->context = context;
	t->silence_limit_ns =
		options->silence_limit_ns ? options->silence_limit_ns : silence_default_ns;
	t->chunks_max = bytes / sizeof(struct chunk);
	if (t->chunks_max < CHUNKS_MIN)
		t->chunks_max = CHUNKS_MIN;
	t->released = INT64_MIN;
	return t;
}

static void chunks_free(struct chunk *c)
{
	while (c) {
		struct chunk *next = c->next;

		free(c);
		c = next;
	}
}

void timeline_free(struct timeline *t)
{
	if (!t)
		return;
	for (size_t i = 0; i < t->n_sources; i++) {
		struct source *s = &t->sources[i];

		for (size_t cpu = 0; cpu < s->n_runs; cpu++) {
			if (s->runs[cpu])
				chunks_free(s->runs[cpu]->first);
			free(s->runs[cpu]);
		}
		free(s->runs);
	}
	chunks_free(t->free);
	free(t->sources);
	free(t->heap);
	free(t);
}

static struct source *source_find(const struct timeline *t, uint32_t id)
{
	for (size_t i = 0; i < t->n_sources; i++) {
		if (t->sources[i].id == id)
			return &t->sources[i];
	}
	return NULL;
}

int timeline_add_source(struct timeline *t, uint32_t source)
{
	struct source *s = source_find(t, source);

	if (!s) {
		struct source *grown =
			realloc(t->sources, (t->n_sources + 1) * sizeof(*t->sources));

		if (!grown)
			return -ENOMEM;
		t->sources = grown;
		s = &grown[t->n_sources++];
		*s = (struct source){.id = source, .promise = INT64_MIN};
	}
	s->live = true;
	return 0;
}

void timeline_remove_source(struct timeline *t, uint32_t source)
{
	struct source *s = source_find(t, source);

	if (s)
		s->live = false;
}

/* Ties go to the lower source, then the lower CPU, so that equal input gives equal output. */
static bool heap_before(const struct heap_entry *a, const struct heap_entry *b)
{
	if (a->t != b->t)
		return a->t < b->t;
	if (a->run->source != b->run->source)
		return a->run->source < b->run->source;
	return a->run->cpu < b->run->cpu;
}

static void heap_set(struct timeline *t, size_t i, struct heap_entry e)
{
	t->heap[i] = e;
	e.run->heap_index = i;
}

static void heap_up(struct timeline *t, size_t i)
{
	struct heap_entry e = t->heap[i];

	while (i && heap_before(&e, &t->heap[(i - 1) / 2])) {
		heap_set(t, i, t->heap[(i - 1) / 2]);
		i = (i - 1) / 2;
	}
	heap_set(t, i, e);
}

/* Puts `e` at index i, whose entry is no longer needed, or below it. */
static inline void heap_down(struct timeline *t, size_t i, struct heap_entry e)
{
	for (;;) {
		size_t child = 2 * i + 1;

		if (child + 1 < t->n_heap && heap_before(&t->heap[child + 1], &t->heap[child]))
			child++;
		if (child >= t->n_heap || !heap_before(&t->heap[child], &e))
			break;
		heap_set(t, i, t->heap[child]);
		i = child;
	}
	heap_set(t, i, e);
}

static struct run *run_get(struct timeline *t, struct source *s, uint16_t cpu)
{
	if (cpu >= s->n_runs) {
		struct run **grown = realloc(s->runs, (cpu + 1u) * sizeof(struct run *));

		if (!grown)
			return NULL;
		memset(grown + s->n_runs, 0, (cpu + 1u - s->n_runs) * sizeof(struct run *));
		s->runs = grown;
		s->n_runs = cpu + 1u;
	}
	if (!s->runs[cpu]) {
		/* Room for every run in the heap is made here, so that pushing cannot fail. */
		if (t->n_runs == t->heap_capacity) {
			size_t capacity = t->heap_capacity ? 2 * t->heap_capacity : 16;
			struct heap_entry *grown = realloc(t->heap, capacity * sizeof(*grown));

			if (!grown)
				return NULL;
			t->heap = grown;
			t->heap_capacity = capacity;
		}
		s->runs[cpu] = calloc(1, sizeof(struct run));
		if (!s->runs[cpu])
			return NULL;
		s->runs[cpu]->source = s->id;
		s->runs[cpu]->cpu = cpu;
		t->n_runs++;
	}
	return s->runs[cpu];
}

static void chunk_put(struct timeline *t, struct chunk *c)
{
	c->next = t->free;
	t->free = c;
	t->n_free++;
}

static const struct timeline_event *run_first(const struct run *r)
{
	return &r->first->events[r->begin];
}

/* Takes the first chunk off the run, which is used up; the run may be empty afterwards. */
static void run_drop_chunk(struct timeline *t, struct run *r)
{
	struct chunk *c = r->first;

	r->first = c->next;
	r->begin = 0;
	if (r->first)
		r->first->prev = NULL;
	else
		r->last = NULL;
	chunk_put(t, c);
}

/* Passes on the merged events. Those that are younger than `promised` count as forced. */
static void portion_emit(struct timeline *t, int64_t promised)
{
	const size_t n = t->n_portion;

	if (!n)
		return;
	for (size_t i = n; i && t->portion[i - 1].t.ns > promised; i--)
		t->stats.forced++;
	t->released = t->portion[n - 1].t.ns;
	t->stats.waiting_events -= n;
	t->stats.merged += n;
	t->n_portion = 0;
	t->emit(t->context, t->portion, n);
}

/* Merges the first events of the run's first chunk: at least one, at most `count` and as many as
 * fit into the portion, and after the first one only events up to `until`. Returns how many. */
static size_t burst_merge(struct timeline *t, struct run *r, int64_t until, size_t count,
			  int64_t promised)
{
	const struct timeline_event *e = run_first(r);
	const uint32_t end = r->first == r->last ? r->end : CHUNK_EVENTS;
	struct timeline_event *to = &t->portion[t->n_portion];
	size_t most = PORTION_EVENTS - t->n_portion, n = 0;

	if (most > end - r->begin)
		most = end - r->begin;
	if (most > count)
		most = count;
	do {
		to[n] = e[n];
		n++;
	} while (n < most && e[n].t.ns <= until);
	t->n_portion += n;
	if (t->n_portion == PORTION_EVENTS)
		portion_emit(t, promised);
	r->begin += (uint32_t)n;
	/* With many runs, the cache has forgotten this run's events by its next turn. */
	__builtin_prefetch(&e[n + 1]);
	__builtin_prefetch(&e[n + 2]);
	if (r->begin == end)
		run_drop_chunk(t, r);
	return n;
}

/*
 * Emits events up to `limit` (inclusive), but not more than `count` of them, in order. Those that
 * are younger than `promised` count as forced.
 */
static void release(struct timeline *t, int64_t limit, int64_t promised, size_t count)
{
	while (t->n_heap && t->heap[0].t <= limit && count) {
		struct run *r = t->heap[0].run;
		const size_t second =
			t->n_heap > 2 && heap_before(&t->heap[2], &t->heap[1]) ? 2 : 1;
		const bool alone = t->n_heap == 1;
		struct heap_entry next = {.run = r};
		int64_t burst = limit;

		/* Until the runner-up's time, not into it: on a tie the heap decides. */
		if (!alone && t->heap[second].t <= burst)
			burst = t->heap[second].t - (t->heap[second].t > INT64_MIN);
		do {
			count -= burst_merge(t, r, burst, count, promised);
		} while (r->first && count && run_first(r)->t.ns <= burst);
		if (!r->first) {
			t->n_heap--;
			if (!alone)
				heap_down(t, 0, t->heap[t->n_heap]);
			continue;
		}
		next.t = run_first(r)->t.ns;
		if (alone || !heap_before(&t->heap[second], &next)) {
			t->heap[0].t = next.t;
			continue;
		}
		heap_set(t, 0, t->heap[second]);
		heap_down(t, second, next);
	}
	portion_emit(t, promised);
}

static int64_t promise_oldest(const struct timeline *t)
{
	int64_t oldest = INT64_MAX;

	for (size_t i = 0; i < t->n_sources; i++) {
		if (t->sources[i].live && t->sources[i].promise < oldest)
			oldest = t->sources[i].promise;
	}
	return oldest;
}

/* Makes sure that the pool can give two chunks, if need be by releasing the oldest events. */
static void pool_refill(struct timeline *t)
{
	size_t want = t->n_chunks / 8 + 2;
	int64_t promised;

	if (t->n_free + (t->chunks_max - t->n_chunks) >= 2)
		return;
	promised = promise_oldest(t);
	/* In portions: how many events fill a chunk is not known. */
	while (t->n_heap && t->n_free < want)
		release(t, INT64_MAX, promised, CHUNK_EVENTS);
}

static struct chunk *chunk_get(struct timeline *t)
{
	struct chunk *c = t->free;

	if (c) {
		t->free = c->next;
		t->n_free--;
	} else if (t->n_chunks < t->chunks_max) {
		c = malloc(sizeof(*c));
		if (!c)
			return NULL;
		t->n_chunks++;
	} else {
		return NULL;
	}
	c->next = c->prev = NULL;
	if (t->n_chunks - t->n_free > t->used)
		t->used = t->n_chunks - t->n_free;
	return c;
}

/* After a burst its memory goes back: what is kept is what the last twenty seconds needed. */
static void pool_trim(struct timeline *t, int64_t now)
{
	size_t keep = (t->used > t->used_before ? t->used : t->used_before) + CHUNKS_MIN;

	if (now < t->trim_due)
		return;
	t->trim_due = now > INT64_MAX - trim_ns ? INT64_MAX : now + trim_ns;
	while (t->n_free && t->n_chunks > keep) {
		struct chunk *c = t->free;

		t->free = c->next;
		t->n_free--;
		t->n_chunks--;
		free(c);
	}
	t->used_before = t->used;
	t->used = t->n_chunks - t->n_free;
}

/* Appends what most events are: not the run's first, not older than the last output and the run's
 * last event, and in a chunk with room. Returns how many of the first events that was. */
static size_t run_append(struct timeline *t, struct run *r, const struct timeline_event *events,
			 size_t n)
{
	struct chunk *c = r->last;
	int64_t last = t->released;
	size_t fit = 0;

	if (!c || r->late)
		return 0;
	if (n > CHUNK_EVENTS - r->end)
		n = CHUNK_EVENTS - r->end;
	if (c->events[r->end - 1].t.ns > last)
		last = c->events[r->end - 1].t.ns;
	for (; fit < n && events[fit].t.ns >= last; fit++)
		last = events[fit].t.ns;
	memcpy(&c->events[r->end], events, fit * sizeof(*events));
	r->end += (uint32_t)fit;
	t->stats.waiting_events += fit;
	return fit;
}

/* Appends in order; one that comes too early is moved back towards the front, a few places. */
static int run_insert(struct timeline *t, struct run *r, struct timeline_event e)
{
	bool was_empty = !r->first;
	struct chunk *c = r->last;
	uint32_t i;

	if (!c || r->end == CHUNK_EVENTS) {
		c = chunk_get(t);
		if (!c)
			return -ENOMEM;
		c->prev = r->last;
		if (was_empty)
			r->first = c;
		else
			r->last->next = c;
		r->last = c;
		r->end = 0;
	}
	i = r->end++;
	c->events[i] = e;
	t->stats.waiting_events++;
	if (was_empty) {
		t->heap[t->n_heap] = (struct heap_entry){.t = e.t.ns, .run = r};
		heap_up(t, t->n_heap++);
		return 0;
	}
	for (int steps = 0;; steps++) {
		const uint32_t begin = c == r->first ? r->begin : 0;
		struct chunk *before = i > begin ? c : c->prev;
		uint32_t j = i > begin ? i - 1 : CHUNK_EVENTS - 1;
		int64_t t_before;

		if (!before || before->events[j].t.ns <= e.t.ns)
			break;
		t_before = before->events[j].t.ns;
		if (steps == TIMELINE_REORDER) {
			uint64_t err = (uint64_t)e.err_ns + (uint64_t)(t_before - e.t.ns);

			e.t.ns = t_before;
			e.err_ns = err > UINT32_MAX ? UINT32_MAX : (uint32_t)err;
			t->stats.clamped++;
			break;
		}
		c->events[i] = before->events[j];
		c = before;
		i = j;
	}
	c->events[i] = e;
	if (c == r->first && i == r->begin) {
		t->heap[r->heap_index].t = e.t.ns;
		heap_up(t, r->heap_index);
	}
	return 0;
}

/* Not older than what is out: as it is, moved by no more than its error, or not at all (false). */
static bool event_admit(struct timeline *t, struct timeline_event *e)
{
	uint64_t behind = (uint64_t)t->released - (uint64_t)e->t.ns;

	if (e->t.ns >= t->released)
		return true;
	if (behind > e->err_ns && !event_type_is(e->event.type, EVENT_LASTS))
		return false;
	e->t.ns = t->released;
	e->err_ns = behind > UINT32_MAX - e->err_ns ? UINT32_MAX : e->err_ns + (uint32_t)behind;
	t->stats.clamped++;
	return true;
}

int timeline_push(struct timeline *t, uint32_t source, uint16_t cpu,
		  const struct timeline_event *events, size_t n)
{
	struct source *s = source_find(t, source);
	struct run *r;
	int err;

	if (!s)
		return -ENOENT;
	if (cpu >= VS_CPUS_MAX)
		return -EINVAL;
	r = run_get(t, s, cpu);
	if (!r)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		struct timeline_event e;

		i += run_append(t, r, &events[i], n - i);
		if (i == n)
			break;
		e = events[i];
		pool_refill(t);
		if (!event_admit(t, &e)) {
			s->late++;
			r->late++;
			t->stats.late++;
			continue;
		}
		if (r->late) {
			struct timeline_event lost = {
				.t = {t->released},
				.err_ns = e.err_ns,
				.source = source,
				.event = {.time = e.event.time,
					  .seq = e.event.seq,
					  .cpu = cpu,
					  .type = VS_EVENT_LOST},
			};

			ev_set_lost_count(&lost.event, r->late);
			ev_set_lost_end(&lost.event, e.event.time);
			err = run_insert(t, r, lost);
			if (err)
				return err;
			t->stats.merged--; /* made here: not one of the caller's */
			r->late = 0;
		}
		err = run_insert(t, r, e);
		if (err)
			return err;
	}
	return 0;
}

void timeline_promise(struct timeline *t, uint32_t source, struct host_ns until)
{
	struct source *s = source_find(t, source);

	if (s && until.ns > s->promise)
		s->promise = until.ns;
}

void timeline_run(struct timeline *t, struct host_ns now)
{
	int64_t promised = promise_oldest(t);
	int64_t limit = promised;

	if (t->silence_limit_ns < INT64_MAX && now.ns > INT64_MIN + t->silence_limit_ns &&
	    now.ns - t->silence_limit_ns > limit)
		limit = now.ns - t->silence_limit_ns;
	if (limit == INT64_MAX)
		limit = now.ns; /* nobody to wait for: not beyond the present */
	release(t, limit, promised, SIZE_MAX);
	if (limit > t->released)
		t->released = limit;
	pool_trim(t, now.ns);
}

void timeline_finish(struct timeline *t)
{
	release(t, INT64_MAX, INT64_MAX, SIZE_MAX);
}

void timeline_stats_get(const struct timeline *t, struct timeline_stats *out)
{
	*out = t->stats;
	out->memory_bytes = t->n_chunks * sizeof(struct chunk);
	out->released_until.ns = t->released;
}

uint64_t timeline_late(const struct timeline *t, uint32_t source)
{
	const struct source *s = source_find(t, source);

	return s ? s->late : 0;
}
