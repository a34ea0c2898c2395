/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/export/boottime.h"

#include <errno.h>
#include <stdlib.h>

#include "proto/recording.h"

static int point_add(struct boottime *b, int64_t host_ns, int64_t boot_ns)
{
	struct boottime_point *bigger;

	/* Two samples at once, or a clock that stood still: no line. */
	if (b->n &&
	    (host_ns <= b->points[b->n - 1].host_ns || boot_ns <= b->points[b->n - 1].boot_ns))
		return 0;
	bigger = reallocarray(b->points, b->n + 1, sizeof(*bigger));
	if (!bigger)
		return -ENOMEM;
	b->points = bigger;
	b->points[b->n++] = (struct boottime_point){host_ns, boot_ns};
	return 0;
}

int boottime_init(struct boottime *b, const struct pipeline *p)
{
	struct monotonic_ns monotonic;
	struct pipeline_hello host;
	struct host_ns t;
	int err = 0;

	*b = (struct boottime){0};
	if (pipeline_hello_get(p, VS_SOURCE_HOST, &host))
		b->suspended_ns = host.suspended_ns;
	for (size_t i = 0;
	     !err && clock_book_monotonic_point(pipeline_clocks(p), i, &t, &monotonic); i++) {
		if (monotonic.ns)
			err = point_add(b, t.ns, (int64_t)(monotonic.ns + b->suspended_ns));
	}
	return err;
}

void boottime_fini(struct boottime *b)
{
	free(b->points);
	*b = (struct boottime){0};
}

static int64_t shifted(const struct boottime_point *p, int64_t host_ns)
{
	return p->boot_ns + (host_ns - p->host_ns);
}

uint64_t boottime_of(struct boottime *b, struct host_ns t)
{
	const struct boottime_point *from, *to;
	int64_t boot = t.ns;

	if (b->n) {
		while (b->at > 0 && t.ns < b->points[b->at].host_ns)
			b->at--;
		while (b->at + 1 < b->n && t.ns >= b->points[b->at + 1].host_ns)
			b->at++;
		from = &b->points[b->at];
		to = from + 1;
		if (t.ns < from->host_ns || b->at + 1 == b->n)
			boot = shifted(from, t.ns);
		else
			boot = from->boot_ns + (int64_t)((__int128)(t.ns - from->host_ns) *
							 (to->boot_ns - from->boot_ns) /
							 (to->host_ns - from->host_ns));
	}
	return boot < 0 ? 0 : (uint64_t)boot;
}
