// SPDX-License-Identifier: GPL-2.0-only
/* Runs fuzz_commands without a fuzzer, with scripts of random bytes, which are the same in every
 * run. Arguments: the number of scripts and the number of the first one (40, 0). To reproduce an
 * error at once, begin with the number after the last one that was printed. */
#include "fuzz.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "mutate.h"

enum { HEAD_BYTES = 2, RUNS = 40 };

static uint64_t next_random(uint64_t *seed)
{
	*seed += 0x9e3779b97f4a7c15;
	uint64_t z = *seed;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
	z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
	return z ^ (z >> 31);
}

int main(int argc, char **argv)
{
	const unsigned long n = argc > 1 ? strtoul(argv[1], NULL, 10) : RUNS;
	const unsigned long first = argc > 2 ? strtoul(argv[2], NULL, 10) : 0;

	for (unsigned long i = first; i < first + n; i++) {
		uint8_t script[HEAD_BYTES + MUTATE_OPS_MAX * MUTATE_OP_BYTES];
		uint64_t seed = i * 1000003 + 1;
		size_t len = HEAD_BYTES + MUTATE_OP_BYTES * (1 + next_random(&seed) % 4);
		char text[32];

		for (size_t k = 0; k < len; k++)
			script[k] = (uint8_t)next_random(&seed);
		/* Most of them change many entries in the same way, or the times of all batches. */
		if (i % 3 == 0)
			memset(script + len - 2, 0xff, 2);
		if (i % 4 == 1)
			script[HEAD_BYTES] = 0;
		/* The commands have taken standard output and the stream standard error. */
		snprintf(text, sizeof(text), "\rscript %lu ", i);
		(void)!write(STDERR_FILENO, text, strlen(text));
		LLVMFuzzerTestOneInput(script, len);
	}
	return 0;
}
