/* SPDX-License-Identifier: GPL-2.0-only */
#include "bpf/kvmclock/kvm_protection.h"

#include <stdio.h>
#include <string.h>

/* kvm_arch.vm_type: KVM_X86_*_VM of the kernel's arch/x86/include/uapi/asm/kvm.h. The headers of
 * the build machine may be older. */
enum {
	TYPE_DEFAULT = 0,
	TYPE_SW_PROTECTED = 1,
	TYPE_SEV = 2,
	TYPE_SEV_ES = 3,
	TYPE_SNP = 4,
	TYPE_TDX = 5,
};

static enum vm_protection of_type(__u32 vm_type)
{
	switch (vm_type) {
	case TYPE_DEFAULT:
		return VM_PROTECTION_NONE;
	case TYPE_SW_PROTECTED:
		return VM_PROTECTION_SOFTWARE;
	case TYPE_SEV:
		return VM_PROTECTION_SEV;
	case TYPE_SEV_ES:
		return VM_PROTECTION_SEV_ES;
	case TYPE_SNP:
		return VM_PROTECTION_SEV_SNP;
	case TYPE_TDX:
		return VM_PROTECTION_TDX;
	default:
		return VM_PROTECTION_OTHER;
	}
}

enum vm_protection kvm_protection_of(const struct vs_kvm_vcpu *vcpu)
{
	const enum vm_protection by_type = of_type(vcpu->vm_type);

	if (by_type != VM_PROTECTION_NONE)
		return by_type;
	if (vcpu->protected_by & VS_KVM_SEV_ES)
		return VM_PROTECTION_SEV_ES;
	if (vcpu->protected_by & VS_KVM_SEV)
		return VM_PROTECTION_SEV;
	return vcpu->protected_by ? VM_PROTECTION_OTHER : VM_PROTECTION_NONE;
}

/* The file repeats the flags for each CPU; the first line is enough. */
bool kvm_protection_has_svm(const char *cpuinfo)
{
	char line[16384], *rest = NULL;
	FILE *file = fopen(cpuinfo, "re");
	bool found = false;

	if (!file)
		return false;
	while (fgets(line, sizeof(line), file)) {
		if (strncmp(line, "flags", strlen("flags")))
			continue;
		for (char *word = strtok_r(line, " \t\n", &rest); word && !found;
		     word = strtok_r(NULL, " \t\n", &rest))
			found = !strcmp(word, "svm");
		break;
	}
	fclose(file);
	return found;
}
