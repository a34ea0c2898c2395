/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/analyze/scene/scene_rows.h"

#include <errno.h>
#include <stdlib.h>

#include "proto/array.h"

static uint64_t track_key(enum scene_row_kind kind, uint32_t vm, uint32_t number)
{
	return (uint64_t)kind << 60 | (uint64_t)vm << 32 | number;
}

/* Returns the history of a row. Finds a row that was asked for recently without the index. */
static struct track *track_get(struct scene_rows *r, uint64_t key)
{
	uint32_t *known = &r->known[lru_place(key, SCENE_KNOWN_BITS)];
	bool fresh;

	if (lru_used(&r->index, *known) && lru_key(&r->index, *known) == key)
		return &r->tracks[*known];
	*known = lru_put(&r->index, key, &fresh);
	if (fresh)
		track_fini(&r->tracks[*known]);
	return &r->tracks[*known];
}

static void track_put(struct scene_rows *r, uint64_t key, const struct track_piece *piece)
{
	if (track_add(track_get(r, key), piece))
		r->error = -ENOMEM;
}

static struct track_piece vcpu_piece(const struct vcpu_span *span)
{
	return (struct track_piece){.begin = span->begin,
				    .ns = span->end.ns - span->begin.ns,
				    .pid = span->holder_pid,
				    .number = span->wait_class,
				    .where = span->pcpu,
				    .state = (uint8_t)span->state};
}

static void vcpu_take(void *context, const struct vcpu_span *span)
{
	struct scene_rows *r = context;
	const struct track_piece piece = vcpu_piece(span);

	track_put(r, track_key(SCENE_ROW_VCPU, span->vm, span->vcpu), &piece);
}

static struct track_piece guest_piece(const struct guest_span *span)
{
	return (struct track_piece){.begin = span->begin,
				    .ns = span->end.ns - span->begin.ns,
				    .pid = span->pid,
				    .number = span->number,
				    .where = span->vector,
				    .state = (uint8_t)span->state};
}

static void guest_take(void *context, const struct guest_span *span)
{
	struct scene_rows *r = context;
	const struct track_piece piece = guest_piece(span);

	track_put(r, track_key(SCENE_ROW_GUEST, span->vm, span->cpu), &piece);
}

static struct track_piece pcpu_piece(const struct scene_rows *r, uint16_t cpu, struct host_ns until)
{
	const struct pcpu_now *now = &r->pcpus[cpu];
	struct track_piece piece = {
		.begin = now->since, .ns = until.ns - now->since.ns, .pid = now->pid};
	uint32_t vm, vcpu;

	piece.state = !now->known                                             ? SCENE_PCPU_UNSEEN
		      : !now->pid                                             ? SCENE_PCPU_IDLE
		      : !model_vcpu_of_thread(r->model, now->pid, &vm, &vcpu) ? SCENE_PCPU_VCPU
									      : SCENE_PCPU_TASK;
	return piece;
}

/* A pCPU's switches are captured only while a vCPU runs or waits there. */
static void pcpu_switch(struct scene_rows *r, const struct host_instant *i)
{
	struct pcpu_now *now = &r->pcpus[i->event.cpu];
	struct track_piece piece;

	now->known &= now->pid == i->event.pid;
	piece = pcpu_piece(r, i->event.cpu, i->t);
	if (now->since.ns)
		track_put(r, track_key(SCENE_ROW_PCPU, 0, i->event.cpu), &piece);
	*now = (struct pcpu_now){.known = true, .pid = i->event.pid2, .since = i->t};
}

static void host_take(void *context, const struct host_instant *i)
{
	struct scene_rows *r = context;

	if (i->event.type == VS_EVENT_SCHED_SWITCH)
		pcpu_switch(r, i);
	else if (i->event.type == VS_EVENT_LOST)
		r->pcpus[i->event.cpu].known = false;
}

bool scene_rows_has_pcpu(const struct scene_rows *r, uint32_t pcpu)
{
	return r->pcpus[pcpu].since.ns;
}

int scene_rows_init(struct scene_rows *r, struct model *m)
{
	const struct model_observer observer = {
		.vcpu_span = vcpu_take,
		.guest_span = guest_take,
		.host_instant = host_take,
		.host_types = EVENT_SET(VS_EVENT_SCHED_SWITCH, VS_EVENT_LOST),
		.context = r,
	};
	int err;

	r->model = m;
	r->tracks = calloc(SCENE_TRACKS_MAX, sizeof(*r->tracks));
	if (!r->tracks || lru_init(&r->index, SCENE_TRACKS_MAX))
		return -ENOMEM;
	/* without a worker thread the observer runs on this one */
	model_observe_on_worker(m, true);
	err = model_observe(m, &observer);
	model_observe_on_worker(m, false);
	return err;
}

void scene_rows_fini(struct scene_rows *r)
{
	for (uint32_t slot = 0; slot < lru_slots(&r->index); slot++)
		track_fini(&r->tracks[slot]);
	lru_fini(&r->index);
	free(r->tracks);
}

/* ---- one row of a scene ---- */

struct row_filling {
	struct scene_row *row;
	size_t capacity;
	bool *pcpus; /* sets the flag of each pCPU that the row used */
	int error;
};

static void piece_keep(void *context, const struct track_piece *piece)
{
	struct row_filling *f = context;

	if (ARRAY_RESERVE(&f->row->pieces, f->row->n, &f->capacity, 64)) {
		f->error = -ENOMEM;
		return;
	}
	f->row->pieces[f->row->n++] = *piece;
	if (f->row->kind == SCENE_ROW_VCPU && piece->where < VS_CPUS_MAX)
		f->pcpus[piece->where] = true;
}

/* Sets *piece to the current state of the row, which is not in its history yet. Returns false if
 * the state is unknown. */
static bool piece_open(const struct scene_rows *r, const struct scene *scene,
		       const struct scene_row *row, struct track_piece *piece)
{
	struct vcpu_span vcpu;
	struct guest_span guest;

	if (row->kind == SCENE_ROW_PCPU) {
		*piece = pcpu_piece(r, (uint16_t)row->number, model_now(r->model));
		return r->pcpus[row->number].known;
	}
	if (row->kind == SCENE_ROW_VCPU) {
		if (model_vcpu_current(r->model, scene->vm, row->number, &vcpu))
			return false;
		*piece = vcpu_piece(&vcpu);
		return true;
	}
	if (model_guest_current(r->model, scene->vm, (uint16_t)row->number, &guest))
		return false;
	*piece = guest_piece(&guest);
	return true;
}

static void piece_open_keep(const struct scene_rows *r, const struct scene *scene,
			    struct row_filling *f)
{
	const struct scene_row *row = f->row;
	int64_t begin_ns = row->n ? row->pieces[row->n - 1].begin.ns + row->pieces[row->n - 1].ns
				  : scene->begin.ns;
	struct track_piece piece;
	int64_t end_ns;

	if (!piece_open(r, scene, row, &piece))
		return;
	end_ns = piece.begin.ns + piece.ns;
	if (end_ns > scene->end.ns)
		end_ns = scene->end.ns;
	if (piece.begin.ns < begin_ns)
		piece.begin.ns = begin_ns;
	piece.ns = end_ns - piece.begin.ns;
	if (piece.ns > 0)
		piece_keep(f, &piece);
}

void scene_rows_gather(struct scene_rows *r, struct scene *scene, enum scene_row_kind kind,
		       uint32_t number, bool *pcpus)
{
	struct scene_row *row = &scene->rows[scene->n_rows++];
	uint32_t vm = kind == SCENE_ROW_PCPU ? 0 : scene->vm;
	uint32_t slot = lru_find(&r->index, track_key(kind, vm, number));
	struct row_filling f = {.row = row, .pcpus = pcpus};
	const struct track *track;
	int64_t grain_ns;

	*row = (struct scene_row){.kind = kind, .number = number};
	if (slot != LRU_NONE) {
		track = &r->tracks[slot];
		track_each(track, scene->begin, scene->end, piece_keep, &f);
		grain_ns = track_grain_ns(track, scene->begin);
		if (grain_ns > scene->grain_ns)
			scene->grain_ns = grain_ns;
		scene->cut |= track->forgot && row->n && row->pieces[0].begin.ns > scene->begin.ns;
	}
	piece_open_keep(r, scene, &f);
	if (f.error)
		r->error = f.error;
}
