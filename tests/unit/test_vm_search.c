/* SPDX-License-Identifier: GPL-2.0-only */
/* Tests that a monitor that does not answer delays only the caller that asked it. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#include "host-collector/daemon/vm_search.h"

enum { TICK_MS = 10, LATE_MS = 1000, FORGET_MS = 50 };

struct stage {
	uv_loop_t loop;
	uv_timer_t timer;
	uint64_t ticked_ms, latest_ms;
	int listener, done, err;
	char path[64], why[256];
	struct vm_search *search;
};

static uint64_t now_ms(void)
{
	return uv_hrtime() / 1000000;
}

static void on_tick(uv_timer_t *timer)
{
	struct stage *s = timer->data;
	const uint64_t now = now_ms();

	if (s->ticked_ms && now - s->ticked_ms > s->latest_ms)
		s->latest_ms = now - s->ticked_ms;
	s->ticked_ms = now;
}

static void on_done(void *context, struct vm *vm, int err, const char *why)
{
	struct stage *s = context;

	assert_null(vm);
	s->done++;
	s->err = err;
	snprintf(s->why, sizeof(s->why), "%s", why);
	uv_timer_stop(&s->timer);
}

static int setup(void **state)
{
	struct stage *s = calloc(1, sizeof(*s));
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	const struct vm_options options = {.number = 1, .qmp_path = s ? s->path : NULL};
	const struct vm_search_events events = {.done = on_done, .context = s};

	assert_non_null(s);
	snprintf(s->path, sizeof(s->path), "/tmp/test_vm_search.%d", getpid());
	snprintf(address.sun_path, sizeof(address.sun_path), "%s", s->path);
	s->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(s->listener, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(listen(s->listener, 1), 0);
	assert_int_equal(uv_loop_init(&s->loop), 0);
	uv_timer_init(&s->loop, &s->timer);
	s->timer.data = s;
	uv_timer_start(&s->timer, on_tick, TICK_MS, TICK_MS);
	assert_int_equal(vm_search_begin(&s->loop, &options, &events, &s->search), 0);
	*state = s;
	return 0;
}

static int teardown(void **state)
{
	struct stage *s = *state;

	uv_close((uv_handle_t *)&s->timer, NULL);
	uv_run(&s->loop, UV_RUN_DEFAULT);
	assert_int_equal(uv_loop_close(&s->loop), 0);
	close(s->listener);
	unlink(s->path);
	free(s);
	return 0;
}

static void the_loop_goes_on_meanwhile(void **state)
{
	struct stage *s = *state;

	uv_run(&s->loop, UV_RUN_DEFAULT);
	assert_int_equal(s->done, 1);
	assert_int_equal(s->err, -ETIMEDOUT);
	assert_non_null(strstr(s->why, s->path));
	assert_true(s->latest_ms < LATE_MS);
}

static void who_forgets_it_hears_nothing(void **state)
{
	struct stage *s = *state;
	const uint64_t begin_ms = now_ms();

	while (now_ms() - begin_ms < FORGET_MS)
		uv_run(&s->loop, UV_RUN_ONCE);
	vm_search_forget(s->search);
	close(s->listener); /* the thread sees the end of its connection */
	s->listener = -1;
	uv_timer_stop(&s->timer);
	uv_run(&s->loop, UV_RUN_DEFAULT);
	assert_int_equal(s->done, 0);
	vm_search_forget(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(the_loop_goes_on_meanwhile, setup, teardown),
		cmocka_unit_test_setup_teardown(who_forgets_it_hears_nothing, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
