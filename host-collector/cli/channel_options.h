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

/* at: offset of a struct channel_arguments in the command's struct */
#define CHANNEL_OPTION_ROWS(at)                                                                       \
	{.name = "channel",                                                                           \
	 .type = OPTION_STRING,                                                                       \
	 .offset = (at) + offsetof(struct channel_arguments, address),                                \
	 .value = "ADDRESS",                                                                          \
	 .help = "where the agent is: PATH of the virtio-serial port's socket, tcp:HOST:PORT, or "    \
		 "vsock:[CID:]PORT, listen:unix:PATH, listen:tls:HOST:PORT, listen:tcp:HOST:PORT to " \
		 "wait for it"},                                                                      \
		{.name = "psk",                                                                       \
		 .type = OPTION_STRING,                                                               \
		 .offset = (at) + offsetof(struct channel_arguments, security.psk_path),              \
		 .value = "FILE",                                                                     \
		 .help = "of listen:tls: lines IDENTITY:KEY, the key in hexadecimal digits"},         \
		{.name = "psk-identity",                                                              \
		 .type = OPTION_STRING,                                                               \
		 .offset = (at) + offsetof(struct channel_arguments, security.psk_identity),          \
		 .value = "NAME",                                                                     \
		 .help = "which line of --psk is this VM's, if there are several"},                   \
	{                                                                                             \
		.name = "insecure-plain-tcp", .type = OPTION_FLAG,                                    \
		.offset = (at) + offsetof(struct channel_arguments, security.insecure_plain_tcp),     \
		.help = "allow TCP without TLS to other machines, for all to read and change"         \
	}

#endif
