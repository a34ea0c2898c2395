/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/compare/run_summary.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const struct {
	const char *name;
	double share;
} statistics[] = {
#define X(NAME, name, share) {name, share},
	RUN_STATISTICS(X)
#undef X
};

enum { SAMPLES_MIN = 20, SAMPLES_BEYOND = 5 };

const char *run_statistic_name(enum run_statistic s)
{
	return statistics[s].name;
}

enum run_statistic run_statistic_find(const char *name)
{
	int s = 0;

	while (s < RUN_STATISTIC_COUNT && strcmp(statistics[s].name, name))
		s++;
	return (enum run_statistic)s;
}

uint64_t run_statistic_needs(enum run_statistic s)
{
	double beyond;

	if (s == RUN_SHARE)
		return 1;
	beyond = SAMPLES_BEYOND / (1 - statistics[s].share);
	return beyond > SAMPLES_MIN ? (uint64_t)lround(beyond) : SAMPLES_MIN;
}

struct run_figure *run_figure_add(struct run_summary *run, const char *name)
{
	struct run_figure *grown, *f;

	if (run->n == RUN_FIGURES_MAX)
		return NULL;
	grown = realloc(run->figures, (run->n + 1) * sizeof(*grown));
	if (!grown)
		return NULL;
	run->figures = grown;
	f = &grown[run->n++];
	memset(f, 0, sizeof(*f));
	snprintf(f->name, sizeof(f->name), "%s", name);
	for (int s = 0; s < RUN_STATISTIC_COUNT; s++)
		f->at[s] = (double)NAN;
	return f;
}

const struct run_figure *run_figure_find(const struct run_summary *run, const char *name)
{
	for (size_t i = 0; i < run->n; i++) {
		if (!strcmp(run->figures[i].name, name))
			return &run->figures[i];
	}
	return NULL;
}

struct run_summary *run_set_add(struct run_set *set, const char *recording)
{
	struct run_summary *grown;
	char *copy;

	if (set->n == RUN_SET_MAX)
		return NULL;
	copy = strdup(recording);
	grown = copy ? realloc(set->runs, (set->n + 1) * sizeof(*grown)) : NULL;
	if (!grown) {
		free(copy);
		return NULL;
	}
	set->runs = grown;
	set->runs[set->n] = (struct run_summary){.recording = copy};
	return &set->runs[set->n++];
}

void run_set_fini(struct run_set *set)
{
	for (size_t i = 0; i < set->n; i++) {
		free(set->runs[i].recording);
		free(set->runs[i].figures);
	}
	free(set->runs);
	*set = (struct run_set){0};
}
