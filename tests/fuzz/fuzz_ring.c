// SPDX-License-Identifier: GPL-2.0-only
/* Fuzzes the ring by which a compromised decoder process could attack the collector. If the
 * first byte is even, the rest is one record in valid slots. If it is odd, the second byte is the
 * number of claimed slots, and the rest is their content. Each record that the reader returns is
 * packed. */
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "host-collector/decode/framer.h"
#include "host-collector/decode/ring.h"

static struct ring *ring;
static struct framer *framer;
static struct frame_unpacker *unpacker;
static struct batch_decoder *decoder;

static void record_put(const uint8_t *data, size_t len)
{
	uint32_t part = 0;

	for (size_t at = 0; at < len && part < RING_SLOTS; at += RING_BODY_BYTES, part++) {
		struct ring_slot *slot = &ring->slots[part];
		size_t n = len - at < RING_BODY_BYTES ? len - at : RING_BODY_BYTES;

		slot->part = part;
		slot->record_bytes = (uint32_t)len;
		memcpy(slot->body, data + at, n);
	}
	atomic_store(&ring->head, part);
}

static void slots_put(const uint8_t *data, size_t len)
{
	memcpy(ring->slots, data + 1,
	       len - 1 < sizeof(ring->slots) ? len - 1 : sizeof(ring->slots));
	atomic_store(&ring->head, data[0]);
}

/* A batch that is handed on as its events is what a reader of its frame would have decoded. */
static void batch_compare(const struct batch *batch, const struct frame_view *frame)
{
	const uint8_t *payload;
	struct batch decoded;
	size_t len;

	FUZZ_CHECK(!frame_unpack(unpacker, frame, &payload, &len));
	FUZZ_CHECK(!batch_decode(decoder, payload, len, &decoded));
	FUZZ_CHECK(decoded.cpu == batch->cpu && decoded.n_events == batch->n_events);
	for (size_t i = 0; i < batch->n_events; i++) {
		const struct vs_event *a = &batch->events[i], *b = &decoded.events[i];

		FUZZ_CHECK(a->time == b->time && a->seq == b->seq && a->type == b->type);
	}
}

static void taken_use(const struct guest_record *record)
{
	struct guest_record *mine = malloc(sizeof(*mine));
	struct frame_view frame;
	struct frame_item item;
	size_t bytes = record_bytes(record);

	FUZZ_CHECK(mine && bytes <= sizeof(*mine));
	memcpy(mine, record, bytes); /* what lies behind is not to be read */
	if (mine->head.kind == RECORD_UNKNOWN)
		framer_unknown(framer, mine);
	if (!framer_item(framer, mine, &item)) {
		FUZZ_CHECK(!frame_item_frame(&item, &frame));
		FUZZ_CHECK(frame.len <= VS_FRAME_HEADER_BYTES + VS_FRAME_PAYLOAD_MAX);
		FUZZ_CHECK(frame.header.frame_seq == record->head.frame_seq);
		if (item.batch)
			batch_compare(item.batch, &frame);
	}
	free(mine);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	const struct guest_record *record;
	struct ring_reader *reader;
	unsigned int slots = 2 * RING_SLOTS;

	if (!ring) {
		ring = aligned_alloc(4096, (sizeof(*ring) + 4095) / 4096 * 4096);
		framer = framer_new();
		unpacker = frame_unpacker_new();
		decoder = batch_decoder_new();
		FUZZ_CHECK(ring && framer && unpacker && decoder);
		memset(ring, 0, sizeof(*ring));
	}
	if (len < 2)
		return 0;
	reader = ring_reader_new(ring);
	FUZZ_CHECK(reader);
	if (data[0] & 1)
		slots_put(data + 1, len - 1);
	else
		record_put(data + 1, len - 1);
	while (ring_take(reader, &slots, &record) > 0)
		taken_use(record);
	ring_reader_free(reader);
	return 0;
}
