// SPDX-License-Identifier: GPL-2.0-only
/*
 * Socket carriers: vsock for VMs with that device, unix for tests and nested machines, TCP for VMs
 * without a free port. TCP addresses are numeric, because the agent is linked statically and
 * glibc's resolver does not work there.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>

#include <linux/vm_sockets.h>

#include "guest-agent/channel.h"
#include "proto/program/value.h"

static int unix_parse(const char *rest, struct channel_address *address, char *why,
		      size_t why_bytes)
{
	struct sockaddr_un *un = (struct sockaddr_un *)&address->sockaddr;

	if (!*rest || strlen(rest) >= sizeof(un->sun_path)) {
		snprintf(why, why_bytes, "unix: needs a path of at most %zu bytes",
			 sizeof(un->sun_path) - 1);
		return -EINVAL;
	}
	un->sun_family = AF_UNIX;
	strcpy(un->sun_path, rest);
	address->sockaddr_len = sizeof(*un);
	return 0;
}

static int tcp_parse(const char *rest, struct channel_address *address, char *why, size_t why_bytes)
{
	struct sockaddr_in *in = (struct sockaddr_in *)&address->sockaddr;
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)&address->sockaddr;
	const char *colon = strrchr(rest, ':');
	char host[INET6_ADDRSTRLEN + 2];
	uint64_t port;
	size_t n;

	if (!colon || number_parse(colon + 1, &port) || port < 1 || port > 65535)
		goto refuse;
	n = (size_t)(colon - rest);
	if (n >= 2 && rest[0] == '[' && rest[n - 1] == ']') {
		rest++;
		n -= 2;
	}
	if (n >= sizeof(host))
		goto refuse;
	memcpy(host, rest, n);
	host[n] = '\0';
	if (inet_pton(AF_INET, host, &in->sin_addr) == 1) {
		in->sin_family = AF_INET;
		in->sin_port = htons((uint16_t)port);
		address->sockaddr_len = sizeof(*in);
		return 0;
	}
	if (inet_pton(AF_INET6, host, &in6->sin6_addr) == 1) {
		in6->sin6_family = AF_INET6;
		in6->sin6_port = htons((uint16_t)port);
		address->sockaddr_len = sizeof(*in6);
		return 0;
	}
refuse:
	snprintf(why, why_bytes,
		 "tcp: needs a numeric address and a port, like tcp:192.168.122.1:7431 or "
		 "tcp:[fe80::1]:7431 (names are not resolved)");
	return -EINVAL;
}

/* CID:PORT; CID 2 is the host (VMADDR_CID_HOST). */
static int vsock_parse(const char *rest, struct channel_address *address, char *why,
		       size_t why_bytes)
{
	struct sockaddr_vm *vm = (struct sockaddr_vm *)&address->sockaddr;
	const size_t len = strcspn(rest, ":");
	uint64_t cid, port;

	/* UINT32_MAX stands for any. */
	if (!rest[len] || digits_parse(rest, len, &cid) || number_parse(rest + len + 1, &port) ||
	    cid >= UINT32_MAX || !port || port >= UINT32_MAX) {
		snprintf(why, why_bytes, "vsock: needs CID:PORT, like vsock:2:7431 (2: the host)");
		return -EINVAL;
	}
	vm->svm_family = AF_VSOCK;
	vm->svm_cid = (unsigned int)cid;
	vm->svm_port = (unsigned int)port;
	address->sockaddr_len = sizeof(*vm);
	return 0;
}

static int socket_dial(struct channel_address *address)
{
	int fd = socket(address->sockaddr.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	int one = 1, err;

	if (fd < 0)
		return -errno;
	if (address->carrier == &channel_carrier_tcp)
		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	if (connect(fd, (const struct sockaddr *)&address->sockaddr, address->sockaddr_len) < 0 &&
	    errno != EINPROGRESS) {
		err = -errno;
		close(fd);
		return err;
	}
	return fd;
}

static int socket_probe(int fd)
{
	struct pollfd poll_fd = {.fd = fd, .events = POLLOUT};
	socklen_t len = sizeof(int);
	int error = 0;

	if (poll(&poll_fd, 1, 0) < 0)
		return -errno;
	if (!poll_fd.revents)
		return 0;
	if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len) < 0)
		return -errno;
	if (error)
		return -error;
	return poll_fd.revents & POLLHUP ? -ECONNRESET : 1;
}

bool channel_address_is_exposed(const struct channel_address *address)
{
	const struct sockaddr_in *in = (const struct sockaddr_in *)&address->sockaddr;
	const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)&address->sockaddr;

	if (address->carrier != &channel_carrier_tcp)
		return false;
	return in->sin_family == AF_INET ? ntohl(in->sin_addr.s_addr) >> 24 != IN_LOOPBACKNET
					 : !IN6_IS_ADDR_LOOPBACK(&in6->sin6_addr);
}

const struct channel_carrier channel_carrier_unix = {
	.prefix = "unix:",
	.parse = unix_parse,
	.dial = socket_dial,
	.probe = socket_probe,
	.retry_min_ms = 50,
	.retry_max_ms = 1000,
};

const struct channel_carrier channel_carrier_tcp = {
	.prefix = "tcp:",
	.parse = tcp_parse,
	.dial = socket_dial,
	.probe = socket_probe,
	.retry_min_ms = 50,
	.retry_max_ms = 2000,
};

const struct channel_carrier channel_carrier_vsock = {
	.prefix = "vsock:",
	.parse = vsock_parse,
	.dial = socket_dial,
	.probe = socket_probe,
	.retry_min_ms = 50,
	.retry_max_ms = 1000,
};
