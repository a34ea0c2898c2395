/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/link/address.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>

#include <linux/vm_sockets.h>

#include "host-collector/link/hybrid_vsock.h"
#include "host-collector/link/socket_file.h"
#include "host-collector/vm/vmm_socket.h"
#include "proto/program/value.h"

/* Backlog of a listening socket. Other connections must not keep the agent out: with a full
 * backlog, TCP drops the SYN, and the agent sends it again a second later. */
enum { BACKLOG = 1024 };

static int unix_parse(const char *path, struct link_address *out, char *why, size_t why_bytes)
{
	struct sockaddr_un *address = (struct sockaddr_un *)&out->sockaddr;

	if (!*path || strlen(path) >= sizeof(address->sun_path)) {
		snprintf(why, why_bytes, "%s: want the path of a Unix socket, at most %zu bytes",
			 out->text, sizeof(address->sun_path) - 1);
		return -EINVAL;
	}
	address->sun_family = AF_UNIX;
	memcpy(address->sun_path, path, strlen(path) + 1);
	out->sockaddr_len = sizeof(*address);
	return 0;
}

/* Parses `len` digits to a number below 2^32 - 1. Returns 0 or -EINVAL. */
static int id_parse(const char *text, size_t len, uint64_t *out)
{
	return digits_parse(text, len, out) || *out >= UINT32_MAX ? -EINVAL : 0;
}

static int tcp_parse(const char *text, struct link_address *out, char *why, size_t why_bytes)
{
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *found = NULL;
	const char *colon = strrchr(text, ':');
	char host[256];
	int err;

	if (!colon || colon == text || !colon[1]) {
		snprintf(why, why_bytes, "%s: want tcp:HOST:PORT", out->text);
		return -EINVAL;
	}
	snprintf(host, sizeof(host), "%.*s", (int)(colon - text), text);
	if (out->listens)
		hints.ai_flags = AI_PASSIVE;
	err = getaddrinfo(strcmp(host, "*") ? host : NULL, colon + 1, &hints, &found);
	if (err) {
		snprintf(why, why_bytes, "%s: %s", out->text, gai_strerror(err));
		return -EINVAL;
	}
	memcpy(&out->sockaddr, found->ai_addr, found->ai_addrlen);
	out->sockaddr_len = found->ai_addrlen;
	out->tcp = true;
	freeaddrinfo(found);
	return 0;
}

/* Parses PORT (any guest) or CID:PORT (the guest with this CID). */
static int vsock_parse(const char *text, struct link_address *out, char *why, size_t why_bytes)
{
	struct sockaddr_vm *address = (struct sockaddr_vm *)&out->sockaddr;
	const char *colon = strchr(text, ':');
	uint64_t cid = (uint32_t)VMADDR_CID_ANY, port;

	if ((colon && (id_parse(text, (size_t)(colon - text), &cid) || cid <= VMADDR_CID_HOST)) ||
	    id_parse(colon ? colon + 1 : text, strlen(colon ? colon + 1 : text), &port) || !port) {
		snprintf(why, why_bytes,
			 "%s: want vsock:PORT, or vsock:CID:PORT for one guest (CID from 3)",
			 out->text);
		return -EINVAL;
	}
	address->svm_family = AF_VSOCK;
	address->svm_cid = VMADDR_CID_ANY;
	address->svm_port = (uint32_t)port;
	out->peer_cid = (uint32_t)cid;
	out->sockaddr_len = sizeof(*address);
	return 0;
}

static int tls_parse(const char *text, struct link_address *out, char *why, size_t why_bytes)
{
	out->tls = true;
	return tcp_parse(text, out, why, why_bytes);
}

static int daemon_parse(const char *text, struct link_address *out, char *why, size_t why_bytes)
{
	if (*text) {
		snprintf(why, why_bytes, "%s: nothing follows daemon:", out->text);
		return -EINVAL;
	}
	out->adopts = true;
	return 0;
}

static int vmm_parse(const char *path, struct link_address *out, char *why, size_t why_bytes)
{
	out->in_vmm = true;
	return unix_parse(path, out, why, why_bytes);
}

/* Parses PATH:PORT. Without a port, uses `port`; returns -EINVAL if that is 0. */
static int hybrid_path(const char *text, uint64_t *port, char *path, size_t path_bytes)
{
	const char *colon = strrchr(text, ':');

	if (colon && id_parse(colon + 1, strlen(colon + 1), port))
		return -EINVAL;
	snprintf(path, path_bytes, "%.*s", colon ? (int)(colon - text) : (int)strlen(text), text);
	return *port && path[0] == '/' ? 0 : -EINVAL;
}

static int hybrid_parse(const char *text, struct link_address *out, char *why, size_t why_bytes)
{
	uint64_t port = AGENT_VSOCK_PORT;
	char path[256], file[288];

	if (strlen(text) >= sizeof(path) || hybrid_path(text, &port, path, sizeof(path))) {
		snprintf(
			why, why_bytes,
			"%s: want hybrid:PATH or hybrid:PATH:PORT, PATH of the VMM's vsock socket, "
			"from the root",
			out->text);
		return -EINVAL;
	}
	snprintf(file, sizeof(file), "%s_%u", path, (uint32_t)port);
	return vmm_parse(file, out, why, why_bytes);
}

static int hybrid_connect_parse(const char *text, struct link_address *out, char *why,
				size_t why_bytes)
{
	uint64_t port = 0;
	char path[256];

	if (strlen(text) >= sizeof(path) || hybrid_path(text, &port, path, sizeof(path))) {
		snprintf(why, why_bytes,
			 "%s: want hybrid-connect:PATH:PORT, PATH of the VMM's vsock socket, from "
			 "the root, PORT of the guest",
			 out->text);
		return -EINVAL;
	}
	out->ask_port = (uint32_t)port;
	return vmm_parse(path, out, why, why_bytes);
}

int link_address_parse(const char *text, struct link_address *out, char *why, size_t why_bytes)
{
	static const struct {
		const char *prefix;
		bool listens;
		int (*parse)(const char *, struct link_address *, char *, size_t);
	} forms[] = {
		{"listen:unix:", true, unix_parse},
		{"listen:tcp:", true, tcp_parse},
		{"listen:tls:", true, tls_parse},
		{"unix:", false, unix_parse},
		{"vmm:", false, vmm_parse},
		{"daemon:", true, daemon_parse},
		{"hybrid:", true, hybrid_parse},
		{"hybrid-connect:", false, hybrid_connect_parse},
		{"tcp:", false, tcp_parse},
		{"listen:vsock:", true, vsock_parse},
		{"vsock:", true, vsock_parse},
		{"", false, unix_parse},
	};
	size_t i = 0;

	memset(out, 0, sizeof(*out));
	snprintf(out->text, sizeof(out->text), "%s", text);
	while (strncmp(text, forms[i].prefix, strlen(forms[i].prefix)))
		i++;
	out->listens = forms[i].listens;
	return forms[i].parse(text + strlen(forms[i].prefix), out, why, why_bytes);
}

bool link_address_vsock(const char *text, uint32_t *port, uint32_t *cid)
{
	struct link_address address;
	char why[256];

	if ((strncmp(text, "vsock:", 6) && strncmp(text, "listen:vsock:", 13)) ||
	    link_address_parse(text, &address, why, sizeof(why)))
		return false;
	*port = ((const struct sockaddr_vm *)&address.sockaddr)->svm_port;
	*cid = address.peer_cid;
	return true;
}

static void nodelay_set(const struct link_address *address, int fd)
{
	int on = 1;

	if (address->tcp)
		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
}

int link_address_open(const struct link_address *address)
{
	const struct sockaddr *sockaddr = (const struct sockaddr *)&address->sockaddr;
	int on = 1, err = 0;
	int fd;

	if (address->in_vmm && address->listens)
		return hybrid_vsock_listen("/proc", address->vmm_pid,
					   ((const struct sockaddr_un *)sockaddr)->sun_path,
					   BACKLOG);
	if (address->in_vmm)
		return vmm_socket_connect("/proc", address->vmm_pid,
					  ((const struct sockaddr_un *)sockaddr)->sun_path, 0);
	if (address->listens && sockaddr->sa_family == AF_UNIX)
		err = socket_file_clear(((const struct sockaddr_un *)sockaddr)->sun_path);
	if (err)
		return err;
	fd = socket(sockaddr->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	nodelay_set(address, fd);
	if (address->listens) {
		if (address->tcp)
			setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
		err = bind(fd, sockaddr, address->sockaddr_len) || listen(fd, BACKLOG) ? -errno : 0;
	} else {
		err = connect(fd, sockaddr, address->sockaddr_len) ? -errno : 0;
	}
	if (err && err != -EINPROGRESS) {
		close(fd);
		return err;
	}
	return fd;
}

int link_address_connected(int fd)
{
	int err = 0;
	socklen_t len = sizeof(err);

	if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &err, &len))
		return -errno;
	return -err;
}

/* Returns true if a vsock address is for the guest with this CID. */
static bool link_address_takes(const struct link_address *address, uint32_t cid)
{
	/* Lower CIDs are the hypervisor, the local machine and the host. */
	return cid > VMADDR_CID_HOST &&
	       (address->peer_cid == VMADDR_CID_ANY || address->peer_cid == cid);
}

int link_address_accept(const struct link_address *address, int listener, uint32_t *cid)
{
	struct sockaddr_storage peer = {0};
	socklen_t len = sizeof(peer);
	int fd = accept4(listener, (struct sockaddr *)&peer, &len, SOCK_CLOEXEC | SOCK_NONBLOCK);

	if (fd < 0)
		return -errno;
	*cid = peer.ss_family == AF_VSOCK ? ((struct sockaddr_vm *)&peer)->svm_cid : 0;
	if (peer.ss_family == AF_VSOCK && !link_address_takes(address, *cid)) {
		close(fd);
		return -EACCES;
	}
	if (address->in_vmm && vmm_socket_peer_check(fd, address->vmm_pid)) {
		close(fd);
		return -EPERM;
	}
	nodelay_set(address, fd);
	return fd;
}

bool link_address_is_exposed(const struct link_address *address)
{
	const struct sockaddr_in *in = (const struct sockaddr_in *)&address->sockaddr;
	const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)&address->sockaddr;

	if (!address->tcp || address->tls)
		return false;
	return in->sin_family == AF_INET ? ntohl(in->sin_addr.s_addr) >> 24 != IN_LOOPBACKNET
					 : !IN6_IS_ADDR_LOOPBACK(&in6->sin6_addr);
}

int link_address_secure(struct link_address *address, const struct link_security *security,
			char *why, size_t why_bytes)
{
	if (address->tls && security->psk_path)
		return tls_psk_read(security->psk_path, security->psk_identity, &address->psk, why,
				    why_bytes);
	if (address->tls)
		snprintf(why, why_bytes, "channel %s needs a key: give --psk FILE", address->text);
	else if (security->psk_path)
		snprintf(why, why_bytes, "--psk is for listen:tls:HOST:PORT, not for channel %s",
			 address->text);
	else if (link_address_is_exposed(address) && !security->insecure_plain_tcp)
		snprintf(
			why, why_bytes,
			"channel %s is not encrypted and not this machine's own: use listen:tls: with "
			"--psk, or say --insecure-plain-tcp",
			address->text);
	else
		return 0;
	return -EINVAL;
}

void link_address_unlink(const struct link_address *address)
{
	const struct sockaddr_un *path = (const struct sockaddr_un *)&address->sockaddr;

	if (address->listens && address->in_vmm)
		hybrid_vsock_remove("/proc", address->vmm_pid, path->sun_path);
	else if (address->listens && path->sun_family == AF_UNIX)
		socket_file_remove(path->sun_path);
}

/* Socket states as /proc/net/unix prints them (SS_CONNECTING, SS_CONNECTED). A connection that was
 * not accepted yet has the listener's path and the first state; an accepted one has the second. */
enum { STATE_WAITING = 2, STATE_ACCEPTED = 3 };

enum link_backlog link_address_backlog(const struct link_address *address,
				       const char *proc_net_unix)
{
	const struct sockaddr_un *ours = (const struct sockaddr_un *)&address->sockaddr;
	size_t waiting = 0, accepted = 0;
	char line[512];
	FILE *f;

	if (address->tcp || address->listens || address->in_vmm)
		return LINK_BACKLOG_UNKNOWN;
	f = fopen(proc_net_unix ? proc_net_unix : "/proc/net/unix", "re");
	if (!f)
		return LINK_BACKLOG_UNKNOWN;
	/* Num RefCount Protocol Flags Type St Inode Path */
	while (fgets(line, sizeof(line), f)) {
		unsigned int state;
		int path = 0;

		line[strcspn(line, "\n")] = 0;
		if (sscanf(line, "%*s %*x %*x %*x %*x %x %*u %n", &state, &path) != 1 || !path ||
		    strcmp(line + path, ours->sun_path))
			continue;
		waiting += state == STATE_WAITING;
		accepted += state == STATE_ACCEPTED;
	}
	fclose(f);
	if (waiting)
		return accepted ? LINK_BACKLOG_BUSY : LINK_BACKLOG_STUCK;
	return accepted ? LINK_BACKLOG_SERVED : LINK_BACKLOG_UNKNOWN;
}
