/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Reads the shared secrets of TLS over TCP from a file in the format of psktool, one secret per
 * line:
 *
 *   IDENTITY:KEY      the key in hexadecimal digits; '#' begins a comment line
 *
 * The guest's file has one line; the host's file may have one line per VM.
 */
#ifndef PROTO_TLS_PSK_H
#define PROTO_TLS_PSK_H

#include <stddef.h>
#include <stdint.h>

enum {
	TLS_PSK_IDENTITY_MAX = 64, /* with its NUL */
	TLS_PSK_KEY_MIN = 16,
	TLS_PSK_KEY_MAX = 64,
};

struct tls_psk {
	char identity[TLS_PSK_IDENTITY_MAX]; /* printable ASCII */
	uint8_t key[TLS_PSK_KEY_MAX];
	size_t key_bytes; /* 0: no secret */
};

/*
 * Reads the secret of `identity`, or the only secret of the file if `identity` is NULL. Returns 0
 * or -errno, and then writes one line to `why` that names the file: -errno (not readable), -EPERM
 * (other users than the owner may access the file), -EINVAL (a malformed line, or several secrets
 * although `identity` is NULL), -ENOENT (no such identity).
 */
int tls_psk_read(const char *path, const char *identity, struct tls_psk *out, char *why,
		 size_t why_bytes);

#endif
