// SPDX-License-Identifier: GPL-2.0-only
/*
 * Writes and parses frames and checks their order; frame_reader.c searches a stream for them. The
 * zstd contexts live as long as their owner, because creating one costs more than using it.
 */
#include "proto/frame.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "proto/bytes.h"

static const uint8_t frame_magic[4] = {'V', 'C', 'S', 'F'};

enum {
	FRAME_ZSTD_LEVEL = 1,
	/* Of less, zstd saves next to nothing: 0.1 % of batches, and nothing of heartbeats. */
	FRAME_ZSTD_MIN_BYTES = 128,
	FRAME_PART_MIN_BYTES = 1024, /* the codes of a part need 100 */
};

struct frame_writer {
	uint64_t session_id;
	uint32_t next_seq;
	ZSTD_CCtx *zstd;
	struct byte_buffer scratch;
};

struct frame_writer *frame_writer_new(uint64_t session_id)
{
	struct frame_writer *w = calloc(1, sizeof(*w));

	if (!w)
		return NULL;
	w->session_id = session_id;
	w->zstd = ZSTD_createCCtx();
	if (!w->zstd) {
		free(w);
		return NULL;
	}
	return w;
}

void frame_writer_free(struct frame_writer *w)
{
	if (!w)
		return;
	ZSTD_freeCCtx(w->zstd);
	byte_buffer_fini(&w->scratch);
	free(w);
}

/* Appends the compressed bytes to w->scratch. 0 or -ENOMEM. */
static int part_compress(struct frame_writer *w, const uint8_t *bytes, size_t len)
{
	struct byte_buffer *out = &w->scratch;
	size_t n;
	int err = byte_buffer_reserve(out, ZSTD_compressBound(len));

	if (err)
		return err;
	n = ZSTD_compressCCtx(w->zstd, out->data + out->len, out->capacity - out->len, bytes, len,
			      FRAME_ZSTD_LEVEL);
	if (ZSTD_isError(n))
		return -ENOMEM; /* its only way to fail with room for the worst case */
	out->len += n;
	return 0;
}

/* Leaves the smaller form in *stored, *stored_len. 0 or -ENOMEM. */
static int frame_compress(struct frame_writer *w, const uint8_t *payload, size_t len, size_t part,
			  const uint8_t **stored, size_t *stored_len)
{
	int err = 0;

	*stored = payload;
	*stored_len = len;
	if (len < FRAME_ZSTD_MIN_BYTES)
		return 0;
	if (part < FRAME_PART_MIN_BYTES || len - part < FRAME_PART_MIN_BYTES)
		part = 0;
	w->scratch.len = 0;
	if (part)
		err = part_compress(w, payload, part);
	if (!err)
		err = part_compress(w, payload + part, len - part);
	if (err)
		return err;
	if (w->scratch.len < len) {
		*stored = w->scratch.data;
		*stored_len = w->scratch.len;
	}
	return 0;
}

int frame_write(struct frame_writer *w, enum frame_kind kind, const uint8_t *payload, size_t len,
		struct byte_buffer *out)
{
	return frame_write_parted(w, kind, payload, len, 0, out);
}

int frame_write_parted(struct frame_writer *w, enum frame_kind kind, const uint8_t *payload,
		       size_t len, size_t part, struct byte_buffer *out)
{
	const uint8_t *stored;
	size_t stored_len;
	uint8_t *h;
	int err;

	if (len > VS_FRAME_RAW_MAX)
		return -E2BIG;
	err = frame_compress(w, payload, len, part, &stored, &stored_len);
	if (err)
		return err;
	if (stored_len > VS_FRAME_PAYLOAD_MAX)
		return -E2BIG;
	err = byte_buffer_reserve(out, VS_FRAME_HEADER_BYTES + stored_len);
	if (err)
		return err;
	h = out->data + out->len;
	memcpy(h, frame_magic, sizeof(frame_magic));
	h[4] = VS_FRAME_VERSION;
	h[5] = (uint8_t)kind;
	bytes_put16(h + 6, stored == payload ? 0 : VS_FRAME_ZSTD);
	bytes_put32(h + 8, (uint32_t)stored_len);
	bytes_put32(h + 12, (uint32_t)len);
	bytes_put64(h + 16, w->session_id);
	bytes_put32(h + 24, w->next_seq++);
	bytes_put32(h + 28, frame_crc32c(0, stored, stored_len));
	bytes_put32(h + 32, frame_crc32c(0, h, 32));
	if (stored_len)
		memcpy(h + VS_FRAME_HEADER_BYTES, stored, stored_len);
	out->len += VS_FRAME_HEADER_BYTES + stored_len;
	return 0;
}

uint32_t frame_writer_number(struct frame_writer *w)
{
	return w->next_seq++;
}

uint64_t frame_writer_session(const struct frame_writer *w)
{
	return w->session_id;
}

void frame_restamp(uint8_t *frame, uint64_t session_id, uint32_t frame_seq)
{
	bytes_put64(frame + 16, session_id);
	bytes_put32(frame + 24, frame_seq);
	bytes_put32(frame + 32, frame_crc32c(0, frame, 32));
}

int frame_header_parse(const uint8_t *bytes, size_t len, struct frame_header *header)
{
	if (memcmp(bytes, frame_magic, len < sizeof(frame_magic) ? len : sizeof(frame_magic)))
		return -EBADMSG;
	if (len > 4 && bytes[4] != VS_FRAME_VERSION)
		return -EPROTONOSUPPORT;
	if (len < VS_FRAME_HEADER_BYTES)
		return -EAGAIN;
	if (frame_crc32c(0, bytes, 32) != bytes_get32(bytes + 32))
		return -EILSEQ;
	*header = (struct frame_header){
		.version = bytes[4],
		.kind = bytes[5],
		.flags = bytes_get16(bytes + 6),
		.payload_bytes = bytes_get32(bytes + 8),
		.raw_bytes = bytes_get32(bytes + 12),
		.session_id = bytes_get64(bytes + 16),
		.frame_seq = bytes_get32(bytes + 24),
		.payload_crc = bytes_get32(bytes + 28),
	};
	if (header->flags & ~VS_FRAME_ZSTD)
		return -EPROTONOSUPPORT;
	if (header->payload_bytes > VS_FRAME_PAYLOAD_MAX || header->raw_bytes > VS_FRAME_RAW_MAX ||
	    (!(header->flags & VS_FRAME_ZSTD) && header->raw_bytes != header->payload_bytes))
		return -E2BIG;
	return 0;
}

int frame_parse(const uint8_t *bytes, size_t len, struct frame_view *frame)
{
	int err = frame_header_parse(bytes, len, &frame->header);

	if (err)
		return err;
	if (len - VS_FRAME_HEADER_BYTES < frame->header.payload_bytes)
		return -EAGAIN;
	frame->bytes = bytes;
	frame->len = VS_FRAME_HEADER_BYTES + frame->header.payload_bytes;
	if (frame_crc32c(0, bytes + VS_FRAME_HEADER_BYTES, frame->header.payload_bytes) !=
	    frame->header.payload_crc)
		return -EILSEQ;
	return 0;
}

struct frame_unpacker {
	ZSTD_DCtx *zstd;
	struct byte_buffer raw;
};

struct frame_unpacker *frame_unpacker_new(void)
{
	struct frame_unpacker *u = calloc(1, sizeof(*u));

	if (!u)
		return NULL;
	u->zstd = ZSTD_createDCtx();
	if (!u->zstd) {
		free(u);
		return NULL;
	}
	return u;
}

void frame_unpacker_free(struct frame_unpacker *u)
{
	if (!u)
		return;
	ZSTD_freeDCtx(u->zstd);
	byte_buffer_fini(&u->raw);
	free(u);
}

int frame_unpack(struct frame_unpacker *u, const struct frame_view *frame, const uint8_t **payload,
		 size_t *len)
{
	const uint8_t *stored = frame->bytes + VS_FRAME_HEADER_BYTES;
	const struct frame_header *h = &frame->header;
	int err;

	if (h->payload_bytes > VS_FRAME_PAYLOAD_MAX || h->raw_bytes > VS_FRAME_RAW_MAX)
		return -E2BIG;
	if (!(h->flags & VS_FRAME_ZSTD)) {
		*payload = stored;
		*len = h->payload_bytes;
		return 0;
	}
	u->raw.len = 0;
	err = byte_buffer_reserve(&u->raw, h->raw_bytes);
	if (err)
		return err;
	/* An error code is far above any size, so one comparison catches it too. */
	if (ZSTD_decompressDCtx(u->zstd, u->raw.data, h->raw_bytes, stored, h->payload_bytes) !=
	    h->raw_bytes)
		return -EBADMSG;
	u->raw.len = h->raw_bytes;
	*payload = u->raw.data;
	*len = h->raw_bytes;
	return 0;
}

static bool order_is_retired(const struct frame_order *o, uint64_t session_id)
{
	uint32_t n = o->n_retired < VS_RETIRED_SESSIONS ? o->n_retired : VS_RETIRED_SESSIONS;

	for (uint32_t i = 0; i < n; i++)
		if (o->retired[i] == session_id)
			return true;
	return false;
}

int64_t frame_order_check(struct frame_order *o, const struct frame_header *h)
{
	int32_t ahead;

	if (!o->started || h->session_id != o->session_id) {
		if (order_is_retired(o, h->session_id))
			return -EALREADY;
		if (o->started)
			o->retired[o->n_retired++ % VS_RETIRED_SESSIONS] = o->session_id;
		o->started = true;
		o->session_id = h->session_id;
		o->next = 0;
	}
	/* The counter may wrap: what is less than half its range behind is a replay. */
	ahead = (int32_t)(h->frame_seq - o->next);
	if (ahead < 0)
		return -EALREADY;
	o->next = h->frame_seq + 1;
	return ahead;
}
