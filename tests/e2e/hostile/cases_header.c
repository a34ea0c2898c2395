/* SPDX-License-Identifier: GPL-2.0-only */
/* Frames with false headers, and payloads that do not match their header. */
#include <string.h>
#include <zstd.h>

#include "tests/e2e/hostile/attack.h"

static uint8_t room[8 << 20];

/* A good clock sample, to be spoilt. */
static size_t sample_payload(struct attack *a, const uint8_t **payload)
{
	const struct message_clock_sample sample = {.tsc = 7, .monotonic_ns = 8, .raw_ns = 9};

	a->payload.len = 0;
	message_clock_sample_pack(&sample, &a->payload);
	*payload = a->payload.data;
	return a->payload.len;
}

static const struct header_lie {
	const char *name;
	enum { VERSION, KIND, FLAGS, PAYLOAD, RAW, PAYLOAD_CRC, MORE_PAYLOAD, MORE_RAW } field;
	uint32_t value;
	unsigned int expect;
} lies[] = {
	{"version 0", VERSION, 0, EXPECT_DAMAGED},
	{"version 2", VERSION, 2, EXPECT_DAMAGED},
	{"version 255", VERSION, 255, EXPECT_DAMAGED},
	{"kind 0", KIND, 0, EXPECT_REFUSED},
	{"kind echo request, which is the host's", KIND, FRAME_ECHO_REQUEST, EXPECT_REFUSED},
	{"kind vm info, which is the host's", KIND, FRAME_VM_INFO, EXPECT_REFUSED},
	{"kind echo observation, which is the host's", KIND, FRAME_ECHO_OBSERVATION,
	 EXPECT_REFUSED},
	{"kind stack, which is the host's", KIND, FRAME_STACK, EXPECT_REFUSED},
	{"kind note, which is the host's", KIND, FRAME_NOTE, EXPECT_REFUSED},
	{"kind recording end", KIND, FRAME_RECORDING_END, EXPECT_REFUSED},
	{"kind vm clock, which is the host's", KIND, FRAME_VM_CLOCK, EXPECT_REFUSED},
	{"kind cpu quota, which is the host's", KIND, FRAME_CPU_QUOTA, EXPECT_REFUSED},
	{"kind exit summary, which is the host's", KIND, FRAME_EXIT_SUMMARY, EXPECT_REFUSED},
	{"kind 100", KIND, 100, EXPECT_REFUSED},
	{"kind 255", KIND, 255, EXPECT_REFUSED},
	{"flags zstd on what is not", FLAGS, VS_FRAME_ZSTD, EXPECT_REFUSED | EXPECT_DAMAGED},
	{"flags 2", FLAGS, 2, EXPECT_ANY},
	{"flags 0x8000", FLAGS, 0x8000, EXPECT_ANY},
	{"flags 0xffff", FLAGS, 0xffff, EXPECT_ANY},
	{"payload of no bytes", PAYLOAD, 0, EXPECT_ANY},
	{"payload one byte short", MORE_PAYLOAD, (uint32_t)-1, EXPECT_DAMAGED},
	{"payload one byte long", MORE_PAYLOAD, 1, EXPECT_DAMAGED},
	{"payload of the limit", PAYLOAD, VS_FRAME_PAYLOAD_MAX, EXPECT_DAMAGED},
	{"payload above the limit", PAYLOAD, VS_FRAME_PAYLOAD_MAX + 1, EXPECT_DAMAGED},
	{"payload of 2 GiB", PAYLOAD, 1u << 31, EXPECT_DAMAGED},
	{"payload of 4 GiB", PAYLOAD, UINT32_MAX, EXPECT_DAMAGED},
	{"raw 0", RAW, 0, EXPECT_REFUSED | EXPECT_DAMAGED},
	{"raw one short", MORE_RAW, (uint32_t)-1, EXPECT_REFUSED | EXPECT_DAMAGED},
	{"raw one long", MORE_RAW, 1, EXPECT_REFUSED | EXPECT_DAMAGED},
	{"raw of the limit", RAW, VS_FRAME_RAW_MAX, EXPECT_REFUSED | EXPECT_DAMAGED},
	{"raw above the limit", RAW, VS_FRAME_RAW_MAX + 1, EXPECT_DAMAGED},
	{"raw of 4 GiB", RAW, UINT32_MAX, EXPECT_DAMAGED},
	{"wrong payload CRC", PAYLOAD_CRC, 0, EXPECT_DAMAGED},
};
enum { N_LIES = sizeof(lies) / sizeof(lies[0]) };

static void play_lie(struct attack *a, unsigned int variant)
{
	const struct header_lie *lie = &lies[variant];
	const uint8_t *payload;
	size_t len;
	struct frame_header h;

	attack_hello(a);
	len = sample_payload(a, &payload);
	h = attack_header(a, FRAME_CLOCK_SAMPLE, payload, len);
	switch (lie->field) {
	case VERSION:
		h.version = (uint8_t)lie->value;
		break;
	case KIND:
		h.kind = (uint8_t)lie->value;
		break;
	case FLAGS:
		h.flags = (uint16_t)lie->value;
		break;
	case PAYLOAD:
		h.payload_bytes = lie->value;
		break;
	case MORE_PAYLOAD:
		h.payload_bytes += lie->value;
		break;
	case RAW:
		h.raw_bytes = lie->value;
		break;
	case MORE_RAW:
		h.raw_bytes += lie->value;
		break;
	default:
		h.payload_crc ^= 0x5a5a5a5a;
		break;
	}
	attack_raw_frame(a, &h, payload, len);
	for (int i = 0; i < 40; i++) /* the search for the next frame must find these */
		attack_sign_of_life(a);
}

/* ---- compression ---- */

static size_t compressed(const void *data, size_t len)
{
	return ZSTD_compress(room, sizeof(room), data, len, 3);
}

/* `raw_bytes` as given around what unpacks to `len` zeros. */
static void bomb(struct attack *a, size_t len, uint32_t raw_bytes)
{
	static uint8_t zeros[64 << 20];
	size_t n = compressed(zeros, len);
	struct frame_header h = attack_header(a, FRAME_KERNEL_LOG, room, n);

	h.flags = VS_FRAME_ZSTD;
	h.raw_bytes = raw_bytes;
	attack_raw_frame(a, &h, room, n);
}

static void play_compression(struct attack *a, unsigned int variant)
{
	struct frame_header h;
	size_t n;

	attack_hello(a);
	switch (variant) {
	case 0: /* 64 MiB that claim to be 1 MiB */
		bomb(a, 64 << 20, VS_FRAME_RAW_MAX);
		break;
	case 1: /* honest about it */
		bomb(a, 64 << 20, 64 << 20);
		break;
	case 2:
		bomb(a, VS_FRAME_RAW_MAX, VS_FRAME_RAW_MAX);
		break;
	case 3:
		bomb(a, VS_FRAME_RAW_MAX, VS_FRAME_RAW_MAX - 1);
		break;
	case 4:
		bomb(a, VS_FRAME_RAW_MAX - 1, VS_FRAME_RAW_MAX);
		break;
	case 5: /* many small ones that unpack to the limit: work without bytes */
		for (int i = 0; i < 200; i++)
			bomb(a, VS_FRAME_RAW_MAX, VS_FRAME_RAW_MAX);
		break;
	case 6: /* cut in the middle */
		n = compressed(room + (4 << 20), 100000) / 2;
		h = attack_header(a, FRAME_KERNEL_LOG, room, n);
		h.flags = VS_FRAME_ZSTD;
		h.raw_bytes = 100000;
		attack_raw_frame(a, &h, room, n);
		break;
	case 7: /* two zstd frames in one */
		n = compressed("aaaa", 4);
		memmove(room + n, room, n);
		h = attack_header(a, FRAME_KERNEL_LOG, room, 2 * n);
		h.flags = VS_FRAME_ZSTD;
		h.raw_bytes = 8;
		attack_raw_frame(a, &h, room, 2 * n);
		break;
	case 8: /* a skippable zstd frame of 64 KiB */
		memset(room, 0, 65544);
		memcpy(room, "\x50\x2a\x4d\x18\x00\x00\x01\x00", 8);
		h = attack_header(a, FRAME_KERNEL_LOG, room, 65544);
		h.flags = VS_FRAME_ZSTD;
		h.raw_bytes = 65536;
		attack_raw_frame(a, &h, room, 65544);
		break;
	default: /* bytes that are no zstd at all */
		for (size_t i = 0; i < 4096; i++)
			room[i] = (uint8_t)attack_random(a);
		h = attack_header(a, FRAME_BATCH, room, 4096);
		h.flags = VS_FRAME_ZSTD;
		h.raw_bytes = 8192;
		attack_raw_frame(a, &h, room, 4096);
		break;
	}
	attack_sign_of_life(a);
}

static const char *const bombs[] = {
	"64 MiB that claim to be 1 MiB",
	"64 MiB that say so",
	"1 MiB of zeros",
	"one byte more than claimed",
	"one byte less than claimed",
	"200 times 1 MiB of zeros",
	"cut in the middle",
	"two in one",
	"a skippable frame",
	"random bytes",
};
enum { N_BOMBS = sizeof(bombs) / sizeof(bombs[0]) };

bool header_case(size_t i, struct attack_case *out)
{
	if (i < N_LIES)
		*out = (struct attack_case){"header", lies[i].name, play_lie, (unsigned int)i,
					    lies[i].expect};
	else if (i < N_LIES + N_BOMBS)
		*out = (struct attack_case){"compression", bombs[i - N_LIES], play_compression,
					    (unsigned int)(i - N_LIES),
					    EXPECT_REFUSED | EXPECT_DAMAGED};
	return i < N_LIES + N_BOMBS;
}
