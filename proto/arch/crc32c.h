/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * CRC-32C by the CPU's own instruction. crc32c_hardware() continues *crc over `len` bytes and
 * returns true, or changes nothing and returns false if this CPU has no such instruction.
 */
#ifndef PROTO_ARCH_CRC32C_H
#define PROTO_ARCH_CRC32C_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if defined(__x86_64__)
#include <nmmintrin.h>
#define CRC32C_TARGET  __attribute__((target("sse4.2")))
#define CRC32C_8(c, v) ((uint32_t)_mm_crc32_u64(c, v))
#define CRC32C_1(c, v) _mm_crc32_u8(c, v)

static inline bool crc32c_present(void)
{
	return __builtin_cpu_supports("sse4.2");
}
#elif defined(__aarch64__)
#include <sys/auxv.h>
#define CRC32C_TARGET  __attribute__((target("+crc")))
#define CRC32C_8(c, v) __builtin_aarch64_crc32cx(c, v)
#define CRC32C_1(c, v) __builtin_aarch64_crc32cb(c, v)

static inline bool crc32c_present(void)
{
	return getauxval(AT_HWCAP) >> 7 & 1; /* HWCAP_CRC32 */
}
#endif

#ifdef CRC32C_TARGET
CRC32C_TARGET static inline uint32_t crc32c_instructions(uint32_t crc, const uint8_t *p, size_t len)
{
	for (; len >= 8; p += 8, len -= 8) {
		uint64_t word;

		memcpy(&word, p, sizeof(word));
		crc = CRC32C_8(crc, word);
	}
	for (; len; p++, len--)
		crc = CRC32C_1(crc, *p);
	return crc;
}

static inline bool crc32c_hardware(uint32_t *crc, const uint8_t *p, size_t len)
{
	if (!crc32c_present())
		return false;
	*crc = crc32c_instructions(*crc, p, len);
	return true;
}
#else
static inline bool crc32c_hardware(uint32_t *crc, const uint8_t *p, size_t len)
{
	(void)crc, (void)p, (void)len;
	return false;
}
#endif

#endif
