/* SPDX-License-Identifier: GPL-2.0-only */
/* Runs a libuv loop for some time of a test. */
#ifndef TESTS_LOOP_RUN_H
#define TESTS_LOOP_RUN_H

#include <stdint.h>
#include <uv.h>

static inline void loop_run_nothing(uv_timer_t *timer)
{
	(void)timer;
}

/* timer: initialised with the loop, not active. */
static inline void loop_run_ms(uv_loop_t *loop, uv_timer_t *timer, uint64_t ms)
{
	uint64_t end;

	uv_update_time(loop);
	end = uv_now(loop) + ms;
	while (uv_now(loop) < end) {
		uv_timer_start(timer, loop_run_nothing, end - uv_now(loop), 0);
		uv_run(loop, UV_RUN_ONCE);
	}
	uv_timer_stop(timer);
}

#endif
