/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/daemon/governor.h"

enum {
	WINDOW_MS = 1000,
	WINDOWS_OVER = 2,
	PAUSE_MIN_MS = 30000,
	PAUSE_MAX_MS = 600000,
	LASTS_MS = 60000, /* if detail lasted this long, the next pause is short again */
};

void governor_begin(struct governor *g, uint64_t limit, uint64_t now_ms, uint64_t events)
{
	uint64_t sheds = g->sheds;

	*g = (struct governor){.limit = limit,
			       .window_ms = now_ms,
			       .window_events = events,
			       .changed_ms = now_ms,
			       .pause_ms = PAUSE_MIN_MS,
			       .sheds = sheds};
}

static enum governor_advice change(struct governor *g, uint64_t now_ms, bool shed)
{
	g->shed = shed;
	g->changed_ms = now_ms;
	g->windows_over = 0;
	g->sheds += shed;
	return shed ? GOVERNOR_SHED : GOVERNOR_RESTORE;
}

enum governor_advice governor_tick(struct governor *g, uint64_t now_ms, uint64_t events)
{
	uint64_t elapsed_ms = now_ms - g->window_ms;
	bool over;

	if (!g->limit || elapsed_ms < WINDOW_MS)
		return GOVERNOR_STAY;
	over = (events - g->window_events) * 1000 > g->limit * elapsed_ms;
	g->window_ms = now_ms;
	g->window_events = events;
	if (g->shed)
		return now_ms - g->changed_ms < g->pause_ms ? GOVERNOR_STAY
							    : change(g, now_ms, false);
	g->windows_over = over ? g->windows_over + 1 : 0;
	if (now_ms - g->changed_ms >= LASTS_MS)
		g->pause_ms = PAUSE_MIN_MS;
	if (g->windows_over < WINDOWS_OVER)
		return GOVERNOR_STAY;
	if (g->sheds && now_ms - g->changed_ms < LASTS_MS && g->pause_ms < PAUSE_MAX_MS)
		g->pause_ms *= 2;
	return change(g, now_ms, true);
}
