/* SPDX-License-Identifier: GPL-2.0-only */
/* The options that give the channel to a VM's agent, shared by all commands that use one. */
#ifndef CLI_CHANNEL_OPTIONS_H
#define CLI_CHANNEL_OPTIONS_H

#include "host-collector/cli/options.h"
#include "host-collector/link/address.h"

struct channel_arguments {
	const char *address; /* NULL: none */
	struct link_security security;
};

/* at: offset of a struct channel_arguments in the command's struct */
#define CHANNEL_OPTION_ROWS(at)                                                                    \
	{"channel",                                                                                \
	 OPTION_STRING,                                                                            \
	 (at) + offsetof(struct channel_arguments, address),                                       \
	 "ADDRESS",                                                                                \
	 "where the agent is: PATH of the virtio-serial port's socket, tcp:HOST:PORT, or "         \
	 "vsock:[CID:]PORT, listen:unix:PATH, listen:tls:HOST:PORT, listen:tcp:HOST:PORT to "      \
	 "wait for it",                                                                            \
	 false},                                                                                   \
		{"psk",                                                                            \
		 OPTION_STRING,                                                                    \
		 (at) + offsetof(struct channel_arguments, security.psk_path),                     \
		 "FILE",                                                                           \
		 "of listen:tls: lines IDENTITY:KEY, the key in hexadecimal digits",               \
		 false},                                                                           \
		{"psk-identity",                                                                   \
		 OPTION_STRING,                                                                    \
		 (at) + offsetof(struct channel_arguments, security.psk_identity),                 \
		 "NAME",                                                                           \
		 "which line of --psk is this VM's, if there are several",                         \
		 false},                                                                           \
	{                                                                                          \
		"insecure-plain-tcp", OPTION_FLAG,                                                 \
			(at) + offsetof(struct channel_arguments, security.insecure_plain_tcp),    \
			NULL,                                                                      \
			"allow TCP without TLS to other machines, for all to read and change",     \
			false                                                                      \
	}

#endif
