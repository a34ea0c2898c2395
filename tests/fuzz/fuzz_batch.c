// SPDX-License-Identifier: GPL-2.0-only
/* Fuzzes the batch decoder: an accepted batch keeps the promises of codec.h, and is the same
 * after encoding and decoding it again. */
#include "fuzz.h"

#include <string.h>

#include "proto/codec.h"
#include "proto/message.h"

/* Made once: a run costs what decoding costs, not what allocating their tables costs. */
static struct batch_decoder *decoder, *again;
static struct batch_encoder *encoder;
static struct byte_buffer packed;

static void check_again(const struct batch *first)
{
	struct batch second;

	packed.len = 0;
	FUZZ_CHECK(!batch_encode(encoder, first, &packed));
	FUZZ_CHECK(!batch_decode(again, packed.data, packed.len, &second));
	FUZZ_CHECK(second.cpu == first->cpu && second.n_events == first->n_events);
	FUZZ_CHECK(second.watermark == first->watermark);
	FUZZ_CHECK(!memcmp(second.events, first->events, first->n_events * sizeof(*first->events)));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct batch b;

	if (!decoder) {
		decoder = batch_decoder_new();
		again = batch_decoder_new();
		encoder = batch_encoder_new();
		FUZZ_CHECK(decoder && again && encoder);
		batch_encoder_relay(encoder);
	}
	if (!batch_decode(decoder, data, len, &b)) {
		uint64_t time = 0;

		FUZZ_CHECK(b.n_events <= VS_BATCH_EVENTS_MAX && b.cpu < VS_CPUS_MAX);
		for (size_t i = 0; i < b.n_events; i++) {
			FUZZ_CHECK(b.events[i].cpu == b.cpu && b.events[i].time >= time);
			FUZZ_CHECK(b.events[i].type);
			time = b.events[i].time;
		}
		check_again(&b);
	}
	return 0;
}
