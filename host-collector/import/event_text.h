/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What stands behind the event's name in ftrace text: the kernel's own print formats of all
 * generations and those of trace-cmd's and perf's plugins. One row per event.
 */
#ifndef IMPORT_EVENT_TEXT_H
#define IMPORT_EVENT_TEXT_H

#include <stddef.h>

#include "host-collector/import/record.h"

enum import_use {
	IMPORT_USED,
	IMPORT_UNUSED,    /* no event that vcpuscope knows */
	IMPORT_MALFORMED, /* one that it knows, but not this text */
};

/* Fills in e, named, vcpu and reason_unknown of `r`, whose event and task are there, from the NUL-
 * terminated text behind "event: ". */
enum import_use event_text_parse(struct import_record *r, const char *text);
/* A thread's name from `len` bytes: cut to what the kernel holds; "<...>" is none. */
void event_text_comm(struct import_task *task, const char *comm, size_t len);

/* Another architecture than x86 whose KVM writes its events like `text`; NULL: none that is known.
 * Meant for texts of kvm_entry and kvm_exit that event_text_parse() does not understand. */
const char *event_text_architecture(const char *text);

#endif
