/* SPDX-License-Identifier: GPL-2.0-only */
/* Functions for the files of this folder and their tests, not for other rooms. */
#ifndef PROTO_INTERNAL_H
#define PROTO_INTERNAL_H

#include <stddef.h>
#include <stdint.h>

/* Computes the CRC of frame_crc32c() without SSE4.2. Does not invert the CRC before or after. */
uint32_t crc32c_table(uint32_t crc, const uint8_t *p, size_t len);

#endif
