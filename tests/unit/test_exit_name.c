/* SPDX-License-Identifier: GPL-2.0-only */
/* Tests the names of exit reasons: those of the kernel, and all names that other tools and
 * earlier versions have written. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "host-collector/model/exit_name.h"

static void names_are_the_kernels(void **state)
{
	static const struct {
		uint32_t isa, reason;
		const char *name, *meaning;
	} cases[] = {
		{KVM_ISA_VMX, 0, "EXCEPTION_NMI", "an exception or an NMI"},
		{KVM_ISA_VMX, 12, "HLT", "idles"},
		{KVM_ISA_VMX, 48, "EPT_VIOLATION", "memory not mapped by the host"},
		{KVM_ISA_VMX, 75, "NOTIFY", "kept the CPU too long without an event"},
		{KVM_ISA_VMX, 27, "VMON", ""},
		{KVM_ISA_SVM, 0x004, "read_cr4", "control register"},
		{KVM_ISA_SVM, 0x037, "write_dr7", "debug register"},
		{KVM_ISA_SVM, 0x04e, "PF excp", "an exception"},
		{KVM_ISA_SVM, 0x066, "read_idtr", ""},
		{KVM_ISA_SVM, 0x069, "read_rt", ""},
		{KVM_ISA_SVM, 0x077, "pause", "spins (PAUSE)"},
		{KVM_ISA_SVM, 0x081, "hypercall", "hypercall"},
		{KVM_ISA_SVM, 0x094, "write_cr4_trap", "control register"},
		{KVM_ISA_SVM, 0x400, "npf", "memory not mapped by the host, or device memory"},
		{KVM_ISA_SVM, 0x403, "vmgexit", "encrypted guest asks"},
		{KVM_ISA_SVM, 0xffffffff, "invalid_guest_state", ""},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct exit_name name = exit_name(cases[i].isa, cases[i].reason);

		assert_string_equal(name.text, cases[i].name);
		assert_string_equal(name.meaning, cases[i].meaning);
	}
}

/* The header of Linux 6.1 lacks these; they have their names with any header. */
static void names_do_not_depend_on_the_header(void **state)
{
	(void)state;
	assert_string_equal(exit_name(KVM_ISA_SVM, 0x0a5).text, "bus_lock");
	assert_string_equal(exit_name(KVM_ISA_SVM, 0x0a6).text, "idle-halt");
	assert_string_equal(exit_name(KVM_ISA_SVM, 0x0a6).meaning, "idles");
	assert_string_equal(exit_name(KVM_ISA_SVM, 0x005).text, "read_cr5");
	assert_string_equal(exit_name(KVM_ISA_VMX, 77).text, "TDCALL");
	assert_string_equal(exit_name(KVM_ISA_VMX, 84).text, "MSR_READ_IMM");
}

static void a_reason_without_a_name_is_a_number(void **state)
{
	(void)state;
	assert_string_equal(exit_name(KVM_ISA_SVM, 0x7777).text, "0x7777");
	assert_string_equal(exit_name(KVM_ISA_SVM, 0x05f).text, "0x5f");
	assert_string_equal(exit_name(KVM_ISA_SVM, 0x05f).meaning, "");
	assert_string_equal(exit_name(KVM_ISA_VMX, 0x04e).text, "0x4e");
	assert_string_equal(exit_name(3, 1).text, "0x1");
	assert_string_equal(exit_name(0, 1).text, "0x1");
	assert_false(exit_name_known(KVM_ISA_VMX, 65));
	assert_false(exit_name_known(UINT32_MAX, 12));
	assert_true(exit_name_known(KVM_ISA_VMX, 12));
}

/* Every name leads back to its reason, also in the other case. */
static void every_name_is_found(void **state)
{
	uint32_t found, n = 0;

	(void)state;
	for (uint32_t isa = KVM_ISA_VMX; isa <= KVM_ISA_SVM; isa++) {
		for (uint32_t reason = 0; reason < 0x500; reason++) {
			struct exit_name name = exit_name(isa, reason);

			if (!exit_name_known(isa, reason))
				continue;
			n++;
			assert_true(exit_name_find(isa, name.text, strlen(name.text), &found));
			assert_int_equal(found, reason);
			assert_int_equal(exit_name_isa(name.text, strlen(name.text)), isa);
		}
	}
	assert_true(n > 60 + 100);
	assert_true(exit_name_find(KVM_ISA_VMX, "ept_violation", 13, &found));
	assert_int_equal(found, 48);
	assert_false(exit_name_find(KVM_ISA_VMX, "HL", 2, &found));
	assert_false(exit_name_find(KVM_ISA_VMX, "HLTX", 4, &found));
	assert_false(exit_name_find(7, "HLT", 3, &found));
}

static void earlier_names_are_found(void **state)
{
	static const struct {
		const char *name;
		uint32_t reason;
	} cases[] = {
		{"sidt_read", 0x66}, {"gdt_read", 0x67},
		{"ldt_read", 0x68},  {"tr_read", 0x69},
		{"idt_write", 0x6a}, {"gdt_write", 0x6b},
		{"ldt_write", 0x6c}, {"tr_write", 0x6d},
		{"vmmcall", 0x81},   {"efer_write_trap", 0x8f},
		{"idle_hlt", 0xa6},  {"PF_excp", 0x4e},
		{"intr", 0x60},      {"ioio", 0x7b},
		{"idtr_read", 0x66},
	};
	uint32_t found;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_true(
			exit_name_find(KVM_ISA_SVM, cases[i].name, strlen(cases[i].name), &found));
		assert_int_equal(found, cases[i].reason);
	}
	assert_string_equal(exit_name_alias(KVM_ISA_SVM, 0x81, 0), "vmmcall");
	assert_null(exit_name_alias(KVM_ISA_SVM, 0x81, 1));
	assert_null(exit_name_alias(KVM_ISA_VMX, 0x81, 0));
}

static void signs(void **state)
{
	(void)state;
	assert_int_equal(exit_sign(KVM_ISA_VMX, 40), EXIT_SPINS);
	assert_int_equal(exit_sign(KVM_ISA_SVM, 0x77), EXIT_SPINS);
	assert_int_equal(exit_sign(KVM_ISA_VMX, 24), EXIT_ENTERS_GUEST);
	assert_int_equal(exit_sign(KVM_ISA_SVM, 0x80), EXIT_ENTERS_GUEST);
	assert_int_equal(exit_sign(KVM_ISA_VMX, 25), EXIT_SERVES_GUEST);
	assert_int_equal(exit_sign(KVM_ISA_SVM, 0x84), EXIT_SERVES_GUEST);
	assert_int_equal(exit_sign(KVM_ISA_VMX, 0x77), EXIT_NO_SIGN);
	assert_int_equal(exit_sign(KVM_ISA_VMX, 12), EXIT_NO_SIGN);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_are_the_kernels),
		cmocka_unit_test(names_do_not_depend_on_the_header),
		cmocka_unit_test(a_reason_without_a_name_is_a_number),
		cmocka_unit_test(every_name_is_found),
		cmocka_unit_test(earlier_names_are_found),
		cmocka_unit_test(signs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
