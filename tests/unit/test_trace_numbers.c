/* SPDX-License-Identifier: GPL-2.0-only */
/* Tests numbers and times of a Perfetto trace: the fast computation gives the same as the simple
 * one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "host-collector/export/boottime.h"
#include "host-collector/export/protobuf.h"
#include "host-collector/export/trace_file.h"

static size_t plain_varint(uint8_t *at, uint64_t v)
{
	size_t n = 0;

	for (; v >= 0x80; v >>= 7)
		at[n++] = (uint8_t)(v | 0x80);
	at[n++] = (uint8_t)v;
	return n;
}

static void varint_check(uint64_t v)
{
	uint8_t wanted[10], got[PROTOBUF_VARINT_ROOM + 1] = {[PROTOBUF_VARINT_ROOM] = 0xa5};
	size_t n = plain_varint(wanted, v);

	assert_int_equal(protobuf_put_varint(got, v) - got, n);
	assert_memory_equal(got, wanted, n);
	assert_int_equal(got[PROTOBUF_VARINT_ROOM], 0xa5);
}

static void varints_of_all_lengths(void **unused)
{
	(void)unused;
	for (unsigned bit = 0; bit < 64; bit++) {
		const uint64_t v = 1ull << bit;

		varint_check(v - 1);
		varint_check(v);
		varint_check(v + v / 3);
	}
	varint_check(UINT64_MAX);
}

/* The time follows the sequence's number, and the flags follow the time. */
static void event_time_check(struct trace_file *f, uint64_t t)
{
	const uint8_t before[] = {PACKET_SEQUENCE_ID << 3, SEQUENCE_EVENTS, PACKET_TIMESTAMP << 3};
	const uint8_t *packet;
	uint8_t wanted[10];
	size_t n = plain_varint(wanted, t);

	f->packets.bytes.len = 0;
	trace_begin(f, t, 1, 1);
	packet = f->packets.bytes.data;
	assert_int_equal(packet[1], f->packets.bytes.len - 2);
	assert_memory_equal(packet + 2, before, sizeof(before));
	assert_memory_equal(packet + 5, wanted, n);
	assert_int_equal(packet[5 + n], PACKET_SEQUENCE_FLAGS << 3);
}

static void times_of_events(void **unused)
{
	FILE *out = tmpfile();
	struct trace_file file;

	(void)unused;
	assert_non_null(out);
	assert_int_equal(trace_file_init(&file, out), 0);
	for (unsigned bit = 0; bit < 64; bit++) {
		const uint64_t t = 1ull << bit;

		event_time_check(&file, t - 1);
		event_time_check(&file, t);
		event_time_check(&file, t + t / 3);
		event_time_check(&file, 12345678901234);
		event_time_check(&file, 12345678901234 + t / 3);
	}
	event_time_check(&file, UINT64_MAX);
	trace_file_fini(&file);
	fclose(out);
}

/* All in the timeline's times. The same line, with 128 bits. */
static uint64_t plain_boottime(const struct boottime_point *from, const struct boottime_point *to,
			       int64_t t)
{
	return (uint64_t)(from->boot_ns +
			  (int64_t)((__int128)(t - from->host_ns) * (to->boot_ns - from->boot_ns) /
				    (to->host_ns - from->host_ns)));
}

static void line_check(int64_t length_ns, int64_t boot_length_ns)
{
	struct boottime_point points[] = {{1000, 5000}, {1000 + length_ns, 5000 + boot_length_ns}};
	struct boottime b = {.n = 2, .points = points};

	for (int64_t i = 0; i < 4000; i++) {
		const int64_t t =
			1000 + (i < 2000 ? i % length_ns : (int64_t)(random() % length_ns));

		assert_int_equal(boottime_of(&b, (struct host_ns){t}),
				 plain_boottime(&points[0], &points[1], t));
	}
}

static void times_between_two_clock_samples(void **unused)
{
	static const int64_t lengths[] = {1,          7,           1000,      999999937,
					  1000000000, 60000000000, 1ll << 40, 1ll << 42};
	static const int64_t gains[] = {0,     1,      -1,      17,         -17,
					50000, -49999, 1 << 22, -(1 << 22), 1 << 24};

	(void)unused;
	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		for (size_t k = 0; k < sizeof(gains) / sizeof(gains[0]); k++) {
			if (lengths[i] + gains[k] > 0)
				line_check(lengths[i], lengths[i] + gains[k]);
		}
	}
}

static void times_do_not_depend_on_their_order(void **unused)
{
	struct boottime_point points[] = {{0, 100}, {1000, 1103}, {2000, 2101}, {3000, 3111}};
	struct boottime ordered = {.n = 4, .points = points}, mixed = ordered;
	uint64_t all[4000];

	(void)unused;
	for (int64_t t = 0; t < 4000; t++)
		all[t] = boottime_of(&ordered, (struct host_ns){t});
	for (int i = 0; i < 20000; i++) {
		const int64_t t = random() % 4000;

		assert_int_equal(boottime_of(&mixed, (struct host_ns){t}), all[t]);
	}
	assert_int_equal(all[500], 100 + 500 * 1003 / 1000);
	assert_int_equal(all[3500], 3111 + 500); /* after the last sample */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(varints_of_all_lengths),
		cmocka_unit_test(times_of_events),
		cmocka_unit_test(times_between_two_clock_samples),
		cmocka_unit_test(times_do_not_depend_on_their_order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
