/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/fleet/outbox_finisher.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "host-collector/fleet/segments.h"

enum {
	AGAIN_FIRST_S = 1,
	AGAIN_MOST_S = 60,
	REFUSALS_MAX = 64, /* in one round: then the others wait for the next one */
};

struct finishing {
	int fd; /* -1: the disk refused it; it is opened again */
	char name[SEGMENT_NAME_MAX];
	struct finishing *next;
};

struct queue {
	struct finishing *first, **last;
	uint64_t n;
};

struct outbox_finisher {
	int dir;
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t more;
	struct queue waiting;
	struct queue refused;         /* by the disk; they are tried again at again_s */
	const struct finishing *busy; /* in no queue now; NULL: none */
	time_t again_s, delay_s;
	int error; /* of the last refusal; 0: none is in `refused` */
	bool ending;
};

static void queue_add(struct queue *q, struct finishing *one)
{
	one->next = NULL;
	*q->last = one;
	q->last = &one->next;
	q->n++;
}

static struct finishing *queue_take(struct queue *q, struct finishing **at)
{
	struct finishing *one = *at;

	*at = one->next;
	if (!one->next)
		q->last = at;
	q->n--;
	return one;
}

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

/* Called with the lock held, which it releases meanwhile. Returns 0 or -errno. */
static int one_finish(struct outbox_finisher *f, struct finishing *one)
{
	int err;

	f->busy = one;
	pthread_mutex_unlock(&f->lock);
	err = finish(f->dir, one->fd, one->name);
	one->fd = -1;
	pthread_mutex_lock(&f->lock);
	f->busy = NULL;
	if (err) {
		f->error = err;
		queue_add(&f->refused, one);
	} else {
		free(one);
	}
	if (!f->refused.n)
		f->error = 0;
	return err;
}

/* Tries again what the disk refused, beginning with what it refused first. */
static void refused_finish(struct outbox_finisher *f)
{
	size_t refusals = 0;

	for (uint64_t n = f->refused.n; n && f->refused.first && refusals < REFUSALS_MAX; n--)
		refusals += one_finish(f, queue_take(&f->refused, &f->refused.first)) != 0;
	f->delay_s = !f->refused.n                   ? 0
		     : 2 * f->delay_s > AGAIN_MOST_S ? AGAIN_MOST_S
						     : 2 * f->delay_s;
	f->again_s = now_s() + f->delay_s;
}

/* Waits for more, or until it is time to try again. */
static void wait_for_more(struct outbox_finisher *f)
{
	struct timespec until = {.tv_sec = f->again_s};

	if (f->refused.n)
		pthread_cond_timedwait(&f->more, &f->lock, &until);
	else
		pthread_cond_wait(&f->more, &f->lock);
}

static void *run(void *context)
{
	struct outbox_finisher *f = context;

	pthread_mutex_lock(&f->lock);
	while (f->waiting.first || !f->ending) {
		if (f->waiting.first) {
			one_finish(f, queue_take(&f->waiting, &f->waiting.first));
			if (f->refused.n && !f->delay_s) {
				f->delay_s = AGAIN_FIRST_S;
				f->again_s = now_s() + f->delay_s;
			}
		} else if (f->refused.n && now_s() >= f->again_s) {
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
	f->waiting.last = &f->waiting.first;
	f->refused.last = &f->refused.first;
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
	while (f->refused.first) /* the next outbox completes them */
		free(queue_take(&f->refused, &f->refused.first));
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
	queue_add(&f->waiting, one);
	pthread_cond_signal(&f->more);
	pthread_mutex_unlock(&f->lock);
}

static struct finishing **queue_find(struct queue *q, const char *name)
{
	struct finishing **at = &q->first;

	while (*at && strcmp((*at)->name, name) != 0)
		at = &(*at)->next;
	return at;
}

bool outbox_finisher_drop(struct outbox_finisher *f, const char *name)
{
	struct finishing **at;
	bool done;

	if (!f)
		return true;
	pthread_mutex_lock(&f->lock);
	done = !(f->busy && !strcmp(f->busy->name, name)) && !*queue_find(&f->waiting, name);
	at = queue_find(&f->refused, name);
	if (done && *at)
		free(queue_take(&f->refused, at));
	if (!f->refused.n)
		f->error = 0;
	pthread_mutex_unlock(&f->lock);
	return done;
}

int outbox_finisher_refused(struct outbox_finisher *f, uint64_t *n)
{
	uint64_t refused = 0;
	int error = 0;

	if (f) {
		pthread_mutex_lock(&f->lock);
		error = f->error;
		refused = f->refused.n;
		pthread_mutex_unlock(&f->lock);
	}
	if (n)
		*n = refused;
	return error;
}
