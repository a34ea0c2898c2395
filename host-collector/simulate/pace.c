// SPDX-License-Identifier: GPL-2.0-only
#include "host-collector/simulate/pace.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const struct {
	const char *name, *meaning;
} stages[] = {
#define X(NAME, name, meaning) {name, meaning},
	PACE_STAGES(X)
#undef X
};

const char *pace_stage_name(enum pace_stage stage)
{
	return stages[stage].name;
}

const char *pace_stage_meaning(enum pace_stage stage)
{
	return stages[stage].meaning;
}

/* Uniform in (0, 1). */
static double fraction(struct engine *e)
{
	return ((double)(engine_random(e) >> 11) + 0.5) / 9007199254740992.0;
}

void pace_vary(struct sim_pace *p, struct engine *e, double share)
{
	p->tails = true;
	for (int i = 0; i < PACE_STAGE_COUNT; i++)
		p->jitter[i] = share * (2 * fraction(e) - 1);
}

int64_t pace_draw(const struct sim_pace *p, struct engine *e, enum pace_stage stage, int64_t low,
		  int64_t high)
{
	double factor = (1 + p->more[stage]) * (1 + p->jitter[stage]);
	double ns;

	if (p->tails)
		ns = (double)low - (double)(high - low) / 2 * log(fraction(e));
	else
		ns = (double)engine_between(e, low, high);
	return (int64_t)(ns * factor + 0.5);
}

int pace_shift(struct sim_pace *p, const char *text)
{
	const char *equals = strchr(text, '=');
	char *end;
	double percent;

	if (!equals)
		return -EINVAL;
	percent = strtod(equals + 1, &end);
	if (end == equals + 1 || strcmp(end, "%") || !(percent > -100 && percent <= 10000))
		return -EINVAL;
	for (int i = 0; i < PACE_STAGE_COUNT; i++) {
		size_t len = strlen(stages[i].name);

		if (len != (size_t)(equals - text) || strncmp(text, stages[i].name, len))
			continue;
		p->more[i] = percent / 100;
		return 0;
	}
	return -EINVAL;
}
