/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/tables/analysis.h"

#include <stdlib.h>

static const struct figures_options no_options;

static bool options_equal(const struct figures_options *a, const struct figures_options *b)
{
	return a->per_vcpu == b->per_vcpu && a->per_pcpu == b->per_pcpu && a->than_ns == b->than_ns;
}

void *analysis_allocate(size_t bytes, struct model *m, const struct figures_options *options)
{
	struct analysis_base *base = calloc(1, bytes);

	if (base)
		*base = (struct analysis_base){.model = m,
					       .options = options ? *options : no_options};
	return base;
}

int analysis_error(const void *analysis)
{
	const struct analysis_base *base = analysis;

	return base->error;
}

void *analyses_start(struct analyses *set, const struct analysis *what, struct model *m,
		     const struct figures_options *options)
{
	void *self;

	options = options ? options : &no_options;
	for (size_t i = 0; i < set->n; i++) {
		if (set->items[i].what == what && options_equal(&set->items[i].options, options))
			return set->items[i].self;
	}
	self = set->n < ANALYSES_MAX ? what->new (m, options) : NULL;
	if (!self)
		return NULL;
	set->items[set->n].what = what;
	set->items[set->n].options = *options;
	set->items[set->n++].self = self;
	return self;
}

void analyses_clear(struct analyses *set)
{
	for (size_t i = 0; i < set->n; i++)
		set->items[i].what->clear(set->items[i].self);
}

void analyses_finish(struct analyses *set)
{
	for (size_t i = 0; i < set->n; i++) {
		if (set->items[i].what->finish)
			set->items[i].what->finish(set->items[i].self);
	}
}

int analyses_error(const struct analyses *set)
{
	int err = 0;

	for (size_t i = 0; i < set->n && !err; i++) {
		if (set->items[i].what->error)
			err = set->items[i].what->error(set->items[i].self);
	}
	return err;
}

void analyses_fini(struct analyses *set)
{
	for (size_t i = 0; i < set->n; i++)
		set->items[i].what->free(set->items[i].self);
	set->n = 0;
}
