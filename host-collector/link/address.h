/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The address of a channel to a guest's agent: QEMU's Unix socket of a virtio-serial port, to which
 * the collector connects, or a socket on which the collector listens for agents that connect.
 *
 *  PATH, unix:PATH              connect to a Unix socket
 *  vmm:PATH                     the same, at a path in the VMM's container (vm/vmm_socket.h)
 *  hybrid:PATH[:PORT]           listen where a VMM with vsock over Unix sockets connects for a
 *                               guest that dials the host's PORT (hybrid_vsock.h); default 7431
 *  hybrid-connect:PATH:PORT     connect to a PORT of such a VMM's guest
 *  tcp:HOST:PORT                connect by TCP
 *  listen:unix:PATH             listen on a Unix socket
 *  listen:tcp:HOST:PORT         listen on TCP; HOST * is every address
 *  listen:tls:HOST:PORT         the same with TLS 1.3; the key is separate (proto/tls_psk.h)
 *  daemon:                      the owner of the link passes connections (guest_link_adopt)
 *  vsock:PORT, vsock:CID:PORT   listen on vsock, for any guest or for that one only
 */
#ifndef LINK_ADDRESS_H
#define LINK_ADDRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>

#include "proto/tls_psk.h"

/* The port to which agents connect by default. */
enum { AGENT_VSOCK_PORT = 7431 };

struct link_address {
	char text[256]; /* the address as the user wrote it, for messages */
	bool listens;
	/* Connections come through guest_link_adopt(); each replaces the previous one. */
	bool adopts;
	/* Set by the caller for a listening address: another object listens there for several links
	 * and passes the connections of this link to guest_link_adopt(). */
	bool handed;
	bool tcp;
	bool tls;
	bool in_vmm;        /* the path is in the VMM's container */
	pid_t vmm_pid;      /* if in_vmm: process id of the VMM, set by the caller */
	uint32_t ask_port;  /* hybrid-connect: port of the guest. Once connected,
			       hybrid_vsock_request() and _answer() follow */
	struct tls_psk psk; /* key of a tls address, set by link_address_secure() */
	uint32_t peer_cid;  /* vsock: CID of the guest that may connect; VMADDR_CID_ANY: any */
	struct sockaddr_storage sockaddr;
	socklen_t sockaddr_len;
};

/* Parses an address. Resolves a host name, which may block. Returns 0, or -EINVAL with one line in
 * `why`. */
int link_address_parse(const char *text, struct link_address *out, char *why, size_t why_bytes);

/* Stores the port and the guest's CID (VMADDR_CID_ANY: any) of a vsock address. Returns false for
 * any other address; does not resolve host names. */
bool link_address_vsock(const char *text, uint32_t *port, uint32_t *cid);

/* Opens a non-blocking, close-on-exec socket that is connected or connecting (see
 * link_address_connected()), or listening. Replaces a Unix socket that no process serves. Returns a
 * descriptor, which the caller closes, or -errno; -EEXIST: a file that is not a socket has this
 * path. socket_file_error() describes the errors. */
int link_address_open(const struct link_address *address);
/* Returns the result of a connection attempt once the descriptor is writable: 0 or -errno. */
int link_address_connected(int fd);
/* Accepts a connection: non-blocking, with TCP_NODELAY. *cid: the CID of the guest, if this is
 * vsock. Returns a descriptor, which the caller closes, or -errno; -EACCES: another guest than the
 * expected one, or no guest; -EPERM: with in_vmm, another process than the VMM. */
int link_address_accept(const struct link_address *address, int listener, uint32_t *cid);

/* Returns whether bytes would cross a network unencrypted: TCP without TLS that is not loopback. */
bool link_address_is_exposed(const struct link_address *address);

/* How an address may be used. */
struct link_security {
	const char *psk_path;     /* tls: file with the key (proto/tls_psk.h); NULL: none */
	const char *psk_identity; /* identity of the key in the file; NULL: the only one */
	bool insecure_plain_tcp;  /* allow TCP to other machines without TLS */
};
/* Reads the key of a tls address. Refuses an address that would send unencrypted bytes over a
 * network, unless insecure_plain_tcp allows it. Returns 0, or -errno with one line in `why`. */
int link_address_secure(struct link_address *address, const struct link_security *security,
			char *why, size_t why_bytes);

/* Removes the socket file of a listening Unix address; call it before the socket is closed. */
void link_address_unlink(const struct link_address *address);

enum link_backlog {
	LINK_BACKLOG_UNKNOWN, /* not a Unix socket, or not found in /proc/net/unix */
	LINK_BACKLOG_SERVED,  /* the peer has accepted all connections */
	LINK_BACKLOG_BUSY,    /* a connection waits while another one is served */
	LINK_BACKLOG_STUCK,   /* connections wait and none is served */
};
/* Returns why a Unix socket to which the collector connected sends nothing. QEMU serves one client
 * per port and leaves the others unanswered in the kernel's backlog. proc_net_unix: NULL for
 * /proc/net/unix. */
enum link_backlog link_address_backlog(const struct link_address *address,
				       const char *proc_net_unix);

#endif
