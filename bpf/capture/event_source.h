/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What this kernel's events have: the fields of tracepoints (tracefs) and the arguments of
 * functions (BTF), with the place of each in what a BPF program gets.
 */
#ifndef CAPTURE_EVENT_SOURCE_H
#define CAPTURE_EVENT_SOURCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bpf/prog/user_slot.h"
#include "proto/user_event_kind.h"

enum { SOURCE_FIELDS_MAX = 32, SOURCE_TEXT_BYTES = 32 };

struct source_field {
	char name[32];
	enum user_field_type type;
	uint32_t bytes; /* of a text of variable length SOURCE_TEXT_BYTES: more is cut */
	/* The first value. A text has one more for each 8 characters: source_field_value(). */
	struct vs_user_value first;
};

/* Returns how to read value number `i` of a field. */
struct vs_user_value source_field_value(const struct source_field *f, size_t i);

/* Reads the fields of a tracepoint in the order of its record: numbers, and texts of at most
 * VS_USER_TEXT_MAX bytes. Other arrays, and the common fields, are left out. Stores at most
 * SOURCE_FIELDS_MAX fields to `out`. Returns their number; -ENOENT: no such tracepoint, or no
 * tracefs; -EACCES; -ENOMEM; -EPROTO. */
int source_tracepoint(const char *system, const char *name, struct source_field *out);
/* Calls `each` for all systems, or for all tracepoints of `system`. Stops if `each` returns false.
 */
void source_tracepoints(const char *system, bool (*each)(void *context, const char *name),
			void *context);

/* Reads the arguments of a function of the kernel or of a loaded module from BTF; without it there
 * are arg1 to arg6. is_return: there is only the result, `ret`. Stores at most 6 to `out`. Returns
 * their number; -ENOENT: BTF does not have the function, and *near is one with a similar name or
 * "". */
int source_function(const char *name, bool is_return, struct source_field *out, char near[64]);

/* Sets arg1 to arg6 of a function of a program, as it begins. Returns their number. */
int source_registers(struct source_field *out);
/* Reads the arguments of a USDT probe ("-4@%edi 8@-8(%rbp) 4@$5"): numbers in registers, in memory
 * or constant. Others are left out, the names of the rest stay. Stores at most 12 to `out`, arg1
 * and so on. Returns their number. */
int source_usdt(const char *arguments, struct source_field *out);

#endif
