/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The file of a listening Unix socket. A process that died leaves its socket behind, and bind()
 * refuses the path until the file is removed. Only a socket that nobody serves is ever removed:
 * a path that names anything else is a mistake in the configuration, and the file stays.
 */
#ifndef LINK_SOCKET_FILE_H
#define LINK_SOCKET_FILE_H

/* Makes `path` free for bind(). 0; -EADDRINUSE: a process serves the socket there; -EEXIST: what is
 * there is no socket; -errno. Never waits. */
int socket_file_clear(const char *path);
/* What to tell a person about an error of socket_file_clear() or of bind(). */
const char *socket_file_error(int err);
/* Removes the socket that we served; call it before the socket is closed, for another process may
 * take the path from then on. Anything else stays. */
void socket_file_remove(const char *path);

#endif
