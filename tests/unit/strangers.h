/* SPDX-License-Identifier: GPL-2.0-only */
/* Processes that occupy a listening port with connections but do not speak the protocol. */
#ifndef UNIT_STRANGERS_H
#define UNIT_STRANGERS_H

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum stranger_kind {
	STRANGERS_SILENT,   /* send nothing, and connect again when they are closed */
	STRANGERS_ONE_BYTE, /* the same, but send the first byte of a TLS record */
	STRANGERS_GARBAGE,  /* send endless data that is neither frames nor TLS */
	STRANGERS_FLEETING, /* connect and close, as fast as they can */
};

static void stranger_replace(const struct sockaddr *address, socklen_t len, struct pollfd *p,
			     enum stranger_kind kind)
{
	if (p->fd >= 0)
		close(p->fd);
	p->fd = socket(address->sa_family, SOCK_STREAM | SOCK_NONBLOCK, 0);
	if (p->fd < 0)
		return;
	if (connect(p->fd, address, len) && errno != EINPROGRESS) { /* its backlog is full */
		close(p->fd);
		p->fd = -1;
		return;
	}
	p->events = kind == STRANGERS_SILENT ? POLLIN : POLLOUT;
}

/* Handles the events of one connection. Returns 0 if the connection is over. */
static int stranger_act(struct pollfd *p, enum stranger_kind kind)
{
	static const char garbage[4096] = {1, 2, 3};
	char byte = 0x16;

	if (p->revents & (POLLERR | POLLHUP) || kind == STRANGERS_FLEETING)
		return 0;
	if (p->revents & POLLIN) {
		char heard[4096];
		ssize_t n = recv(p->fd, heard, sizeof(heard), 0);

		return n > 0 || (n < 0 && errno == EAGAIN);
	}
	if (kind == STRANGERS_ONE_BYTE) {
		p->events = POLLIN;
		return send(p->fd, &byte, 1, MSG_NOSIGNAL) == 1;
	}
	return send(p->fd, garbage, sizeof(garbage), MSG_NOSIGNAL) > 0 || errno == EAGAIN;
}

static void __attribute__((noreturn)) strangers_run(const struct sockaddr *address, socklen_t len,
						    size_t n, enum stranger_kind kind, int reported)
{
	struct pollfd *all = calloc(n, sizeof(*all));
	struct rlimit files = {8192, 8192};

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	getrlimit(RLIMIT_NOFILE, &files);
	files.rlim_cur = files.rlim_max;
	setrlimit(RLIMIT_NOFILE, &files);
	for (size_t i = 0; i < n; i++) {
		all[i].fd = -1;
		stranger_replace(address, len, &all[i], kind);
	}
	(void)!write(reported, "x", 1);
	for (;;) {
		poll(all, n, 10);
		for (size_t i = 0; i < n; i++) {
			if (all[i].fd < 0 || (all[i].revents && !stranger_act(&all[i], kind)))
				stranger_replace(address, len, &all[i], kind);
		}
	}
}

/* Starts a process with `n` connections. Returns its pid when all connections were attempted, or
 * -1. */
static pid_t strangers_start(const struct sockaddr *address, socklen_t len, size_t n,
			     enum stranger_kind kind)
{
	int reported[2];
	char byte;
	pid_t pid;

	if (pipe(reported))
		return -1;
	pid = fork();
	if (!pid)
		strangers_run(address, len, n, kind, reported[1]);
	close(reported[1]);
	if (read(reported[0], &byte, 1) != 1)
		pid = -1;
	close(reported[0]);
	return pid;
}

static void strangers_stop(pid_t pid)
{
	if (pid <= 0)
		return;
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

#endif
