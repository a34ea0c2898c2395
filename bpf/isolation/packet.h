/* SPDX-License-Identifier: GPL-2.0-only */
/* Sends and receives whole messages over a SOCK_SEQPACKET socket, each with or without a
 * descriptor. */
#ifndef ISOLATION_PACKET_H
#define ISOLATION_PACKET_H

#include <stddef.h>

/* Sends a message, with a copy of descriptor `fd` (-1: none). Waits for room unless the socket is
 * non-blocking. Returns 0 or -errno. */
int packet_send(int socket, const void *bytes, size_t len, int fd);
/* Receives a message of at most `max` bytes. Waits for it unless the socket is non-blocking. *fd:
 * the descriptor that came with it, which the caller closes, -1 if none; fd NULL: descriptors are
 * not received. Returns the number of bytes, 0 at the end of the stream, -EMSGSIZE if the message
 * was larger (it is discarded), or other -errno. */
long packet_receive(int socket, void *bytes, size_t max, int *fd);

#endif
