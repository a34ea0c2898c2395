/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/analyze/interrupts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "host-collector/model/lru.h"

enum { SOURCES_MAX = 1024 };

struct interrupts {
	struct lru index;
	struct interrupt_source *sources;
	int error;
};

static void source_clear(struct interrupt_source *s)
{
	histogram_fini(&s->durations);
	memset(s, 0, sizeof(*s));
}

static void interrupt_take(void *context, const struct guest_interrupt *i)
{
	struct interrupts *x = context;
	uint64_t key = (uint64_t)i->vm << 34 | (uint64_t)(i->kind == GUEST_CPU_SOFTIRQ) << 33 |
		       (uint64_t)i->vector << 32 | i->number;
	struct interrupt_source *s;
	bool fresh;

	s = &x->sources[lru_put(&x->index, key, &fresh)];
	if (fresh) {
		source_clear(s);
		s->vm = i->vm;
		s->kind = i->kind;
		s->number = i->number;
		s->vector = i->vector;
	}
	if (!i->whole)
		s->torn++;
	else if (histogram_add(&s->durations, (uint64_t)(i->end.ns - i->begin.ns)))
		x->error = -ENOMEM;
}

struct interrupts *interrupts_new(struct model *m)
{
	struct interrupts *x = calloc(1, sizeof(*x));
	struct model_observer observer = {.guest_interrupt = interrupt_take, .context = x};

	if (!x)
		return NULL;
	x->sources = calloc(SOURCES_MAX, sizeof(*x->sources));
	if (!x->sources || lru_init(&x->index, SOURCES_MAX) || model_observe(m, &observer)) {
		interrupts_free(x);
		return NULL;
	}
	return x;
}

void interrupts_free(struct interrupts *x)
{
	if (!x)
		return;
	for (unsigned i = 0; x->sources && i < SOURCES_MAX; i++)
		source_clear(&x->sources[i]);
	lru_fini(&x->index);
	free(x->sources);
	free(x);
}

int interrupts_error(const struct interrupts *x)
{
	return x->error;
}

const struct interrupt_source *interrupts_source(const struct interrupts *x, size_t index)
{
	for (uint32_t slot = 0; slot < SOURCES_MAX; slot++) {
		if (lru_used(&x->index, slot) && !index--)
			return &x->sources[slot];
	}
	return NULL;
}
