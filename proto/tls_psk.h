/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The shared secrets of TLS over TCP. A file in psktool's format names them, one a line:
 *
 *   IDENTITY:KEY      the key in hexadecimal digits; '#' begins a comment line
 *
 * The guest's file has one line; the host's may have one for every VM.
 */
#ifndef PROTO_TLS_PSK_H
#define PROTO_TLS_PSK_H

#include <stddef.h>
#include <stdint.h>

enum {
	TLS_PSK_IDENTITY_MAX = 64, /* with the NUL */
	TLS_PSK_KEY_MIN = 16,
	TLS_PSK_KEY_MAX = 64,
};

struct tls_psk {
	char identity[TLS_PSK_IDENTITY_MAX]; /* printable ASCII */
	uint8_t key[TLS_PSK_KEY_MAX];
	size_t key_bytes; /* 0: no secret */
};

/*
 * The secret of `identity` in the file, or of the only one there if that is NULL. 0 or -errno, with
 * one line in `why` that names the file and line: not readable (-errno), readable by others than
 * its owner (-EPERM), damaged (-EINVAL), no such identity (-ENOENT), more than one (-EINVAL).
 */
int tls_psk_read(const char *path, const char *identity, struct tls_psk *out, char *why,
		 size_t why_bytes);

#endif
