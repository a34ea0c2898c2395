/* SPDX-License-Identifier: GPL-2.0-only */
/* Tests that a kernel address gets the name of the code symbol that contains it. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "bpf/symbols/kernel_symbols.h"

static int load(const char *text, struct kallsyms **k)
{
	char path[] = "/tmp/test_kallsyms.XXXXXX";
	int fd = mkstemp(path);
	int err;

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	close(fd);
	err = kallsyms_load(path, k);
	unlink(path);
	return err;
}

static void test_lookup(void **state)
{
	static const struct {
		uint64_t address;
		const char *name, *module; /* NULL: nothing there */
		uint64_t offset;
	} cases[] = {
		{0xfff, NULL, NULL, 0},
		{0x1000, "schedule", "", 0},
		{0x10ff, "schedule", "", 0xff},
		{0x1100, "futex_wait", "", 0}, /* two names: the file's first */
		{0x2010, "kvm_vcpu_block", "kvm", 0x10},
		{0x3004, "svm_vcpu_run", "kvm_amd", 4},
		{0x4000, "late", "", 0},
		{UINT64_MAX, "late", "", UINT64_MAX - 0x4000},
	};
	struct kallsyms *k = NULL;

	(void)state;
	assert_int_equal(load("0000000000004000 t late\n"
			      "0000000000001100 T futex_wait\n"
			      "0000000000001100 t __futex_wait_alias\n"
			      "0000000000001000 T schedule\n"
			      "0000000000001080 D a_variable\n"
			      "0000000000002000 t kvm_vcpu_block\t[kvm]\n"
			      "0000000000002100 t kvm_vcpu_kick\t[kvm]\n"
			      "0000000000003000 w svm_vcpu_run\t[kvm_amd]\n"
			      "nonsense\n",
			      &k),
			 0);
	assert_int_equal(kallsyms_count(k), 7);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct kallsyms_symbol symbol;
		bool found = kallsyms_lookup(k, cases[i].address, &symbol);

		assert_int_equal(found, cases[i].name != NULL);
		if (!found)
			continue;
		assert_string_equal(symbol.name, cases[i].name);
		assert_string_equal(symbol.module, cases[i].module);
		assert_int_equal(symbol.offset, cases[i].offset);
	}
	kallsyms_free(k);
}

static void test_frames_of_an_interrupt_end_at_its_entry(void **state)
{
	/* Return addresses: behind the call, so that the last one of a function may be its end. */
	const uint64_t timer[] = {0x9000, 0x9010, 0x1210, 0x9020},
		       nested[] = {0x9000, 0x1110, 0x9010, 0x1300, 0x9020},
		       call[] = {0x9000, 0x1200 - 0x180, 0x9020};
	struct kallsyms *k = NULL;

	(void)state;
	assert_int_equal(load("0000000000001000 T asm_exc_page_fault\n"
			      "0000000000001100 T asm_common_interrupt\n"
			      "0000000000001200 T asm_sysvec_apic_timer_interrupt\n"
			      "0000000000001300 T ret_from_fork\n"
			      "0000000000009000 T schedule\n",
			      &k),
			 0);
	assert_int_equal(kallsyms_interrupt_frames(k, timer, 4), 3);
	assert_int_equal(kallsyms_interrupt_frames(k, nested, 5), 4);
	assert_int_equal(kallsyms_interrupt_frames(k, call, 3), 0);
	assert_int_equal(kallsyms_interrupt_frames(k, NULL, 0), 0);
	kallsyms_free(k);
}

static void test_hidden_addresses_are_an_error(void **state)
{
	struct kallsyms *k = NULL;

	(void)state;
	assert_int_equal(load("0000000000000000 T schedule\n0000000000000000 t x\n", &k), -EACCES);
	assert_int_equal(load("", &k), -ENODATA);
	assert_int_equal(kallsyms_load("/nonexistent", &k), -ENOENT);
}

/* The same modules are loaded: nothing is read again. */
static void test_refresh_keeps_what_is_current(void **state)
{
	struct kallsyms *k = NULL, *before;
	int err = kallsyms_refresh(&k);

	(void)state;
	assert_true(err ? !k : k != NULL);
	before = k;
	assert_int_equal(kallsyms_refresh(&k), err);
	assert_ptr_equal(k, before);
	kallsyms_free(k);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lookup),
		cmocka_unit_test(test_frames_of_an_interrupt_end_at_its_entry),
		cmocka_unit_test(test_hidden_addresses_are_an_error),
		cmocka_unit_test(test_refresh_keeps_what_is_current),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
