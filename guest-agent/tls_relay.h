/* SPDX-License-Identifier: GPL-2.0-only */
/* Constants that the agent and its TLS relay share; see tls_relay.c. */
#ifndef AGENT_TLS_RELAY_H
#define AGENT_TLS_RELAY_H

#define RELAY_NAME "vcpuscope-agent-tls" /* proto/sibling.h finds it */

enum {
	RELAY_AGENT = 3,    /* descriptor in the relay of the socket to the agent */
	RELAY_UP = 'U',     /* first byte from the relay: the host has accepted the connection */
	RELAY_SILENT = 256, /* instead of the last exit code: log nothing */
};

#endif
