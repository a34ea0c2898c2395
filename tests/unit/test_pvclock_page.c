/* SPDX-License-Identifier: GPL-2.0-only */
/* Tests the guest's pvclock page: it is used if it is valid, and refused otherwise. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "clock/pvclock.h"
#include "clock/sample.h"
#include "guest-agent/pvclock_page.h"

struct page {
	uint32_t version, pad;
	uint64_t tsc_timestamp, system_time;
	uint32_t mul;
	int8_t shift;
	uint8_t flags, end[2];
};

/* 2.5 GHz: 0.4 ns a tick = 2^-1 * mul / 2^32 */
static const struct page good = {.version = 6,
				 .tsc_timestamp = 1000,
				 .system_time = 77,
				 .mul = 3435973837u,
				 .shift = -1,
				 .flags = 1};

static struct message_vm_clock_pvclock read_page(const void *at)
{
	struct pvclock_page p = {.at = at, .tsc_hz = 2500000000};
	struct message_vm_clock_pvclock out;

	pvclock_page_read(&p, &out);
	return out;
}

static void parameters_are_taken_as_they_are(void **state)
{
	struct message_vm_clock_pvclock m = read_page(&good);

	(void)state;
	assert_true(m.known);
	assert_int_equal(m.version, 6);
	assert_int_equal(m.tsc_timestamp, 1000);
	assert_int_equal(m.system_time, 77);
	assert_int_equal(m.mul, 3435973837u);
	assert_int_equal(m.shift, -1);
	assert_int_equal(m.flags, 1);
}

static void what_is_no_clock_of_this_tsc_is_refused(void **state)
{
	struct page odd = good, unused = {0}, faster = good, wild = good;

	(void)state;
	odd.version = 7; /* a host that never ends its writing */
	faster.mul = good.mul / 200 * 201;
	wild.shift = 40;
	assert_false(read_page(&odd).known);
	assert_false(read_page(&unused).known);
	assert_false(read_page(&faster).known);
	assert_false(read_page(&wild).known);
	assert_false(read_page(NULL).known);
}

static void a_page_that_cannot_be_read_is_no_crash(void **state)
{
	void *none = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	(void)state;
	assert_ptr_not_equal(none, MAP_FAILED);
	assert_false(read_page(none).known);
	munmap(none, 4096);
}

/* Whatever this machine is: no crash, and a clock that agrees with itself if there is one. */
static void this_machines_page(void **state)
{
	struct message_vm_clock_pvclock m;
	struct pvclock_page p;
	struct pvclock line;
	uint64_t hz, ns;

	(void)state;
	assert_int_equal(clock_tsc_hz(&hz), 0);
	pvclock_page_init(&p, hz);
	pvclock_page_read(&p, &m);
	if (!m.known) {
		print_message("this machine has no kvmclock\n");
		skip();
	}
	line = (struct pvclock){m.tsc_timestamp, m.system_time, m.mul, m.shift, m.flags};
	ns = pvclock_from_tsc(&line, (struct guest_tsc){clock_tsc_read()}).ns;
	print_message("kvmclock here: %llu ns\n", (unsigned long long)ns);
	assert_true(ns >= m.system_time);
	assert_true(ns < m.system_time + 1000000000ull * 86400 * 365);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(parameters_are_taken_as_they_are),
		cmocka_unit_test(what_is_no_clock_of_this_tsc_is_refused),
		cmocka_unit_test(a_page_that_cannot_be_read_is_no_crash),
		cmocka_unit_test(this_machines_page),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
