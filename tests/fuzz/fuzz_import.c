// SPDX-License-Identifier: GPL-2.0-only
/* Fuzzes the importer of text: every line counts once, the events are valid in a batch and in
 * the order of time, and there are no more vCPUs than threads. Bytes that begin as a trace.dat does
 * go to the reader of its options instead. */
#include "fuzz.h"

#include <stdlib.h>

#include "host-collector/import/dat_options.h"
#include "host-collector/import/dat_pair.h"
#include "host-collector/import/gather.h"
#include "host-collector/import/vcpus.h"

static void gathered_check(const struct gather *g)
{
	const struct vcpus_known known = {0};
	struct vcpus v;
	size_t threads = 0;

	FUZZ_CHECK(g->lines == g->taken + g->nothing + g->malformed + g->unused + g->lost_marks);
	for (size_t i = 0; i < g->n_events; i++) {
		const struct vs_event *e = &g->events[i].e;

		FUZZ_CHECK(e->type && e->type < VS_EVENT_TYPE_LIMIT && e->cpu < GATHER_CPUS);
		FUZZ_CHECK(e->time <= INT64_MAX / 2 && e->pid >= 0 && e->pid2 >= 0);
		FUZZ_CHECK(!i || e->time >= g->events[i - 1].e.time);
	}
	FUZZ_CHECK(!vcpus_find(&v, g, &known));
	for (size_t i = 0; i < v.n; i++)
		threads += v.vms[i].n_threads;
	FUZZ_CHECK(threads <= g->n_threads);
	vcpus_fini(&v);
}

static void sync_check(const struct dat_sync *s)
{
	bool compared;

	FUZZ_CHECK(s->n_cpus >= 1 && s->n_cpus <= VS_CPUS_MAX);
	for (size_t cpu = 0; cpu < s->n_cpus; cpu++) {
		FUZZ_CHECK(s->first[cpu] < s->first[cpu + 1]);
		for (size_t i = s->first[cpu] + 1; i < s->first[cpu + 1]; i++)
			FUZZ_CHECK(s->samples[i - 1].time <= s->samples[i].time);
	}
	dat_sync_spread(s, &compared);
	FUZZ_CHECK(compared == (s->first[s->n_cpus] > 1));
}

/* Every thread that the file lists is that of one vCPU at most. */
static void guests_check(const struct dat_options *o)
{
	const struct vcpus_known known = {.guests = o->guests, .n_guests = o->n_guests};
	const struct gather_options options = {0};
	struct gather *g = calloc(1, sizeof(*g));
	struct vcpus v;

	FUZZ_CHECK(g && !gather_init(g, &options));
	FUZZ_CHECK(!vcpus_find(&v, g, &known));
	FUZZ_CHECK(v.n <= o->n_guests && v.listed == v.n);
	for (size_t i = 0; i < v.n; i++) {
		for (size_t k = 0; k < v.vms[i].n_threads; k++)
			FUZZ_CHECK(v.vms[i].threads[k].tid > 0 &&
				   v.vms[i].threads[k].vcpu < VS_CPUS_MAX);
	}
	vcpus_fini(&v);
	gather_fini(g);
	free(g);
}

static void dat_check(FILE *in)
{
	const struct dat_pair_options pair_options = {0};
	struct dat_options o;
	struct dat_pair pair;
	char why[256] = "";
	int err = dat_options_read(&o, in);

	if (!err) {
		if (o.sync.present)
			sync_check(&o.sync);
		guests_check(&o);
		err = dat_pair_find(&pair, &o, &o, &pair_options, why, sizeof(why));
		FUZZ_CHECK(!err == !why[0]);
		FUZZ_CHECK(err || !pair.synced || o.sync.present);
	}
	dat_options_fini(&o);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	const struct gather_options options = {.tick_hz = 2500000000};
	struct gather *g = calloc(1, sizeof(*g));
	FILE *in = len ? fmemopen((void *)data, len, "r") : NULL;

	FUZZ_CHECK(g && (in || !len));
	if (in && data[0] == 0x17) {
		dat_check(in);
		rewind(in);
	}
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
