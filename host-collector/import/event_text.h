/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Parses the text that follows an event's name in ftrace text: the print formats of all kernel
 * versions, and those of trace-cmd's and perf's plugins. There is one row for each event.
 */
#ifndef IMPORT_EVENT_TEXT_H
#define IMPORT_EVENT_TEXT_H

#include <stddef.h>

#include "host-collector/import/record.h"

enum import_use {
	IMPORT_USED,
	IMPORT_UNUSED,    /* vcpuscope has no type for the event */
	IMPORT_MALFORMED, /* vcpuscope knows the event, but not this text */
};

/* Parses the NUL-terminated text after "event: ". Sets e, named, vcpu and reason_unknown of `r`,
 * in which event and task are already set. */
enum import_use event_text_parse(struct import_record *r, const char *text);
/* Sets a thread's name from `len` bytes, cut to the kernel's length. Ignores "<...>". */
void event_text_comm(struct import_task *task, const char *comm, size_t len);

/* Returns the name of another architecture than x86 whose KVM prints events like `text`, NULL if
 * none is known. For texts of kvm_entry and kvm_exit that event_text_parse() does not parse. */
const char *event_text_architecture(const char *text);

#endif
