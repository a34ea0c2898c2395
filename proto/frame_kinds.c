// SPDX-License-Identifier: GPL-2.0-only
#include "proto/frame_kinds.h"

#include "proto/message_fields.h"

const struct frame_kind_row *frame_kind_row(uint8_t kind)
{
	static const struct frame_kind_row rows[FRAME_KIND_LIMIT] = {
#define X(number, NAME, message, senders, keeping)                                                 \
	[number] = {&message_##message##_layout, FRAME_##senders, FRAME_##keeping},
		VS_FRAME_KINDS(X)
#undef X
	};

	return &rows[kind < FRAME_KIND_LIMIT ? kind : 0];
}
