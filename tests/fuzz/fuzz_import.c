// SPDX-License-Identifier: GPL-2.0-only
/*
 * The importer of text on any bytes: every line is accounted for once, what it takes is what a
 * batch may hold, in the order of time, and it finds no more vCPUs than it saw threads.
 */
#include "fuzz.h"

#include <stdlib.h>

#include "host-collector/import/gather.h"
#include "host-collector/import/vcpus.h"

static void gathered_check(const struct gather *g)
{
	struct vcpus v;
	size_t threads = 0;

	FUZZ_CHECK(g->lines == g->taken + g->nothing + g->malformed + g->unused + g->lost_marks);
	for (size_t i = 0; i < g->n_events; i++) {
		const struct vs_event *e = &g->events[i].e;

		FUZZ_CHECK(e->type && e->type < VS_EVENT_TYPE_LIMIT && e->cpu < GATHER_CPUS);
		FUZZ_CHECK(e->time <= INT64_MAX / 2 && e->pid >= 0 && e->pid2 >= 0);
		FUZZ_CHECK(!i || e->time >= g->events[i - 1].e.time);
	}
	FUZZ_CHECK(!vcpus_find(&v, g, NULL, NULL));
	for (size_t i = 0; i < v.n; i++)
		threads += v.vms[i].n_threads;
	FUZZ_CHECK(threads <= g->n_threads);
	vcpus_fini(&v);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	const struct gather_options options = {.tick_hz = 2500000000};
	struct gather *g = calloc(1, sizeof(*g));
	FILE *in = len ? fmemopen((void *)data, len, "r") : NULL;

	FUZZ_CHECK(g && (in || !len));
	FUZZ_CHECK(!gather_init(g, &options));
	if (in) {
		FUZZ_CHECK(!gather_text(g, in));
		fclose(in);
	}
	FUZZ_CHECK(!gather_finish(g));
	gathered_check(g);
	gather_fini(g);
	free(g);
	return 0;
}
