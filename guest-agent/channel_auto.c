// SPDX-License-Identifier: GPL-2.0-only
/*
 * Chooses the carrier: the agent's virtio-serial port if it exists, else vsock if the VM has that
 * device. The port comes first because only the host of this VM can be its peer, and because it
 * survives a migration.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "guest-agent/channel.h"

#define HOST_BY_VSOCK "2:7431" /* VMADDR_CID_HOST */

static int auto_parse(const char *rest, struct channel_address *address, char *why,
		      size_t why_bytes)
{
	if (*rest) {
		snprintf(why, why_bytes, "auto: nothing follows it");
		return -EINVAL;
	}
	snprintf(address->name, sizeof(address->name), "%s", AGENT_PORT_NAME);
	snprintf(address->text, sizeof(address->text),
		 "port:" AGENT_PORT_NAME " or vsock:" HOST_BY_VSOCK);
	return channel_carrier_vsock.parse(HOST_BY_VSOCK, address, why, why_bytes);
}

static int auto_dial(struct channel_address *address)
{
	int fd = channel_carrier_port.dial(address);

	address->chosen = &channel_carrier_port;
	if (fd == -ENODEV && !access("/dev/vsock", F_OK)) {
		fd = channel_carrier_vsock.dial(address);
		address->chosen = &channel_carrier_vsock;
	}
	return fd;
}

const struct channel_carrier channel_carrier_auto = {
	.prefix = "auto",
	.parse = auto_parse,
	.dial = auto_dial,
	.retry_min_ms = 100,
	.retry_max_ms = 1000,
};
