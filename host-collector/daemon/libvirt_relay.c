/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/daemon/libvirt_relay.h"

#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "host-collector/daemon/daemon.h"
#include "proto/sibling.h"

enum { AGAIN_MS = 2000, AGAIN_MAX_MS = 60000, UUID_BYTES = 37 };

#define PROGRAM "vcpuscope-libvirt"

struct libvirt_relay {
	uv_loop_t *loop;
	struct vm_daemon *daemon;
	char uri[DAEMON_PATH_MAX], uuid[UUID_BYTES], vm[DAEMON_NAME_MAX];
	uv_process_t process;
	bool runs, closing; /* runs: the handle is open */
	uint64_t start_ms, again_ms, delay_ms;
};

static void on_closed(uv_handle_t *handle)
{
	struct libvirt_relay *r = handle->data;

	r->runs = false;
	if (r->closing)
		free(r);
}

/* One that has served a while may come back at once. */
static void later(struct libvirt_relay *r)
{
	const uint64_t now_ms = uv_now(r->loop);

	if (now_ms - r->start_ms > AGAIN_MAX_MS)
		r->delay_ms = AGAIN_MS;
	r->again_ms = now_ms + r->delay_ms;
	r->delay_ms = 2 * r->delay_ms < AGAIN_MAX_MS ? 2 * r->delay_ms : AGAIN_MAX_MS;
}

static void on_exit_seen(uv_process_t *process, int64_t status, int number)
{
	struct libvirt_relay *r = process->data;

	(void)status, (void)number; /* it has said why */
	later(r);
	uv_close((uv_handle_t *)process, on_closed);
}

static void process_start(struct libvirt_relay *r, struct watched_vm *vm)
{
	char path[PATH_MAX];
	char *args[] = {(char[]){PROGRAM}, (char[]){"relay"}, r->uri, r->uuid, NULL};
	int ends[2];
	uv_stdio_container_t files[3] = {
		{.flags = UV_INHERIT_FD},
		{.flags = UV_IGNORE},
		{.flags = UV_INHERIT_FD, .data.fd = STDERR_FILENO},
	};
	const uv_process_options_t options = {
		.exit_cb = on_exit_seen,
		.file = path,
		.args = args,
		.stdio_count = 3,
		.stdio = files,
	};

	r->start_ms = uv_now(r->loop);
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends)) {
		later(r);
		return;
	}
	files[0].data.fd = ends[1];
	(void)sibling_path(PROGRAM, path, sizeof(path)); /* uv_spawn fails for the same reason */
	r->process.data = r;
	r->runs = true;
	if (uv_spawn(r->loop, &r->process, &options)) {
		later(r);
		uv_close((uv_handle_t *)&r->process, on_closed);
		close(ends[0]);
	} else {
		watched_vm_adopt(vm, ends[0]);
	}
	close(ends[1]);
}

void libvirt_relay_tick(struct libvirt_relay *r)
{
	struct watched_vm *vm;

	if (!r || r->runs || uv_now(r->loop) < r->again_ms)
		return;
	vm = vm_daemon_find(r->daemon, r->vm);
	if (vm && watched_vm_pid(vm))
		process_start(r, vm);
}

struct libvirt_relay *libvirt_relay_new(uv_loop_t *loop, struct vm_daemon *daemon, const char *uri,
					const char *uuid, const char *vm)
{
	struct libvirt_relay *r = calloc(1, sizeof(*r));

	if (!r)
		return NULL;
	r->loop = loop;
	r->daemon = daemon;
	r->delay_ms = AGAIN_MS;
	snprintf(r->uri, sizeof(r->uri), "%s", uri);
	snprintf(r->uuid, sizeof(r->uuid), "%s", uuid);
	snprintf(r->vm, sizeof(r->vm), "%s", vm);
	return r;
}

void libvirt_relay_close(struct libvirt_relay *r)
{
	if (!r)
		return;
	r->closing = true;
	if (!r->runs) {
		free(r);
		return;
	}
	uv_process_kill(&r->process, SIGKILL); /* its end is seen, so it leaves no zombie */
}
