/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Where a guest's agent is reached: QEMU's Unix socket of a virtio-serial port (we connect), or,
 * for agents that dial themselves (tests, TCP), a socket that we listen on.
 *
 *   PATH, unix:PATH              connect to a Unix socket
 *   vmm:PATH                     the same, at a path in the VMM's container (vm/vmm_socket.h)
 *   tcp:HOST:PORT                connect by TCP
 *   listen:unix:PATH             listen on a Unix socket
 *   listen:tcp:HOST:PORT         listen on TCP; HOST * is every address
 *   listen:tls:HOST:PORT         the same with TLS 1.3; the secret comes apart (proto/tls_psk.h)
 *   daemon:                      whoever owns the link hands over connections (link_adopt)
 *   vsock:PORT, vsock:CID:PORT   listen on vsock, for any guest or for that one only
 */
#ifndef LINK_ADDRESS_H
#define LINK_ADDRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>

#include "proto/tls_psk.h"

struct link_address {
	char text[256]; /* as the user wrote it, for messages */
	bool listens;
	bool adopts; /* connections come by guest_link_adopt(), each in the place of the one before
		      */
	/* Set by the caller for a listening address: somebody else listens there for several links,
	 * and hands over this one's connections by guest_link_adopt(). */
	bool handed;
	bool tcp;
	bool tls;
	bool in_vmm;        /* the path is one in the VMM's container */
	pid_t vmm_pid;      /* then filled in by the caller */
	struct tls_psk psk; /* of a tls address; filled in by the caller */
	uint32_t peer_cid;  /* vsock: who may connect; VMADDR_CID_ANY: anybody */
	struct sockaddr_storage sockaddr;
	socklen_t sockaddr_len;
};

/* 0, or -EINVAL with one line in `why`. Resolves a host name, which may take a moment. */
int link_address_parse(const char *text, struct link_address *out, char *why, size_t why_bytes);

/* The port and the guest (VMADDR_CID_ANY: any) of a vsock address; false for all others, of which
 * no name is resolved. */
bool link_address_vsock(const char *text, uint32_t *port, uint32_t *cid);

/* A non-blocking, close-on-exec socket: connected or about to be (link_address_connected tells),
 * or listening (a Unix socket that nobody serves is replaced; -EEXIST: another kind of file is
 * there). Descriptor or -errno; socket_file_error() has words for it. */
int link_address_open(const struct link_address *address);
/* After it became writable: 0 or the -errno with which the connection failed. */
int link_address_connected(int fd);
/* A client of a listening socket: non-blocking, TCP_NODELAY. *cid: its guest's, if this is vsock.
 * Descriptor or -errno (-EACCES: not the guest that is waited for, or no guest at all). */
int link_address_accept(const struct link_address *address, int listener, uint32_t *cid);

/* How an address may be used. */
struct link_security {
	const char *psk_path;     /* tls: where the secret is (proto/tls_psk.h); NULL: nowhere */
	const char *psk_identity; /* NULL: the only one there */
	bool insecure_plain_tcp;  /* TCP to other machines without TLS is meant */
};
/* Reads the secret of a tls address, and refuses an address that is exposed without being meant so.
 * 0, or -errno with one line in `why`. */
int link_address_secure(struct link_address *address, const struct link_security *security,
			char *why, size_t why_bytes);

/* Removes the socket file of a listening Unix address; call it before the socket is closed. */
void link_address_unlink(const struct link_address *address);

enum link_backlog {
	LINK_BACKLOG_UNKNOWN, /* no Unix socket, or /proc/net/unix does not tell */
	LINK_BACKLOG_SERVED,  /* the peer has accepted everybody */
	LINK_BACKLOG_BUSY,    /* a connection waits unaccepted while another is served */
	LINK_BACKLOG_STUCK,   /* connections wait and none is served */
};
/* Why a Unix socket that accepted our connect() says nothing. QEMU serves one client per port and
 * leaves the others in the kernel's backlog without telling them. proc_net_unix: NULL for
 * /proc/net/unix. */
enum link_backlog link_address_backlog(const struct link_address *address,
				       const char *proc_net_unix);

#endif
