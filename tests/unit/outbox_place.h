/* SPDX-License-Identifier: GPL-2.0-only */
/* An outbox in a temporary folder, and a target that receives its segments. The segments contain
 * lines with numbers. Each number must arrive or be counted as lost. */
#ifndef TESTS_UNIT_OUTBOX_PLACE_H
#define TESTS_UNIT_OUTBOX_PLACE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "host-collector/fleet/outbox.h"

#define HOST "00000000000000000000000000000001"
#define BOOT "00000000000000000000000000000002"

enum { NUMBERS_MAX = 1 << 20 };

static char folder[64];

static uint64_t refused_reported; /* lines that loss reports count as lost to a full disk */

static inline size_t on_loss_line(void *context, const struct outbox_loss *loss, char *out,
				  size_t bytes)
{
	(void)context;
	refused_reported += loss->full ? loss->n[SEGMENT_INCIDENTS] + loss->n[SEGMENT_FIGURES] : 0;
	return (size_t)snprintf(out, bytes,
				"{\"record\":\"loss\",\"number\":%llu,\"lost_incidents\":%llu,"
				"\"lost_figures\":%llu,\"lost_evidence\":%llu}",
				(unsigned long long)loss->number,
				(unsigned long long)loss->n[SEGMENT_INCIDENTS],
				(unsigned long long)loss->n[SEGMENT_FIGURES],
				(unsigned long long)loss->n[SEGMENT_EVIDENCE]);
}

static int said; /* lines */
static char said_text[OUTBOX_PATH_MAX + 128];

static inline void on_say(void *context, const char *line)
{
	(void)context;
	said++;
	snprintf(said_text, sizeof(said_text), "%s", line);
}

static gid_t group = (gid_t)-1; /* of the shipper */

static inline struct outbox *open_with(uint64_t budget, bool shipped)
{
	const struct outbox_options options = {.folder = folder,
					       .host_id = HOST,
					       .boot_id = BOOT,
					       .budget_bytes = budget,
					       .keep_s = 3600,
					       .shipped = shipped,
					       .group = group,
					       .loss_line = on_loss_line,
					       .say = on_say};

	return outbox_open(&options);
}

static inline int setup(void **state)
{
	(void)state;
	snprintf(folder, sizeof(folder), "/tmp/test_outbox.XXXXXX");
	return !mkdtemp(folder);
}

static inline int teardown(void **state)
{
	char command[128];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf %s", folder);
	return system(command);
}

static inline void number_add(struct outbox *o, enum segment_kind kind, uint64_t n, size_t pad)
{
	char line[8192];

	snprintf(line, sizeof(line), "{\"n\":%llu,\"pad\":\"%0*d\"}", (unsigned long long)n,
		 (int)pad, 0);
	outbox_add(o, kind, line, strlen(line));
}

/* The received lines: each number once, and each loss report once. */
struct target {
	uint8_t numbers[NUMBERS_MAX];
	uint64_t distinct, duplicates;
	uint64_t loss_reports[4096][2], n_loss_reports, lost;
};

static inline void target_take(struct target *t, const char *path)
{
	FILE *f = fopen(path, "re");
	char *line = NULL;
	size_t bytes = 0;
	unsigned long long n, a, b;

	assert_non_null(f);
	while (getline(&line, &bytes, f) > 0) {
		if (sscanf(line, "{\"n\":%llu,", &n) == 1) {
			assert_true(n < NUMBERS_MAX);
			assert_int_equal(line[strlen(line) - 1], '\n');
			t->duplicates += t->numbers[n];
			t->distinct += !t->numbers[n];
			t->numbers[n] = 1;
		} else if (sscanf(line,
				  "{\"record\":\"loss\",\"number\":%llu,\"lost_incidents\":%llu,"
				  "\"lost_figures\":%llu,",
				  &n, &a, &b) == 3) {
			uint64_t r = 0;

			while (r < t->n_loss_reports && t->loss_reports[r][0] != n)
				r++;
			if (r == t->n_loss_reports) {
				t->loss_reports[t->n_loss_reports++][0] = n;
				t->loss_reports[r][1] = a + b;
				t->lost += a + b;
			}
			assert_int_equal(t->loss_reports[r][1], a + b);
		} else {
			fail_msg("a damaged line: %.80s", line);
		}
	}
	free(line);
	fclose(f);
}

/* Delivers at most `most` segments and marks them as delivered. forgets: does not mark them, as if
 * the shipper had been killed. Returns the number of delivered segments. */
static inline long ship_some(struct target *t, long most, bool forgets)
{
	struct segment *all;
	const long n = segments_list(folder, "", &all);
	char path[256];

	for (long i = 0; i < n && i < most; i++) {
		snprintf(path, sizeof(path), "%s/%s", folder, all[i].name);
		if (t && all[i].kind != SEGMENT_EVIDENCE)
			target_take(t, path);
		if (forgets)
			continue;
		snprintf(path, sizeof(path), "%s/" OUTBOX_DONE "/%s", folder, all[i].name);
		close(open(path, O_WRONLY | O_CREAT, 0600));
	}
	free(all);
	return n < most ? n : most;
}

static inline long ship(struct target *t, long most)
{
	return ship_some(t, most, false);
}

static inline void tick_all(struct outbox *o, uint64_t *now_ms, uint64_t ms)
{
	*now_ms += ms;
	outbox_tick(o, *now_ms);
	*now_ms += 1100;
	outbox_tick(o, *now_ms);
	for (int i = 0; i < 500; i++) { /* until the finisher is done */
		struct segment *all;
		const long n = segments_list(folder, SEGMENT_PART, &all);
		bool waits = false;

		for (long s = 0; s < n; s++)
			waits |= all[s].kind == SEGMENT_INCIDENTS || ms >= 60000;
		free(all);
		if (!waits)
			break;
		usleep(10000);
	}
}

#endif
