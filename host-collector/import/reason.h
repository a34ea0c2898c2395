/* SPDX-License-Identifier: GPL-2.0-only */
/* Names and numbers of KVM's exit reasons, as in the kernel's uapi/asm/{vmx,svm}.h. */
#ifndef IMPORT_REASON_H
#define IMPORT_REASON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum import_isa { IMPORT_ISA_VMX = 1, IMPORT_ISA_SVM = 2 }; /* the kernel's KVM_ISA_* */

/* Reason in arg0 of VS_EVENT_KVM_EXIT if no table has the name. */
static const uint32_t import_reason_unknown = 0xffff;

/*
 * Converts a printed reason to arg0 of VS_EVENT_KVM_EXIT (reason | isa << 32). VMX prints upper
 * case, SVM lower case; trace-cmd's plugin prints "EXIT_" and upper case for SVM. Returns false if
 * the name is unknown; then *arg0 has import_reason_unknown and the isa that the letters suggest.
 */
bool import_reason_parse(const char *name, size_t len, uint64_t *arg0);
/* Returns the name of a reason, NULL if it has none. */
const char *import_reason_name(uint64_t arg0);

#endif
