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

/* Both clocks have almost the same rate, so what one gains on the other is small. */
static void line_set(struct boottime *b, const struct boottime_point *from,
		     const struct boottime_point *to)
{
	const int64_t length_limit_ns = 1ll << 40, gain_limit_ns = 1ll << 22;
	int64_t length_ns, boot_length_ns;

	if (__builtin_sub_overflow(to->host_ns, from->host_ns, &length_ns) ||
	    __builtin_sub_overflow(to->boot_ns, from->boot_ns, &boot_length_ns) ||
	    from->boot_ns < 0 || length_ns > length_limit_ns ||
	    llabs(boot_length_ns - length_ns) > gain_limit_ns)
		return;
	b->lines[b->oldest] = (struct boottime_line){
		.begin = *from,
		.length_ns = length_ns,
		.gain_ns = boot_length_ns - length_ns,
		.gain_rate = (double)(boot_length_ns - length_ns) / (double)length_ns,
	};
	b->oldest = (b->oldest + 1) % BOOTTIME_LINES;
}

static uint64_t elsewhere(struct boottime *b, struct host_ns t)
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
		if (b->at + 1 < b->n)
			line_set(b, from, to);
	}
	return boot < 0 ? 0 : (uint64_t)boot;
}

uint64_t boottime_search(struct boottime *b, struct host_ns t)
{
	for (unsigned i = 0; i < BOOTTIME_LINES; i++) {
		const struct boottime_line *l = &b->lines[i];
		const uint64_t ns = (uint64_t)t.ns - (uint64_t)l->begin.host_ns;

		if (ns < (uint64_t)l->length_ns) {
			b->last = i;
			return boottime_on_line(l, (int64_t)ns);
		}
	}
	return elsewhere(b, t);
}
