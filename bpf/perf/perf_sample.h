/* SPDX-License-Identifier: GPL-2.0-only */
/* Layouts of perf's records: the attributes that request them, and the functions that parse them.
 * All records are stamped with CLOCK_MONOTONIC. */
#ifndef PERF_PERF_SAMPLE_H
#define PERF_PERF_SAMPLE_H

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum perf_layout {
	PERF_LAYOUT_PLAIN = 0, /* thread, time, the tracepoint's record */
	PERF_LAYOUT_FAULT,     /* plain, and the faulting address and the instruction pointer */
	PERF_LAYOUT_PROBE,     /* plain, but `raw` is the struct pt_regs of the probed place */
	PERF_LAYOUT_STACK, /* plain, and kernel frames, user registers, the top of the user stack */
};

enum {
	PERF_STACK_REGS = 17,
	PERF_STACK_FRAMES_MAX = 64,
	PERF_PT_REGS = 21, /* 8 bytes each; those that perf does not sample are 0 */
};

/* One parsed record. Members that do not belong to its kind are zero. Pointers are borrowed. */
struct perf_record {
	uint64_t time; /* CLOCK_MONOTONIC ns */
	uint64_t lost; /* number of lost events of this CPU; not 0 only in a loss record */
	int32_t tid, tgid;
	const char *comm;   /* new name of the task, 16 bytes; NULL: not a name record */
	const uint8_t *raw; /* the tracepoint's record, in the layout of its format */
	size_t raw_bytes;
	uint64_t registers[PERF_PT_REGS]; /* PERF_LAYOUT_PROBE: `raw` points here */
	uint64_t address, instruction;
	bool switched_in; /* `tid` got the CPU after `previous` */
	int32_t previous;
};

/* The stack of a task. Pointers are borrowed. */
struct perf_stack {
	size_t n_kernel;
	uint64_t kernel[PERF_STACK_FRAMES_MAX]; /* leaf first */
	bool has_user;
	uint64_t regs[PERF_STACK_REGS]; /* DWARF order */
	const uint8_t *user;            /* copy of the user stack, from the stack pointer upwards */
	size_t user_bytes;
};

/* Fills `attr` for an event of this layout that writes one record for each hit. Leaves type and
 * config to the caller. */
void perf_sample_describe(enum perf_layout layout, struct perf_event_attr *attr);
/* Parses a PERF_RECORD_SAMPLE of header->size bytes. stack: NULL unless the layout is
 * PERF_LAYOUT_STACK. `out` and `stack` point into the record; with PERF_LAYOUT_PROBE, out->raw
 * points to out->registers. Returns false if the record is malformed. */
bool perf_sample_read(enum perf_layout layout, const struct perf_event_header *header,
		      struct perf_record *out, struct perf_stack *stack);
/* Parses a PERF_RECORD_COMM. out->comm points to `name`. Returns false if the record is
 * malformed. */
bool perf_sample_name_read(const struct perf_event_header *header, char name[16],
			   struct perf_record *out);

/* Parses a PERF_RECORD_SWITCH_CPU_WIDE. Returns false if it reports a task that leaves the CPU, or
 * is malformed. */
bool perf_sample_switch_read(const struct perf_event_header *header, struct perf_record *out);

#endif
