/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/analyze/scene/scene_lanes.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host-collector/analyze/stall/shown_events.h"
#include "proto/array.h"

/* Number of marks at which a lane of a scene is folded. Each column has a mark of each doubt. */
enum { FOLD_AT = 2 * LANE_DOUBTS * LANE_FOLDED };

static bool key_equal(const struct lane_key *a, const struct lane_key *b)
{
	return a->kind == b->kind && a->number == b->number && a->of_vm == b->of_vm &&
	       a->vm == b->vm && a->of_vcpu == b->of_vcpu && a->vcpu == b->vcpu;
}

/* Returns NULL without memory, or if there are too many. */
static struct lane *lane_get(struct lanes *l, const struct lane_key *key, const char *name)
{
	struct lane *lane;

	if (l->at < l->n && key_equal(&l->all[l->at].key, key))
		return &l->all[l->at];
	for (l->at = 0; l->at < l->n; l->at++) {
		if (key_equal(&l->all[l->at].key, key))
			return &l->all[l->at];
	}
	if (l->n == LANES_MAX) {
		l->left_out++;
		return NULL;
	}
	lane = &l->all[l->n];
	lane->ring = calloc(LANE_KEPT, sizeof(*lane->ring));
	if (!lane->ring) {
		l->error = -ENOMEM;
		return NULL;
	}
	lane->key = *key;
	snprintf(lane->name, sizeof(lane->name), "%s", name);
	l->n++;
	return lane;
}

void lanes_add(struct lanes *l, const struct lane_key *key, const char *name,
	       const struct lane_mark *mark)
{
	struct lane *lane = lane_get(l, key, name);

	if (!lane)
		return;
	lane->ring[lane->n++ % LANE_KEPT] = *mark;
	l->take(l->context, lane, mark);
}

static void on_hit(void *context, const struct user_hit *hit)
{
	struct lanes *l = context;
	struct lane_key key = {.kind = LANE_EVENT};
	const struct lane_mark mark = {.begin = {hit->t_ns}, .n = 1};
	char name[LANE_NAME_BYTES];

	/* USER_LIMITED counts hits that became no event. */
	if (!hit->event || hit->head.type != VS_EVENT_USER)
		return;
	key.number = (uint64_t)hit->source << 32 | hit->event->id;
	key.of_vcpu = !shown_hit_vcpu(l->model, hit, &key.vm, &key.vcpu);
	key.of_vm = key.of_vcpu || hit->source != VS_SOURCE_HOST ||
		    !model_vm_of_thread(l->model, hit->head.pid, &key.vm);
	if (hit->source != VS_SOURCE_HOST)
		key.vm = hit->source;
	snprintf(name, sizeof(name), "%s:%s:%s", hit->source == VS_SOURCE_HOST ? "host" : "guest",
		 hit->event->system, hit->event->name);
	lanes_add(l, &key, name, &mark);
}

void lanes_event(struct lanes *l, uint32_t source, const struct vs_event *e, struct host_ns t,
		 uint32_t err_ns)
{
	if (!l->hits && e->type != VS_EVENT_USER)
		return;
	if (!l->hits)
		l->hits = user_hits_new(model_user_events(l->model), on_hit, l);
	if (l->hits)
		user_hits_take(l->hits, source, e, t.ns, err_ns);
	else
		l->error = -ENOMEM;
}

void lanes_finish(struct lanes *l)
{
	if (l->hits)
		user_hits_flush(l->hits);
}

void lanes_fini(struct lanes *l)
{
	user_hits_free(l->hits);
	for (size_t i = 0; i < l->n; i++)
		free(l->all[i].ring);
}

/* ---- the lanes of a scene ---- */

static int by_begin(const void *a, const void *b)
{
	const struct lane_mark *x = a, *y = b;

	return (x->begin.ns > y->begin.ns) - (x->begin.ns < y->begin.ns);
}

static int by_column(const void *a, const void *b)
{
	const struct lane_mark *x = a, *y = b;

	if (x->doubt != y->doubt)
		return x->doubt < y->doubt ? -1 : 1;
	if (x->column != y->column)
		return x->column < y->column ? -1 : 1;
	return by_begin(a, b);
}

static void mark_fold(struct lane_mark *into, const struct lane_mark *mark)
{
	into->n += mark->n;
	into->sum_ns += mark->sum_ns;
	if (mark->ns <= into->ns)
		return;
	into->begin = mark->begin;
	into->ns = mark->ns;
}

/* Folds the marks to at most `columns` of each doubt. */
static void lane_fold(struct scene_lane *lane, const struct scene *scene, uint32_t columns)
{
	const double length = (double)(scene->end.ns - scene->begin.ns) + 1;
	size_t kept = 0;

	for (size_t i = 0; i < lane->n; i++) {
		const double at = (double)(lane->marks[i].begin.ns - scene->begin.ns) / length;

		lane->marks[i].column = at > 0 ? (uint32_t)(at * columns) : 0;
	}
	qsort(lane->marks, lane->n, sizeof(*lane->marks), by_column);
	for (size_t i = 1; i < lane->n; i++) {
		struct lane_mark *last = &lane->marks[kept], *mark = &lane->marks[i];

		if (last->column == mark->column && last->doubt == mark->doubt)
			mark_fold(last, mark);
		else
			lane->marks[++kept] = *mark;
	}
	lane->n = lane->n ? kept + 1 : 0;
}

static struct scene_lane *scene_lane_get(struct scene *scene, const struct lane *lane)
{
	struct scene_lane *x;

	for (size_t i = 0; i < scene->n_lanes; i++) {
		if (key_equal(&scene->lanes[i].key, &lane->key))
			return &scene->lanes[i];
	}
	if (scene->n_lanes == SCENE_LANES_MAX)
		return NULL;
	x = &scene->lanes[scene->n_lanes++];
	*x = (struct scene_lane){.key = lane->key};
	memcpy(x->name, lane->name, sizeof(x->name));
	return x;
}

static bool is_in(const struct scene *scene, const struct lane *lane, const struct lane_mark *mark)
{
	return (!lane->key.of_vm || lane->key.vm == scene->vm) && mark->begin.ns <= scene->end.ns &&
	       mark->begin.ns + mark->ns >= scene->begin.ns;
}

int scene_lanes_add(struct scene *scene, const struct lane *lane, const struct lane_mark *mark)
{
	struct scene_lane *x;

	if (!is_in(scene, lane, mark))
		return 0;
	x = scene_lane_get(scene, lane);
	if (!x) {
		scene->marks_left_out++;
		return 0;
	}
	if (x->n == FOLD_AT)
		lane_fold(x, scene, LANE_FOLDED);
	if (ARRAY_RESERVE(&x->marks, x->n, &x->capacity, 16))
		return -ENOMEM;
	x->marks[x->n++] = *mark;
	return 0;
}

int scene_lanes_gather(const struct lanes *l, struct scene *scene)
{
	int err = 0;

	for (size_t i = 0; i < l->n && !err; i++) {
		const struct lane *lane = &l->all[i];
		const uint64_t oldest = lane->n > LANE_KEPT ? lane->n - LANE_KEPT : 0;
		struct scene_lane *x;

		for (uint64_t k = oldest; k < lane->n && !err; k++)
			err = scene_lanes_add(scene, lane, &lane->ring[k % LANE_KEPT]);
		if (!oldest || !is_in(scene, lane, &lane->ring[oldest % LANE_KEPT]))
			continue;
		x = scene_lane_get(scene, lane);
		if (x)
			x->cut = true;
	}
	return err;
}

static void doubtful_remove(struct scene_lane *lane, uint8_t accepted)
{
	size_t kept = 0;

	for (size_t i = 0; i < lane->n; i++) {
		if (lane->marks[i].doubt > accepted)
			continue;
		lane->marks[kept] = lane->marks[i];
		lane->marks[kept++].doubt = 0;
	}
	lane->n = kept;
}

void scene_lanes_finish(struct scene *scene, const uint8_t *accepted, size_t marks_max)
{
	for (size_t i = 0; i < scene->n_lanes; i++) {
		struct scene_lane *lane = &scene->lanes[i];

		if (lane->key.kind == LANE_PAIR)
			doubtful_remove(lane, accepted[lane->key.number % SCENE_PAIRS_MAX]);
		if (lane->n > marks_max)
			lane_fold(lane, scene, (uint32_t)marks_max);
		if (lane->n)
			qsort(lane->marks, lane->n, sizeof(*lane->marks), by_begin);
	}
}

void scene_lanes_fini(struct scene *scene)
{
	for (size_t i = 0; i < scene->n_lanes; i++)
		free(scene->lanes[i].marks);
}
