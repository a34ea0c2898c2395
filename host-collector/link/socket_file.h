/* SPDX-License-Identifier: GPL-2.0-only */
/* The file of a listening Unix socket. A process that died leaves its socket file behind, and
 * bind() refuses the path until the file is removed. Only a socket that no process serves is
 * removed. A path to another kind of file is a mistake in the configuration, and the file stays. */
#ifndef LINK_SOCKET_FILE_H
#define LINK_SOCKET_FILE_H

/* Frees `path` for bind(). Never waits. Returns 0 or -errno: -EADDRINUSE (a process serves the
 * socket), -EEXIST (the file is not a socket). */
int socket_file_clear(const char *path);
/* Returns a description of an error of socket_file_clear() or of bind(). */
const char *socket_file_error(int err);
/* Removes the file of a socket that this process served. Call it before the socket is closed,
 * because another process may use the path after that. Leaves other kinds of files alone. */
void socket_file_remove(const char *path);

#endif
