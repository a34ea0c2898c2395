/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * One connection to the host, kept up: dials, tells when it is up, carries bytes, tells when it is
 * down, dials again. What differs between a virtio-serial port and a socket is a carrier: how to
 * dial, and how to know that somebody is there.
 *
 * Never spins: a port without a host polls as readable and hung up for ever (libuv would turn at
 * 100 % CPU), so descriptors are watched only while connected, and probed by a timer otherwise.
 * Never queues: channel_write() takes what the kernel takes now.
 */
#ifndef AGENT_CHANNEL_H
#define AGENT_CHANNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <uv.h>

#include "proto/log_limit.h"

#define AGENT_PORT_NAME "org.vcpuscope.agent.0"

struct channel_address {
	const struct channel_carrier *carrier;
	char text[256]; /* as the user wrote it, for messages */
	char name[128]; /* port: its name or device path */
	struct sockaddr_storage sockaddr;
	socklen_t sockaddr_len;
	const char *psk_path; /* tls: the caller's, borrowed (proto/tls_psk.h) */
	/* What dialling finds out: the carrier that "auto" chose; the process that carries TLS, and
	 * the exit code of the one before. */
	const struct channel_carrier *chosen;
	pid_t relay;
	int relay_said;
	struct log_limit relay_lines;
};

struct channel_carrier {
	const char *prefix; /* "unix:" */
	/* 0 or -EINVAL with one line in `why`. */
	int (*parse)(const char *rest, struct channel_address *address, char *why,
		     size_t why_bytes);
	/* A non-blocking descriptor (perhaps not connected yet) or -errno. */
	int (*dial)(struct channel_address *address);
	/* Is somebody at the other end? 1, 0 not yet, -errno: dial again. NULL where dialling
	 * chooses another carrier. */
	int (*probe)(int fd);
	bool keep_fd;   /* the descriptor outlives the peer: on a hang-up go back to probing */
	bool tells_why; /* says itself why it is refused (-ECONNREFUSED) */
	unsigned int retry_min_ms, retry_max_ms; /* between two dials or probes; doubles */
};

extern const struct channel_carrier channel_carrier_port;
extern const struct channel_carrier channel_carrier_unix;
extern const struct channel_carrier channel_carrier_tcp;
extern const struct channel_carrier channel_carrier_vsock;
extern const struct channel_carrier channel_carrier_tls;
extern const struct channel_carrier channel_carrier_auto;

struct channel_events {
	void (*up)(void *context);
	void (*down)(void *context);
	void (*received)(void *context, const uint8_t *data, size_t len);
	void (*writable)(void *context);
	void *context;
};

/* "unix:PATH", "tcp:ADDRESS:PORT" and "tls:ADDRESS:PORT" (numeric), "vsock:CID:PORT", "port:NAME",
 * or "auto": our virtio-serial port where there is one, else the host by vsock. 0 or -EINVAL with a
 * line in `why`. */
int channel_address_parse(const char *spec, struct channel_address *out, char *why,
			  size_t why_bytes);

/* Can tls: be dialled: is its relay installed? 0 or -errno with a line in `why`. */
int channel_tls_check(char *why, size_t why_bytes);
/* Would the bytes cross a network readable and changeable by others: TCP that is not loopback? */
bool channel_address_is_exposed(const struct channel_address *address);

struct channel;

/* Starts dialling; no event is delivered before the loop runs. 0 or -errno. */
int channel_open(uv_loop_t *loop, const struct channel_address *address,
		 const struct channel_events *events, struct channel **out);
/* Closes at once and delivers nothing more; memory is freed when the loop has run. */
void channel_close(struct channel *c);
bool channel_is_up(const struct channel *c);
/* Bytes taken, 0 if the channel is full or down; `writable` follows when there is room again.
 * A broken channel takes nothing and reports `down` from the loop. */
size_t channel_write(struct channel *c, const uint8_t *data, size_t len);
/* Asks for `writable` from the loop although the channel is not full: lets other work come between.
 */
void channel_yield(struct channel *c);
/* The last failure to dial, as -errno, 0 if none since it was last up. */
int channel_error(const struct channel *c);

#endif
