/* SPDX-License-Identifier: GPL-2.0-only */
/* Parses the texts that KVM's tracepoints print, except those of entries and exits
 * (event_text.h). */
#ifndef IMPORT_KVM_TEXT_H
#define IMPORT_KVM_TEXT_H

#include <stdbool.h>

#include "proto/event.h"

/* Returns whether this file parses events of `type`. */
bool kvm_text_knows(uint16_t type);
/* Sets the fields of `e` (type set, the others zero) except its task from the NUL-terminated text
 * after "event: ". Returns false if the text does not have the fields. */
bool kvm_text_parse(struct vs_event *e, const char *text);

#endif
