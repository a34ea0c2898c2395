/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/daemon/libvirt_helper.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "host-collector/daemon/child.h"
#include "host-collector/daemon/daemon.h"
#include "proto/sibling.h"

enum {
	AGAIN_MS = 2000,
	AGAIN_MAX_MS = 60000,
	UUID_BYTES = 37,
	PLUGS_MAX = 4,
	PLUG_MAX_MS = 60000,
	PLUG_SAY = 4,   /* after this many failed attempts, the log says so once */
	EXIT_AGAIN = 3, /* libvirt/main.c */
};

#define PROGRAM "vcpuscope-libvirt"

struct libvirt_helper {
	uv_loop_t *loop;
	const struct vm_source *source;
	char uri[DAEMON_PATH_MAX], uuid[UUID_BYTES], vm[DAEMON_NAME_MAX];
	char agents[DAEMON_PATH_MAX]; /* of a plug: the socket; of a relay: "" */
	size_t *n_running;            /* of a plug, see libvirt_plug_new() */
	size_t tries;
	bool over;
	struct child process;
	bool runs, closing; /* runs: the process is not closed yet */
	uint64_t start_ms, again_ms, delay_ms;
};

static bool is_plug(const struct libvirt_helper *h)
{
	return h->agents[0];
}

static void on_closed(void *context)
{
	struct libvirt_helper *h = context;

	h->runs = false;
	if (h->closing)
		free(h);
	else if (is_plug(h))
		--*h->n_running;
}

/* A helper that served for a while may start again at once. */
static void later(struct libvirt_helper *h)
{
	const uint64_t now_ms = uv_now(h->loop);

	if (now_ms - h->start_ms > AGAIN_MAX_MS && !is_plug(h))
		h->delay_ms = AGAIN_MS;
	h->again_ms = now_ms + h->delay_ms;
	h->delay_ms = 2 * h->delay_ms < AGAIN_MAX_MS ? 2 * h->delay_ms : AGAIN_MAX_MS;
}

static void on_exit_seen(void *context, int status, int number)
{
	struct libvirt_helper *h = context;

	/* With another exit status, the plug is done, or it has logged why it cannot be. */
	if (is_plug(h) && !number && status != EXIT_AGAIN)
		h->over = true;
	if (is_plug(h) && !h->over && !h->closing && ++h->tries == PLUG_SAY)
		vm_source_say(h->source, h->vm,
			      "libvirt_attach: libvirt is busy with the domain or cannot be "
			      "reached, so it has no channel for its agent yet; still trying");
	later(h);
}

/* in: its standard input; -1: none. */
static int process_spawn(struct libvirt_helper *h, char **args, int in)
{
	char path[PATH_MAX];
	int err;

	(void)sibling_path(PROGRAM, path, sizeof(path)); /* the start fails for the same reason */
	h->process = (struct child){.ended = on_exit_seen, .closed = on_closed, .context = h};
	h->runs = true;
	if (is_plug(h))
		++*h->n_running;
	err = child_start(&h->process, h->loop, path, args, in, -1);
	if (err)
		later(h);
	return err;
}

static void relay_start(struct libvirt_helper *h, struct watched_vm *vm)
{
	char *args[] = {(char[]){PROGRAM}, (char[]){"relay"}, h->uri, h->uuid, NULL};
	int ends[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends)) {
		later(h);
		return;
	}
	if (process_spawn(h, args, ends[1]))
		close(ends[0]);
	else
		watched_vm_adopt(vm, ends[0]);
	close(ends[1]);
}

static void plug_start(struct libvirt_helper *h)
{
	char *args[] = {(char[]){PROGRAM}, (char[]){"plug"}, h->uri, h->uuid, h->agents, NULL};

	process_spawn(h, args, -1);
}

void libvirt_helper_tick(struct libvirt_helper *h)
{
	struct watched_vm *vm;

	if (!h)
		return;
	/* The loop then handles its end like that of any other helper. */
	if (is_plug(h) && uv_now(h->loop) - h->start_ms > PLUG_MAX_MS)
		child_kill(&h->process);
	if (h->runs || h->over || uv_now(h->loop) < h->again_ms)
		return;
	vm = vm_daemon_find(h->source->daemon, h->vm);
	if (!vm || !watched_vm_pid(vm) || (is_plug(h) && *h->n_running >= PLUGS_MAX))
		return;
	h->start_ms = uv_now(h->loop);
	if (is_plug(h))
		plug_start(h);
	else
		relay_start(h, vm);
}

struct libvirt_helper *libvirt_relay_new(uv_loop_t *loop, const struct vm_source *source,
					 const char *uri, const char *uuid, const char *vm)
{
	struct libvirt_helper *h = calloc(1, sizeof(*h));

	if (!h)
		return NULL;
	h->loop = loop;
	h->source = source;
	h->delay_ms = AGAIN_MS;
	snprintf(h->uri, sizeof(h->uri), "%s", uri);
	snprintf(h->uuid, sizeof(h->uuid), "%s", uuid);
	snprintf(h->vm, sizeof(h->vm), "%s", vm);
	return h;
}

struct libvirt_helper *libvirt_plug_new(uv_loop_t *loop, const struct vm_source *source,
					const char *uri, const char *uuid, const char *vm,
					const char *agents, size_t *n_running)
{
	struct libvirt_helper *h = libvirt_relay_new(loop, source, uri, uuid, vm);

	if (!h)
		return NULL;
	snprintf(h->agents, sizeof(h->agents), "%s", agents);
	h->n_running = n_running;
	return h;
}

void libvirt_plug_over(struct libvirt_helper *h)
{
	if (h)
		h->over = true;
}

void libvirt_helper_close(struct libvirt_helper *h)
{
	if (!h)
		return;
	h->closing = true;
	if (!h->runs) {
		free(h);
		return;
	}
	if (is_plug(h))
		--*h->n_running; /* the feed may be gone when the end is seen */
	child_kill(&h->process); /* the loop handles its end, so no zombie stays */
}
