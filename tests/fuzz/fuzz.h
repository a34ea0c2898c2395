/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef TESTS_FUZZ_FUZZ_H
#define TESTS_FUZZ_FUZZ_H

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

/* Sets valid CRCs in everything that looks like a frame, an entry or a recording. */
void fuzz_repair(uint8_t *data, size_t len);

/* Checks a property of the tested code. The fuzzer reports the trap as a crash. */
#define FUZZ_CHECK(condition)                                                                      \
	do {                                                                                       \
		if (!(condition))                                                                  \
			__builtin_trap();                                                          \
	} while (0)

#endif
