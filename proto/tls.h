/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * TLS 1.3 with a pre-shared key (RFC 8446, psk_dhe_ke) over a connected, non-blocking socket.
 * Older versions, certificates, session tickets and early data are disabled.
 *
 * Between tls_*_new() and tls_free() it makes no system calls except recv, send, getrandom,
 * clock_gettime and those of malloc, so a confined process can use it.
 */
#ifndef PROTO_TLS_H
#define PROTO_TLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "proto/tls_psk.h"

struct tls;

/* Create one side of a connection. fd: borrowed; psk: copied. Return 0, -ENOMEM, or -EIO if GnuTLS
 * refuses the settings, for example because of a policy of the system. */
int tls_server_new(int fd, const struct tls_psk *psk, struct tls **out);
int tls_client_new(int fd, const struct tls_psk *psk, struct tls **out);
void tls_free(struct tls *t); /* accepts NULL */

/* Continues the handshake. Returns 0 when it is complete, -EAGAIN if it must wait for the socket
 * (see tls_wants_write()), or -EACCES if it failed for good; `why` is one line with the reason
 * then. */
int tls_handshake(struct tls *t, char *why, size_t why_bytes);
/* For a server while tls_handshake() returns -EAGAIN: returns true if the client's first message
 * proved that the client knows the key. A copy of an earlier client's first message also passes. */
bool tls_key_shown(const struct tls *t);
/* Returns true if TLS waits until the socket is writable, false if it waits for bytes. */
bool tls_wants_write(const struct tls *t);
/* Returns the number of bytes received, 0 at the end, -EAGAIN or -EPROTO. Call it until it returns
 * -EAGAIN: TLS may buffer bytes that poll() on the socket does not report. */
ssize_t tls_receive(struct tls *t, void *data, size_t len);
/* Returns the number of bytes sent, -EAGAIN (repeat the call with the same bytes later) or
 * -EPROTO. */
ssize_t tls_send(struct tls *t, const void *data, size_t len);
/* Notifies the peer that no more data follows. Tries once; a full socket loses the notification. */
void tls_bye(struct tls *t);

#endif
