/* SPDX-License-Identifier: GPL-2.0-only */
#include "bpf/capture/event_limits.h"

enum {
	CHECK_MS = 1000,
	FLOODED_MAX = 10,
};

uint32_t event_limit_per_window(uint32_t rate)
{
	const uint64_t n =
		((uint64_t)(rate ? rate : CAPTURE_EVENT_RATE) << VS_USER_WINDOW_LOG2_NS) /
		1000000000;

	return n ? (uint32_t)n : 1;
}

bool event_flood_check(struct event_flood *f, const struct capture_event_state *now,
		       uint64_t now_ms)
{
	const struct capture_event_state *then = &f->checked;

	if (now_ms - f->checked_ms >= CHECK_MS) {
		if (now->limited - then->limited > now->kept - then->kept)
			f->flooded++;
		else
			f->flooded = 0;
		f->checked_ms = now_ms;
		f->checked = *now;
	}
	return f->flooded >= FLOODED_MAX;
}
