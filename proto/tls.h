/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * TLS 1.3 with a pre-shared key (RFC 8446, psk_dhe_ke) over a connected non-blocking socket: no
 * older version, no certificates, no session tickets, no early data. Between its creation and its
 * end it makes no system calls but recv, send, those of malloc, getrandom and clock_gettime.
 */
#ifndef PROTO_TLS_H
#define PROTO_TLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "proto/tls_psk.h"

struct tls;

/* fd: borrowed. psk: copied. 0, -ENOMEM, or -EIO (GnuTLS does not allow what we need, such as under
 * a policy of the system). */
int tls_server_new(int fd, const struct tls_psk *psk, struct tls **out);
int tls_client_new(int fd, const struct tls_psk *psk, struct tls **out);
void tls_free(struct tls *t); /* NULL is allowed */

/* Goes on with the handshake. 0: done; -EAGAIN: when the socket is ready (tls_wants_write);
 * -EACCES, with one line in `why`: it failed, for ever. */
int tls_handshake(struct tls *t, char *why, size_t why_bytes);
/* Server, while the handshake goes on: has the other end shown that it knows the key? (Its first
 * message proves that, unless it is a copy of one that was seen before.) */
bool tls_key_shown(const struct tls *t);
/* Does it wait for room in the socket, instead of bytes? */
bool tls_wants_write(const struct tls *t);
/* Bytes, 0 at the end, -EAGAIN, or -EPROTO. Call it until -EAGAIN: it may hold what poll() does not
 * see. */
ssize_t tls_receive(struct tls *t, void *data, size_t len);
/* Bytes taken, -EAGAIN (the same bytes again, then), or -EPROTO. */
ssize_t tls_send(struct tls *t, const void *data, size_t len);
/* Tells the other end that nothing follows; once, as far as the socket has room. */
void tls_bye(struct tls *t);

#endif
