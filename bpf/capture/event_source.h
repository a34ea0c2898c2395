/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Finds the fields of this kernel's tracepoints (tracefs) and the arguments of its functions (BTF),
 * and where each lies in the context that a BPF program receives.
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
	uint32_t bytes; /* a text of variable length has SOURCE_TEXT_BYTES; longer texts are cut */
	/* How to read the first value. A text has one value for each 8 characters;
	 * source_field_value() returns how to read the others. */
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

/* Reads the arguments of a function of the kernel or of a loaded module from BTF. Without BTF, the
 * arguments are arg1 to arg6. is_return: the only field is the result, `ret`. Stores at most 6 to
 * `out`. Returns their number; -ENOENT: BTF does not have the function; `near` is then a function
 * with a similar name, or "". */
int source_function(const char *name, bool is_return, struct source_field *out, char near[64]);

/* Sets arg1 to arg6, the arguments of a function of a program at its entry. Returns their
 * number. */
int source_registers(struct source_field *out);
/* Reads the arguments of a USDT probe ("-4@%edi 8@-8(%rbp) 4@$5"): numbers in registers, in memory
 * or constant. Leaves out other arguments; the rest keep their names. Stores at most 12 to `out`,
 * arg1 and so on. Returns their number. */
int source_usdt(const char *arguments, struct source_field *out);

#endif
