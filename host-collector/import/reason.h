/* SPDX-License-Identifier: GPL-2.0-only */
/* The names of KVM's exit reasons and their numbers, as the kernel's uapi/asm/{vmx,svm}.h have
 * them. */
#ifndef IMPORT_REASON_H
#define IMPORT_REASON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum import_isa { IMPORT_ISA_VMX = 1, IMPORT_ISA_SVM = 2 }; /* the kernel's KVM_ISA_* */

/* The reason part of arg0 of VS_EVENT_KVM_EXIT if no table knows the name. */
static const uint32_t import_reason_unknown = 0xffff;

/*
 * arg0 of VS_EVENT_KVM_EXIT (reason | isa << 32) for a reason as printed: VMX prints upper case,
 * SVM lower case, trace-cmd's plugin "EXIT_" and upper case for SVM. false: not known; *arg0 then
 * holds import_reason_unknown and the isa that its letters suggest.
 */
bool import_reason_parse(const char *name, size_t len, uint64_t *arg0);
/* The name of a reason, NULL if it has none. */
const char *import_reason_name(uint64_t arg0);

#endif
