/* SPDX-License-Identifier: GPL-2.0-only */
#include "bpf/backend/user_program.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "bpf/backend/user_probes.h"
#include "bpf/capture/event_limits.h"
#include "bpf/capture/event_pmu.h"

enum {
	/* Programs may not load the first bytes of a tracepoint's record. */
	RECORD_BEGIN = 8,
	CONTEXT_END = 2048, /* the smallest size of a record that kernels allow */
	REGISTER_BYTES = 8,
	DATA_LOC_BYTES = 4,
};

struct user_program {
	struct bpf_object *object;
	const struct bpf_insn *code; /* in `object` */
	size_t n;
	/* The code as it was compiled. libbpf appends the functions that it calls. */
	struct bpf_insn *gaps;
	size_t n_gaps;
};

/* The instruction and the one after it load a number of an event. */
static bool is_number(const struct bpf_insn *i, size_t left)
{
	return left > 1 && i->code == (BPF_LD | BPF_IMM | BPF_DW) && !i->src_reg &&
	       i[1].imm == VS_USER_GAP;
}

static bool is_load(const struct bpf_insn *i)
{
	return i->code == (BPF_LDX | BPF_MEM | BPF_DW) && i->off >= VS_USER_GAP_LOAD &&
	       i->off < VS_USER_GAP_LOAD + VS_USER_LOADS;
}

static uint64_t number_of(const struct vs_user_event *e, uint32_t gap)
{
	const size_t offset = gap >> 8, bytes = gap & 0xff;
	uint64_t number = 0;

	if (bytes <= sizeof(number) && offset + bytes <= sizeof(*e))
		memcpy(&number, (const char *)e + offset, bytes); /* little-endian */
	return number;
}

/* Returns the number of bytes that the value needs from the context; 0: none, or not by a load. */
static size_t loaded_bytes(const struct vs_user_value *v)
{
	switch (v->from) {
	case VS_FROM_LOAD:
		return v->bytes;
	case VS_FROM_USER:
		return REGISTER_BYTES;
	case VS_FROM_DATA:
		return DATA_LOC_BYTES;
	default:
		return 0;
	}
}

static struct bpf_insn load_of(struct bpf_insn gap, const struct vs_user_value *v)
{
	static const uint8_t sizes[] = {[1] = BPF_B, [2] = BPF_H, [4] = BPF_W, [8] = BPF_DW};
	const size_t bytes = loaded_bytes(v);

	if (!bytes)
		return (struct bpf_insn){.code = BPF_ALU64 | BPF_MOV | BPF_K, /* 0 */
					 .dst_reg = gap.dst_reg};
	gap.code = BPF_LDX | BPF_MEM | sizes[bytes];
	gap.off = (int16_t)v->offset;
	return gap;
}

static const struct vs_user_value *value_of(const struct vs_user_event *e, size_t i)
{
	return i < VS_USER_TESTS_MAX ? &e->tests[i].value : &e->values[i - VS_USER_TESTS_MAX];
}

/* Writes an event into a copy of the code. */
static void code_fill(struct bpf_insn *code, const struct bpf_insn *gaps, size_t n,
		      const struct vs_user_event *e)
{
	for (size_t i = 0; i < n; i++) {
		if (is_number(&gaps[i], n - i)) {
			const uint64_t number = number_of(e, (uint32_t)gaps[i].imm);

			code[i].imm = (int32_t)(uint32_t)number;
			code[i + 1].imm = (int32_t)(uint32_t)(number >> 32);
			i++;
		} else if (is_load(&gaps[i])) {
			code[i] = load_of(gaps[i],
					  value_of(e, (size_t)(gaps[i].off - VS_USER_GAP_LOAD)));
		}
	}
}

/* Called before the load. */
static int program_prepare(void *context, struct bpf_object *object)
{
	static const struct vs_user_event none;
	struct user_program *p = context;
	const struct bpf_program *program = bpf_object__find_program_by_name(object, "vs_u_hit");
	struct bpf_insn *code;

	if (!program)
		return -ENOENT;
	/* libbpf declares it const; it is the writable copy that the load will use. */
	code = (struct bpf_insn *)(uintptr_t)bpf_program__insns(program);
	p->n_gaps = bpf_program__insn_cnt(program);
	p->gaps = calloc(p->n_gaps, sizeof(*p->gaps));
	if (!p->gaps)
		return -ENOMEM;
	memcpy(p->gaps, code, p->n_gaps * sizeof(*p->gaps));
	code_fill(code, p->gaps, p->n_gaps, &none);
	return 0;
}

int user_program_new(const struct loader_object *programs, struct user_program **out)
{
	struct user_program *p = calloc(1, sizeof(*p));
	int error = -ENOMEM;

	if (p)
		error = loader_load_later(programs, USER_PROBES_LATER, program_prepare, p,
					  &p->object);
	if (!error) {
		const struct bpf_program *program =
			bpf_object__find_program_by_name(p->object, "vs_u_hit");

		p->code = bpf_program__insns(program);
		p->n = bpf_program__insn_cnt(program);
		if (p->n < p->n_gaps)
			error = -EINVAL;
	}
	if (error) {
		user_program_free(p);
		return error;
	}
	*out = p;
	return 0;
}

void user_program_free(struct user_program *p)
{
	if (!p)
		return;
	bpf_object__close(p->object);
	free(p->gaps);
	free(p);
}

struct bpf_object *user_program_object(struct user_program *p)
{
	return p->object;
}

/* Decides whether a value in the context is read by a load, which must be aligned, or by a kernel
 * helper. Returns false if a value that needs a load cannot have one. */
static bool value_settle(struct vs_user_value *v, bool is_tracepoint)
{
	const size_t begin = is_tracepoint ? RECORD_BEGIN : 0;
	const bool is_context = v->from == VS_FROM_CONTEXT;
	size_t bytes;

	if (is_context)
		v->from = VS_FROM_LOAD;
	bytes = loaded_bytes(v);
	if (!bytes && !is_context)
		return true;
	if ((bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8) && v->offset % bytes == 0 &&
	    v->offset >= begin && v->offset + bytes <= CONTEXT_END)
		return true;
	v->from = VS_FROM_CONTEXT;
	return is_context;
}

static bool event_write(struct vs_user_event *e, const struct capture_event *from, uint32_t slot)
{
	const bool is_tracepoint = from->kind == USER_TRACEPOINT;
	bool settled = true;

	*e = (struct vs_user_event){
		.slot = slot,
		.n_values = (uint32_t)from->n_values,
		.first_test = from->n_tests ? from->first_test : VS_USER_KEEP,
		.per_window = event_limit_per_window(from->rate),
		/* 0 would hide the hits of a tracepoint from users of perf. */
		.returned = is_tracepoint,
		.stack = from->stack,
	};
	memcpy(e->values, from->values, from->n_values * sizeof(*e->values));
	memcpy(e->tests, from->tests, from->n_tests * sizeof(*e->tests));
	for (size_t i = 0; i < from->n_values; i++)
		settled &= value_settle(&e->values[i], is_tracepoint);
	for (size_t i = 0; i < from->n_tests; i++)
		settled &= value_settle(&e->tests[i].value, is_tracepoint);
	return settled;
}

/* Returns a file descriptor or -errno. */
static int program_load(const struct user_program *p, const struct vs_user_event *e,
			bool is_tracepoint)
{
	struct bpf_insn *code = malloc(p->n * sizeof(*code));
	int fd;

	if (!code)
		return -ENOMEM;
	memcpy(code, p->code, p->n * sizeof(*code));
	code_fill(code, p->gaps, p->n_gaps, e);
	fd = bpf_prog_load(is_tracepoint ? BPF_PROG_TYPE_TRACEPOINT : BPF_PROG_TYPE_KPROBE,
			   is_tracepoint ? "vs_u_tracepoint" : "vs_u_probe", "GPL", code, p->n,
			   NULL);
	free(code);
	return fd;
}

int user_program_attach(const struct user_program *p, const struct capture_event *event,
			uint32_t slot)
{
	struct perf_event_attr attr = {.size = sizeof(attr)};
	struct event_pmu pmu;
	struct vs_user_event e;
	int error = event_pmu_find(event, &pmu), program, fd;

	if (error)
		return error;
	if (!event_write(&e, event, slot))
		return -EINVAL;
	program = program_load(p, &e, event->kind == USER_TRACEPOINT);
	if (program < 0)
		return program;
	attr.type = pmu.type;
	attr.config = pmu.config;
	attr.config1 = pmu.config1;
	attr.config2 = pmu.config2;
	fd = (int)syscall(SYS_perf_event_open, &attr, -1, 0, -1, PERF_FLAG_FD_CLOEXEC);
	error = fd < 0 ? -errno : 0;
	if (!error &&
	    (ioctl(fd, PERF_EVENT_IOC_SET_BPF, program) || ioctl(fd, PERF_EVENT_IOC_ENABLE, 0)))
		error = -errno;
	close(program);
	if (error && fd >= 0)
		close(fd);
	return error ? error : fd;
}
