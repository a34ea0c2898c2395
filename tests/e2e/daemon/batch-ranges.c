/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a recording holds of its guest's events, by the guest's own totals alone: batch-ranges FILE
 * prints, of each CPU, the total before its first batch, the total with its last one, and how many
 * events lie in all of them:
 *
 *	{"cpus": [[FIRST, LAST, EVENTS], ..]}
 */
#include <stdio.h>
#include <string.h>

#include "proto/codec.h"
#include "proto/frame.h"
#include "proto/message.h"
#include "proto/recording.h"

enum { CPUS = 64 };

struct range {
	bool known;
	uint64_t first, last, events;
};

static int recording_sum(struct recording_reader *r, struct range *cpus)
{
	struct batch_decoder *decoder = batch_decoder_new();
	struct frame_unpacker *unpacker = frame_unpacker_new();
	struct recording_entry entry;
	int got;

	if (!decoder || !unpacker)
		return -1;
	while ((got = recording_reader_next(r, &entry)) == 1) {
		const uint8_t *payload;
		struct batch b;
		size_t len;

		if (entry.source != 1 || entry.frame.header.kind != FRAME_BATCH ||
		    frame_unpack(unpacker, &entry.frame, &payload, &len) ||
		    batch_decode(decoder, payload, len, &b) || b.cpu >= CPUS)
			continue;
		if (!cpus[b.cpu].known)
			cpus[b.cpu].first = b.emitted - b.n_events;
		cpus[b.cpu].known = true;
		cpus[b.cpu].last = b.emitted;
		cpus[b.cpu].events += b.n_events;
	}
	batch_decoder_free(decoder);
	frame_unpacker_free(unpacker);
	return got;
}

int main(int argc, char **argv)
{
	static struct range cpus[CPUS];
	struct recording_reader *r;
	const char *comma = "";
	int err;

	if (argc != 2 || recording_reader_open(argv[1], &r)) {
		fprintf(stderr, "usage: batch-ranges FILE\n");
		return 2;
	}
	err = recording_sum(r, cpus);
	recording_reader_close(r);
	printf("{\"cpus\": [");
	for (int c = 0; c < CPUS; c++) {
		if (!cpus[c].known)
			continue;
		printf("%s[%llu, %llu, %llu]", comma, (unsigned long long)cpus[c].first,
		       (unsigned long long)cpus[c].last, (unsigned long long)cpus[c].events);
		comma = ", ";
	}
	printf("]}\n");
	return err ? 1 : 0;
}
