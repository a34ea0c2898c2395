/* SPDX-License-Identifier: GPL-2.0-only */
/* Sizes and magic numbers of the format in recording.h, for its reader and writer. */
#ifndef PROTO_RECORDING_FORMAT_H
#define PROTO_RECORDING_FORMAT_H

#include "proto/frame.h"

enum {
	RECORDING_VERSION = 1,
	RECORDING_HEADER_BYTES = 32,
	RECORDING_ENTRY_HEADER_BYTES = 24,
	RECORDING_ENTRY_MAX_BYTES =
		RECORDING_ENTRY_HEADER_BYTES + VS_FRAME_HEADER_BYTES + VS_FRAME_PAYLOAD_MAX,
};

#define RECORDING_MAGIC       "VCSREC\r\n"
#define RECORDING_ENTRY_MAGIC "VCSE"

#endif
