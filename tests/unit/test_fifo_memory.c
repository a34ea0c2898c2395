/* SPDX-License-Identifier: GPL-2.0-only */
/* Tests memory whose items are freed in the order of their allocation, against a queue of what the
 * items must contain. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "host-collector/util/fifo_memory.h"

enum {
	MOST_BYTES = 1 << 20,
	LARGEST_BYTES = 300000,
	ITEMS_MAX = 65536,
	SLACK_BYTES = 3 * 65536, /* memory of freed items that was not returned yet */
};

struct item {
	uint8_t *at;
	size_t bytes;
	uint8_t fill;
};

struct queue {
	struct fifo_memory *memory;
	struct item items[ITEMS_MAX];
	size_t first, n, bytes;
	uint8_t *low, *high; /* of all items so far */
};

static int setup(void **state)
{
	struct queue *q = calloc(1, sizeof(*q));

	assert_non_null(q);
	q->memory = fifo_memory_new(MOST_BYTES, LARGEST_BYTES);
	assert_non_null(q->memory);
	*state = q;
	return 0;
}

static int teardown(void **state)
{
	struct queue *q = *state;

	fifo_memory_free(q->memory);
	free(q);
	return 0;
}

static void item_add(struct queue *q, size_t bytes)
{
	struct item *i = &q->items[(q->first + q->n) % ITEMS_MAX];

	assert_true(q->n < ITEMS_MAX);
	i->at = fifo_memory_add(q->memory, bytes);
	i->bytes = bytes;
	i->fill = (uint8_t)rand();
	assert_non_null(i->at);
	assert_int_equal((uintptr_t)i->at % _Alignof(max_align_t), 0);
	memset(i->at, i->fill, bytes);
	q->low = !q->low || i->at < q->low ? i->at : q->low;
	q->high = i->at + bytes > q->high ? i->at + bytes : q->high;
	q->n++;
	q->bytes += fifo_memory_room(bytes);
}

/* Checks the oldest item, and frees it. */
static void item_remove(struct queue *q)
{
	const struct item *i = &q->items[q->first];

	for (size_t k = 0; k < i->bytes; k++)
		assert_int_equal(i->at[k], i->fill);
	q->bytes -= fifo_memory_room(i->bytes);
	q->first = (q->first + 1) % ITEMS_MAX;
	q->n--;
	fifo_memory_keep(q->memory, q->n ? q->items[q->first].at : NULL);
}

static size_t resident_bytes(const struct queue *q)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	uint8_t *from = (uint8_t *)((uintptr_t)q->low / page * page);
	const size_t pages = ((size_t)(q->high - from) + page - 1) / page;
	unsigned char *in = calloc(pages, 1);
	size_t n = 0;

	assert_non_null(in);
	assert_int_equal(mincore(from, pages * page, in), 0);
	for (size_t i = 0; i < pages; i++)
		n += in[i] & 1;
	free(in);
	return n * page;
}

/* largest: of the sizes, in bytes. Keeps as many items as fit. */
static void play(struct queue *q, size_t rounds, size_t largest)
{
	for (size_t i = 0; i < rounds; i++) {
		item_add(q, 1 + (size_t)rand() % largest);
		while (q->bytes > MOST_BYTES || q->n == ITEMS_MAX)
			item_remove(q);
		if (i % 64 == 0)
			assert_true(resident_bytes(q) <= q->bytes + SLACK_BYTES);
	}
}

static void test_items_keep_their_content(void **state)
{
	static const size_t largest[] = {1, 16, 100, 4096, 65536, LARGEST_BYTES};

	srand(7);
	for (size_t i = 0; i < sizeof(largest) / sizeof(largest[0]); i++) {
		play(*state, largest[i] < 1000 ? 200000 : 2000, largest[i]);
		play(*state, 20, LARGEST_BYTES);
	}
}

/* A ring with little in it must use little memory, wherever its items are. */
static void test_memory_follows_the_items(void **state)
{
	struct queue *q = *state;

	srand(8);
	for (size_t i = 0; i < 3000; i++) {
		item_add(q, 1 + (size_t)rand() % 10000);
		while (q->n > 5)
			item_remove(q);
		assert_true(resident_bytes(q) <= q->bytes + SLACK_BYTES);
	}
	while (q->n)
		item_remove(q);
	assert_int_equal(resident_bytes(q), 0);
	item_add(q, 100);
}

static void test_items_that_do_not_fit_are_refused(void **state)
{
	struct queue *q = *state;
	size_t n = 0;

	assert_null(fifo_memory_add(q->memory, 0));
	assert_null(fifo_memory_add(q->memory, LARGEST_BYTES + 16));
	assert_null(fifo_memory_add(q->memory, SIZE_MAX));
	for (; fifo_memory_add(q->memory, LARGEST_BYTES); n++) {
	}
	assert_true(n * LARGEST_BYTES >= MOST_BYTES + LARGEST_BYTES);
	assert_true(n * LARGEST_BYTES <= MOST_BYTES + 4 * LARGEST_BYTES);
	fifo_memory_keep(q->memory, NULL);
	assert_non_null(fifo_memory_add(q->memory, LARGEST_BYTES));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_items_keep_their_content, setup, teardown),
		cmocka_unit_test_setup_teardown(test_memory_follows_the_items, setup, teardown),
		cmocka_unit_test_setup_teardown(test_items_that_do_not_fit_are_refused, setup,
						teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
