// SPDX-License-Identifier: GPL-2.0-only
/* Messages come back as they were sent, bounded; what breaks a bound or makes no sense does not. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "proto/message.h"
#include "proto/text.h"
#include "wire.pb-c.h"

/* Structs are zeroed before they are filled or unpacked, so comparing their bytes is comparing. */
#define ASSERT_ROUND_TRIP(name, in)                                                                \
	do {                                                                                       \
		struct byte_buffer packed_ = {0};                                                  \
		struct message_##name *out_ = calloc(1, sizeof(*out_));                            \
                                                                                                   \
		assert_int_equal(message_##name##_pack(in, &packed_), 0);                          \
		assert_int_equal(message_##name##_unpack(packed_.data, packed_.len, out_), 0);     \
		assert_memory_equal(out_, in, sizeof(*out_));                                      \
		free(out_);                                                                        \
		byte_buffer_fini(&packed_);                                                        \
	} while (0)

static struct message_hello *new_hello(void)
{
	struct message_hello *m = calloc(1, sizeof(*m));

	m->protocol_min = 1;
	m->protocol_max = 3;
	m->role = STREAM_ROLE_GUEST;
	m->clock = STREAM_CLOCK_KVMCLOCK_NS;
	m->clock_hz = 1000000000;
	strcpy(m->program_version, "0.1.0");
	strcpy(m->kernel_release, "6.1.0-37-cloud-amd64");
	strcpy(m->boot_id, "00000000-1111-2222-3333-444444444444");
	m->dmesg.known = true;
	m->dmesg.time = UINT64_MAX;
	m->dmesg.ns = 17;
	m->dmesg.err = 3;
	m->tick_hz = 250;
	return m;
}

static void test_hello_round_trip(void **state)
{
	struct message_hello *m = new_hello();

	(void)state;
	ASSERT_ROUND_TRIP(hello, m);
	m->n_cpus = VS_CPUS_MAX;
	for (uint32_t i = 0; i < VS_CPUS_MAX; i++)
		m->cpus[i] = (struct message_cpu){.cpu = i, .apic_id = UINT32_MAX - i};
	memset(m->boot_id, 'x', VS_TEXT_MAX - 1);
	ASSERT_ROUND_TRIP(hello, m);
	free(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_hello_round_trip),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
