/* SPDX-License-Identifier: GPL-2.0-only */
#include "bpf/isolation/packet.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

union control {
	struct cmsghdr align;
	char bytes[CMSG_SPACE(sizeof(int))];
};

int packet_send(int socket, const void *bytes, size_t len, int fd)
{
	struct iovec iov = {(void *)bytes, len};
	union control control = {{0}};
	struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1};
	ssize_t n;

	if (fd >= 0) {
		struct cmsghdr *c;

		m.msg_control = control.bytes;
		m.msg_controllen = sizeof(control.bytes);
		c = CMSG_FIRSTHDR(&m);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(c), &fd, sizeof(fd));
	}
	do {
		/* Without a descriptor, uses sendto(), which every confined process may call. */
		n = fd >= 0 ? sendmsg(socket, &m, MSG_NOSIGNAL)
			    : send(socket, bytes, len, MSG_NOSIGNAL);
	} while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : 0;
}

static long plain_receive(int socket, void *bytes, size_t max)
{
	ssize_t n;

	do {
		n = recv(socket, bytes, max, MSG_TRUNC);
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	return (size_t)n > max ? -EMSGSIZE : (long)n;
}

long packet_receive(int socket, void *bytes, size_t max, int *fd)
{
	struct iovec iov = {bytes, max};
	union control control;
	struct msghdr m = {.msg_iov = &iov,
			   .msg_iovlen = 1,
			   .msg_control = control.bytes,
			   .msg_controllen = sizeof(control.bytes)};
	struct cmsghdr *c;
	ssize_t n;

	if (!fd)
		return plain_receive(socket, bytes, max);
	*fd = -1;
	do {
		n = recvmsg(socket, &m, MSG_CMSG_CLOEXEC);
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	c = CMSG_FIRSTHDR(&m);
	if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS &&
	    c->cmsg_len == CMSG_LEN(sizeof(int)))
		memcpy(fd, CMSG_DATA(c), sizeof(*fd));
	return m.msg_flags & MSG_TRUNC ? -EMSGSIZE : (long)n;
}
