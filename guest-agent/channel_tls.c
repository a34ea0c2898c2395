// SPDX-License-Identifier: GPL-2.0-only
/* TLS over TCP: a relay process (tls_relay.c) transfers the bytes. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <arpa/inet.h>

#include "guest-agent/channel.h"
#include "clock/sample.h"
#include "guest-agent/tls_relay.h"
#include "proto/sibling.h"

static int tls_parse(const char *rest, struct channel_address *address, char *why, size_t why_bytes)
{
	return channel_carrier_tcp.parse(rest, address, why, why_bytes);
}

/*
 * The last relay's exit code: its reason was logged. A relay logs a reason that differs from the
 * one before, which a host can make happen at every attempt: so that is limited, like all lines
 * that a host causes.
 */
static int relay_reap(struct channel_address *address)
{
	int status;

	if (address->relay <= 0)
		return address->relay_said;
	kill(address->relay, SIGKILL); /* one that still runs has lost its agent's end */
	if (waitpid(address->relay, &status, 0) == address->relay && WIFEXITED(status)) {
		if (address->relay_said != WEXITSTATUS(status))
			log_limit_admit(&address->relay_lines, clock_monotonic_ms());
		address->relay_said = WEXITSTATUS(status);
	}
	address->relay = 0;
	return log_limit_is_reached(&address->relay_lines, clock_monotonic_ms())
		       ? RELAY_SILENT
		       : address->relay_said;
}

int channel_tls_check(char *why, size_t why_bytes)
{
	char path[PATH_MAX];
	int err = sibling_path(RELAY_NAME, path, sizeof(path));

	if (err)
		snprintf(why, why_bytes, "tls: needs the program %s: %s", path, strerror(-err));
	return err;
}

static int relay_spawn(struct channel_address *address, int fd, int said)
{
	const struct sockaddr_in *in = (const struct sockaddr_in *)&address->sockaddr;
	const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)&address->sockaddr;
	const bool is_v4 = address->sockaddr.ss_family == AF_INET;
	char path[PATH_MAX], host[INET6_ADDRSTRLEN], port[8], last[8], psk[PATH_MAX];
	char *const argv[] = {(char[]){RELAY_NAME}, host, port, psk, last, NULL};
	char *const envp[] = {NULL};
	posix_spawn_file_actions_t files;
	int err = sibling_path(RELAY_NAME, path, sizeof(path));

	if (err)
		return err;
	inet_ntop(address->sockaddr.ss_family,
		  is_v4 ? (const void *)&in->sin_addr : (const void *)&in6->sin6_addr, host,
		  sizeof(host));
	snprintf(port, sizeof(port), "%u", ntohs(is_v4 ? in->sin_port : in6->sin6_port));
	snprintf(last, sizeof(last), "%d", said);
	snprintf(psk, sizeof(psk), "%s", address->psk_path);
	err = posix_spawn_file_actions_init(&files);
	if (err)
		return -err;
	err = posix_spawn_file_actions_adddup2(&files, fd, RELAY_AGENT);
	if (!err)
		err = posix_spawn_file_actions_addclosefrom_np(&files, RELAY_AGENT + 1);
	if (!err)
		err = posix_spawn(&address->relay, path, &files, NULL, argv, envp);
	posix_spawn_file_actions_destroy(&files);
	return -err;
}

static int tls_dial(struct channel_address *address)
{
	const int said = relay_reap(address);
	int pair[2], high, err;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair) < 0)
		return -errno;
	/* A descriptor that is duplicated onto itself would stay close-on-exec. */
	high = fcntl(pair[1], F_DUPFD_CLOEXEC, RELAY_AGENT + 1);
	err = high < 0 ? -errno : relay_spawn(address, high, said);
	close(pair[1]);
	if (high >= 0)
		close(high);
	if (err) {
		close(pair[0]);
		return err;
	}
	return pair[0];
}

static int tls_probe(int fd)
{
	char byte;
	ssize_t n = recv(fd, &byte, 1, MSG_DONTWAIT);

	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	return n == 1 && byte == RELAY_UP ? 1 : -ECONNREFUSED;
}

const struct channel_carrier channel_carrier_tls = {
	.prefix = "tls:",
	.parse = tls_parse,
	.dial = tls_dial,
	.probe = tls_probe,
	.logs_reason = true,
	.retry_min_ms = 50,
	.retry_max_ms = 2000,
};
