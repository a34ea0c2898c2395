/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Writes numbered lines to an outbox until it is killed, as the daemon would write records, and
 * prints each number after the line is written.
 *
 * usage: outbox-writer FOLDER FIRST COUNT LINE_BYTES [GID]
 *
 * COUNT 0: until it is killed, with a pause after each line. Otherwise it writes COUNT lines
 * without a pause, completes the segments, reports losses, and ends.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "clock/sample.h"
#include "host-collector/fleet/outbox.h"

#define HOST "00000000000000000000000000000001"
#define BOOT "00000000000000000000000000000002"

enum { PAUSE_US = 2000, TICK_US = 100000, END_TICKS = 15 };

static size_t on_loss_line(void *context, const struct outbox_loss *loss, char *out, size_t bytes)
{
	(void)context;
	return (size_t)snprintf(
		out, bytes, "{\"loss\":%llu,\"lines\":%llu}", (unsigned long long)loss->number,
		(unsigned long long)(loss->n[SEGMENT_INCIDENTS] + loss->n[SEGMENT_FIGURES]));
}

static void on_say(void *context, const char *line)
{
	(void)context;
	fprintf(stderr, "%s\n", line);
}

static void number_write(struct outbox *o, unsigned long long n, size_t bytes)
{
	static char line[OUTBOX_LINE_MAX];
	/* All of one kind: the order of delivery is then that of the numbers. */
	const int len =
		snprintf(line, sizeof(line), "{\"n\":%llu,\"pad\":\"%0*d\"}", n, (int)bytes, 0);

	outbox_add(o, SEGMENT_INCIDENTS, line, (size_t)len);
	printf("%llu\n", n);
	fflush(stdout);
	outbox_tick(o, clock_monotonic_ms());
}

int main(int argc, char **argv)
{
	struct outbox_options options = {.host_id = HOST,
					 .boot_id = BOOT,
					 .budget_bytes = 256 << 20,
					 .shipped = true,
					 .group = (gid_t)-1,
					 .loss_line = on_loss_line,
					 .say = on_say};
	unsigned long long first, count;
	struct outbox_stats stats;
	struct outbox *o;

	if (argc < 5)
		return 2;
	options.folder = argv[1];
	first = strtoull(argv[2], NULL, 10);
	count = strtoull(argv[3], NULL, 10);
	if (argc > 5)
		options.group = (gid_t)strtoul(argv[5], NULL, 10);
	o = outbox_open(&options);
	if (!o)
		return 1;
	outbox_stats_get(o, &stats);
	if (stats.error)
		return 1;
	for (unsigned long long n = first; !count || n < first + count; n++) {
		number_write(o, n, strtoul(argv[4], NULL, 10));
		if (!count)
			usleep(PAUSE_US);
	}
	for (int i = 0; i < END_TICKS; i++) {
		outbox_tick(o, clock_monotonic_ms());
		usleep(TICK_US);
	}
	outbox_close(o);
	return 0;
}
