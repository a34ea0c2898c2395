/* SPDX-License-Identifier: GPL-2.0-only */
/* Derives from KVM's data how a VM is protected from its host. */
#ifndef KVMCLOCK_KVM_PROTECTION_H
#define KVMCLOCK_KVM_PROTECTION_H

#include <stdbool.h>

#include "bpf/prog/kvm_clock_shared.h"
#include "proto/vm_protection.h"

/* Returns the protection of the VM of this vCPU. A type of VM that this version does not know
 * counts as protected (VM_PROTECTION_OTHER). */
enum vm_protection kvm_protection_of(const struct vs_kvm_vcpu *vcpu);
/* Returns whether a CPU of this machine has AMD's SVM, according to the file `cpuinfo`
 * (/proc/cpuinfo). Returns false if the file cannot be read. */
bool kvm_protection_has_svm(const char *cpuinfo);

#endif
