/* SPDX-License-Identifier: GPL-2.0-only */
/* Tests which protection of a VM KVM's data show. The data are generated after the structs of
 * Linux 5.10 to 6.18, because no test machine has such VMs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "bpf/kvmclock/kvm_protection.h"

static void kvms_data_say_how_a_vm_is_protected(void **state)
{
	static const struct {
		uint32_t vm_type, protected_by;
		const char *name;
	} cases[] = {
		{0, 0, ""},
		/* KVM_SEV_INIT and KVM_SEV_ES_INIT, and all SEV before 6.8 */
		{0, VS_KVM_SEV, "sev"},
		{0, VS_KVM_SEV | VS_KVM_SEV_ES, "sev-es"},
		{0, VS_KVM_SEV | VS_KVM_SEV_ES | VS_KVM_STATE_HIDDEN, "sev-es"},
		{0, VS_KVM_STATE_HIDDEN, "other"},
		{1, 0, "software"},
		{2, VS_KVM_SEV, "sev"},
		{3, VS_KVM_SEV | VS_KVM_SEV_ES, "sev-es"},
		{4, VS_KVM_SEV | VS_KVM_SEV_ES | VS_KVM_STATE_HIDDEN, "sev-snp"},
		{5, VS_KVM_STATE_HIDDEN, "tdx"},
		{6, 0, "other"},
		{255, 0, "other"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct vs_kvm_vcpu vcpu = {.vm_type = cases[i].vm_type,
						 .protected_by = cases[i].protected_by};

		assert_string_equal(vm_protection_name(kvm_protection_of(&vcpu)), cases[i].name);
	}
}

static bool has_svm(const char *text)
{
	char path[] = "/tmp/test_protection.XXXXXX";
	int fd = mkstemp(path);
	FILE *file = fdopen(fd, "w");
	bool found;

	assert_non_null(file);
	fputs(text, file);
	assert_int_equal(fclose(file), 0);
	found = kvm_protection_has_svm(path);
	unlink(path);
	return found;
}

static void svm_is_a_flag_of_the_processor(void **state)
{
	(void)state;
	assert_true(has_svm("vendor_id\t: AuthenticAMD\nflags\t\t: fpu svm sse\nbugs\t\t:\n"));
	assert_true(has_svm("flags\t\t: fpu svm\n"));
	assert_false(has_svm("vendor_id\t: GenuineIntel\nflags\t\t: fpu vmx\n"));
	assert_false(has_svm("flags\t\t: fpu svm_lock nosvm\nbugs\t\t: svm\n"));
	assert_false(has_svm("model name\t: svm\n"));
	assert_false(has_svm(""));
	assert_false(kvm_protection_has_svm("/nonexistent"));
}

static void names_are_found_again(void **state)
{
	(void)state;
	for (uint32_t p = VM_PROTECTION_NONE + 1; p <= VM_PROTECTION_LAST; p++) {
		assert_int_equal(vm_protection_find(vm_protection_name(p)), p);
		assert_true(*vm_protection_title(p));
	}
	assert_int_equal(vm_protection_find(""), VM_PROTECTION_NONE);
	assert_int_equal(vm_protection_find("SEV"), VM_PROTECTION_NONE);
	/* Of a newer version. */
	assert_string_equal(vm_protection_name(UINT32_MAX), "other");
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(kvms_data_say_how_a_vm_is_protected),
		cmocka_unit_test(svm_is_a_flag_of_the_processor),
		cmocka_unit_test(names_are_found_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
