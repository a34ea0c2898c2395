/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/model/window.h"

#include <stdlib.h>

/* Everything before `t` has been passed on. */
static void reach(struct window *w, struct host_ns t)
{
	if (!w->open && t.ns >= w->time.from.ns) {
		w->open = true;
		if (w->opened)
			w->opened(w->opener);
	}
	w->over |= t.ns >= w->time.until.ns;
}

/* The parts of a wait cannot exceed what the window leaves of it. */
static void wait_cut(struct vcpu_span *span)
{
	int64_t ns = span->end.ns - span->begin.ns;

	if (span->holder_ns > ns)
		span->holder_ns = ns;
	if (span->pcpu_busy_ns > ns)
		span->pcpu_busy_ns = ns;
	if (span->pcpu_idle_ns > ns - span->pcpu_busy_ns)
		span->pcpu_idle_ns = ns - span->pcpu_busy_ns;
	if (span->throttled_ns > ns)
		span->throttled_ns = ns;
	span->n_crowd = 0; /* which of the holders held it in the window is unknown */
}

static void on_vcpu_span(void *context, const struct vcpu_span *span)
{
	struct window *w = context;
	struct vcpu_span cut = *span;

	if (!narrow_clip(&w->time, &cut.begin, &cut.end))
		return;
	reach(w, cut.begin);
	if (cut.begin.ns != span->begin.ns || cut.end.ns != span->end.ns)
		wait_cut(&cut);
	EMIT(&w->audiences, vcpu_span, &cut);
}

static void on_guest_span(void *context, const struct guest_span *span)
{
	struct window *w = context;
	struct guest_span cut = *span;

	if (!narrow_clip(&w->time, &cut.begin, &cut.end))
		return;
	reach(w, cut.begin);
	EMIT(&w->audiences, guest_span, &cut);
}

static void on_guest_interrupt(void *context, const struct guest_interrupt *interrupt)
{
	struct window *w = context;
	struct guest_interrupt cut = *interrupt;

	if (!narrow_clip(&w->time, &cut.begin, &cut.end))
		return;
	reach(w, cut.begin);
	cut.goes_on |= cut.end.ns != interrupt->end.ns;
	cut.whole &= cut.begin.ns == interrupt->begin.ns && cut.end.ns == interrupt->end.ns;
	EMIT(&w->audiences, guest_interrupt, &cut);
}

static void on_guest_instant(void *context, const struct guest_instant *i)
{
	struct window *w = context;

	reach(w, i->t);
	if (!w->over)
		EMIT(&w->audiences, guest_instant, i);
}

static void on_host_instant(void *context, const struct host_instant *i)
{
	struct window *w = context;

	reach(w, i->t);
	if (!w->over)
		EMIT(&w->audiences, host_instant, i);
}

static void on_guest_steal(void *context, const struct guest_steal *steal)
{
	struct window *w = context;

	if (narrow_has_time(&w->time, steal->t))
		EMIT(&w->audiences, guest_steal, steal);
}

static void on_guest_clock(void *context, const struct guest_clock_reading *reading)
{
	struct window *w = context;

	if (narrow_has_time(&w->time, reading->t))
		EMIT(&w->audiences, guest_clock, reading);
}

/* Totals since the capture began: those before the window are what its first one is compared with.
 */
static void on_exits_counted(void *context, const struct message_exit_summary *counted)
{
	struct window *w = context;

	if (!w->over)
		EMIT(&w->audiences, exits_counted, counted);
}

static void on_advance(void *context, struct host_ns now)
{
	struct window *w = context;

	reach(w, now);
	EMIT(&w->audiences, advance, w->over ? w->time.until : now);
}

int window_observe(struct window *w, const struct model_observer *observer,
		   struct model_observer *through)
{
	const struct audiences *has = &w->audiences;

	*through = (struct model_observer){.context = w};
#define X(callback)                                                                                \
	if (observer->callback && !has->callback.n)                                                \
		through->callback = on_##callback;
	MODEL_CALLBACKS(X)
#undef X
	return audiences_add(&w->audiences, observer);
}

void window_free(struct window *w)
{
	if (w)
		audiences_fini(&w->audiences);
	free(w);
}
