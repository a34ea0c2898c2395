/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/analyze/flame/flame_tree.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "host-collector/util/significance.h"
#include "proto/text.h"

struct name {
	char *text;
	uint64_t hash;
};

/* The weight of a node up to the end of each slice, without its children's. */
struct weights {
	double ns[2][FLAME_TREE_SLICES];
};

struct flame_tree {
	bool reversed;
	struct flame_node *nodes;
	struct weights *weights; /* by node */
	uint32_t n, capacity;
	uint32_t *index; /* the node's number + 1, by parent and name; 0: empty; linear probing */
	size_t index_size;
	struct name *names;
	size_t n_names, names_size; /* a hash table */
};

/* ---- names ---- */

static int names_grow(struct flame_tree *t)
{
	size_t size = t->names_size ? 2 * t->names_size : 1024;
	struct name *names;

	if (2 * (t->n_names + 1) <= t->names_size)
		return 0;
	names = calloc(size, sizeof(*names));
	if (!names)
		return -ENOMEM;
	for (size_t i = 0; i < t->names_size; i++) {
		size_t at = t->names[i].hash % size;

		if (!t->names[i].text)
			continue;
		while (names[at].text)
			at = (at + 1) % size;
		names[at] = t->names[i];
	}
	free(t->names);
	t->names = names;
	t->names_size = size;
	return 0;
}

/* Returns the tree's own copy of `text`; equal texts have the same copy. NULL: -ENOMEM. */
static const char *name_intern(struct flame_tree *t, const char *text)
{
	uint64_t hash = text_hash(text);
	size_t at;

	if (names_grow(t))
		return NULL;
	for (at = hash % t->names_size; t->names[at].text; at = (at + 1) % t->names_size) {
		if (t->names[at].hash == hash && !strcmp(t->names[at].text, text))
			return t->names[at].text;
	}
	t->names[at] = (struct name){.text = strdup(text), .hash = hash};
	t->n_names += t->names[at].text != NULL;
	return t->names[at].text;
}

/* ---- nodes ---- */

static size_t node_slot(const struct flame_tree *t, uint32_t parent, const char *name,
			const struct folded_frame *f)
{
	uint64_t hash = ((uint64_t)(uintptr_t)name ^ (uint64_t)parent << 40 ^
			 (uint64_t)f->kind << 36 ^ (uint64_t)f->waker << 35) *
			0x9e3779b97f4a7c15;

	return (size_t)(hash >> 16) & (t->index_size - 1);
}

static bool node_is(const struct flame_node *n, uint32_t parent, const char *name,
		    const struct folded_frame *f)
{
	return n->parent == parent && n->name == name && n->kind == f->kind && n->waker == f->waker;
}

static int index_grow(struct flame_tree *t)
{
	size_t size = t->index_size ? 2 * t->index_size : 4096;
	uint32_t *old = t->index;

	if (2 * ((size_t)t->n + 1) <= t->index_size)
		return 0;
	t->index = calloc(size, sizeof(*t->index));
	if (!t->index) {
		t->index = old;
		return -ENOMEM;
	}
	t->index_size = size;
	for (uint32_t i = 1; i < t->n; i++) {
		const struct flame_node *n = &t->nodes[i];
		const struct folded_frame f = {n->name, n->kind, n->waker};
		size_t at = node_slot(t, n->parent, n->name, &f);

		while (t->index[at])
			at = (at + 1) & (size - 1);
		t->index[at] = i + 1;
	}
	free(old);
	return 0;
}

static int nodes_grow(struct flame_tree *t)
{
	uint32_t capacity = t->capacity ? 2 * t->capacity : 1024;
	struct flame_node *nodes;
	struct weights *weights;

	if (t->n < t->capacity)
		return 0;
	nodes = reallocarray(t->nodes, capacity, sizeof(*nodes));
	if (nodes)
		t->nodes = nodes;
	weights = reallocarray(t->weights, capacity, sizeof(*weights));
	if (weights)
		t->weights = weights;
	if (!nodes || !weights)
		return -ENOMEM;
	t->capacity = capacity;
	return 0;
}

static void node_init(struct flame_tree *t, uint32_t parent, const char *name,
		      const struct folded_frame *f)
{
	struct flame_node *n = &t->nodes[t->n];

	*n = (struct flame_node){.name = name,
				 .kind = f->kind,
				 .waker = f->waker,
				 .parent = parent,
				 .child = FLAME_NONE,
				 .next = FLAME_NONE,
				 .p = 1};
	memset(&t->weights[t->n], 0, sizeof(*t->weights));
	t->n++;
}

/* Returns the child of `parent` for this frame, `parent` itself if there is no room, or FLAME_NONE
 * on -ENOMEM. */
static uint32_t node_get(struct flame_tree *t, uint32_t parent, const struct folded_frame *f)
{
	const char *name = name_intern(t, f->name);
	size_t at;

	if (!name || index_grow(t) || nodes_grow(t))
		return FLAME_NONE;
	for (at = node_slot(t, parent, name, f); t->index[at];
	     at = (at + 1) & (t->index_size - 1)) {
		if (node_is(&t->nodes[t->index[at] - 1], parent, name, f))
			return t->index[at] - 1;
	}
	if (t->n == FLAME_TREE_NODES_MAX)
		return parent;
	node_init(t, parent, name, f);
	t->nodes[t->n - 1].next = t->nodes[parent].child;
	t->nodes[parent].child = t->n - 1;
	t->index[at] = t->n;
	return t->n - 1;
}

static int stack_add(struct flame_tree *t, enum flame_side side, size_t slice,
		     const struct folded_stack *s)
{
	uint32_t node = 0;

	for (size_t i = 0; i < s->n_frames; i++) {
		uint32_t child =
			node_get(t, node, s->frames[t->reversed ? s->n_frames - 1 - i : i]);

		if (child == FLAME_NONE)
			return -ENOMEM;
		if (child == node) /* beyond FLAME_TREE_NODES_MAX the parent gets the weight */
			break;
		node = child;
	}
	t->weights[node].ns[side][slice] += (double)s->weight_ns;
	return 0;
}

struct flame_tree *flame_tree_new(bool reversed)
{
	struct flame_tree *t = calloc(1, sizeof(*t));
	const struct folded_frame root = {"", FOLDED_TASK, false};

	if (!t)
		return NULL;
	t->reversed = reversed;
	if (nodes_grow(t)) {
		flame_tree_free(t);
		return NULL;
	}
	node_init(t, FLAME_NONE, "", &root);
	return t;
}

void flame_tree_free(struct flame_tree *t)
{
	if (!t)
		return;
	for (size_t i = 0; i < t->names_size; i++)
		free(t->names[i].text);
	free(t->names);
	free(t->index);
	free(t->nodes);
	free(t->weights);
	free(t);
}

int flame_tree_add(struct flame_tree *t, enum flame_side side, size_t slice, struct folded *f)
{
	const struct folded_stack *s;
	int err = 0;

	for (size_t i = 0; !err && (s = folded_at(f, i)); i++)
		err = stack_add(t, side, slice, s);
	return err;
}

/* ---- the finished tree ---- */

static int by_name(const void *a, const void *b, void *context)
{
	const struct flame_tree *t = context;
	const struct flame_node *x = &t->nodes[*(const uint32_t *)a];
	const struct flame_node *y = &t->nodes[*(const uint32_t *)b];
	int order = strcmp(x->name, y->name);

	if (order)
		return order;
	return x->kind != y->kind ? (int)x->kind - (int)y->kind : (int)x->waker - (int)y->waker;
}

static void children_sort(struct flame_tree *t, uint32_t node, uint32_t *scratch)
{
	size_t n = 0;

	for (uint32_t c = t->nodes[node].child; c != FLAME_NONE; c = t->nodes[c].next)
		scratch[n++] = c;
	if (!n)
		return;
	qsort_r(scratch, n, sizeof(*scratch), by_name, t);
	t->nodes[node].child = scratch[0];
	for (size_t i = 0; i < n; i++)
		t->nodes[scratch[i]].next = i + 1 < n ? scratch[i + 1] : FLAME_NONE;
}

/* Turns each node's weights up to the end of each slice into its weights in the slice, including
 * its children. In the array, children come after their parents. */
static void weights_sum(struct flame_tree *t, const size_t slices[2])
{
	for (uint32_t i = t->n; i-- > 0;) {
		struct weights *w = &t->weights[i];
		struct flame_node *n = &t->nodes[i];

		for (int side = 0; side < 2; side++) {
			size_t last = slices[side] ? slices[side] - 1 : 0;

			n->self_ns[side] = w->ns[side][last];
		}
	}
	for (uint32_t i = t->n; i-- > 1;) {
		struct weights *w = &t->weights[i], *up = &t->weights[t->nodes[i].parent];

		for (int side = 0; side < 2; side++) {
			for (size_t s = 0; s < FLAME_TREE_SLICES; s++)
				up->ns[side][s] += w->ns[side][s];
		}
	}
	for (uint32_t i = 0; i < t->n; i++) {
		for (int side = 0; side < 2; side++) {
			double *ns = t->weights[i].ns[side];

			t->nodes[i].ns[side] = slices[side] ? ns[slices[side] - 1] : 0;
			for (size_t s = slices[side]; s-- > 1;)
				ns[s] -= ns[s - 1];
			for (size_t s = 0; s < slices[side]; s++)
				t->nodes[i].slices[side] += ns[s] > 0;
		}
	}
}

/* Sets the factors that make the two sides comparable. */
static void scales_of(const struct flame_tree *t, const struct flame_tree_options *o,
		      double scale[2])
{
	const double *total = t->nodes[0].ns, *seconds = o->seconds;

	scale[FLAME_BEFORE] = scale[FLAME_AFTER] = 1;
	if (o->normalise && total[FLAME_BEFORE] > 0 && total[FLAME_AFTER] > 0)
		scale[FLAME_BEFORE] = total[FLAME_AFTER] / total[FLAME_BEFORE];
	else if (!o->normalise && seconds[FLAME_BEFORE] > 0 && seconds[FLAME_AFTER] > 0)
		scale[FLAME_BEFORE] = seconds[FLAME_AFTER] / seconds[FLAME_BEFORE];
}

static double test_over_time(const struct flame_tree *t, uint32_t node,
			     const struct flame_tree_options *o, const double scale[2])
{
	struct significance_sample samples[2];

	for (int side = 0; side < 2; side++) {
		double values[FLAME_TREE_SLICES];
		size_t n = o->slices[side];

		/* Each value is scaled to the whole time, as if the slice were all of it. */
		for (size_t s = 0; s < n; s++) {
			double all = t->weights[0].ns[side][s];
			double own = t->weights[node].ns[side][s];

			values[s] = o->normalise ? (all > 0 ? own / all : 0)
						 : own * (double)n * scale[side];
		}
		samples[side] = significance_sample_of(values, n);
	}
	return significance_means(&samples[0], &samples[1]);
}

static double test_of_counts(const struct flame_tree *t, uint32_t node)
{
	const double *own = t->weights[node].ns[0], *all = t->weights[0].ns[0];
	const double *own_after = t->weights[node].ns[1], *all_after = t->weights[0].ns[1];

	/* The unit of folded text, a microsecond or a sample, has the weight 1000 here. */
	return significance_shares(own[0] / 1000, all[0] / 1000, own_after[0] / 1000,
				   all_after[0] / 1000);
}

struct tested {
	uint32_t node;
	double p;
};

static int by_p(const void *a, const void *b)
{
	const struct tested *x = a, *y = b;

	return (x->p > y->p) - (x->p < y->p);
}

/* Holm: the smallest p must be below alpha / n, the next below alpha / (n - 1), ... */
static int nodes_judge(struct flame_tree *t, const struct flame_tree_options *o,
		       const double scale[2])
{
	struct tested *all = calloc(t->n, sizeof(*all));
	double least = FLAME_TREE_LEAST * fmax(t->nodes[0].ns[0], t->nodes[0].ns[1]);
	bool over_time = o->slices[0] > 1 && o->slices[1] > 1;
	size_t n = 0;

	if (!all)
		return -ENOMEM;
	for (uint32_t i = 1; i < t->n; i++) {
		struct flame_node *node = &t->nodes[i];

		if (fmax(node->ns[0], node->ns[1]) < least)
			continue;
		node->p = over_time ? test_over_time(t, i, o, scale) : test_of_counts(t, i);
		all[n++] = (struct tested){i, node->p};
	}
	qsort(all, n, sizeof(*all), by_p);
	for (size_t i = 0; i < n && all[i].p <= FLAME_TREE_ALPHA / (double)(n - i); i++) {
		struct flame_node *node = &t->nodes[all[i].node];

		node->significant = fabs(node->ns[1] - node->ns[0]) >= least;
	}
	free(all);
	return 0;
}

static void widths_sum(struct flame_tree *t)
{
	for (uint32_t i = 0; i < t->n; i++)
		t->nodes[i].width_ns = fmax(t->nodes[i].self_ns[0], t->nodes[i].self_ns[1]);
	for (uint32_t i = t->n; i-- > 1;)
		t->nodes[t->nodes[i].parent].width_ns += t->nodes[i].width_ns;
}

int flame_tree_finish(struct flame_tree *t, const struct flame_tree_options *o)
{
	uint32_t *scratch = calloc(t->n, sizeof(*scratch));
	double scale[2];
	int err = 0;

	if (!scratch)
		return -ENOMEM;
	for (uint32_t i = 0; i < t->n; i++)
		children_sort(t, i, scratch);
	free(scratch);
	weights_sum(t, o->slices);
	scales_of(t, o, scale);
	for (uint32_t i = 0; i < t->n; i++) {
		for (int side = 0; side < 2; side++) {
			t->nodes[i].ns[side] *= scale[side];
			t->nodes[i].self_ns[side] *= scale[side];
		}
	}
	widths_sum(t);
	if (o->compare)
		err = nodes_judge(t, o, scale);
	return err;
}

const struct flame_node *flame_tree_at(const struct flame_tree *t, uint32_t node)
{
	return &t->nodes[node];
}
