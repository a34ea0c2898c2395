/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/analyze/scene/strip.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "host-collector/analyze/scene/track.h"
#include "host-collector/util/lru.h"

enum { ROWS_MAX = 512, PENDING_MAX = 64, KNOWN_BITS = 11 };
/* A vCPU's span may arrive this much later than it ended. */
#define SETTLED_NS (MODEL_HOLD_NS + 100000000ll)

/* The history of a vCPU or guest CPU, and the newest spans that are not in the history yet. */
struct row {
	struct track track;
	/* the newest piece, which equal pieces make longer; ns 0: none */
	struct track_piece last;
	int64_t state_ns[TRACK_STATES]; /* times by state of the short spans after it */
	struct track_piece longest;     /* the longest short span; ns 0: there are none */
	struct host_ns begin, end;      /* begin and end of all short spans together */
};

struct strips {
	struct model *model;
	unsigned n_cells;
	int64_t grain_ns;
	struct lru index;
	struct row *rows;                /* by slot of `index` */
	uint32_t known[1 << KNOWN_BITS]; /* slots of `index`, by a hash of the key */
	size_t n, n_pending;
	struct strip *all[STRIPS_MAX];
	/* strips whose spans may still arrive, in the order of their ends */
	struct strip *pending[PENDING_MAX];
	struct host_ns due; /* when the first pending strip is complete */
	int error;
};

enum row_kind { ROW_VCPU, ROW_GUEST };

static uint64_t row_key(enum row_kind kind, uint32_t vm, uint32_t number)
{
	return (uint64_t)kind << 63 | (uint64_t)vm << 32 | number;
}

/* ---- histories ---- */

static void last_flush(struct strips *s, struct row *r)
{
	if (r->last.ns && track_add(&r->track, &r->last))
		s->error = -ENOMEM;
	r->last.ns = 0;
}

static bool looks_like(const struct track_piece *a, const struct track_piece *b)
{
	return !a->merged && !b->merged && a->state == b->state && a->pid == b->pid &&
	       a->number == b->number;
}

/* Joins neighbours that look the same in a strip into one piece, which saves most of the cost. */
static void piece_add(struct strips *s, struct row *r, const struct track_piece *piece)
{
	struct track_piece *last = &r->last;

	if (last->ns && looks_like(last, piece) && last->begin.ns + last->ns == piece->begin.ns) {
		last->ns += piece->ns;
		return;
	}
	last_flush(s, r);
	*last = *piece;
}

/* Adds the sum of the short spans to the history, with the share of each state. */
static void short_spans_flush(struct strips *s, struct row *r)
{
	struct track_piece piece = r->longest;

	if (!piece.ns)
		return;
	piece.begin = r->begin;
	piece.ns = r->end.ns - r->begin.ns;
	for (int i = 0; i < TRACK_STATES; i++)
		piece.share[i] = (uint8_t)(r->state_ns[i] * 255 / piece.ns);
	piece.merged = piece.share[piece.state] < 255;
	piece_add(s, r, &piece);
	memset(r->state_ns, 0, sizeof(r->state_ns));
	r->longest.ns = 0;
}

/* Short spans between two long ones that look the same, such as ticks, would not be visible. Joins
 * the long ones into one piece and drops the short ones. Returns false if this is no such case. */
static bool swallows(const struct strips *s, struct row *r, const struct track_piece *piece)
{
	if (piece->ns < s->grain_ns || !r->longest.ns || !r->last.ns ||
	    !looks_like(&r->last, piece) || r->last.begin.ns + r->last.ns != r->begin.ns ||
	    piece->begin.ns != r->end.ns || r->end.ns - r->begin.ns >= s->grain_ns)
		return false;
	r->last.ns = piece->begin.ns + piece->ns - r->last.begin.ns;
	memset(r->state_ns, 0, sizeof(r->state_ns));
	r->longest.ns = 0;
	return true;
}

__attribute__((noinline)) static struct row *row_search(struct strips *s, uint64_t key,
							uint32_t *known)
{
	bool fresh;

	*known = lru_put(&s->index, key, &fresh);
	if (fresh) {
		track_fini(&s->rows[*known].track);
		s->rows[*known] = (struct row){0};
	}
	return &s->rows[*known];
}

/* Returns a row that was asked for recently, else NULL. */
static inline struct row *row_recent(const struct strips *s, uint64_t key)
{
	const uint32_t known = s->known[lru_place(key, KNOWN_BITS)];

	return lru_used(&s->index, known) && lru_key(&s->index, known) == key ? &s->rows[known]
									      : NULL;
}

static struct row *row_get(struct strips *s, uint64_t key)
{
	struct row *r = row_recent(s, key);

	return r ? r : row_search(s, key, &s->known[lru_place(key, KNOWN_BITS)]);
}

/* Most spans are short ones that follow a short one and are not the longest of them: only their
 * time counts. Returns false for any other. */
static inline bool short_span_add(const struct strips *s, struct row *r, struct host_ns begin,
				  int64_t ns, uint8_t state)
{
	if (ns <= 0 || ns > r->longest.ns || ns >= s->grain_ns || begin.ns != r->end.ns ||
	    r->end.ns - r->begin.ns >= s->grain_ns)
		return false;
	r->end.ns = begin.ns + ns;
	r->state_ns[state] += ns;
	return true;
}

static void piece_take(struct strips *s, struct row *r, const struct track_piece *piece)
{
	if (piece->ns <= 0)
		return;
	if (swallows(s, r, piece))
		return;
	if (r->longest.ns && (piece->ns >= s->grain_ns || piece->begin.ns != r->end.ns ||
			      r->end.ns - r->begin.ns >= s->grain_ns))
		short_spans_flush(s, r);
	if (piece->ns >= s->grain_ns) {
		piece_add(s, r, piece);
		return;
	}
	if (!r->longest.ns)
		r->begin = piece->begin;
	r->end.ns = piece->begin.ns + piece->ns;
	r->state_ns[piece->state] += piece->ns;
	if (piece->ns > r->longest.ns)
		r->longest = *piece;
}

static struct track_piece vcpu_piece(const struct vcpu_span *span)
{
	return (struct track_piece){.begin = span->begin,
				    .ns = span->end.ns - span->begin.ns,
				    .state = (uint8_t)span->state};
}

static struct track_piece guest_piece(const struct guest_span *span)
{
	bool interrupt = span->state == GUEST_CPU_HARDIRQ || span->state == GUEST_CPU_SOFTIRQ;

	return (struct track_piece){.begin = span->begin,
				    .ns = span->end.ns - span->begin.ns,
				    .pid = span->pid,
				    .number = interrupt ? span->number : 0,
				    .where = interrupt && span->vector,
				    .state = (uint8_t)span->state};
}

/* ---- one strip ---- */

/* What a row did in each cell, and for how long. If there are more than CANDIDATES different things
 * in a cell, the shortest are dropped. */
enum { CANDIDATES = 6 };

struct candidate {
	struct track_piece piece; /* ns: its time in this cell; 0: unused */
};

struct cells {
	const struct strip *strip;
	struct candidate candidates[STRIP_CELLS_MAX][CANDIDATES];
};

static void cell_add(struct candidate *candidates, const struct track_piece *piece, int64_t ns)
{
	struct candidate *least = candidates;

	for (int i = 0; i < CANDIDATES; i++) {
		struct candidate *c = &candidates[i];

		if (c->piece.ns && looks_like(&c->piece, piece)) {
			c->piece.ns += ns;
			return;
		}
		if (c->piece.ns < least->piece.ns)
			least = c;
	}
	if (ns > least->piece.ns) {
		least->piece = *piece;
		least->piece.ns = ns;
	}
}

/* Returns what took most of the cell, or NULL if nothing is known. */
static const struct track_piece *cell_most(const struct cells *c, unsigned cell)
{
	const struct candidate *most = c->candidates[cell];

	for (int i = 1; i < CANDIDATES; i++) {
		if (c->candidates[cell][i].piece.ns > most->piece.ns)
			most = &c->candidates[cell][i];
	}
	return most->piece.ns ? &most->piece : NULL;
}

/* Adds the share of each state of a piece. Only the longest state's number is known. */
static void cell_add_shares(struct candidate *candidates, const struct track_piece *piece,
			    int64_t ns)
{
	struct track_piece part = *piece;

	part.merged = false;
	for (uint8_t i = 0; i < TRACK_STATES; i++) {
		part.state = i;
		part.number = i == piece->state ? piece->number : 0;
		if (piece->share[i])
			cell_add(candidates, &part, ns * piece->share[i] / 255);
	}
}

static void cells_add(void *context, const struct track_piece *piece)
{
	struct cells *c = context;
	const struct strip *s = c->strip;
	const int64_t length = s->end.ns - s->begin.ns;
	int64_t from = piece->begin.ns - s->begin.ns, until = from + piece->ns;

	for (unsigned i = (unsigned)((__int128)from * s->n_cells / length); i < s->n_cells; i++) {
		int64_t begin = (int64_t)((__int128)length * i / s->n_cells);
		int64_t end = (int64_t)((__int128)length * (i + 1) / s->n_cells);
		int64_t ns = (until < end ? until : end) - (from > begin ? from : begin);

		if (begin >= until)
			break;
		if (piece->merged)
			cell_add_shares(c->candidates[i], piece, ns);
		else
			cell_add(c->candidates[i], piece, ns);
	}
}

/* Adds the span that the row is in now, which is not in its history yet. */
static void open_span_add(const struct strips *s, struct cells *c, enum row_kind kind,
			  uint32_t number)
{
	const struct strip *strip = c->strip;
	struct track_piece piece = {0};
	struct vcpu_span vcpu;
	struct guest_span guest;
	int64_t end;

	if (kind == ROW_VCPU && !model_vcpu_current(s->model, strip->vm, number, &vcpu))
		piece = vcpu_piece(&vcpu);
	else if (kind == ROW_GUEST &&
		 !model_guest_current(s->model, strip->vm, (uint16_t)number, &guest))
		piece = guest_piece(&guest);
	end = piece.begin.ns + piece.ns;
	if (end > strip->end.ns)
		end = strip->end.ns;
	if (piece.begin.ns < strip->begin.ns)
		piece.begin = strip->begin;
	piece.ns = end - piece.begin.ns;
	if (piece.ns > 0)
		cells_add(c, &piece);
}

static void cells_read(struct strips *s, struct cells *c, enum row_kind kind, uint32_t number)
{
	uint32_t slot = lru_find(&s->index, row_key(kind, c->strip->vm, number));

	memset(c->candidates, 0, sizeof(c->candidates));
	if (slot != LRU_NONE) {
		short_spans_flush(s, &s->rows[slot]);
		last_flush(s, &s->rows[slot]);
		track_each(&s->rows[slot].track, c->strip->begin, c->strip->end, cells_add, c);
	}
	open_span_add(s, c, kind, number);
}

static bool same_run(const struct strip_run *run, const struct track_piece *piece)
{
	return run->state == piece->state && run->pid == piece->pid &&
	       (run->state == GUEST_CPU_TASK || run->number == piece->number);
}

static void runs_fill(struct strips *s, struct strip *strip, const struct cells *c)
{
	struct strip_run *runs = calloc(strip->n_cells, sizeof(*runs));

	if (!runs) {
		s->error = -ENOMEM;
		return;
	}
	strip->runs = runs;
	for (uint16_t i = 0; i < strip->n_cells; i++) {
		const struct track_piece unknown = {.state = GUEST_CPU_UNKNOWN};
		const struct track_piece *most = cell_most(c, i);
		const struct track_piece piece = most ? *most : unknown;

		if (!strip->n_runs || !same_run(&runs[strip->n_runs - 1], &piece)) {
			struct strip_run *run = &runs[strip->n_runs++];

			*run = (struct strip_run){.first = i,
						  .state = (enum guest_cpu_state)piece.state,
						  .number = piece.number,
						  .vector = piece.where,
						  .pid = piece.pid};
			strncpy(run->comm, model_task_name(s->model, strip->vm, piece.pid),
				sizeof(run->comm) - 1);
		}
		runs[strip->n_runs - 1].n++;
	}
}

static void strip_fill(struct strips *s, struct strip *strip)
{
	struct cells *c = calloc(1, sizeof(*c));
	uint16_t cpu;

	if (!c) {
		s->error = -ENOMEM;
		return;
	}
	c->strip = strip;
	cells_read(s, c, ROW_VCPU, strip->vcpu);
	for (unsigned i = 0; i < strip->n_cells; i++) {
		const struct track_piece *most = cell_most(c, i);

		strip->vcpu_states[i] = most ? most->state : VCPU_UNKNOWN;
	}
	if (!model_guest_cpu_of_vcpu(s->model, strip->vm, strip->vcpu, &cpu)) {
		cells_read(s, c, ROW_GUEST, cpu);
		runs_fill(s, strip, c);
	}
	free(c);
}

/* ---- which incidents ---- */

static void strip_free(struct strip *strip)
{
	if (strip)
		free(strip->runs);
	free(strip);
}

static int64_t strip_ns(const struct strip *strip)
{
	return strip->end.ns - strip->begin.ns;
}

static void strip_keep(struct strips *s, struct strip *strip)
{
	size_t shortest = 0;

	if (s->n < STRIPS_MAX) {
		s->all[s->n++] = strip;
		return;
	}
	for (size_t i = 1; i < s->n; i++) {
		if (strip_ns(s->all[i]) < strip_ns(s->all[shortest]))
			shortest = i;
	}
	if (strip_ns(strip) > strip_ns(s->all[shortest])) {
		struct strip *least = s->all[shortest];

		s->all[shortest] = strip;
		strip = least;
	}
	strip_free(strip);
}

/* Fills the strips whose spans have all arrived. */
static void pending_check(struct strips *s, struct host_ns now)
{
	size_t kept = 0;

	s->due.ns = INT64_MAX;
	for (size_t i = 0; i < s->n_pending; i++) {
		struct strip *strip = s->pending[i];
		int64_t due = strip->end.ns + SETTLED_NS;

		if (now.ns < due) {
			s->pending[kept++] = strip;
			if (due < s->due.ns)
				s->due.ns = due;
			continue;
		}
		strip_fill(s, strip);
		strip_keep(s, strip);
	}
	s->n_pending = kept;
}

void strips_incident(struct strips *s, const struct incident *i)
{
	struct strip *strip;

	if (i->end.ns <= i->begin.ns)
		return;
	strip = calloc(1, sizeof(*strip));
	if (!strip) {
		s->error = -ENOMEM;
		return;
	}
	strip->vm = i->vm;
	strip->vcpu = i->vcpu;
	strip->begin = i->begin;
	strip->end = i->end;
	strip->n_cells = (uint16_t)s->n_cells;
	if (s->n_pending == PENDING_MAX)
		pending_check(s, (struct host_ns){INT64_MAX});
	s->pending[s->n_pending++] = strip;
	if (i->end.ns + SETTLED_NS < s->due.ns)
		s->due.ns = i->end.ns + SETTLED_NS;
}

/* ---- the model's spans ---- */

/* The spans that short_span_add() does not take. Not inlined: the others would pay for the stack
 * frame. */
__attribute__((noinline)) static void vcpu_span_take(struct strips *s, const struct vcpu_span *span)
{
	const struct track_piece piece = vcpu_piece(span);

	piece_take(s, row_get(s, row_key(ROW_VCPU, span->vm, span->vcpu)), &piece);
}

__attribute__((noinline)) static void guest_span_take(struct strips *s,
						      const struct guest_span *span)
{
	const struct track_piece piece = guest_piece(span);

	piece_take(s, row_get(s, row_key(ROW_GUEST, span->vm, span->cpu)), &piece);
}

static void vcpu_take(void *context, const struct vcpu_span *span)
{
	struct strips *s = context;
	struct row *r = row_recent(s, row_key(ROW_VCPU, span->vm, span->vcpu));

	if (!r ||
	    !short_span_add(s, r, span->begin, span->end.ns - span->begin.ns, (uint8_t)span->state))
		vcpu_span_take(s, span);
	if (span->end.ns >= s->due.ns)
		pending_check(s, span->end);
}

static void guest_take(void *context, const struct guest_span *span)
{
	struct strips *s = context;
	struct row *r = row_recent(s, row_key(ROW_GUEST, span->vm, span->cpu));

	if (!r ||
	    !short_span_add(s, r, span->begin, span->end.ns - span->begin.ns, (uint8_t)span->state))
		guest_span_take(s, span);
}

struct strips *strips_new(struct model *m, unsigned n_cells, int64_t grain_ns)
{
	struct strips *s = calloc(1, sizeof(*s));
	struct model_observer observer = {
		.vcpu_span = vcpu_take, .guest_span = guest_take, .context = s};

	if (!s)
		return NULL;
	s->model = m;
	s->n_cells = n_cells < STRIP_CELLS_MAX ? n_cells : STRIP_CELLS_MAX;
	s->grain_ns = grain_ns;
	s->due.ns = INT64_MAX;
	s->rows = calloc(ROWS_MAX, sizeof(*s->rows));
	if (!s->rows || lru_init(&s->index, ROWS_MAX) || model_observe(m, &observer)) {
		strips_free(s);
		return NULL;
	}
	return s;
}

void strips_free(struct strips *s)
{
	if (!s)
		return;
	for (size_t i = 0; i < s->n; i++)
		strip_free(s->all[i]);
	for (size_t i = 0; i < s->n_pending; i++)
		strip_free(s->pending[i]);
	for (size_t i = 0; s->rows && i < ROWS_MAX; i++)
		track_fini(&s->rows[i].track);
	lru_fini(&s->index);
	free(s->rows);
	free(s);
}

int strips_finish(struct strips *s)
{
	pending_check(s, (struct host_ns){INT64_MAX});
	return s->error;
}

int strips_live(struct strips *s, const struct incident *incidents, size_t n, unsigned n_cells)
{
	s->error = 0;
	s->n_cells = n_cells < STRIP_CELLS_MAX ? n_cells : STRIP_CELLS_MAX;
	while (s->n)
		strip_free(s->all[--s->n]);
	for (size_t i = 0; i < n; i++)
		strips_incident(s, &incidents[i]);
	return strips_finish(s);
}

const struct strip *strips_find(const struct strips *s, const struct incident *i)
{
	for (size_t k = 0; k < s->n; k++) {
		const struct strip *strip = s->all[k];

		if (strip->vm == i->vm && strip->vcpu == i->vcpu &&
		    strip->begin.ns == i->begin.ns && strip->end.ns == i->end.ns)
			return strip;
	}
	return NULL;
}
