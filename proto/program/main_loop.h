/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The event loop of a program that runs until it is stopped: by a signal, at a time limit, or by
 * the program itself.
 *
 *	main_loop_open(&l, context, NULL);
 *	...                            // open what uses l.uv
 *	main_loop_stop_on_signals(&l);
 *	main_loop_every(&l, 100, 100, on_tick);
 *	main_loop_run(&l);             // until main_loop_stop()
 *	...                            // begin to close
 *	main_loop_close(&l);           // waits for the close callbacks
 *
 * Calls come from one thread.
 */
#ifndef PROGRAM_MAIN_LOOP_H
#define PROGRAM_MAIN_LOOP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

enum { MAIN_LOOP_HANDLES_MAX = 6 };

struct main_loop;
struct main_loop_signal {
	uv_signal_t handle;
	struct main_loop *loop;
	void (*call)(void *context, int number); /* NULL: stops */
};
struct main_loop_timer {
	uv_timer_t handle;
	struct main_loop *loop;
	void (*call)(void *context); /* NULL: stops */
};

struct main_loop {
	uv_loop_t uv;
	void *context;
	bool stopping;
	int error; /* the first that main_loop_fail() got */
	/* Begins the end; the loop then runs until the program has closed its handles. NULL: the
	 * loop stops at once. */
	void (*stop)(void *context);
	struct main_loop_signal signals[MAIN_LOOP_HANDLES_MAX];
	struct main_loop_timer timers[MAIN_LOOP_HANDLES_MAX];
	size_t n_signals, n_timers;
};

/* Makes the loop. `context` is for the callbacks; for `stop` see struct main_loop. Errors of
 * write() must not end the program, so SIGPIPE and SIGXFSZ are ignored from here on. `l` must not
 * move in memory until main_loop_close(). Returns 0 or -errno. */
int main_loop_open(struct main_loop *l, void *context, void (*stop)(void *context));
/* Calls `call` for each signal `number`. Returns 0 or -errno. */
int main_loop_on_signal(struct main_loop *l, int number, void (*call)(void *context, int number));
/* Stops the loop at the first SIGINT or SIGTERM. A second one has its default effect: it ends a
 * program that hangs. Returns 0 or -errno. */
int main_loop_stop_on_signals(struct main_loop *l);
/* Calls `call` after `first_ms` from now and then every `repeat_ms`. Returns 0 or -errno. */
int main_loop_every(struct main_loop *l, uint64_t first_ms, uint64_t repeat_ms,
		    void (*call)(void *context));
/* Stops the loop after `ns` from now; 0: never. Returns 0 or -errno. */
int main_loop_stop_after(struct main_loop *l, uint64_t ns);
/* Stops the loop; main_loop_run() returns, also if it is called later. */
void main_loop_stop(struct main_loop *l);
/* Stops the loop because of -errno; 0 is no error. The first error is kept. */
void main_loop_fail(struct main_loop *l, int err);
/* Runs until main_loop_stop() or uv_stop(), or until no handle is active. */
void main_loop_run(struct main_loop *l);
/* Closes all handles that are open, waits for their callbacks and frees the loop. */
void main_loop_close(struct main_loop *l);

#endif
