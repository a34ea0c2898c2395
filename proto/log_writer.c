// SPDX-License-Identifier: GPL-2.0-only
/*
 * Uses two buffers: callers fill one while the thread writes the other. The thread may block in
 * write() forever. It is therefore detached, and the last of the thread and log_writer_free()
 * frees the memory.
 */
#include "proto/log_writer.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { LINE_BYTES = 1024, NOTE_BYTES = 128, STACK_BYTES = 64 * 1024 };

struct log_writer {
	int fd;
	pthread_mutex_t lock;
	pthread_cond_t wake, idle;
	/* Under the lock. */
	size_t used;
	uint64_t dropped, dropped_said;
	bool writing, ends, abandoned, over;
	char waiting[LOG_WRITER_BYTES];
	/* The thread's; room for a line on what was dropped. */
	char out[LOG_WRITER_BYTES + NOTE_BYTES];
};

static uint64_t lines_count(const char *text)
{
	uint64_t n = 0;

	while ((text = strchr(text, '\n'))) {
		text++;
		n++;
	}
	return n;
}

static void all_write(int fd, const char *text, size_t len)
{
	while (len) {
		ssize_t n = write(fd, text, len);

		if (n < 0 && errno == EAGAIN) { /* somebody else's O_NONBLOCK */
			poll(&(struct pollfd){.fd = fd, .events = POLLOUT}, 1, -1);
			continue;
		}
		if (n < 0 && errno != EINTR)
			return; /* nobody will read it */
		if (n > 0) {
			text += n;
			len -= (size_t)n;
		}
	}
}

/* Moves what waits into `out`, under the lock. Returns its length. */
static size_t waiting_take(struct log_writer *w)
{
	size_t len = w->used;

	memcpy(w->out, w->waiting, len);
	w->used = 0;
	if (w->dropped != w->dropped_said)
		len += (size_t)snprintf(w->out + len, NOTE_BYTES,
					"%" PRIu64 " lines are missing here: this log was not read "
					"fast enough\n",
					w->dropped - w->dropped_said);
	w->dropped_said = w->dropped;
	return len;
}

static void writer_destroy(struct log_writer *w)
{
	pthread_mutex_destroy(&w->lock);
	pthread_cond_destroy(&w->wake);
	pthread_cond_destroy(&w->idle);
	free(w);
}

static void *writer_run(void *argument)
{
	struct log_writer *w = argument;
	bool abandoned;

	pthread_mutex_lock(&w->lock);
	for (;;) {
		size_t len;

		while (!w->used && !w->ends)
			pthread_cond_wait(&w->wake, &w->lock);
		if (w->abandoned || !w->used)
			break;
		len = waiting_take(w);
		w->writing = true;
		pthread_mutex_unlock(&w->lock);
		all_write(w->fd, w->out, len);
		pthread_mutex_lock(&w->lock);
		w->writing = false;
	}
	w->over = true;
	abandoned = w->abandoned;
	pthread_cond_signal(&w->idle);
	pthread_mutex_unlock(&w->lock);
	if (abandoned)
		writer_destroy(w);
	return NULL;
}

static int thread_start(struct log_writer *w)
{
	pthread_attr_t attributes;
	sigset_t all, before;
	pthread_t thread;
	int err;

	err = pthread_attr_init(&attributes);
	if (err)
		return -err;
	pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
	pthread_attr_setstacksize(&attributes, STACK_BYTES);
	sigfillset(&all); /* signals are the loop's */
	pthread_sigmask(SIG_SETMASK, &all, &before);
	err = pthread_create(&thread, &attributes, writer_run, w);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attributes);
	return -err;
}

int log_writer_new(int fd, struct log_writer **out)
{
	struct log_writer *w = calloc(1, sizeof(*w));
	pthread_condattr_t steady;
	int err;

	if (!w)
		return -ENOMEM;
	w->fd = fd;
	pthread_mutex_init(&w->lock, NULL);
	pthread_cond_init(&w->wake, NULL);
	pthread_condattr_init(&steady);
	pthread_condattr_setclock(&steady, CLOCK_MONOTONIC);
	pthread_cond_init(&w->idle, &steady);
	pthread_condattr_destroy(&steady);
	err = thread_start(w);
	if (err) {
		writer_destroy(w);
		return err;
	}
	*out = w;
	return 0;
}

void log_writer_put(struct log_writer *w, const char *text)
{
	const size_t len = strlen(text);

	if (!w) {
		fputs(text, stderr);
		return;
	}
	pthread_mutex_lock(&w->lock);
	if (len > sizeof(w->waiting) - w->used) {
		w->dropped += lines_count(text);
	} else {
		memcpy(w->waiting + w->used, text, len);
		w->used += len;
		pthread_cond_signal(&w->wake);
	}
	pthread_mutex_unlock(&w->lock);
}

void log_writer_line(struct log_writer *w, const char *format, ...)
{
	char line[LINE_BYTES + 1];
	va_list args;

	va_start(args, format);
	vsnprintf(line, LINE_BYTES, format, args);
	va_end(args);
	strcat(line, "\n");
	log_writer_put(w, line);
}

void log_writer_free(struct log_writer *w, unsigned int wait_ms)
{
	struct timespec until;
	bool over;

	if (!w)
		return;
	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += wait_ms / 1000;
	until.tv_nsec += (long)(wait_ms % 1000) * 1000000;
	if (until.tv_nsec >= 1000000000) {
		until.tv_sec++;
		until.tv_nsec -= 1000000000;
	}
	pthread_mutex_lock(&w->lock);
	w->ends = true;
	pthread_cond_signal(&w->wake);
	while (!w->over && !pthread_cond_timedwait(&w->idle, &w->lock, &until)) {
	}
	over = w->over;
	w->abandoned = !over;
	pthread_mutex_unlock(&w->lock);
	if (over)
		writer_destroy(w);
}
