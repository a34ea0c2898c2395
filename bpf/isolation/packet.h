/* SPDX-License-Identifier: GPL-2.0-only */
/* Whole messages over a SOCK_SEQPACKET socket, each with a descriptor or without. */
#ifndef ISOLATION_PACKET_H
#define ISOLATION_PACKET_H

#include <stddef.h>

/* fd: goes along, -1 none. Waits for room, unless the socket does not block. 0 or -errno. */
int packet_send(int socket, const void *bytes, size_t len, int fd);
/* Waits for one, likewise. *fd: the descriptor that came along, -1 none; NULL: none is taken.
 * Bytes, 0 at the end, -EMSGSIZE: larger than `max` (it is gone), -errno. */
long packet_receive(int socket, void *bytes, size_t max, int *fd);

#endif
