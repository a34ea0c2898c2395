/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What perf writes for one event, in one of a few layouts, and how it is read back. Everything is
 * stamped with CLOCK_MONOTONIC.
 */
#ifndef PERF_PERF_SAMPLE_H
#define PERF_PERF_SAMPLE_H

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum perf_layout {
	PERF_LAYOUT_PLAIN = 0, /* who, when, the tracepoint's record */
	PERF_LAYOUT_FAULT,     /* and which address, by which instruction */
	PERF_LAYOUT_STACK,     /* and kernel frames, user registers, the top of the user stack */
};

enum { PERF_STACK_REGS = 17, PERF_STACK_FRAMES_MAX = 64 };

/* One record; what does not belong to its kind is zero. Pointers are borrowed. */
struct perf_record {
	uint64_t time; /* CLOCK_MONOTONIC ns */
	uint64_t lost; /* a loss: how many events of this CPU */
	int32_t tid, tgid;
	const char *comm;   /* a task has this name from now on; 16 bytes */
	const uint8_t *raw; /* a tracepoint's record, as its format says */
	size_t raw_bytes;
	uint64_t address, instruction;
	bool switched_in; /* `tid` has got the CPU from `previous` */
	int32_t previous;
};

/* Where a task was. Pointers are borrowed. */
struct perf_stack {
	size_t n_kernel;
	uint64_t kernel[PERF_STACK_FRAMES_MAX]; /* leaf first */
	bool has_user;
	uint64_t regs[PERF_STACK_REGS]; /* DWARF order */
	const uint8_t *user;            /* from the stack pointer upwards */
	size_t user_bytes;
};

/* Makes `attr` one of CPU's or a task's events of this layout, every hit a record. */
void perf_sample_describe(enum perf_layout layout, struct perf_event_attr *attr);
/* Reads a PERF_RECORD_SAMPLE of header.size bytes; stack: NULL unless the layout is
 * PERF_LAYOUT_STACK. False: it is shorter than it says. */
bool perf_sample_read(enum perf_layout layout, const struct perf_event_header *header,
		      struct perf_record *out, struct perf_stack *stack);
/* A PERF_RECORD_COMM; the name goes to `name`. */
bool perf_sample_name_read(const struct perf_event_header *header, char name[16],
			   struct perf_record *out);

/* A PERF_RECORD_SWITCH_CPU_WIDE. False: it is of a task that leaves the CPU. */
bool perf_sample_switch_read(const struct perf_event_header *header, struct perf_record *out);

#endif
