/* SPDX-License-Identifier: GPL-2.0-only */
/* Reads the exit reasons that other tools print. */
#ifndef IMPORT_REASON_H
#define IMPORT_REASON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Reason in arg0 of VS_EVENT_KVM_EXIT if no reason has the printed name. */
static const uint32_t import_reason_unknown = 0xffff;

/*
 * Converts a printed reason to arg0 of VS_EVENT_KVM_EXIT (reason | isa << 32). VMX prints upper
 * case, SVM lower case; trace-cmd's plugin prints "EXIT_" and upper case for SVM. Returns false if
 * the name is unknown; then *arg0 has import_reason_unknown and the isa that the letters suggest.
 */
bool import_reason_parse(const char *name, size_t len, uint64_t *arg0);
#endif
