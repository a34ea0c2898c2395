/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/daemon/agents_listener.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "host-collector/daemon/daemon.h"
#include "host-collector/link/socket_file.h"

enum {
	WAITING_MAX = DAEMON_VMS_MAX,
	WAIT_MS = 10000, /* then closes the connection; QEMU connects again by itself */
};

struct waiting_agent {
	int fd;
	pid_t pid;
	uid_t uid;
	uint64_t since_ms;
};

struct agents_listener {
	uv_loop_t *loop;
	struct vm_daemon *daemon;
	uv_poll_t poll;
	int listener;
	char path[sizeof(((struct sockaddr_un *)0)->sun_path)];
	struct waiting_agent waiting[WAITING_MAX];
	size_t n_waiting;
};

/* Returns true if it found the VM of the connection. */
static bool served(struct agents_listener *listener, const struct waiting_agent *agent)
{
	for (size_t i = 0; i < vm_daemon_n_vms(listener->daemon); i++) {
		struct watched_vm *vm = vm_daemon_vm(listener->daemon, i);

		if (strcmp(watched_vm_config(vm)->channel, "daemon:") != 0 ||
		    watched_vm_pid(vm) != agent->pid)
			continue;
		watched_vm_adopt(vm, agent->fd);
		return true;
	}
	return false;
}

static size_t waiting_of(const struct agents_listener *listener, uid_t uid)
{
	size_t n = 0;

	for (size_t i = 0; i < listener->n_waiting; i++)
		n += listener->waiting[i].uid == uid;
	return n;
}

/* Closes the oldest connection of the user who has the most, so that no user can keep the others
 * out. Returns false if that user is `uid`, which would only displace its own. */
static bool room_make(struct agents_listener *listener, uid_t uid)
{
	size_t most = waiting_of(listener, uid), at = listener->n_waiting;

	for (size_t i = 0; i < listener->n_waiting; i++) {
		const size_t n = waiting_of(listener, listener->waiting[i].uid);

		if (n <= most)
			continue;
		most = n;
		at = i;
	}
	if (at == listener->n_waiting)
		return false;
	close(listener->waiting[at].fd);
	listener->n_waiting--;
	memmove(&listener->waiting[at], &listener->waiting[at + 1],
		(listener->n_waiting - at) * sizeof(listener->waiting[0]));
	return true;
}

static void on_connection(uv_poll_t *poll, int status, int events)
{
	struct agents_listener *listener = poll->data;
	struct waiting_agent agent = {.since_ms = uv_now(listener->loop)};
	struct ucred peer;
	socklen_t len = sizeof(peer);

	(void)events;
	if (status < 0)
		return;
	agent.fd = accept4(listener->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (agent.fd < 0)
		return;
	if (getsockopt(agent.fd, SOL_SOCKET, SO_PEERCRED, &peer, &len)) {
		close(agent.fd);
		return;
	}
	agent.pid = peer.pid;
	agent.uid = peer.uid;
	if (served(listener, &agent))
		return;
	if (listener->n_waiting == WAITING_MAX && !room_make(listener, agent.uid))
		close(agent.fd);
	else
		listener->waiting[listener->n_waiting++] = agent;
}

void agents_listener_tick(struct agents_listener *listener)
{
	size_t kept = 0;

	if (!listener)
		return;
	for (size_t i = 0; i < listener->n_waiting; i++) {
		struct waiting_agent *agent = &listener->waiting[i];

		if (served(listener, agent))
			continue;
		if (uv_now(listener->loop) - agent->since_ms >= WAIT_MS)
			close(agent->fd);
		else
			listener->waiting[kept++] = *agent;
	}
	listener->n_waiting = kept;
}

/* Listens at `path`. Replaces a socket there on which no process listens. */
static int listen_at(const char *path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd, err = socket_file_clear(path);

	if (err)
		return err;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
	if (!bind(fd, (struct sockaddr *)&address, sizeof(address)) && !chmod(path, 0666) &&
	    !listen(fd, WAITING_MAX))
		return fd;
	err = -errno;
	close(fd);
	return err;
}

static void listener_freed(uv_handle_t *handle)
{
	free(handle->data);
}

int agents_listener_open(uv_loop_t *loop, const char *path, struct vm_daemon *daemon,
			 struct agents_listener **out, char *why, size_t why_bytes)
{
	struct agents_listener *listener = calloc(1, sizeof(*listener));
	int err = -ENOMEM;

	if (!listener)
		goto fail;
	listener->loop = loop;
	listener->daemon = daemon;
	snprintf(listener->path, sizeof(listener->path), "%s", path);
	listener->listener = listen_at(path);
	err = listener->listener < 0 ? listener->listener
				     : uv_poll_init(loop, &listener->poll, listener->listener);
	if (err)
		goto fail;
	listener->poll.data = listener;
	uv_poll_start(&listener->poll, UV_READABLE, on_connection);
	*out = listener;
	return 0;
fail:
	snprintf(why, why_bytes, "agents: %s: %s", path, socket_file_error(err));
	if (listener && listener->listener > 0)
		close(listener->listener);
	free(listener);
	return err;
}

void agents_listener_close(struct agents_listener *listener)
{
	if (!listener)
		return;
	for (size_t i = 0; i < listener->n_waiting; i++)
		close(listener->waiting[i].fd);
	uv_poll_stop(&listener->poll);
	socket_file_remove(listener->path);
	close(listener->listener);
	uv_close((uv_handle_t *)&listener->poll, listener_freed);
}
