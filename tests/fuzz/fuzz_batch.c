// SPDX-License-Identifier: GPL-2.0-only
/*
 * The batch decoder on any payload: what it accepts keeps codec.h's promises, and if our encoder
 * knows all its types, it comes back the same from encoding and decoding once more.
 */
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "proto/codec.h"
#include "proto/message.h"

static void check_again(const struct batch *first)
{
	struct batch_encoder *e = batch_encoder_new();
	struct batch_decoder *d = batch_decoder_new();
	struct byte_buffer packed = {0};
	struct batch second;

	FUZZ_CHECK(e && d);
	if (!batch_encode(e, first, &packed)) {
		FUZZ_CHECK(!batch_decode(d, packed.data, packed.len, &second));
		FUZZ_CHECK(second.cpu == first->cpu && second.n_events == first->n_events);
		FUZZ_CHECK(second.watermark == first->watermark);
		FUZZ_CHECK(!memcmp(second.events, first->events,
				   first->n_events * sizeof(*first->events)));
	}
	byte_buffer_fini(&packed);
	batch_encoder_free(e);
	batch_decoder_free(d);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct batch_decoder *d = batch_decoder_new();
	struct batch b;

	FUZZ_CHECK(d);
	if (!batch_decode(d, data, len, &b)) {
		uint64_t time = 0;

		FUZZ_CHECK(b.n_events <= VS_BATCH_EVENTS_MAX && b.cpu < VS_CPUS_MAX);
		for (size_t i = 0; i < b.n_events; i++) {
			FUZZ_CHECK(b.events[i].cpu == b.cpu && b.events[i].time >= time);
			FUZZ_CHECK(b.events[i].type && b.events[i].type < VS_EVENT_TYPE_LIMIT);
			time = b.events[i].time;
		}
		check_again(&b);
	}
	batch_decoder_free(d);
	return 0;
}
