/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/analyze/scene/scene.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "host-collector/analyze/scene/scene_arrows.h"
#include "host-collector/analyze/scene/scene_lanes.h"
#include "host-collector/analyze/scene/scene_rows.h"
#include "host-collector/analyze/stall/shown_events.h"

/* The model passes on a span at most MODEL_HOLD_NS after its end, and a chain about a second after.
 */
enum { PENDING_MAX = 64, NAMES_MAX = 4096 };
#define ARROWS_DELAY_NS 1500000000ll
#define MARGIN_MIN_NS   5000000ll
#define RETRY_NS        20000000ll

/* A scene and the state of its gathering. */
struct gathering {
	struct scene scene;
	bool healthy;
	uint32_t vcpu;      /* the vCPU of its incident */
	int64_t ns;         /* the incident's length */
	bool rows_gathered; /* its rows are complete; arrows may still be missing */
};

struct scenes {
	struct model *model;
	struct event_set types; /* of instants that arrows and lanes take */
	struct scene_rows rows;
	struct arrows arrows;
	struct lanes lanes;
	uint8_t accepted[SCENE_PAIRS_MAX]; /* scenes_pair_accept() */
	size_t n;
	struct gathering *all[SCENES_MAX];
	size_t n_pending;
	struct gathering *pending[PENDING_MAX]; /* in the order in which they were found */
	struct host_ns due;                     /* when the first of them is tried */
	int error;
};

#define X(NAME, name, ...) [SCENE_ROW_##NAME] = name,
static const char *const row_names[] = {SCENE_ROW_KINDS(X)};
#undef X

const char *scene_row_name(enum scene_row_kind k)
{
	return row_names[k];
}

/* ---- gathering a scene ---- */

static void gathering_free(struct gathering *g)
{
	if (!g)
		return;
	for (size_t i = 0; i < g->scene.n_rows; i++)
		free(g->scene.rows[i].pieces);
	scene_lanes_fini(&g->scene);
	free(g->scene.names);
	free(g);
}

/* Chooses the vCPUs of the scene, the incident's first. Returns their number. */
static size_t vcpus_choose(const struct scenes *s, const struct gathering *g, uint32_t *chosen,
			   size_t *left_out)
{
	uint32_t all[VS_CPUS_MAX];
	size_t n = model_vcpus(s->model, g->scene.vm, all, VS_CPUS_MAX), kept = 0;

	chosen[kept++] = g->vcpu;
	if (n > VS_CPUS_MAX)
		n = VS_CPUS_MAX;
	for (size_t i = 0; i < n; i++) {
		if (all[i] == g->vcpu)
			continue;
		if (kept < SCENE_VCPUS_MAX)
			chosen[kept++] = all[i];
		else
			++*left_out;
	}
	return kept;
}

static void name_add(struct scenes *s, struct scene *scene, bool host, int32_t pid)
{
	struct scene_name *names;

	for (size_t i = 0; i < scene->n_names; i++) {
		if (scene->names[i].pid == pid && scene->names[i].host == host)
			return;
	}
	if (!pid || scene->n_names == NAMES_MAX)
		return;
	if (!(scene->n_names & (scene->n_names - 1))) {
		names = reallocarray(scene->names, scene->n_names ? 2 * scene->n_names : 1,
				     sizeof(*names));
		if (!names) {
			s->error = -ENOMEM;
			return;
		}
		scene->names = names;
	}
	names = &scene->names[scene->n_names++];
	*names = (struct scene_name){.host = host, .pid = pid};
	strncpy(names->comm, model_task_name(s->model, host ? VS_SOURCE_HOST : scene->vm, pid),
		sizeof(names->comm) - 1);
}

static void rows_gather(struct scenes *s, struct gathering *g)
{
	struct scene *scene = &g->scene;
	bool pcpus[VS_CPUS_MAX] = {false};
	uint32_t vcpus[SCENE_VCPUS_MAX];
	size_t n = vcpus_choose(s, g, vcpus, &scene->rows_left_out), n_pcpus = 0;
	uint16_t cpu;

	model_worker_await(s->model);
	for (size_t i = 0; i < n; i++) {
		scene_rows_gather(&s->rows, scene, SCENE_ROW_VCPU, vcpus[i], pcpus);
		if (!model_guest_cpu_of_vcpu(s->model, scene->vm, vcpus[i], &cpu))
			scene_rows_gather(&s->rows, scene, SCENE_ROW_GUEST, cpu, pcpus);
	}
	for (uint32_t p = 0; p < VS_CPUS_MAX; p++) {
		if (!pcpus[p] || !scene_rows_has_pcpu(&s->rows, p))
			continue;
		if (n_pcpus++ < SCENE_PCPUS_MAX)
			scene_rows_gather(&s->rows, scene, SCENE_ROW_PCPU, p, pcpus);
		else
			scene->rows_left_out++;
	}
	g->rows_gathered = true;
}

static int row_of(const struct scene *scene, const struct arrow_end *end)
{
	for (size_t i = 0; i < scene->n_rows; i++) {
		if (scene->rows[i].kind == end->kind && scene->rows[i].number == end->number)
			return (int)i;
	}
	return -1;
}

/* If there are too many arrows, the longest are kept, because the incident's own arrow is long.
 * Returns the place of a new arrow, or NULL if all others are longer. */
static struct scene_arrow *arrow_place(struct scene *scene, int64_t ns)
{
	struct scene_arrow *shortest = &scene->arrows[0];

	if (scene->n_arrows < SCENE_ARROWS_MAX)
		return &scene->arrows[scene->n_arrows++];
	scene->arrows_left_out++;
	for (size_t i = 1; i < scene->n_arrows; i++) {
		struct scene_arrow *a = &scene->arrows[i];

		if (a->to.ns - a->from.ns < shortest->to.ns - shortest->from.ns)
			shortest = a;
	}
	return shortest->to.ns - shortest->from.ns < ns ? shortest : NULL;
}

static void arrows_gather(struct scenes *s, struct gathering *g)
{
	struct scene *scene = &g->scene;
	const struct arrow *a;

	for (uint64_t i = 0; (a = arrows_at(&s->arrows, i)); i++) {
		struct scene_arrow *place;
		int from, to;

		if (a->vm != scene->vm || a->from.t.ns > scene->end.ns ||
		    a->to.t.ns < scene->begin.ns)
			continue;
		from = row_of(scene, &a->from);
		to = row_of(scene, &a->to);
		place = from < 0 || to < 0 ? NULL : arrow_place(scene, a->to.t.ns - a->from.t.ns);
		if (place)
			*place = (struct scene_arrow){.kind = a->kind,
						      .from = a->from.t,
						      .to = a->to.t,
						      .from_row = (size_t)from,
						      .to_row = (size_t)to,
						      .pid = a->pid,
						      .number = a->number};
	}
}

/* ---- which incidents ---- */

static bool is_better(const struct gathering *a, const struct gathering *b)
{
	return a->healthy != b->healthy ? b->healthy : a->ns > b->ns;
}

/* Takes ownership of `g`. If there is no room, frees the least important scene, which may be `g`.
 */
static void scene_keep(struct scenes *s, struct gathering *g)
{
	size_t worst = 0;

	if (s->n < SCENES_MAX) {
		s->all[s->n++] = g;
		return;
	}
	for (size_t i = 1; i < s->n; i++) {
		if (is_better(s->all[worst], s->all[i]))
			worst = i;
	}
	if (!is_better(g, s->all[worst])) {
		gathering_free(g);
		return;
	}
	gathering_free(s->all[worst]);
	s->all[worst] = g;
}

/* Returns true if the model has passed on everything that the rows of this scene show. Spans
 * that a stack may still explain are held back. */
static bool rows_are_reported(const struct scenes *s, const struct gathering *g)
{
	uint32_t vcpus[SCENE_VCPUS_MAX];
	size_t left_out = 0, n = vcpus_choose(s, g, vcpus, &left_out);
	struct vcpu_span open;
	struct host_ns until;

	for (size_t i = 0; i < n; i++) {
		if (model_vcpu_delivered(s->model, g->scene.vm, vcpus[i], &until) ||
		    model_vcpu_current(s->model, g->scene.vm, vcpus[i], &open))
			continue;
		if (until.ns < g->scene.end.ns && until.ns < open.begin.ns)
			return false;
	}
	return true;
}

/* Gathers what has arrived. Returns the time of the next try, or INT64_MAX after the scene is
 * complete and kept. */
static int64_t pending_try(struct scenes *s, struct gathering *g, struct host_ns now)
{
	int64_t rows_due = g->scene.end.ns + MODEL_HOLD_NS;
	int64_t arrows_due = g->scene.end.ns + ARROWS_DELAY_NS;

	if (now.ns >= arrows_due) {
		if (!g->rows_gathered)
			rows_gather(s, g);
		arrows_gather(s, g);
		scene_keep(s, g);
		return INT64_MAX;
	}
	if (now.ns < rows_due)
		return rows_due;
	if (!g->rows_gathered && !rows_are_reported(s, g))
		return now.ns + RETRY_NS;
	if (!g->rows_gathered)
		rows_gather(s, g);
	return arrows_due;
}

static void pending_update(struct scenes *s, struct host_ns now)
{
	size_t kept = 0;

	s->due.ns = INT64_MAX;
	for (size_t i = 0; i < s->n_pending; i++) {
		struct gathering *g = s->pending[i];
		int64_t due = pending_try(s, g, now);

		if (due == INT64_MAX)
			continue;
		s->pending[kept++] = g;
		if (due < s->due.ns)
			s->due.ns = due;
	}
	s->n_pending = kept;
}

static bool shows(const struct scene *scene, const struct incident *i)
{
	const struct arrow_end vcpu = {.kind = SCENE_ROW_VCPU, .number = i->vcpu};

	return scene->vm == i->vm && scene->begin.ns <= i->begin.ns && scene->end.ns >= i->end.ns &&
	       row_of(scene, &vcpu) >= 0;
}

/* Returns true if a scene that is not complete yet will show this incident. */
static bool is_covered(const struct scenes *s, const struct incident *i)
{
	uint32_t all[VS_CPUS_MAX];

	for (size_t k = 0; k < s->n_pending; k++) {
		const struct gathering *g = s->pending[k];

		if (g->healthy <= i->healthy && g->scene.vm == i->vm &&
		    g->scene.begin.ns <= i->begin.ns && g->scene.end.ns >= i->end.ns &&
		    model_vcpus(s->model, i->vm, all, VS_CPUS_MAX) <= SCENE_VCPUS_MAX)
			return true;
	}
	return false;
}

void scenes_incident(struct scenes *s, const struct incident *i)
{
	int64_t ns = i->end.ns - i->begin.ns;
	int64_t margin = ns / 8 > MARGIN_MIN_NS ? ns / 8 : MARGIN_MIN_NS;
	struct gathering *g;

	if (is_covered(s, i))
		return;
	if (s->n_pending == PENDING_MAX)
		pending_update(s, (struct host_ns){INT64_MAX});
	g = calloc(1, sizeof(*g));
	if (!g) {
		s->error = -ENOMEM;
		return;
	}
	g->scene.vm = i->vm;
	g->scene.begin.ns = i->begin.ns - margin;
	g->scene.end.ns = i->end.ns + margin;
	if (g->scene.begin.ns < model_begin(s->model).ns)
		g->scene.begin = model_begin(s->model);
	g->vcpu = i->vcpu;
	g->ns = ns;
	g->healthy = i->healthy;
	if (scene_lanes_gather(&s->lanes, &g->scene))
		s->error = -ENOMEM;
	s->pending[s->n_pending++] = g;
	pending_update(s, model_now(s->model));
}

/* Passes a mark to the scenes whose incident was found before it. */
static void mark_take(void *context, const struct lane *lane, const struct lane_mark *mark)
{
	struct scenes *s = context;

	for (size_t i = 0; i < s->n; i++) {
		if (scene_lanes_add(&s->all[i]->scene, lane, mark))
			s->error = -ENOMEM;
	}
	for (size_t i = 0; i < s->n_pending; i++) {
		if (scene_lanes_add(&s->pending[i]->scene, lane, mark))
			s->error = -ENOMEM;
	}
}

void scenes_pair(struct scenes *s, const struct lane_key *key, const char *name,
		 const struct lane_mark *mark)
{
	lanes_add(&s->lanes, key, name, mark);
}

void scenes_pair_accept(struct scenes *s, unsigned number, uint8_t doubt)
{
	s->accepted[number] = doubt;
}

void scenes_chain(struct scenes *s, const struct chain *c)
{
	arrows_chain(&s->arrows, c, s->model);
}

/* ---- events ---- */

/* Of arrows, and of shown_hits_have(). */
static struct event_set instant_types(void)
{
	return EVENT_SET(VS_EVENT_SCHED_SWITCH, VS_EVENT_SCHED_WAKEUP, VS_EVENT_SCHED_WAKEUP_NEW,
			 VS_EVENT_USER, VS_EVENT_USER_MORE, VS_EVENT_USER_LIMITED, VS_EVENT_LOST);
}

/* These two are not inlined: most events are of other types, and would pay for their registers. */
__attribute__((noinline)) static void guest_event(struct scenes *s, const struct guest_instant *i)
{
	arrows_guest(&s->arrows, i);
	if (shown_hits_have(i->event.type))
		lanes_event(&s->lanes, i->vm, &i->event, i->t, i->err_ns);
	if (i->t.ns >= s->due.ns)
		pending_update(s, i->t);
}

__attribute__((noinline)) static void host_event(struct scenes *s, const struct host_instant *i)
{
	arrows_host(&s->arrows, i);
	if (shown_hits_have(i->event.type))
		lanes_event(&s->lanes, VS_SOURCE_HOST, &i->event, i->t, i->err_ns);
	if (i->t.ns >= s->due.ns)
		pending_update(s, i->t);
}

static void guest_instant_take(void *context, const struct guest_instant *i)
{
	struct scenes *s = context;

	if (event_set_has(&s->types, i->event.type) || i->t.ns >= s->due.ns)
		guest_event(s, i);
}

static void host_instant_take(void *context, const struct host_instant *i)
{
	struct scenes *s = context;

	if (event_set_has(&s->types, i->event.type) || i->t.ns >= s->due.ns)
		host_event(s, i);
}

struct scenes *scenes_new(struct model *m)
{
	struct scenes *s = calloc(1, sizeof(*s));
	const struct event_set types = instant_types();
	struct model_observer observer = {.guest_instant = guest_instant_take,
					  .host_instant = host_instant_take,
					  .context = s,
					  .host_types = types,
					  .guest_types = types};

	if (!s)
		return NULL;
	s->model = m;
	s->types = types;
	s->due.ns = INT64_MAX;
	s->lanes.model = m;
	s->lanes.take = mark_take;
	s->lanes.context = s;
	if (scene_rows_init(&s->rows, m) || arrows_init(&s->arrows) ||
	    model_observe(m, &observer)) {
		scenes_free(s);
		return NULL;
	}
	return s;
}

void scenes_free(struct scenes *s)
{
	if (!s)
		return;
	for (size_t i = 0; i < s->n; i++)
		gathering_free(s->all[i]);
	for (size_t i = 0; i < s->n_pending; i++)
		gathering_free(s->pending[i]);
	arrows_fini(&s->arrows);
	lanes_fini(&s->lanes);
	scene_rows_fini(&s->rows);
	free(s);
}

/* ---- the result ---- */

static size_t scene_pieces(const struct scene *scene)
{
	size_t n = 0;

	for (size_t i = 0; i < scene->n_rows; i++)
		n += scene->rows[i].n;
	return n;
}

static void scene_thin(struct scene *scene, size_t pieces_max)
{
	int64_t grain_ns = (scene->end.ns - scene->begin.ns) >> 16;
	size_t before = scene_pieces(scene);

	for (; scene_pieces(scene) > pieces_max && grain_ns < scene->end.ns - scene->begin.ns;
	     grain_ns = 2 * grain_ns + 1) {
		for (size_t i = 0; i < scene->n_rows; i++)
			scene->rows[i].n =
				track_thin(scene->rows[i].pieces, scene->rows[i].n, grain_ns);
		if (scene_pieces(scene) < before && grain_ns > scene->grain_ns)
			scene->grain_ns = grain_ns;
	}
}

static void scene_names(struct scenes *s, struct scene *scene)
{
	for (size_t i = 0; i < scene->n_rows; i++) {
		const struct scene_row *row = &scene->rows[i];

		for (size_t k = 0; k < row->n; k++)
			name_add(s, scene, row->kind != SCENE_ROW_GUEST, row->pieces[k].pid);
	}
	for (size_t i = 0; i < scene->n_arrows; i++)
		name_add(s, scene, scene->arrows[i].kind != SCENE_ARROW_WAKEUP,
			 scene->arrows[i].pid);
}

static int by_begin(const void *a, const void *b)
{
	const struct gathering *x = *(struct gathering *const *)a;
	const struct gathering *y = *(struct gathering *const *)b;

	return (x->scene.begin.ns > y->scene.begin.ns) - (x->scene.begin.ns < y->scene.begin.ns);
}

static int by_pieces(const void *a, const void *b)
{
	size_t x = scene_pieces(&(*(struct gathering *const *)a)->scene);
	size_t y = scene_pieces(&(*(struct gathering *const *)b)->scene);

	return (x > y) - (x < y);
}

/* Thins out the large scenes. What small scenes do not need of their share is given to larger ones.
 */
static void scenes_thin(struct scenes *s, size_t pieces_max)
{
	if (s->n)
		qsort(s->all, s->n, sizeof(struct gathering *), by_pieces);
	for (size_t i = 0; i < s->n; i++) {
		struct scene *scene = &s->all[i]->scene;
		size_t used;

		scene_thin(scene, pieces_max / (s->n - i));
		used = scene_pieces(scene);
		pieces_max -= used < pieces_max ? used : pieces_max;
	}
	if (s->n)
		qsort(s->all, s->n, sizeof(struct gathering *), by_begin);
}

static void lanes_thin(struct scenes *s)
{
	size_t n = 0, share;

	for (size_t i = 0; i < s->n; i++)
		n += s->all[i]->scene.n_lanes;
	share = n ? SCENE_MARKS_ALL / n : 0;
	if (share < SCENE_LANE_MARKS_MIN)
		share = SCENE_LANE_MARKS_MIN;
	for (size_t i = 0; i < s->n; i++)
		scene_lanes_finish(&s->all[i]->scene, s->accepted, share);
}

int scenes_finish(struct scenes *s, size_t pieces_max)
{
	lanes_finish(&s->lanes);
	pending_update(s, (struct host_ns){INT64_MAX});
	scenes_thin(s, pieces_max);
	lanes_thin(s);
	for (size_t i = 0; i < s->n; i++) {
		struct scene *scene = &s->all[i]->scene;

		if (scene->end.ns > model_now(s->model).ns)
			scene->end = model_now(s->model);
		scene_names(s, scene);
	}
	return s->error ? s->error : s->lanes.error ? s->lanes.error : s->rows.error;
}

const struct scene *scenes_at(const struct scenes *s, size_t index)
{
	return index < s->n ? &s->all[index]->scene : NULL;
}

int scenes_find(const struct scenes *s, const struct incident *i)
{
	for (size_t k = 0; k < s->n; k++) {
		if (shows(&s->all[k]->scene, i))
			return (int)k;
	}
	return -1;
}
