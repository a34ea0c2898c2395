/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/daemon/host_captures.h"

#include <stdlib.h>

#include "bpf/capture/tracepoint_format.h"
#include "clock/sample.h"
#include "host-collector/record/stack_names.h"
#include "host-collector/record/task_origins.h"
#include "proto/frame_item.h"

enum { BACKENDS = CAPTURE_BY_PERF + 1 };

struct host_captures {
	struct capture_shared *of[BACKENDS]; /* NULL: none */
	struct stack_names *names;           /* NULL: none */
	struct task_origins *origins;        /* NULL: none */
	struct frame_maker *maker;           /* NULL: none */
	uint64_t tsc_hz;                     /* 0: not known yet */
	uint64_t emitted;                    /* events of all captures, at the last pump */
};

struct host_captures *host_captures_new(void)
{
	return calloc(1, sizeof(struct host_captures));
}

void host_captures_free(struct host_captures *h)
{
	for (size_t i = 0; h && i < BACKENDS; i++)
		capture_shared_close(h->of[i]);
	if (h) {
		stack_names_free(h->names);
		task_origins_free(h->origins);
		frame_maker_free(h->maker);
	}
	free(h);
}

struct capture_shared *host_captures_get(struct host_captures *h, enum backend_choice backend,
					 int *err, char *why, size_t why_bytes)
{
	const struct capture_options options = {.kind = CAPTURE_HOST,
						.backend = backend,
						.stacks = true,
						.tracepoints = tracepoint_format_read};

	*err = h->of[backend] ? 0 : capture_shared_open(&options, &h->of[backend], why, why_bytes);
	return *err ? NULL : h->of[backend];
}

struct stack_names *host_captures_names(struct host_captures *h)
{
	if (!h->names)
		h->names = stack_names_new();
	return h->names;
}

struct task_origins *host_captures_origins(struct host_captures *h)
{
	if (!h->origins)
		h->origins = task_origins_new(NULL, NULL);
	return h->origins;
}

struct frame_maker *host_captures_maker(struct host_captures *h)
{
	if (!h->maker)
		h->maker = frame_maker_new();
	return h->maker;
}

uint64_t host_captures_tsc_hz(struct host_captures *h)
{
	if (!h->tsc_hz && clock_tsc_hz(&h->tsc_hz))
		h->tsc_hz = 0;
	return h->tsc_hz;
}

bool host_captures_pump(struct host_captures *h)
{
	const uint64_t before = h->emitted;
	struct capture_shared_stats stats;

	for (size_t i = 0; i < BACKENDS; i++) {
		if (h->of[i]) /* an error is reported when a VM drains its events */
			capture_shared_pump(h->of[i]);
	}
	host_captures_stats(h, &stats);
	h->emitted = stats.emitted;
	return h->emitted != before;
}

void host_captures_tidy(struct host_captures *h)
{
	for (size_t i = 0; i < BACKENDS; i++) {
		struct capture_shared_stats stats;

		if (!h->of[i])
			continue;
		capture_shared_stats_get(h->of[i], &stats);
		if (stats.users)
			continue;
		capture_shared_close(h->of[i]);
		h->of[i] = NULL;
	}
	if (h->names && !h->names->users) {
		stack_names_free(h->names);
		h->names = NULL;
		/* Whoever used the names used these, too. */
		task_origins_free(h->origins);
		h->origins = NULL;
		frame_maker_free(h->maker);
		h->maker = NULL;
	}
}

size_t host_captures_stats(const struct host_captures *h, struct capture_shared_stats *out)
{
	size_t n = 0;

	*out = (struct capture_shared_stats){0};
	for (size_t i = 0; i < BACKENDS; i++) {
		struct capture_shared_stats stats;

		if (!h->of[i])
			continue;
		capture_shared_stats_get(h->of[i], &stats);
		out->users += stats.users;
		out->emitted += stats.emitted;
		out->dropped_kernel += stats.dropped_kernel;
		out->missed += stats.missed;
		out->unclaimed += stats.unclaimed;
		n++;
	}
	return n;
}
