/* SPDX-License-Identifier: GPL-2.0-only */
#include "bpf/perf/perf_sample.h"

#include <string.h>
#include <time.h>

#include "bpf/arch/perf_registers.h"

enum {
	USER_STACK_BYTES = 16384,
};

/* Values from here on are markers among the frames: PERF_CONTEXT_KERNEL and others. */
static const uint64_t context_first = (uint64_t)-4095;

_Static_assert(sizeof(perf_registers_dwarf) == PERF_STACK_REGS &&
		       sizeof(perf_registers_pt_regs) == PERF_STACK_REGS,
	       "a place for each");

void perf_sample_describe(enum perf_layout layout, struct perf_event_attr *attr)
{
	attr->size = sizeof(*attr);
	attr->sample_period = 1;
	attr->sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_RAW;
	attr->sample_id_all = 1;
	attr->disabled = 1;
	attr->use_clockid = 1;
	attr->clockid = CLOCK_MONOTONIC;
	/* Nobody polls the ring: asks for as few wake-ups as the kernel allows. */
	attr->watermark = 1;
	attr->wakeup_watermark = UINT32_MAX;
	if (layout == PERF_LAYOUT_FAULT)
		attr->sample_type |= PERF_SAMPLE_IP | PERF_SAMPLE_ADDR;
	if (layout == PERF_LAYOUT_PROBE) {
		attr->sample_type |= PERF_SAMPLE_REGS_INTR;
		attr->sample_regs_intr = PERF_REGISTERS_MASK;
	}
	if (layout == PERF_LAYOUT_STACK) {
		attr->sample_type |=
			PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER;
		attr->exclude_callchain_user = 1;
		attr->sample_max_stack = PERF_STACK_FRAMES_MAX;
		attr->sample_regs_user = PERF_REGISTERS_MASK;
		attr->sample_stack_user = USER_STACK_BYTES;
	}
}

struct cursor {
	const uint8_t *at;
	size_t left;
};

/* Takes `bytes` bytes of the sample. Returns NULL if fewer are left. */
static const uint8_t *take(struct cursor *c, size_t bytes)
{
	const uint8_t *at = c->at;

	if (bytes > c->left)
		return NULL;
	c->at += bytes;
	c->left -= bytes;
	return at;
}

static bool take_u64(struct cursor *c, uint64_t *out)
{
	const uint8_t *at = take(c, sizeof(*out));

	if (at)
		memcpy(out, at, sizeof(*out));
	return at != NULL;
}

static bool take_u32(struct cursor *c, uint32_t *out)
{
	const uint8_t *at = take(c, sizeof(*out));

	if (at)
		memcpy(out, at, sizeof(*out));
	return at != NULL;
}

static bool frames_read(struct cursor *c, struct perf_stack *out)
{
	uint64_t n, frame = 0;

	if (!take_u64(c, &n) || n > c->left / sizeof(frame))
		return false;
	for (uint64_t i = 0; i < n; i++) {
		take_u64(c, &frame);
		if (frame < context_first && out->n_kernel < PERF_STACK_FRAMES_MAX)
			out->kernel[out->n_kernel++] = frame;
	}
	return true;
}

/* Reads the registers of the probed place. Returns false if there are none. */
static bool registers_read(struct cursor *c, struct perf_record *out)
{
	uint64_t abi, value;

	if (!take_u64(c, &abi) || !abi)
		return false;
	for (size_t i = 0; i < PERF_STACK_REGS; i++) {
		if (!take_u64(c, &value))
			return false;
		out->registers[perf_registers_pt_regs[i]] = value;
	}
	out->raw = (const uint8_t *)out->registers;
	out->raw_bytes = sizeof(out->registers);
	return true;
}

static bool user_read(struct cursor *c, struct perf_stack *out)
{
	uint64_t abi, bytes, copied, value;

	if (!take_u64(c, &abi))
		return false;
	for (size_t i = 0; abi && i < PERF_STACK_REGS; i++) {
		if (!take_u64(c, &value))
			return false;
		out->regs[perf_registers_dwarf[i]] = value;
	}
	out->has_user = abi == PERF_SAMPLE_REGS_ABI_64;
	if (!take_u64(c, &bytes))
		return false;
	if (!bytes)
		return true;
	out->user = take(c, bytes);
	if (!out->user || !take_u64(c, &copied) || copied > bytes)
		return false;
	out->user_bytes = copied;
	return true;
}

bool perf_sample_read(enum perf_layout layout, const struct perf_event_header *header,
		      struct perf_record *out, struct perf_stack *stack)
{
	struct cursor c = {(const uint8_t *)(header + 1), header->size - sizeof(*header)};
	uint32_t raw_bytes;

	*out = (struct perf_record){0};
	if (stack)
		*stack = (struct perf_stack){0};
	if (layout == PERF_LAYOUT_FAULT && !take_u64(&c, &out->instruction))
		return false;
	if (!take_u32(&c, (uint32_t *)&out->tgid) || !take_u32(&c, (uint32_t *)&out->tid) ||
	    !take_u64(&c, &out->time))
		return false;
	if (layout == PERF_LAYOUT_FAULT && !take_u64(&c, &out->address))
		return false;
	if (stack && !frames_read(&c, stack))
		return false;
	if (!take_u32(&c, &raw_bytes))
		return false;
	out->raw_bytes = raw_bytes;
	out->raw = take(&c, raw_bytes);
	if (layout == PERF_LAYOUT_PROBE)
		return out->raw && registers_read(&c, out);
	return out->raw && (!stack || user_read(&c, stack));
}

/* The fields at the end of each record that is not a sample. */
struct sample_id {
	uint32_t tgid, tid;
	uint64_t time;
};

struct name_record {
	struct perf_event_header header;
	uint32_t tgid, tid;
	char comm[];
};

/* A name is followed by as many zeros as make it a multiple of 8 bytes, then by the sample's id. */
bool perf_sample_name_read(const struct perf_event_header *header, char name[16],
			   struct perf_record *out)
{
	const struct name_record *n = (const void *)header;
	struct sample_id id;
	size_t bytes;

	if (header->size < sizeof(*n) + sizeof(id))
		return false;
	bytes = header->size - sizeof(*n) - sizeof(id);
	memcpy(&id, (const char *)header + header->size - sizeof(id), sizeof(id));
	memset(name, 0, 16);
	memcpy(name, n->comm, strnlen(n->comm, bytes < 15 ? bytes : 15));
	*out = (struct perf_record){
		.time = id.time, .tid = (int32_t)n->tid, .tgid = (int32_t)n->tgid, .comm = name};
	return true;
}

bool perf_sample_switch_read(const struct perf_event_header *header, struct perf_record *out)
{
	const struct {
		struct perf_event_header header;
		uint32_t other_tgid, other_tid;
		struct sample_id id;
	} *s = (const void *)header;

	if (header->size < sizeof(*s) || header->misc & PERF_RECORD_MISC_SWITCH_OUT)
		return false;
	*out = (struct perf_record){.time = s->id.time,
				    .tid = (int32_t)s->id.tid,
				    .tgid = (int32_t)s->id.tgid,
				    .switched_in = true,
				    .previous = (int32_t)s->other_tid};
	return true;
}
