/* SPDX-License-Identifier: GPL-2.0-only */
/* Compares the bounded index with a simple list that keeps the most recent keys. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "host-collector/util/lru.h"

enum { CAPACITY = 8, KEYS = 24, STEPS = 20000 };

struct naive {          /* oldest first */
	size_t n, aged; /* the first `aged` were aged */
	uint64_t keys[CAPACITY];
};

static bool naive_remove(struct naive *l, uint64_t key)
{
	for (size_t i = 0; i < l->n; i++) {
		if (l->keys[i] == key) {
			l->aged -= i < l->aged;
			memmove(&l->keys[i], &l->keys[i + 1], (--l->n - i) * sizeof(key));
			return true;
		}
	}
	return false;
}

static bool naive_put(struct naive *l, uint64_t key)
{
	bool fresh;

	if (l->n && l->keys[l->n - 1] == key)
		return false;
	fresh = !naive_remove(l, key);
	if (l->n == CAPACITY)
		naive_remove(l, l->keys[0]);
	l->keys[l->n++] = key;
	return fresh;
}

static void naive_age(struct naive *l, uint64_t key)
{
	naive_remove(l, key);
	memmove(&l->keys[l->aged + 1], &l->keys[l->aged], (l->n++ - l->aged) * sizeof(key));
	l->keys[l->aged++] = key;
}

static void it_keeps_the_most_recent_keys(void **state)
{
	struct naive naive = {0};
	struct lru lru;
	uint64_t random = 1;

	(void)state;
	assert_int_equal(lru_init(&lru, CAPACITY), 0);
	for (int i = 0; i < STEPS; i++) {
		uint64_t key;
		uint32_t slot;
		bool fresh;

		random = random * 6364136223846793005ull + 1442695040888963407ull;
		key = (random >> 40) % KEYS << 32;
		slot = lru_find(&lru, key);
		switch (random >> 60) {
		case 0 ... 11:
			slot = lru_put(&lru, key, &fresh);
			assert_int_equal(fresh, naive_put(&naive, key));
			assert_true(slot < CAPACITY);
			break;
		case 12 ... 13:
			if (slot != LRU_NONE)
				lru_remove(&lru, slot);
			assert_int_equal(naive_remove(&naive, key), slot != LRU_NONE);
			break;
		default:
			if (slot != LRU_NONE) {
				lru_age(&lru, slot);
				naive_age(&naive, key);
			}
		}
		assert_int_equal(lru.count, naive.n);
		for (size_t k = 0; k < naive.n; k++) {
			slot = lru_find(&lru, naive.keys[k]);
			assert_true(slot != LRU_NONE && lru_used(&lru, slot));
			assert_true(lru_key(&lru, slot) == naive.keys[k]);
		}
	}
	lru_fini(&lru);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(it_keeps_the_most_recent_keys)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
