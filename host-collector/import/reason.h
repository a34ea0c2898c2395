/* SPDX-License-Identifier: GPL-2.0-only */
/* Reads the exit reasons that other tools print. */
#ifndef IMPORT_REASON_H
#define IMPORT_REASON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/event.h"

/* Reason of a KVM_EXIT event if no reason has the printed name. */
static const uint32_t import_reason_unknown = 0xffff;

/*
 * Sets reason and isa of a KVM_EXIT event from a printed reason. VMX prints upper case, SVM lower
 * case; trace-cmd's plugin prints "EXIT_" and upper case for SVM. Returns false if the name is
 * unknown; then the reason is import_reason_unknown, and the isa is the one that the letters
 * suggest.
 */
bool import_reason_parse(const char *name, size_t len, struct vs_event *e);

#endif
