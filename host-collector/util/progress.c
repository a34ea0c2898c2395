/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/util/progress.h"

#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "host-collector/util/escape.h"

enum { CALLS_BETWEEN = 64, NAME_SHOWN = 40 };
#define FIRST_AFTER_NS 1000000000ull
#define SHOW_EACH_NS   200000000ull

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

void progress_begin(struct progress *p, const char *name, const char *what, uint64_t total)
{
	*p = (struct progress){.name = name,
			       .what = what,
			       .total = total,
			       .terminal = isatty(STDERR_FILENO),
			       .shown_ns = now_ns() + FIRST_AFTER_NS - SHOW_EACH_NS};
}

void progress_step(struct progress *p, uint64_t done)
{
	uint64_t now;

	if (!p->terminal || ++p->calls % CALLS_BETWEEN)
		return;
	now = now_ns();
	if (now < p->shown_ns + SHOW_EACH_NS)
		return;
	p->shown_ns = now;
	p->shown = true;
	if (p->total)
		fprintf(stderr, "\r%.*s: %s, %u %%\033[K", NAME_SHOWN, escape(p->name).text,
			p->what, (unsigned)(done >= p->total ? 100 : 100 * done / p->total));
	else
		fprintf(stderr, "\r%.*s: %s, %llu MB\033[K", NAME_SHOWN, escape(p->name).text,
			p->what, (unsigned long long)(done / 1000000));
	fflush(stderr);
}

void progress_end(struct progress *p)
{
	if (p->shown)
		fputs("\r\033[K", stderr);
	p->shown = false;
}
