// SPDX-License-Identifier: GPL-2.0-only
/* Tests the search for a probe in a file, which any user may own: for any bytes, the search
 * ends, the answer is within its bounds, and a valid file afterwards gives the right answer. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "bpf/isolation/probe_finder.h"

enum { ROUNDS = 150, HEAD_BYTES = 64, VALUES = 8 };

static uint64_t random_state = 0x9e3779b97f4a7c15;

static uint64_t random_next(void)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state >> 8;
}

int prop_probe_finder_target(int x);

__attribute__((noinline)) int prop_probe_finder_target(int x)
{
	return x + 1;
}

static unsigned char *file_read(const char *path, size_t *bytes)
{
	const int fd = open(path, O_RDONLY);
	struct stat s;
	unsigned char *all;

	assert_true(fd >= 0);
	assert_int_equal(fstat(fd, &s), 0);
	*bytes = (size_t)s.st_size;
	all = malloc(*bytes);
	assert_non_null(all);
	assert_int_equal(read(fd, all, *bytes), s.st_size);
	close(fd);
	return all;
}

static uint64_t word_at(const unsigned char *bytes, size_t at)
{
	uint64_t word;

	memcpy(&word, bytes + at, sizeof(word));
	return word;
}

/* A place in what a reader of the file believes: its header and its tables. */
static size_t place_pick(const unsigned char *file, size_t bytes)
{
	const uint64_t sections = word_at(file, 40), segments = word_at(file, 32);

	switch (random_next() % 4) {
	case 0:
		return random_next() % HEAD_BYTES;
	case 1:
		return (sections + random_next() % (bytes - sections)) % (bytes - 8);
	case 2:
		return (segments + random_next() % 512) % (bytes - 8);
	default:
		return random_next() % (bytes - 8);
	}
}

static void any_file_gives_a_bounded_answer(void **state)
{
	static const uint64_t values[VALUES] = {
		0, 1, 0x7f, 0xffff, 1u << 31, UINT32_MAX, UINT64_MAX, (uint64_t)1 << 63};
	char path[] = "/tmp/vcpuscope-probe-XXXXXX";
	const int fd = mkstemp(path);
	unsigned char *file, *copy;
	struct probe_places places;
	unsigned int found = 0;
	size_t bytes;

	(void)state;
	assert_true(fd >= 0);
	file = file_read("/proc/self/exe", &bytes);
	copy = malloc(bytes);
	assert_non_null(copy);
	for (int round = 0; round < ROUNDS; round++) {
		const size_t changes = random_next() % 6,
			     kept = round % 10 ? bytes : random_next() % bytes;
		int err;

		memcpy(copy, file, bytes);
		for (size_t i = 0; i < changes; i++)
			memcpy(copy + place_pick(file, bytes), &values[random_next() % VALUES],
			       1 + random_next() % 8);
		assert_int_equal(ftruncate(fd, 0), 0);
		assert_int_equal(pwrite(fd, copy, kept, 0), kept);
		err = probe_find(path, round % 3 ? NULL : "provider", "prop_probe_finder_target",
				 &places);
		assert_in_range(-err, 0, 4095);
		assert_true(places.n <= PROBE_PLACES_MAX);
		assert_true(memchr(places.near, 0, sizeof(places.near)) != NULL);
		found += !err;
	}
	assert_in_range(found, ROUNDS / 10, ROUNDS);
	assert_int_equal(prop_probe_finder_target(1), 2);
	assert_int_equal(probe_find("/proc/self/exe", NULL, "prop_probe_finder_target", &places),
			 0);
	assert_int_equal(places.n, 1);
	assert_true(places.places[0].offset < bytes);
	unlink(path);
	close(fd);
	free(copy);
	free(file);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(any_file_gives_a_bounded_answer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
