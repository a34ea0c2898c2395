/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/link/socket_file.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

/* Returns 1 if the path is a socket, 0 if nothing is there, -EEXIST if it is something else, or
 * another -errno. */
static int is_socket(const char *path)
{
	struct stat s;

	if (lstat(path, &s))
		return errno == ENOENT ? 0 : -errno;
	return S_ISSOCK(s.st_mode) ? 1 : -EEXIST;
}

int socket_file_clear(const char *path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd, err;

	if (strlen(path) >= sizeof(address.sun_path))
		return -ENAMETOOLONG;
	memcpy(address.sun_path, path, strlen(path));
	/* connect() also returns ECONNREFUSED for other kinds of files. */
	err = is_socket(path);
	if (err <= 0)
		return err;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	err = connect(fd, (struct sockaddr *)&address, sizeof(address)) ? -errno : 0;
	close(fd);
	/* EAGAIN: the backlog is full. EPROTOTYPE: it is not a stream socket. */
	if (!err || err == -EAGAIN || err == -EPROTOTYPE)
		return -EADDRINUSE;
	if (err == -ENOENT)
		return 0;
	if (err != -ECONNREFUSED)
		return err;
	return unlink(path) && errno != ENOENT ? -errno : 0;
}

const char *socket_file_error(int err)
{
	switch (err) {
	case -EADDRINUSE:
		return "another process listens there";
	case -EEXIST:
		return "the file there is no socket; it is left alone";
	default:
		return strerror(-err);
	}
}

void socket_file_remove(const char *path)
{
	if (is_socket(path) == 1)
		unlink(path);
}
