/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/fleet/outbox_finisher.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "host-collector/fleet/segments.h"

struct finishing {
	int fd;
	char name[SEGMENT_NAME_MAX];
	struct finishing *next;
};

struct outbox_finisher {
	int dir;
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t more;
	struct finishing *first, **last;
	bool ending;
};

static void finish(int dir, int fd, const char *name)
{
	char part[SEGMENT_NAME_MAX + 8];

	snprintf(part, sizeof(part), "%s" SEGMENT_PART, name);
	if (!fsync(fd) && !renameat(dir, part, dir, name))
		fsync(dir);
	close(fd);
}

static void *run(void *context)
{
	struct outbox_finisher *f = context;

	pthread_mutex_lock(&f->lock);
	for (;;) {
		struct finishing *one = f->first;

		if (!one && f->ending)
			break;
		if (!one) {
			pthread_cond_wait(&f->more, &f->lock);
			continue;
		}
		f->first = one->next;
		if (!f->first)
			f->last = &f->first;
		pthread_mutex_unlock(&f->lock);
		finish(f->dir, one->fd, one->name);
		free(one);
		pthread_mutex_lock(&f->lock);
	}
	pthread_mutex_unlock(&f->lock);
	return NULL;
}

int outbox_finisher_new(int dir, struct outbox_finisher **out)
{
	struct outbox_finisher *f = calloc(1, sizeof(*f));
	int err;

	if (!f)
		return -ENOMEM;
	f->dir = dir;
	f->last = &f->first;
	pthread_mutex_init(&f->lock, NULL);
	pthread_cond_init(&f->more, NULL);
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
