// SPDX-License-Identifier: GPL-2.0-only
/* Fuzzes the frame reader: every byte is accounted for, every frame that it returns is valid,
 * and it finds the same frames if the stream arrives in other pieces. */
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "proto/frame.h"

struct result {
	struct frame_reader_stats stats;
	uint64_t frame_bytes;
	uint64_t digest; /* of frames and payloads; 64 bits leave no padding to compare */
};

static struct frame_unpacker *unpacker; /* made once: zstd's context is large */

static struct result read_stream(const uint8_t *data, size_t len, size_t step)
{
	struct frame_reader r;
	struct frame_view frame;
	struct result result = {0};

	frame_reader_init(&r);
	for (size_t at = 0; at < len; at += step) {
		size_t n = len - at < step ? len - at : step;

		FUZZ_CHECK(!frame_reader_push(&r, data + at, n));
		while (frame_reader_next(&r, &frame)) {
			struct frame_view again;
			const uint8_t *payload;
			size_t payload_len;

			FUZZ_CHECK(!frame_parse(frame.bytes, frame.len, &again));
			FUZZ_CHECK(again.len == frame.len);
			result.frame_bytes += frame.len;
			result.digest =
				frame_crc32c((uint32_t)result.digest, frame.bytes, frame.len);
			if (!frame_unpack(unpacker, &frame, &payload, &payload_len))
				result.digest =
					frame_crc32c((uint32_t)result.digest, payload, payload_len);
		}
	}
	FUZZ_CHECK(result.frame_bytes + r.stats.skipped_bytes + r.pending.len - r.consumed == len);
	result.stats = r.stats;
	while (frame_reader_is_partial(&r)) {
		frame_reader_abandon(&r);
		while (frame_reader_next(&r, &frame))
			;
	}
	frame_reader_fini(&r);
	return result;
}

static void check_stream(const uint8_t *data, size_t len)
{
	struct result whole = read_stream(data, len, len);
	struct result pieces = read_stream(data, len, 1 + len / 7);

	FUZZ_CHECK(!memcmp(&whole, &pieces, sizeof(whole)));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	uint8_t *repaired;

	if (!unpacker)
		unpacker = frame_unpacker_new();
	FUZZ_CHECK(unpacker);
	if (!len)
		return 0;
	check_stream(data, len);
	repaired = malloc(len);
	FUZZ_CHECK(repaired);
	memcpy(repaired, data, len);
	fuzz_repair(repaired, len);
	check_stream(repaired, len);
	free(repaired);
	return 0;
}
