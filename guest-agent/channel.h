/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Keeps one connection to the host: dials, reports when it is up, transfers bytes, reports when it
 * is down and dials again. A carrier contains what differs between virtio-serial ports and
 * sockets: how to dial, and how to detect a peer.
 *
 * The channel never spins. poll() reports a port without a host as readable and hung up all the
 * time, so libuv would use 100 % of a CPU. Therefore the channel polls a descriptor only while
 * connected, and else probes it with a timer.
 *
 * The channel has no queue: channel_write() writes what the kernel accepts at once.
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
	char text[256]; /* as the user wrote it; for messages */
	char name[128]; /* carrier port: name or device path */
	struct sockaddr_storage sockaddr;
	socklen_t sockaddr_len;
	const char *psk_path; /* carrier tls: key file, borrowed (proto/tls_psk.h) */
	/* State of dialling: the carrier that "auto" chose, the TLS relay process, and the exit
	 * code of its predecessor. */
	const struct channel_carrier *chosen;
	pid_t relay;
	int relay_said;
	struct log_limit relay_lines;
};

struct channel_carrier {
	const char *prefix; /* for example "unix:" */
	/* Parses the address behind the prefix. Returns 0, or -EINVAL and one line in `why`. */
	int (*parse)(const char *rest, struct channel_address *address, char *why,
		     size_t why_bytes);
	/* Returns a non-blocking descriptor, which may not be connected yet, or -errno. */
	int (*dial)(struct channel_address *address);
	/* Returns 1 if a peer is connected, 0 if not yet, -errno to dial again. NULL if dial
	 * chooses another carrier. */
	int (*probe)(int fd);
	bool keep_fd;     /* after a hang-up the descriptor is kept and probed again */
	bool logs_reason; /* the carrier itself logs why it was refused (-ECONNREFUSED) */
	/* Time between two dials or probes; doubles each time from min to max. */
	unsigned int retry_min_ms, retry_max_ms;
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

/* Parses an address: "unix:PATH", "tcp:ADDRESS:PORT" or "tls:ADDRESS:PORT" (numeric),
 * "vsock:CID:PORT", "port:NAME", or "auto": the agent's virtio-serial port if it exists, else the
 * host over vsock. Returns 0, or -EINVAL and one line in `why`. */
int channel_address_parse(const char *spec, struct channel_address *out, char *why,
			  size_t why_bytes);

/* Checks that the TLS relay is installed. Returns 0, or -errno and one line in `why`. */
int channel_tls_check(char *why, size_t why_bytes);
/* Returns true if others on a network could read and change the bytes: plain TCP, not on the
 * loopback device. */
bool channel_address_is_exposed(const struct channel_address *address);

struct channel;

/* Starts to dial. Delivers no event before the loop runs. Returns 0 or -errno. */
int channel_open(uv_loop_t *loop, const struct channel_address *address,
		 const struct channel_events *events, struct channel **out);
/* Closes the channel at once and delivers no more events. The loop frees the memory later. Accepts
 * NULL. */
void channel_close(struct channel *c);
bool channel_is_up(const struct channel *c);
/* Returns the number of bytes written, 0 if the channel is full or down. After a short write,
 * `writable` follows when the channel has space. If the channel is broken, `down` follows from the
 * loop. */
size_t channel_write(struct channel *c, const uint8_t *data, size_t len);
/* Requests a `writable` event although the channel is not full, so that the loop can do other work
 * first. */
void channel_yield(struct channel *c);
/* Returns the last error of dialling as -errno, 0 if none since the channel was last up. */
int channel_error(const struct channel *c);

#endif
