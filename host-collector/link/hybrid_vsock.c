/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/link/hybrid_vsock.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "host-collector/link/socket_file.h"
#include "host-collector/vm/vmm_socket.h"
#include "proto/proc_file.h"

/* ---- listening ---- */

/* Where a socket is: its folder, and a path to the socket through the descriptor of the folder. */
struct place {
	int folder;
	char path[sizeof(((struct sockaddr_un *)0)->sun_path)];
	uid_t uid; /* the VMM's */
	gid_t gid;
};

static int ids_read(const char *proc, pid_t pid, struct place *out)
{
	char path[512], status[4096];
	const char *uid, *gid;

	snprintf(path, sizeof(path), "%s/%d/status", proc, pid);
	if (proc_file_read(path, status, sizeof(status)) <= 0)
		return -ESRCH;
	uid = strstr(status, "\nUid:\t");
	gid = strstr(status, "\nGid:\t");
	/* The fields are the real id, the effective id, and more. */
	return uid && gid && sscanf(uid + 6, "%*u %u", &out->uid) == 1 &&
			       sscanf(gid + 6, "%*u %u", &out->gid) == 1
		       ? 0
		       : -EIO;
}

/* Refuses a folder that other users may change: they could put another socket there. */
static int folder_check(const struct place *place)
{
	struct stat s;

	if (fstat(place->folder, &s))
		return -errno;
	if (s.st_uid && s.st_uid != place->uid)
		return -EACCES;
	return s.st_mode & S_IWOTH && !(s.st_mode & S_ISVTX) ? -EACCES : 0;
}

static int place_find(const char *proc, pid_t pid, const char *path, struct place *out)
{
	const char *slash = strrchr(path, '/');
	char folder[PATH_MAX];
	int err;

	out->folder = -1;
	if (path[0] != '/' || !slash[1] || !strcmp(slash, "/..") || !strcmp(slash, "/."))
		return -EINVAL;
	if ((size_t)snprintf(folder, sizeof(folder), "%.*s", (int)(slash - path + 1), path) >=
	    sizeof(folder))
		return -ENAMETOOLONG;
	err = ids_read(proc, pid, out);
	if (err)
		return err;
	out->folder = vmm_path_open(proc, pid, folder, O_DIRECTORY);
	if (out->folder < 0)
		return out->folder;
	err = folder_check(out);
	/* The path has one magic link, /proc/self/fd/N, which this code wrote itself. */
	if (!err && (size_t)snprintf(out->path, sizeof(out->path), "/proc/self/fd/%d%s",
				     out->folder, slash) >= sizeof(out->path))
		err = -ENAMETOOLONG;
	if (err)
		close(out->folder);
	return err;
}

struct fs_user {
	uid_t uid;
	gid_t gid;
};

/* Makes this thread access files as the VMM's user. */
static int user_become(const struct place *place, struct fs_user *before)
{
	before->gid = (gid_t)setfsgid(place->gid);
	before->uid = (uid_t)setfsuid(place->uid);
	/* These calls report no error. A call with an invalid id returns the current one. */
	return (uid_t)setfsuid((uid_t)-1) == place->uid && (gid_t)setfsgid((gid_t)-1) == place->gid
		       ? 0
		       : -EPERM;
}

static void user_restore(const struct fs_user *before)
{
	setfsuid(before->uid);
	setfsgid(before->gid);
}

static int place_listen(const struct place *place, int backlog)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int err = socket_file_clear(place->path), fd;

	if (err)
		return err;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	memcpy(address.sun_path, place->path, sizeof(address.sun_path));
	/* The file gets the mode of the socket. */
	if (!fchmod(fd, 0600) && !bind(fd, (struct sockaddr *)&address, sizeof(address)) &&
	    !listen(fd, backlog))
		return fd;
	err = -errno;
	close(fd);
	return err;
}

int hybrid_vsock_listen(const char *proc, pid_t pid, const char *path, int backlog)
{
	struct fs_user before;
	struct place place;
	int err = place_find(proc, pid, path, &place), fd;

	if (err)
		return err;
	err = user_become(&place, &before);
	fd = err ? err : place_listen(&place, backlog);
	user_restore(&before);
	close(place.folder);
	return fd;
}

void hybrid_vsock_remove(const char *proc, pid_t pid, const char *path)
{
	struct fs_user before;
	struct place place;

	if (place_find(proc, pid, path, &place))
		return;
	if (!user_become(&place, &before))
		socket_file_remove(place.path);
	user_restore(&before);
	close(place.folder);
}

/* ---- the handshake ---- */

int hybrid_vsock_request(int fd, uint32_t port)
{
	char line[32];
	const int len = snprintf(line, sizeof(line), "CONNECT %u\n", port);
	const ssize_t n = send(fd, line, (size_t)len, MSG_NOSIGNAL | MSG_DONTWAIT);

	if (n < 0)
		return -errno;
	return n == len ? 0 : -EAGAIN; /* a new connection's buffer takes more than that */
}

/* Returns true if the line is "OK N". */
static int answer_check(const char *line, size_t len)
{
	const char *digits = line + 3;

	if (len < 4 || strncmp(line, "OK ", 3) != 0)
		return -EPROTO;
	return strspn(digits, "0123456789") == len - 3 ? 0 : -EPROTO;
}

int hybrid_vsock_answer(int fd, struct hybrid_vsock_answer *answer)
{
	for (;;) {
		char byte;
		/* Reads no byte after the line: it belongs to the guest's stream. */
		const ssize_t n = recv(fd, &byte, 1, MSG_DONTWAIT);

		if (n < 0)
			return -errno;
		if (!n)
			return answer->len ? -EPROTO : -ECONNREFUSED;
		if (byte == '\n')
			return answer_check(answer->line, answer->len);
		if (answer->len == sizeof(answer->line) - 1)
			return -EPROTO;
		answer->line[answer->len++] = byte;
		answer->line[answer->len] = 0;
	}
}
