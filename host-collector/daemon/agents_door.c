/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/daemon/agents_door.h"

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
	WAIT_MS = 10000, /* QEMU connects again by itself */
};

struct waiting_agent {
	int fd;
	pid_t pid;
	uid_t uid;
	uint64_t since_ms;
};

struct agents_door {
	uv_loop_t *loop;
	struct vm_daemon *daemon;
	uv_poll_t poll;
	int listener;
	char path[sizeof(((struct sockaddr_un *)0)->sun_path)];
	struct waiting_agent waiting[WAITING_MAX];
	size_t n_waiting;
};

/* True if it found its VM. */
static bool served(struct agents_door *door, const struct waiting_agent *agent)
{
	for (size_t i = 0; i < vm_daemon_n_vms(door->daemon); i++) {
		struct watched_vm *vm = vm_daemon_vm(door->daemon, i);

		if (strcmp(watched_vm_config(vm)->channel, "daemon:") != 0 ||
		    watched_vm_pid(vm) != agent->pid)
			continue;
		watched_vm_adopt(vm, agent->fd);
		return true;
	}
	return false;
}

static size_t waiting_of(const struct agents_door *door, uid_t uid)
{
	size_t n = 0;

	for (size_t i = 0; i < door->n_waiting; i++)
		n += door->waiting[i].uid == uid;
	return n;
}

/* Closes the oldest connection of the user who has the most, so that no user can keep the others
 * out. False if that is `uid`, who would only displace its own. */
static bool room_make(struct agents_door *door, uid_t uid)
{
	size_t most = waiting_of(door, uid), at = door->n_waiting;

	for (size_t i = 0; i < door->n_waiting; i++) {
		const size_t n = waiting_of(door, door->waiting[i].uid);

		if (n <= most)
			continue;
		most = n;
		at = i;
	}
	if (at == door->n_waiting)
		return false;
	close(door->waiting[at].fd);
	door->n_waiting--;
	memmove(&door->waiting[at], &door->waiting[at + 1],
		(door->n_waiting - at) * sizeof(door->waiting[0]));
	return true;
}

static void on_connection(uv_poll_t *poll, int status, int events)
{
	struct agents_door *door = poll->data;
	struct waiting_agent agent = {.since_ms = uv_now(door->loop)};
	struct ucred peer;
	socklen_t len = sizeof(peer);

	(void)events;
	if (status < 0)
		return;
	agent.fd = accept4(door->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (agent.fd < 0)
		return;
	if (getsockopt(agent.fd, SOL_SOCKET, SO_PEERCRED, &peer, &len)) {
		close(agent.fd);
		return;
	}
	agent.pid = peer.pid;
	agent.uid = peer.uid;
	if (served(door, &agent))
		return;
	if (door->n_waiting == WAITING_MAX && !room_make(door, agent.uid))
		close(agent.fd);
	else
		door->waiting[door->n_waiting++] = agent;
}

void agents_door_tick(struct agents_door *door)
{
	size_t kept = 0;

	if (!door)
		return;
	for (size_t i = 0; i < door->n_waiting; i++) {
		struct waiting_agent *agent = &door->waiting[i];

		if (served(door, agent))
			continue;
		if (uv_now(door->loop) - agent->since_ms >= WAIT_MS)
			close(agent->fd);
		else
			door->waiting[kept++] = *agent;
	}
	door->n_waiting = kept;
}

/* A socket that nobody serves is replaced. */
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

static void door_freed(uv_handle_t *handle)
{
	free(handle->data);
}

int agents_door_open(uv_loop_t *loop, const char *path, struct vm_daemon *daemon,
		     struct agents_door **out, char *why, size_t why_bytes)
{
	struct agents_door *door = calloc(1, sizeof(*door));
	int err = -ENOMEM;

	if (!door)
		goto fail;
	door->loop = loop;
	door->daemon = daemon;
	snprintf(door->path, sizeof(door->path), "%s", path);
	door->listener = listen_at(path);
	err = door->listener < 0 ? door->listener : uv_poll_init(loop, &door->poll, door->listener);
	if (err)
		goto fail;
	door->poll.data = door;
	uv_poll_start(&door->poll, UV_READABLE, on_connection);
	*out = door;
	return 0;
fail:
	snprintf(why, why_bytes, "agents: %s: %s", path, socket_file_error(err));
	if (door && door->listener > 0)
		close(door->listener);
	free(door);
	return err;
}

void agents_door_close(struct agents_door *door)
{
	if (!door)
		return;
	for (size_t i = 0; i < door->n_waiting; i++)
		close(door->waiting[i].fd);
	uv_poll_stop(&door->poll);
	socket_file_remove(door->path);
	close(door->listener);
	uv_close((uv_handle_t *)&door->poll, door_freed);
}
