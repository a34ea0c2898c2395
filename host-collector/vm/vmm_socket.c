/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/vm/vmm_socket.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

bool vmm_root_differs(const char *proc, pid_t pid)
{
	char path[512], own[64], its[64];
	struct stat own_root, its_root;
	ssize_t n, m;

	snprintf(path, sizeof(path), "%s/self/ns/mnt", proc);
	n = readlink(path, own, sizeof(own));
	snprintf(path, sizeof(path), "%s/%d/ns/mnt", proc, pid);
	m = readlink(path, its, sizeof(its));
	if (n <= 0 || m <= 0)
		return false;
	if (n != m || memcmp(own, its, (size_t)n) != 0)
		return true;
	snprintf(path, sizeof(path), "%s/%d/root", proc, pid);
	return !stat("/", &own_root) && !stat(path, &its_root) &&
	       (own_root.st_dev != its_root.st_dev || own_root.st_ino != its_root.st_ino);
}

int vmm_path_open(const char *proc, pid_t pid, const char *path, uint64_t flags)
{
	const struct open_how how = {.flags = O_PATH | O_CLOEXEC | flags,
				     .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS};
	char root_path[512];
	int root, fd;

	snprintf(root_path, sizeof(root_path), "%s/%d/root", proc, pid);
	root = open(root_path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (root < 0)
		return -errno;
	fd = (int)syscall(SYS_openat2, root, path, &how, sizeof(how));
	if (fd < 0)
		fd = -errno;
	close(root);
	return fd;
}

/* The same, of a socket. */
static int socket_find(const char *proc, pid_t pid, const char *path)
{
	const int fd = vmm_path_open(proc, pid, path, 0);
	struct stat s;

	if (fd < 0)
		return fd;
	if (!fstat(fd, &s) && S_ISSOCK(s.st_mode))
		return fd;
	close(fd);
	return -ENOTSOCK;
}

int vmm_socket_peer_check(int fd, pid_t pid)
{
	struct ucred peer;
	socklen_t len = sizeof(peer);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len))
		return -errno;
	return peer.pid == pid ? 0 : -EPERM;
}

int vmm_socket_connect(const char *proc, pid_t pid, const char *path, int limit_ms)
{
	const struct timeval limit = {.tv_sec = limit_ms / 1000, .tv_usec = limit_ms % 1000 * 1000};
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int file = socket_find(proc, pid, path), fd, err = 0;

	if (file < 0)
		return file;
	/* The one magic link that is followed is ours. */
	snprintf(address.sun_path, sizeof(address.sun_path), "/proc/self/fd/%d", file);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | (limit_ms ? 0 : SOCK_NONBLOCK), 0);
	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit)) ||
	    connect(fd, (struct sockaddr *)&address, sizeof(address)))
		err = errno == EAGAIN && limit_ms ? -ETIMEDOUT : -errno;
	if (!err)
		err = vmm_socket_peer_check(fd, pid);
	close(file);
	if (!err)
		return fd;
	if (fd >= 0)
		close(fd);
	return err;
}
