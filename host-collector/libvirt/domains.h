/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Describes a running libvirt domain (its process, the agent's channel, the owner's settings), and
 * adds the agent's channel to a domain or removes it.
 */
#ifndef LIBVIRT_DOMAINS_H
#define LIBVIRT_DOMAINS_H

#include <stdbool.h>
#include <stddef.h>

#include <libvirt/libvirt.h>

struct json_object;

/* The name of the agent's port. */
#define DOMAIN_PORT_NAME "org.vcpuscope.agent.0"
/* The XML namespace of <vcpuscope:settings KEY="VALUE" .../> in the domain's <metadata>. */
#define DOMAIN_METADATA_URI "https://vcpuscope.org/domain/1"
/* The daemon's socket, for a channel with mode='connect'. */
#define DOMAIN_AGENTS_SOCKET "/run/vcpuscope/agents.sock"

/* Returns {"name", "uuid", "pid", "channel": {"mode", "path"}, "manager", "owner", "settings":
 * {KEY: VALUE}}, which the caller owns. pid is 0 if it is unknown; the others are missing if the
 * domain has none. Returns NULL if the domain is gone. */
struct json_object *domain_describe(virDomainPtr domain);

/* Adds or removes the agent's channel, in the running VM and in the persistent definition if they
 * exist. socket: NULL selects DOMAIN_AGENTS_SOCKET. If the running VM cannot take the channel, it
 * is still added to the definition. Returns 0, or -1 with one line in `why`, also if there is
 * nothing to change. */
int domain_channel_attach(virDomainPtr domain, const char *socket, char *why, size_t why_bytes);
int domain_channel_detach(virDomainPtr domain, char *why, size_t why_bytes);
/* Adds the agent's channel to the running VM alone, unless it has one. Returns 0, or with one line
 * in `why` -EAGAIN (libvirt is busy with the domain), -ENOENT (the domain has ended) or -EINVAL
 * (libvirt refuses). */
int domain_channel_plug(virDomainPtr domain, const char *socket, char *why, size_t why_bytes);

#endif
