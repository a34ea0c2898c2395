// SPDX-License-Identifier: GPL-2.0-only
/* Fuzzes the recording reader: it ends, every byte is accounted for, and every entry contains a
 * valid frame. */
#include "fuzz.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "proto/recording.h"

static void check_file(const uint8_t *data, size_t len)
{
	struct recording_reader *r;
	char path[64];
	int fd = memfd_create("recording", MFD_CLOEXEC);

	FUZZ_CHECK(fd >= 0);
	FUZZ_CHECK(write(fd, data, len) == (ssize_t)len);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (!recording_reader_open(path, &r)) {
		const struct recording_info *info = recording_reader_info(r);
		struct recording_entry entry;
		uint64_t bytes = 32, entries = 0;
		int got;

		while ((got = recording_reader_next(r, &entry)) == 1) {
			struct frame_view again;

			FUZZ_CHECK(!frame_parse(entry.frame.bytes, entry.frame.len, &again));
			bytes += 24 + entry.frame.len;
			entries++;
		}
		FUZZ_CHECK(!got);
		FUZZ_CHECK(info->entries == entries && info->file_bytes == len);
		FUZZ_CHECK(info->cut || bytes + info->damaged_bytes == len);
		recording_reader_close(r);
	}
	close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	uint8_t *repaired = malloc(len + 1);

	FUZZ_CHECK(repaired);
	check_file(data, len);
	if (len)
		memcpy(repaired, data, len);
	fuzz_repair(repaired, len);
	check_file(repaired, len);
	free(repaired);
	return 0;
}
