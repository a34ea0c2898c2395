/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/daemon/vm_search.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

struct vm_search {
	uv_work_t work;
	struct vm_options options;
	char *qmp_path;
	struct vm_search_events events;
	bool forgotten;
	/* Written by the thread, read once it is over. */
	struct vm *vm;
	int err;
	char why[256];
};

static void on_thread(uv_work_t *work)
{
	struct vm_search *s = work->data;

	s->err = vm_open(&s->options, &s->vm, s->why, sizeof(s->why));
}

static void on_over(uv_work_t *work, int status)
{
	struct vm_search *s = work->data;

	if (status) /* cancelled before it began */
		s->err = status;
	if (s->forgotten)
		vm_close(s->vm);
	else
		s->events.done(s->events.context, s->vm, s->err, s->why);
	free(s->qmp_path);
	free(s);
}

int vm_search_begin(uv_loop_t *loop, const struct vm_options *options,
		    const struct vm_search_events *events, struct vm_search **out)
{
	struct vm_search *s = calloc(1, sizeof(*s));
	int err = -ENOMEM;

	if (!s)
		return err;
	s->work.data = s;
	s->options = *options;
	s->events = *events;
	s->qmp_path = strdup(options->qmp_path);
	s->options.qmp_path = s->qmp_path;
	if (s->qmp_path)
		err = uv_queue_work(loop, &s->work, on_thread, on_over);
	if (err) {
		free(s->qmp_path);
		free(s);
		return err;
	}
	*out = s;
	return 0;
}

void vm_search_forget(struct vm_search *s)
{
	if (!s)
		return;
	s->forgotten = true;
	uv_cancel((uv_req_t *)&s->work); /* works if it has not begun */
}
