// SPDX-License-Identifier: GPL-2.0-only
/*
 * Writes lines to the kernel's log, each between two TSC reads, and finds them in the log. Prints
 * "TSC_BEFORE STAMP_US TSC_AFTER" for each line.
 *
 *   kmsg-probe TAG LINES PERIOD_MS
 */
#include <fcntl.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <x86intrin.h>

enum { LINES_MAX = 10000 };

struct mark {
	uint64_t before, after;
};

static uint64_t tsc_read(void)
{
	uint64_t tsc;

	_mm_lfence();
	tsc = __rdtsc();
	_mm_lfence();
	return tsc;
}

static void marks_print(int log, const char *tag, const struct mark *marks, long n)
{
	char record[8192], *text;
	uint64_t stamp_us;
	ssize_t got;

	/* "PRIORITY,SEQUENCE,MICROSECONDS,FLAGS;TEXT\n": one record a read. */
	while ((got = read(log, record, sizeof(record) - 1)) > 0) {
		size_t tag_len = strlen(tag);
		long i;

		record[got] = '\0';
		text = strchr(record, ';');
		if (!text || strncmp(text + 1, tag, tag_len) != 0 ||
		    sscanf(record, "%*u,%*u,%" SCNu64, &stamp_us) != 1)
			continue;
		i = strtol(text + 1 + tag_len, NULL, 10);
		if (i >= 0 && i < n)
			printf("%" PRIu64 " %" PRIu64 " %" PRIu64 "\n", marks[i].before, stamp_us,
			       marks[i].after);
	}
}

int main(int argc, char **argv)
{
	static struct mark marks[LINES_MAX];
	long n = argc > 2 ? strtol(argv[2], NULL, 10) : 0;
	long period_ms = argc > 3 ? strtol(argv[3], NULL, 10) : 0;
	const struct timespec period = {period_ms / 1000, period_ms % 1000 * 1000000};
	int log = open("/dev/kmsg", O_RDWR | O_NONBLOCK);

	if (log < 0 || n <= 0 || n > LINES_MAX)
		return 1;
	/* From here on: the ring may be full of older lines. */
	lseek(log, 0, SEEK_END);
	for (long i = 0; i < n; i++) {
		char line[128];
		int len = snprintf(line, sizeof(line), "<7>%s%ld\n", argv[1], i);

		marks[i].before = tsc_read();
		if (write(log, line, (size_t)len) != len)
			return 1;
		marks[i].after = tsc_read();
		nanosleep(&period, NULL);
	}
	marks_print(log, argv[1], marks, n);
	return 0;
}
