/* SPDX-License-Identifier: GPL-2.0-only */
/* Shared by the files of this folder and its tests; not for other rooms. */
#ifndef PROTO_INTERNAL_H
#define PROTO_INTERNAL_H

#include <stddef.h>
#include <stdint.h>

/* What frame_crc32c does without SSE4.2; crc is neither inverted before nor after. */
uint32_t crc32c_table(uint32_t crc, const uint8_t *p, size_t len);

#endif
