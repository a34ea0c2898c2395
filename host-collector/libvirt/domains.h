/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What libvirt knows of a running domain that we want to know: its process, where its agent's
 * channel is, what its owner wishes. And the channel's device, for domains that have none yet.
 */
#ifndef LIBVIRT_DOMAINS_H
#define LIBVIRT_DOMAINS_H

#include <stdbool.h>
#include <stddef.h>

#include <libvirt/libvirt.h>

struct json_object;

/* The port that the agent looks for. */
#define DOMAIN_PORT_NAME "org.vcpuscope.agent.0"
/* Of <vcpuscope:settings KEY="VALUE" ../> in the domain's <metadata>. */
#define DOMAIN_METADATA_URI "https://vcpuscope.org/domain/1"
/* Where a channel in mode='connect' finds the daemon. */
#define DOMAIN_AGENTS_SOCKET "/run/vcpuscope/agents.sock"

/*
 * {"name", "uuid", "pid", "channel": {"mode", "path"}, "settings": {KEY: VALUE}}: pid 0 if it is
 * not known, channel only if there is one, settings only what is there. NULL if the domain is gone.
 */
struct json_object *domain_describe(virDomainPtr domain);

/* Adds the agent's channel, to the running machine and its definition, whichever there is; or
 * removes it. socket: NULL is DOMAIN_AGENTS_SOCKET. 0 or -1 with one line in `why`. */
int domain_channel_attach(virDomainPtr domain, const char *socket, char *why, size_t why_bytes);
int domain_channel_detach(virDomainPtr domain, char *why, size_t why_bytes);

#endif
