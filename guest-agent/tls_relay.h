/* SPDX-License-Identifier: GPL-2.0-only */
/* What agent and TLS relay agree on; see tls_relay.c. */
#ifndef AGENT_TLS_RELAY_H
#define AGENT_TLS_RELAY_H

#define RELAY_NAME "vcpuscope-agent-tls" /* proto/sibling.h finds it */

enum {
	RELAY_AGENT = 3,    /* the relay's descriptor of the socket between both */
	RELAY_UP = 'U',     /* the relay's first byte: the host has accepted us */
	RELAY_SILENT = 256, /* in place of the last exit code: log nothing */
};

#endif
