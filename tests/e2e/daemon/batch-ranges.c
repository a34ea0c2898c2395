/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Prints the totals of the guest's events in a recording: of each CPU its number, the guest's total
 * before its first batch, the total in its last one, and the number of events in all batches. If
 * the guest booted several times, prints these for each boot, the newest first:
 *
 *	{"cpus": [[CPU, FIRST, LAST, EVENTS], ..], "boot": "ID",
 *	 "before": [{"cpus": .., "boot": ..}, ..]}
 *
 *   batch-ranges FILE
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "proto/message.h"
#include "tests/e2e/recording_entries.h"

enum { CPUS = 64, BOOTS = 256, GUEST = 1 };

struct range {
	bool known;
	uint64_t first, last, events;
};

struct boot {
	char id[VS_TEXT_MAX];
	struct range cpus[CPUS];
};

struct boots {
	size_t n;
	struct boot all[BOOTS];
};

static int boot_note(void *context, uint32_t source, uint8_t kind, const uint8_t *payload,
		     size_t len)
{
	static struct message_hello hello;
	struct boots *boots = context;
	int err;

	if (source != GUEST || kind != FRAME_HELLO)
		return 0;
	err = message_hello_unpack(payload, len, &hello);
	if (err)
		return err;
	if (boots->n && !strcmp(boots->all[boots->n - 1].id, hello.boot_id))
		return 0;
	if (boots->n == BOOTS)
		return -ENOSPC;
	/* What was on its way when the reader came was sent before this greeting. */
	if (boots->n == 1 && !*boots->all[0].id)
		boots->n = 0;
	strcpy(boots->all[boots->n++].id, hello.boot_id);
	return 0;
}

static int batch_count(void *context, uint32_t source, const struct batch *b)
{
	struct boots *boots = context;
	struct range *range;

	if (source != GUEST || b->cpu >= CPUS)
		return 0;
	if (!boots->n)
		boots->n = 1; /* nobody greeted */
	range = &boots->all[boots->n - 1].cpus[b->cpu];
	if (!range->known)
		range->first = b->emitted - b->n_events;
	range->known = true;
	range->last = b->emitted;
	range->events += b->n_events;
	return 0;
}

static void boot_print(const struct boot *boot)
{
	const char *comma = "";

	printf("{\"cpus\": [");
	for (int c = 0; c < CPUS; c++) {
		const struct range *range = &boot->cpus[c];

		if (!range->known)
			continue;
		printf("%s[%d, %llu, %llu, %llu]", comma, c, (unsigned long long)range->first,
		       (unsigned long long)range->last, (unsigned long long)range->events);
		comma = ", ";
	}
	printf("], \"boot\": \"%s\"", boot->id);
}

int main(int argc, char **argv)
{
	static struct boots boots;
	const struct recording_visitor visitor = {
		.batch = batch_count, .message = boot_note, .context = &boots};
	const int status = recording_visit_argument(argc, argv, &visitor);
	size_t n = boots.n ? boots.n : 1;

	if (argc != 2)
		return status;
	boot_print(&boots.all[n - 1]);
	printf(", \"before\": [");
	for (size_t i = n - 1; i--;) {
		boot_print(&boots.all[i]);
		printf(i ? "}, " : "}");
	}
	printf("]}\n");
	return status;
}
