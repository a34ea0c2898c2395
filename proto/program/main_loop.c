/* SPDX-License-Identifier: GPL-2.0-only */
#include "proto/program/main_loop.h"

#include <errno.h>
#include <signal.h>
#include <string.h>

int main_loop_open(struct main_loop *l, void *context, void (*stop)(void *context))
{
	memset(l, 0, sizeof(*l));
	l->context = context;
	l->stop = stop;
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN);
	return uv_loop_init(&l->uv);
}

/* With `stop`, the loop ends with the program's handles; ours must not keep it alive. */
static void handle_begin(struct main_loop *l, void *handle)
{
	if (l->stop)
		uv_unref(handle);
}

static void on_signal(uv_signal_t *handle, int number)
{
	struct main_loop_signal *signal = handle->data;

	if (signal->call) {
		signal->call(signal->loop->context, number);
		return;
	}
	uv_signal_stop(handle);
	main_loop_stop(signal->loop);
}

int main_loop_on_signal(struct main_loop *l, int number, void (*call)(void *context, int number))
{
	struct main_loop_signal *signal = &l->signals[l->n_signals];
	int err;

	if (l->n_signals == MAIN_LOOP_HANDLES_MAX)
		return -ENOSPC;
	err = uv_signal_init(&l->uv, &signal->handle);
	if (err)
		return err;
	l->n_signals++;
	signal->loop = l;
	signal->call = call;
	signal->handle.data = signal;
	err = uv_signal_start(&signal->handle, on_signal, number);
	handle_begin(l, &signal->handle);
	return err;
}

int main_loop_stop_on_signals(struct main_loop *l)
{
	int err = main_loop_on_signal(l, SIGINT, NULL);

	return err ? err : main_loop_on_signal(l, SIGTERM, NULL);
}

static void on_timer(uv_timer_t *handle)
{
	struct main_loop_timer *timer = handle->data;

	if (timer->call)
		timer->call(timer->loop->context);
	else
		main_loop_stop(timer->loop);
}

int main_loop_every(struct main_loop *l, uint64_t first_ms, uint64_t repeat_ms,
		    void (*call)(void *context))
{
	struct main_loop_timer *timer = &l->timers[l->n_timers];
	int err;

	if (l->n_timers == MAIN_LOOP_HANDLES_MAX)
		return -ENOSPC;
	err = uv_timer_init(&l->uv, &timer->handle);
	if (err)
		return err;
	l->n_timers++;
	timer->loop = l;
	timer->call = call;
	timer->handle.data = timer;
	uv_update_time(&l->uv); /* to open what the loop serves may have taken long */
	err = uv_timer_start(&timer->handle, on_timer, first_ms, repeat_ms);
	handle_begin(l, &timer->handle);
	return err;
}

int main_loop_stop_after(struct main_loop *l, uint64_t ns)
{
	return ns ? main_loop_every(l, (ns + 999999) / 1000000, 0, NULL) : 0;
}

void main_loop_stop(struct main_loop *l)
{
	if (l->stopping)
		return;
	l->stopping = true;
	if (l->stop)
		l->stop(l->context);
	else
		uv_stop(&l->uv);
}

void main_loop_fail(struct main_loop *l, int err)
{
	if (!err || l->error)
		return;
	l->error = err;
	main_loop_stop(l);
}

void main_loop_run(struct main_loop *l)
{
	if (!l->stopping || l->stop)
		uv_run(&l->uv, UV_RUN_DEFAULT);
	l->stopping = true;
}

static void on_walk(uv_handle_t *handle, void *context)
{
	(void)context;
	if (!uv_is_closing(handle))
		uv_close(handle, NULL);
}

void main_loop_close(struct main_loop *l)
{
	uv_walk(&l->uv, on_walk, NULL);
	/* A stop that nothing has consumed would end the first run at once. */
	while (uv_run(&l->uv, UV_RUN_DEFAULT))
		;
	uv_loop_close(&l->uv);
}
