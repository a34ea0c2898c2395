/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/fleet/outbox_finisher.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "host-collector/fleet/segments.h"

enum { AGAIN_FIRST_S = 1, AGAIN_MOST_S = 60 };

struct finishing {
	int fd; /* -1: the disk refused it; it is opened again */
	char name[SEGMENT_NAME_MAX];
	struct finishing *next;
};

struct outbox_finisher {
	int dir;
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t more;
	struct finishing *first, **last;
	struct finishing *refused; /* by the disk; they are tried again at again_s */
	time_t again_s, delay_s;
	int error;
	bool ending;
};

/* Returns 0, or -errno: the file keeps its name. Closes fd in each case. */
static int finish(int dir, int fd, const char *name)
{
	char part[SEGMENT_NAME_MAX + 8];
	int err = 0;

	snprintf(part, sizeof(part), "%s" SEGMENT_PART, name);
	if (fd < 0)
		fd = openat(dir, part, O_WRONLY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT ? 0 : -errno; /* somebody removed it */
	if (fsync(fd) || renameat(dir, part, dir, name))
		err = -errno;
	else
		fsync(dir);
	close(fd);
	return err;
}

static time_t now_s(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec;
}

/* Called with the lock held, which it releases meanwhile. */
static void one_finish(struct outbox_finisher *f, struct finishing *one)
{
	int err;

	pthread_mutex_unlock(&f->lock);
	err = finish(f->dir, one->fd, one->name);
	one->fd = -1;
	pthread_mutex_lock(&f->lock);
	if (!err) {
		free(one);
		return;
	}
	f->error = err;
	one->next = f->refused;
	f->refused = one;
}

/* Tries again what the disk refused. */
static void refused_finish(struct outbox_finisher *f)
{
	struct finishing *all = f->refused, *next;

	f->refused = NULL;
	f->error = 0;
	for (; all; all = next) {
		next = all->next;
		one_finish(f, all);
	}
	f->delay_s = !f->refused                     ? 0
		     : 2 * f->delay_s > AGAIN_MOST_S ? AGAIN_MOST_S
						     : 2 * f->delay_s;
	f->again_s = now_s() + f->delay_s;
}

/* Waits for more, or until it is time to try again. */
static void wait_for_more(struct outbox_finisher *f)
{
	struct timespec until = {.tv_sec = f->again_s};

	if (f->refused)
		pthread_cond_timedwait(&f->more, &f->lock, &until);
	else
		pthread_cond_wait(&f->more, &f->lock);
}

static void *run(void *context)
{
	struct outbox_finisher *f = context;

	pthread_mutex_lock(&f->lock);
	while (f->first || !f->ending) {
		struct finishing *one = f->first;

		if (one) {
			f->first = one->next;
			if (!f->first)
				f->last = &f->first;
			one_finish(f, one);
			if (f->refused && !f->delay_s) {
				f->delay_s = AGAIN_FIRST_S;
				f->again_s = now_s() + f->delay_s;
			}
		} else if (f->refused && now_s() >= f->again_s) {
			refused_finish(f);
		} else {
			wait_for_more(f);
		}
	}
	refused_finish(f);
	pthread_mutex_unlock(&f->lock);
	return NULL;
}

int outbox_finisher_new(int dir, struct outbox_finisher **out)
{
	struct outbox_finisher *f = calloc(1, sizeof(*f));
	pthread_condattr_t clock;
	int err;

	if (!f)
		return -ENOMEM;
	f->dir = dir;
	f->last = &f->first;
	pthread_mutex_init(&f->lock, NULL);
	pthread_condattr_init(&clock);
	pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
	pthread_cond_init(&f->more, &clock);
	pthread_condattr_destroy(&clock);
	err = -pthread_create(&f->thread, NULL, run, f);
	if (err)
		free(f);
	else
		*out = f;
	return err;
}

void outbox_finisher_free(struct outbox_finisher *f)
{
	if (!f)
		return;
	pthread_mutex_lock(&f->lock);
	f->ending = true;
	pthread_cond_signal(&f->more);
	pthread_mutex_unlock(&f->lock);
	pthread_join(f->thread, NULL);
	while (f->refused) { /* the next outbox completes them */
		struct finishing *next = f->refused->next;

		free(f->refused);
		f->refused = next;
	}
	pthread_cond_destroy(&f->more);
	pthread_mutex_destroy(&f->lock);
	free(f);
}

void outbox_finisher_add(struct outbox_finisher *f, int fd, const char *name)
{
	struct finishing *one = calloc(1, sizeof(*one));

	if (!one) {
		finish(f->dir, fd, name);
		return;
	}
	one->fd = fd;
	snprintf(one->name, sizeof(one->name), "%s", name);
	pthread_mutex_lock(&f->lock);
	*f->last = one;
	f->last = &one->next;
	pthread_cond_signal(&f->more);
	pthread_mutex_unlock(&f->lock);
}

int outbox_finisher_error(struct outbox_finisher *f)
{
	int error;

	if (!f)
		return 0;
	pthread_mutex_lock(&f->lock);
	error = f->error;
	pthread_mutex_unlock(&f->lock);
	return error;
}
