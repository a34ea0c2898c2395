// SPDX-License-Identifier: GPL-2.0-only
/*
 * vcpuscope-agent-tls: transfers the agent's bytes to the host over TLS. The agent starts it with
 * a socket as descriptor 3 and sends plain text on it. When the TLS connection is up, the relay
 * writes one byte to the agent: RELAY_UP.
 *
 * The agent is linked statically and runs as root. GnuTLS therefore runs in this separate process,
 * which has dropped all rights except the use of its two sockets.
 *
 * usage: vcpuscope-agent-tls ADDRESS PORT PSK-FILE SAID SAID: exit code of the previous relay,
 * which has logged its reason; this relay does not log it again.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <grp.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "guest-agent/tls_relay.h"
#include "clock/sample.h"
#include "proto/tls.h"

enum {
	CONNECT_MAX_MS = 10000, /* and for the handshake */
	BUFFER_BYTES = 16 * 1024,
	NOBODY = 65534,
};

/* Bytes on their way from one side to the other. */
struct pipe_buffer {
	uint8_t bytes[BUFFER_BYTES];
	size_t from, to;
};

struct relay {
	struct tls *tls;
	int host;
	struct pipe_buffer out, in;
};

static int rights_drop(pid_t agent)
{
	if (!geteuid() && (setgroups(0, NULL) || setresgid(NOBODY, NOBODY, NOBODY) ||
			   setresuid(NOBODY, NOBODY, NOBODY)))
		return -errno;
	/* After the user has changed, for that undoes it. */
	if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) || prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) ||
	    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		return -errno;
	return getppid() == agent ? 0 : -ESRCH;
}

/* 0 when fd or the agent has something to say, -ETIMEDOUT, -EPIPE: the agent is gone. */
static int ready_wait(int fd, short events, int64_t deadline_ms)
{
	for (;;) {
		struct pollfd fds[] = {{.fd = fd, .events = events}, {.fd = RELAY_AGENT}};
		int64_t left = deadline_ms - clock_monotonic_ms();

		if (left <= 0)
			return -ETIMEDOUT;
		if (poll(fds, 2, (int)left) < 0 && errno != EINTR)
			return -errno;
		if (fds[1].revents & (POLLHUP | POLLERR))
			return -EPIPE;
		if (fds[0].revents)
			return 0;
	}
}

static int host_connect(const char *address, const char *port, int64_t deadline_ms, int *out)
{
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(port))};
	struct sockaddr_in6 in6 = {.sin6_family = AF_INET6, .sin6_port = in.sin_port};
	const bool is_v4 = inet_pton(AF_INET, address, &in.sin_addr) == 1;
	const struct sockaddr *to = is_v4 ? (struct sockaddr *)&in : (struct sockaddr *)&in6;
	socklen_t len = sizeof(int);
	int one = 1, err = 0;

	if (!is_v4 && inet_pton(AF_INET6, address, &in6.sin6_addr) != 1)
		return -EINVAL;
	*out = socket(to->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (*out < 0)
		return -errno;
	setsockopt(*out, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	if (!connect(*out, to, is_v4 ? sizeof(in) : sizeof(in6)))
		return 0;
	if (errno != EINPROGRESS)
		return -errno;
	err = ready_wait(*out, POLLOUT, deadline_ms);
	if (!err && getsockopt(*out, SOL_SOCKET, SO_ERROR, &one, &len))
		err = -errno;
	return err ? err : -one;
}

static int handshake(struct relay *r, int64_t deadline_ms, char *why, size_t why_bytes)
{
	int err;

	while ((err = tls_handshake(r->tls, why, why_bytes)) == -EAGAIN) {
		err = ready_wait(r->host, tls_wants_write(r->tls) ? POLLOUT : POLLIN, deadline_ms);
		if (err) {
			snprintf(why, why_bytes, "the TLS handshake: %s", strerror(-err));
			break;
		}
	}
	return err;
}

/* 0, or what ends the connection: -EPIPE at a regular end. */
static int out_move(struct relay *r, bool readable)
{
	struct pipe_buffer *b = &r->out;
	ssize_t n;

	if (readable && b->from == b->to) {
		n = recv(RELAY_AGENT, b->bytes, sizeof(b->bytes), MSG_DONTWAIT);
		if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
			return -EPIPE;
		b->from = 0;
		b->to = n > 0 ? (size_t)n : 0;
	}
	while (b->from < b->to) {
		n = tls_send(r->tls, b->bytes + b->from, b->to - b->from);
		if (n < 0)
			return n == -EAGAIN ? 0 : (int)n;
		b->from += (size_t)n;
	}
	return 0;
}

static int in_move(struct relay *r)
{
	struct pipe_buffer *b = &r->in;
	ssize_t n;

	for (;;) {
		while (b->from < b->to) {
			n = send(RELAY_AGENT, b->bytes + b->from, b->to - b->from,
				 MSG_DONTWAIT | MSG_NOSIGNAL);
			if (n < 0)
				return errno == EAGAIN || errno == EINTR ? 0 : -EPIPE;
			b->from += (size_t)n;
		}
		n = tls_receive(r->tls, b->bytes, sizeof(b->bytes));
		if (n <= 0)
			return n == -EAGAIN ? 0 : n == 0 ? -EPIPE : (int)n;
		b->from = 0;
		b->to = (size_t)n;
	}
}

static int carry(struct relay *r)
{
	int err = 0;

	while (!err) {
		const bool out_waits = r->out.from < r->out.to, in_waits = r->in.from < r->in.to;
		struct pollfd fds[] = {
			{.fd = RELAY_AGENT,
			 .events = (short)((out_waits ? 0 : POLLIN) | (in_waits ? POLLOUT : 0))},
			{.fd = r->host,
			 .events = (short)((in_waits ? 0 : POLLIN) | (out_waits ? POLLOUT : 0))},
		};

		if (poll(fds, 2, -1) < 0)
			continue;
		err = out_move(r, fds[0].revents & (POLLIN | POLLHUP | POLLERR));
		if (!err)
			err = in_move(r);
	}
	tls_bye(r->tls);
	return err == -EPIPE ? 0 : err;
}

static int relay_open(struct relay *r, char **argv, char *why, size_t why_bytes)
{
	const int64_t deadline_ms = clock_monotonic_ms() + CONNECT_MAX_MS;
	const pid_t agent = getppid();
	struct tls_psk psk;
	int err = tls_psk_read(argv[3], NULL, &psk, why, why_bytes);

	if (err)
		return err;
	err = rights_drop(agent);
	if (!err)
		err = host_connect(argv[1], argv[2], deadline_ms, &r->host);
	if (!err)
		err = tls_client_new(r->host, &psk, &r->tls);
	explicit_bzero(&psk, sizeof(psk));
	if (err)
		snprintf(why, why_bytes, "%s", strerror(-err));
	return err ? err : handshake(r, deadline_ms, why, why_bytes);
}

int main(int argc, char **argv)
{
	static struct relay r = {.host = -1};
	const uint8_t up = RELAY_UP;
	char why[256] = "";
	int err;

	if (argc != 5) {
		fprintf(stderr, "vcpuscope-agent-tls: vcpuscope-agent starts it: "
				"vcpuscope-agent --connect tls:ADDRESS:PORT --psk FILE\n");
		return 2;
	}
	err = relay_open(&r, argv, why, sizeof(why));
	if (err && err != -EPIPE && atoi(argv[4]) != -err && atoi(argv[4]) != RELAY_SILENT)
		fprintf(stderr, "vcpuscope-agent: cannot reach tls:%s:%s: %s; keeps trying\n",
			argv[1], argv[2], why);
	if (!err && send(RELAY_AGENT, &up, 1, MSG_NOSIGNAL) == 1)
		err = carry(&r);
	tls_free(r.tls);
	return -err;
}
