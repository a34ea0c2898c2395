// SPDX-License-Identifier: GPL-2.0-only
/*
 * CRC-32C (Castagnoli, RFC 3720 appendix B.4), reflected. Uses the CPU's instruction if it has
 * one (some GB/s), else a table of 16 entries.
 */
#include "proto/frame.h"

#include "proto/arch/crc32c.h"
#include "proto/internal.h"

uint32_t crc32c_table(uint32_t crc, const uint8_t *p, size_t len)
{
	/* The CRC of each nibble; polynomial 0x82f63b78. */
	static const uint32_t nibble[16] = {
		0x00000000, 0x105ec76f, 0x20bd8ede, 0x30e349b1, 0x417b1dbc, 0x5125dad3,
		0x61c69362, 0x7198540d, 0x82f63b78, 0x92a8fc17, 0xa24bb5a6, 0xb21572c9,
		0xc38d26c4, 0xd3d3e1ab, 0xe330a81a, 0xf36e6f75,
	};

	for (; len; p++, len--) {
		crc ^= *p;
		crc = crc >> 4 ^ nibble[crc & 15];
		crc = crc >> 4 ^ nibble[crc & 15];
	}
	return crc;
}

uint32_t frame_crc32c(uint32_t crc, const void *data, size_t len)
{
	crc = ~crc;
	if (!crc32c_hardware(&crc, data, len))
		crc = crc32c_table(crc, data, len);
	return ~crc;
}
