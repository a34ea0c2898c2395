/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/analyze/scene/latency_map.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "host-collector/util/lru.h"

enum { WAITS_MAX = 4096 };

/* An ongoing wait of a vCPU for a pCPU. */
struct wait {
	int64_t ns;   /* so far; 0: it does not wait */
	bool unknown; /* the state before it was unknown, so its begin was not seen */
};

struct latency_maps {
	struct model *model;
	size_t n_vms;
	struct latency_map *vms[LATENCY_VMS_MAX][LATENCY_KIND_COUNT];
	bool left_out;
	struct lru index; /* vCPUs */
	struct wait *waits;
	size_t n_open; /* number of waits that are open or unknown */
	int error;
};

#define X(NAME, name, meaning) [LATENCY_##NAME] = {name, meaning},
static const char *const names[][2] = {LATENCY_KINDS(X)};
#undef X

const char *latency_kind_name(enum latency_kind k)
{
	return names[k][0];
}

const char *latency_kind_meaning(enum latency_kind k)
{
	return names[k][1];
}

/* Two rows for each power of two: 64 ns and more begin row 2. */
int64_t latency_row_ns(unsigned row)
{
	unsigned octave = row / 2 + 5;

	return row < 1 ? 0 : row % 2 ? 3ll << (octave - 1) : 1ll << octave;
}

static unsigned row_of(int64_t ns)
{
	unsigned octave, row;

	if (ns < latency_row_ns(1))
		return 0;
	octave = 63u - (unsigned)__builtin_clzll((unsigned long long)ns);
	row = 2 * (octave - 5) + (unsigned)(ns >> (octave - 1) & 1);
	return row < LATENCY_ROWS ? row : LATENCY_ROWS - 1;
}

static void columns_halve(struct latency_map *m)
{
	for (unsigned c = 0; c < LATENCY_COLUMNS; c++) {
		for (unsigned r = 0; r < LATENCY_ROWS; r++) {
			uint32_t count = m->counts[c][r];

			m->counts[c][r] = 0;
			m->counts[c / 2][r] += count;
		}
	}
	m->column_ns *= 2;
	m->columns = (m->columns + 1) / 2;
}

void latency_map_init(struct latency_map *m, struct host_ns begin)
{
	memset(m, 0, sizeof(*m));
	m->begin = begin;
	m->column_ns = LATENCY_COLUMN_MIN_NS;
}

void latency_map_fini(struct latency_map *m)
{
	histogram_fini(&m->lengths);
}

int latency_map_add(struct latency_map *m, struct host_ns t, int64_t ns)
{
	const int64_t since = t.ns > m->begin.ns ? t.ns - m->begin.ns : 0;
	unsigned column;

	while (since >= LATENCY_COLUMNS * m->column_ns)
		columns_halve(m);
	column = (unsigned)(since >> __builtin_ctzll((unsigned long long)m->column_ns));
	if (column >= m->columns)
		m->columns = column + 1;
	m->counts[column][row_of(ns)]++;
	return histogram_add(&m->lengths, (uint64_t)(ns > 0 ? ns : 0));
}

int latency_map_merge(struct latency_map *into, struct latency_map *from)
{
	while (into->column_ns < from->column_ns)
		columns_halve(into);
	while (from->column_ns < into->column_ns)
		columns_halve(from);
	for (unsigned c = 0; c < LATENCY_COLUMNS; c++) {
		for (unsigned r = 0; r < LATENCY_ROWS; r++)
			into->counts[c][r] += from->counts[c][r];
	}
	if (into->columns < from->columns)
		into->columns = from->columns;
	return histogram_merge(&into->lengths, &from->lengths);
}

/* Not inlined: a VM that is known would pay for its registers. */
__attribute__((noinline)) static struct latency_map *map_new(struct latency_maps *l, uint32_t vm,
							     enum latency_kind kind)
{
	const size_t i = l->n_vms;

	if (i == LATENCY_VMS_MAX) {
		l->left_out = true;
		return NULL;
	}
	for (int k = 0; k < LATENCY_KIND_COUNT; k++) {
		struct latency_map *m = l->vms[i][k] ? l->vms[i][k] : calloc(1, sizeof(*m));

		l->vms[i][k] = m;
		if (!m) {
			l->error = -ENOMEM;
			return NULL;
		}
		latency_map_init(m, model_begin(l->model));
		m->vm = vm;
		m->kind = (enum latency_kind)k;
	}
	l->n_vms++;
	return l->vms[i][kind];
}

static struct latency_map *map_get(struct latency_maps *l, uint32_t vm, enum latency_kind kind)
{
	for (size_t i = 0; i < l->n_vms; i++) {
		if (l->vms[i][0]->vm == vm)
			return l->vms[i][kind];
	}
	return map_new(l, vm, kind);
}

static void latency_add(struct latency_maps *l, uint32_t vm, enum latency_kind kind,
			struct host_ns t, int64_t ns)
{
	struct latency_map *m = map_get(l, vm, kind);

	if (m && latency_map_add(m, t, ns))
		l->error = -ENOMEM;
}

static bool is_open(const struct wait *w)
{
	return w->ns || w->unknown;
}

/* Not inlined: most spans neither are a wait nor end one, and would pay for its registers. */
__attribute__((noinline)) static void wait_take(struct latency_maps *l,
						const struct vcpu_span *span, bool runs)
{
	bool fresh;
	struct wait *w;

	w = &l->waits[lru_put(&l->index, (uint64_t)span->vm << 32 | span->vcpu, &fresh)];
	l->n_open -= is_open(w);
	if (fresh)
		*w = (struct wait){.ns = 0};
	if (span->state == VCPU_RUNNABLE || span->state == VCPU_THROTTLED) {
		w->ns += span->end.ns - span->begin.ns;
	} else {
		if (w->ns && !w->unknown && runs)
			latency_add(l, span->vm, LATENCY_PCPU_WAIT, span->begin, w->ns);
		*w = (struct wait){.unknown = span->state == VCPU_UNKNOWN};
	}
	l->n_open += is_open(w);
}

static void vcpu_take(void *context, const struct vcpu_span *span)
{
	struct latency_maps *l = context;
	bool runs = span->state == VCPU_GUEST || span->state == VCPU_KVM || span->state == VCPU_VMM;

	if (!runs || l->n_open)
		wait_take(l, span, runs);
}

static void interrupt_take(void *context, const struct guest_interrupt *i)
{
	if (i->whole)
		latency_add(context, i->vm, LATENCY_HANDLER, i->begin, i->end.ns - i->begin.ns);
}

void latency_maps_chain(struct latency_maps *l, const struct chain *c)
{
	int64_t ns;

	if (chain_stage_ns(c, CHAIN_STAGE_LATENCY, &ns))
		latency_add(l, c->vm, LATENCY_INTERRUPT, c->begin, ns);
}

struct latency_maps *latency_maps_new(struct model *m)
{
	struct latency_maps *l = calloc(1, sizeof(*l));
	struct model_observer observer = {
		.vcpu_span = vcpu_take, .guest_interrupt = interrupt_take, .context = l};

	if (!l)
		return NULL;
	l->model = m;
	l->waits = calloc(WAITS_MAX, sizeof(*l->waits));
	if (!l->waits || lru_init(&l->index, WAITS_MAX) || model_observe(m, &observer)) {
		latency_maps_free(l);
		return NULL;
	}
	return l;
}

void latency_maps_free(struct latency_maps *l)
{
	if (!l)
		return;
	for (size_t i = 0; i < LATENCY_VMS_MAX; i++) {
		for (int k = 0; k < LATENCY_KIND_COUNT; k++) {
			if (l->vms[i][k])
				latency_map_fini(l->vms[i][k]);
			free(l->vms[i][k]);
		}
	}
	lru_fini(&l->index);
	free(l->waits);
	free(l);
}

const struct latency_map *latency_maps_at(const struct latency_maps *l, size_t index)
{
	for (size_t i = 0; i < l->n_vms; i++) {
		for (int k = 0; k < LATENCY_KIND_COUNT; k++) {
			if (l->vms[i][k]->lengths.count && !index--)
				return l->vms[i][k];
		}
	}
	return NULL;
}

bool latency_maps_left_out(const struct latency_maps *l)
{
	return l->left_out;
}

int latency_maps_error(const struct latency_maps *l)
{
	return l->error;
}
