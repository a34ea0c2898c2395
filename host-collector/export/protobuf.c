/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/export/protobuf.h"

void protobuf_bytes(struct protobuf *p, uint32_t field, const void *data, size_t len)
{
	uint8_t *at = protobuf_room(p, 15 + len);

	if (!at)
		return;
	at = protobuf_put_varint(at, field << 3 | PROTOBUF_BYTES);
	at = protobuf_put_varint(at, len);
	memcpy(at, data, len);
	p->bytes.len = (size_t)(at + len - p->bytes.data);
}

void protobuf_text(struct protobuf *p, uint32_t field, const char *text)
{
	protobuf_bytes(p, field, text, strlen(text));
}

void protobuf_close_long(struct protobuf *p, size_t opened)
{
	size_t len = p->bytes.len - opened;
	uint8_t prefix[PROTOBUF_VARINT_ROOM];
	size_t extra = (size_t)(protobuf_put_varint(prefix, len) - prefix) - 1;

	if (!protobuf_room(p, extra))
		return;
	memmove(p->bytes.data + opened + extra, p->bytes.data + opened, len);
	memcpy(p->bytes.data + opened - 1, prefix, extra + 1);
	p->bytes.len += extra;
}
