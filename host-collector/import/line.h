/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Parses one line of text as ftrace (trace, trace_pipe), `trace-cmd report` and `perf script` print
 * it:
 *
 *   ftrace      CPU 0/KVM-4711  (4700) [003] d..1.  83184.290334: kvm_entry: vcpu 0
 *   trace-cmd   CPU 0/KVM-4711  [003] 83184.290334: kvm_entry:            vcpu 0
 *   perf        CPU 0/KVM  4700/4711 [003] 83184.290334:  kvm:kvm_entry: vcpu 0
 *   bare        83184.290334: kvm_entry: vcpu 0
 *
 * A stamp has any number of decimals, or no decimal point (ticks of ftrace's clock x86-tsc). A line
 * may contain any bytes; all of it is checked.
 */
#ifndef IMPORT_LINE_H
#define IMPORT_LINE_H

#include "host-collector/import/record.h"

enum line_kind {
	LINE_EVENT,
	LINE_OTHER,     /* an event for which vcpuscope has no type; r->event names it */
	LINE_LOST,      /* r->cpu; r->e: a LOST event, its count, 0 unknown */
	LINE_TORN,      /* a KVM event of a known thread and CPU whose text could not be parsed */
	LINE_NOTHING,   /* empty, a comment, a heading, a line of a stack */
	LINE_MALFORMED, /* none of these */
};

enum { LINE_BYTES_MAX = 8192 };

/* Parses a line. `line` is NUL-terminated and may end in CR and LF; it is modified, and r->text
 * points into it. */
enum line_kind line_parse(char *line, struct import_record *r);

#endif
