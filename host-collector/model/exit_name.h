/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Names and properties of VM-exit reasons: basic exit reasons of VMX, exit codes of SVM.
 *
 * The names are those of the kernel's trace output. They come from the kernel's UAPI headers
 * <asm/vmx.h> and <asm/svm.h> of the machine that builds the program. A list in exit_name.c has
 * reasons that these headers do not name, or that only newer headers name. A reason that neither
 * source names is written as a hexadecimal number.
 */
#ifndef MODEL_EXIT_NAME_H
#define MODEL_EXIT_NAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum kvm_isa { KVM_ISA_VMX = 1, KVM_ISA_SVM = 2 }; /* numbers of the kernel's KVM_ISA_* */

struct exit_name {
	char text[32];       /* "HLT", "EPT_VIOLATION", "npf"; "0x7777" if it has no name */
	const char *meaning; /* what the guest did, for example "idles"; "" if the name says it */
};

/* What an exit shows about the guest. */
enum exit_sign {
	EXIT_NO_SIGN,
	EXIT_SPINS,        /* it executed PAUSE in a loop */
	EXIT_ENTERS_GUEST, /* it entered a nested guest */
	EXIT_SERVES_GUEST, /* its kernel works for a nested guest */
};

/* Returns the name of an exit reason. isa: see enum kvm_isa; other values have no names. */
struct exit_name exit_name(uint32_t isa, uint32_t reason);
/* Returns whether an exit reason has a name. */
bool exit_name_known(uint32_t isa, uint32_t reason);
enum exit_sign exit_sign(uint32_t isa, uint32_t reason);

/* Returns the instruction set that the letters of a name suggest: VMX has upper case letters. */
enum kvm_isa exit_name_isa(const char *name, size_t len);
/*
 * Finds the reason with this name, in upper or lower case. Also accepts the names that other tools
 * and earlier versions of this program write, and '_' for a blank. Returns false if there is none.
 */
bool exit_name_find(uint32_t isa, const char *name, size_t len, uint32_t *reason);
/* Returns a name that other tools or earlier versions write for this reason; NULL past the last. */
const char *exit_name_alias(uint32_t isa, uint32_t reason, size_t index);

#endif
