/* SPDX-License-Identifier: GPL-2.0-only */
/* The options that give the channel to a VM's agent, shared by all commands that use one. */
#ifndef CLI_CHANNEL_OPTIONS_H
#define CLI_CHANNEL_OPTIONS_H

#include "proto/program/options.h"
#include "host-collector/link/address.h"

struct channel_arguments {
	const char *address; /* NULL: none */
	struct link_security security;
};

#define CHANNEL_HELP                                                                                 \
	"the channel to the agent: the PATH of the virtio-serial port's socket, tcp:HOST:PORT, or, " \
	"to wait for the agent, vsock:[CID:]PORT, listen:unix:PATH, listen:tls:HOST:PORT, "          \
	"listen:tcp:HOST:PORT, or hybrid:PATH, PATH of the vsock socket of Firecracker or Cloud "    \
	"Hypervisor"

#define CHANNEL_OR_NO_GUEST "--channel and --no-guest cannot be combined"

/* at: offset of a bool in the command's struct: the command uses no channel and takes no events of
 * the guest. The option is wrong together with --channel: CHANNEL_OR_NO_GUEST. */
#define NO_GUEST_OPTION_ROW(at)                                                                    \
	{                                                                                          \
		.name = "no-guest", .type = OPTION_FLAG, .offset = (at),                           \
		.help = "take only the host side, for a VM without an agent"                       \
	}

/* at: offset of a struct channel_arguments in the command's struct */
#define CHANNEL_OPTION_ROWS(at)                                                                    \
	{.name = "channel",                                                                        \
	 .type = OPTION_STRING,                                                                    \
	 .offset = (at) + offsetof(struct channel_arguments, address),                             \
	 .value = "ADDRESS",                                                                       \
	 .help = CHANNEL_HELP},                                                                    \
		CHANNEL_SECURITY_ROWS((at) + offsetof(struct channel_arguments, security))

/* at: offset of a struct link_security in the command's struct */
#define CHANNEL_SECURITY_ROWS(at)                                                                   \
	{.name = "psk",                                                                             \
	 .type = OPTION_STRING,                                                                     \
	 .offset = (at) + offsetof(struct link_security, psk_path),                                 \
	 .value = "FILE",                                                                           \
	 .help = "with listen:tls: the file with the keys, one IDENTITY:KEY per line, KEY in "      \
		 "hexadecimal digits"},                                                             \
		{.name = "psk-identity",                                                            \
		 .type = OPTION_STRING,                                                             \
		 .offset = (at) + offsetof(struct link_security, psk_identity),                     \
		 .value = "NAME",                                                                   \
		 .help = "the identity of this VM, if --psk has several lines"},                    \
	{                                                                                           \
		.name = "insecure-plain-tcp", .type = OPTION_FLAG,                                  \
		.offset = (at) + offsetof(struct link_security, insecure_plain_tcp),                \
		.help = "allow TCP without TLS to other machines; others can then read and change " \
			"the data"                                                                  \
	}

#endif
