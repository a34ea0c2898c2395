/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef TESTS_FUZZ_FUZZ_H
#define TESTS_FUZZ_FUZZ_H

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

/* Makes the CRCs of everything that looks like a frame, an entry or a recording right. */
void fuzz_repair(uint8_t *data, size_t len);

/* What a target claims about its subject; a fuzzer counts the trap as a find. */
#define FUZZ_CHECK(condition)                                                                      \
	do {                                                                                       \
		if (!(condition))                                                                  \
			__builtin_trap();                                                          \
	} while (0)

#endif
