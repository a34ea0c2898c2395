/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Uses the vsock of VMMs that carry it over Unix sockets (Firecracker, Cloud Hypervisor). The VMM
 * listens at the PATH of its vsock device. If the guest connects to the host's port P, the VMM
 * connects to the socket `PATH_P`. A process of the host that wants port P of the guest connects to
 * PATH, sends "CONNECT P" and gets "OK N".
 *
 * The path is as the VMM sees it, possibly in a container (vm/vmm_socket.h). The socket to listen
 * on is created with the rights of the VMM's user, in a folder that only this user and root
 * control. Only connections of the VMM's process are accepted there.
 */
#ifndef LINK_HYBRID_VSOCK_H
#define LINK_HYBRID_VSOCK_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * Creates a socket at `path`, as seen by `pid`, and listens on it. It belongs to the VMM's user,
 * and only that user may connect. Replaces a socket that no process serves. Changes the thread's
 * file-system user meanwhile. Returns a non-blocking descriptor, which the caller closes, or
 * -errno: -EACCES: the folder belongs to a user other than root and the VMM's, everybody may change
 * it, or the VMM's user may not; -EADDRINUSE: another process listens there; -EEXIST: a file of
 * another kind; -EINVAL: not an absolute path; -ENAMETOOLONG; others as in vmm_socket_connect().
 */
int hybrid_vsock_listen(const char *proc, pid_t pid, const char *path, int backlog);
/* Removes the socket file, if it is one. Call it before the socket is closed. */
void hybrid_vsock_remove(const char *proc, pid_t pid, const char *path);

/* Sends the request for a port of the guest on a socket that was just connected. Returns 0 or
 * -errno. */
int hybrid_vsock_request(int fd, uint32_t port);
/* The part of an answer that was received; all 0 before the first. */
struct hybrid_vsock_answer {
	char line[32]; /* the longest answer is "OK 4294967295" */
	size_t len;
};
/* Reads the VMM's answer, and no byte beyond it. Returns 0 if the guest is connected; -EAGAIN: the
 * answer is not complete yet; -ECONNREFUSED: the VMM closed the connection, because no process in
 * the guest listens; -EPROTO: it is not an answer; or another -errno. */
int hybrid_vsock_answer(int fd, struct hybrid_vsock_answer *answer);

#endif
