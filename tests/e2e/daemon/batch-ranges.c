/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a recording holds of its guest's events, by the guest's own totals alone: batch-ranges FILE
 * prints, of each CPU, the total before its first batch, the total with its last one, and how many
 * events lie in all of them:
 *
 *	{"cpus": [[FIRST, LAST, EVENTS], ..]}
 */
#include <stdio.h>

#include "tests/e2e/recording_entries.h"

enum { CPUS = 64 };

struct range {
	bool known;
	uint64_t first, last, events;
};

static int batch_count(void *context, uint32_t source, const struct batch *b)
{
	struct range *range;

	if (source != 1 || b->cpu >= CPUS)
		return 0;
	range = (struct range *)context + b->cpu;
	if (!range->known)
		range->first = b->emitted - b->n_events;
	range->known = true;
	range->last = b->emitted;
	range->events += b->n_events;
	return 0;
}

int main(int argc, char **argv)
{
	static struct range cpus[CPUS];
	const struct recording_visitor visitor = {.batch = batch_count, .context = cpus};
	const char *comma = "";
	const int status = recording_visit_argument(argc, argv, &visitor);

	if (argc != 2)
		return status;
	printf("{\"cpus\": [");
	for (int c = 0; c < CPUS; c++) {
		if (!cpus[c].known)
			continue;
		printf("%s[%llu, %llu, %llu]", comma, (unsigned long long)cpus[c].first,
		       (unsigned long long)cpus[c].last, (unsigned long long)cpus[c].events);
		comma = ", ";
	}
	printf("]}\n");
	return status;
}
