/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * How a VM is protected from its host: confidential computing of the processor, or of KVM. The
 * collector reads it from KVM (bpf/kvmclock/kvm_clock.h); nothing that a guest sends changes it.
 */
#ifndef PROTO_VM_PROTECTION_H
#define PROTO_VM_PROTECTION_H

#include <stdint.h>

/* X(NAME, number, name for programs, name for people). VmInfo contains the numbers: append new
 * ones, never change one. */
#define VM_PROTECTIONS(X)                                                                          \
	X(SEV, 1, "sev", "AMD SEV")                                                                \
	X(SEV_ES, 2, "sev-es", "AMD SEV-ES")                                                       \
	X(SEV_SNP, 3, "sev-snp", "AMD SEV-SNP")                                                    \
	X(TDX, 4, "tdx", "Intel TDX")                                                              \
	X(SOFTWARE, 5, "software", "KVM's software-protected VM")                                  \
	X(OTHER, 6, "other", "of a kind that this version does not know")

enum vm_protection {
	VM_PROTECTION_NONE = 0, /* none, or unknown */
#define X(NAME, number, ...) VM_PROTECTION_##NAME = (number),
	VM_PROTECTIONS(X)
#undef X
};
enum { VM_PROTECTION_LAST = VM_PROTECTION_OTHER };

/* Return the name for programs ("sev-snp") and for people ("AMD SEV-SNP"). "" for
 * VM_PROTECTION_NONE; a number of a newer version has the names of VM_PROTECTION_OTHER. Static
 * strings. */
const char *vm_protection_name(uint32_t protection);
const char *vm_protection_title(uint32_t protection);
/* Finds a protection by its name for programs. Returns VM_PROTECTION_NONE for an unknown name. */
enum vm_protection vm_protection_find(const char *name);

#endif
