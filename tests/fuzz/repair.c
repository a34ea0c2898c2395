// SPDX-License-Identifier: GPL-2.0-only
/* Sets valid CRCs, which a fuzzer cannot guess, so that the input reaches the code behind them.
 */
#include "fuzz.h"

#include <string.h>

#include "proto/bytes.h"
#include "proto/frame.h"
#include "proto/recording_format.h"

static void repair_frame(uint8_t *p, size_t len)
{
	size_t payload;

	if (len < VS_FRAME_HEADER_BYTES)
		return;
	payload = bytes_get32(p + 8);
	if (payload <= len - VS_FRAME_HEADER_BYTES)
		bytes_put32(p + 28, frame_crc32c(0, p + VS_FRAME_HEADER_BYTES, payload));
	bytes_put32(p + 32, frame_crc32c(0, p, 32));
}

/* From the end, because a frame's payload may contain what looks like a frame. */
void fuzz_repair(uint8_t *data, size_t len)
{
	for (size_t at = len; at-- > 0;) {
		size_t left = len - at;

		if (data[at] != 'V') /* as both magics begin */
			continue;
		if (left >= 4 && !memcmp(data + at, "VCSF", 4))
			repair_frame(data + at, left);
		if (left >= RECORDING_ENTRY_HEADER_BYTES &&
		    !memcmp(data + at, RECORDING_ENTRY_MAGIC, 4))
			bytes_put32(data + at + 20, frame_crc32c(0, data + at, 20));
	}
	if (len >= RECORDING_HEADER_BYTES && !memcmp(data, RECORDING_MAGIC, 8))
		bytes_put32(data + 28, frame_crc32c(0, data, 28));
}
