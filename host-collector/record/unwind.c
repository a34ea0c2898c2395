/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/record/unwind.h"

#include <elf.h>
#include <elfutils/libdwfl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <time.h>

#include "host-collector/record/elf_file.h"

enum {
	PROCESSES_MAX = 72, /* as the opener knows */
	FILES_KEPT = 256,   /* then all are forgotten: descriptors are limited */
	PREPARE_MS = 300,   /* of CPU, at most */
	REG_SP = 7,         /* DWARF numbers of x86-64 */
	REGS = 17,
};

struct module {
	struct module *next;
	struct process *process;
	size_t index; /* in the process's list */
	bool is_vdso;
	struct elf_file *file; /* NULL: not to be had, or not asked for yet */
	char name[VS_TEXT_MAX];
};

struct process {
	struct state *state;
	pid_t pid;
	uint64_t start_time; /* distinguishes a process from a later one with the same pid */
	uint64_t used;       /* for eviction */
	uint32_t list;       /* of modules, the opener's number */
	Dwfl *dwfl;
	struct module *modules;
	const struct capture_user_stack *stack; /* the one being unwound */
};

struct state {
	struct naming *naming; /* of the call under way */
	struct elf_files *files;
	Elf *vdso; /* every process has the same */
	uint64_t vdso_bytes;
	uint64_t uses;
	struct process processes[PROCESSES_MAX];
};

static Elf *vdso_open(uint64_t *bytes)
{
	const Elf64_Ehdr *header = (const Elf64_Ehdr *)getauxval(AT_SYSINFO_EHDR);

	if (!header)
		return NULL;
	*bytes = header->e_shoff + (uint64_t)header->e_shentsize * header->e_shnum;
	return elf_memory((char *)header, *bytes);
}

/* ---- what libdwfl asks for ---- */

static int elf_find(Dwfl_Module *dwfl_module, void **userdata, const char *name, Dwarf_Addr base,
		    char **file_name, Elf **elf)
{
	struct module *m = *userdata;
	struct state *s;

	(void)dwfl_module, (void)name, (void)base, (void)file_name;
	if (!m)
		return -1;
	s = m->process->state;
	if (m->is_vdso) {
		*elf = elf_begin(-1, ELF_C_READ, s->vdso);
		return -1;
	}
	m->file = elf_file_get(s->files, s->naming, m->index);
	if (m->file)
		*elf = elf_file_borrow(m->file);
	return -1;
}

/* elf_file.h finds the names itself, and an unwinder needs .eh_frame only. */
static int debuginfo_find(Dwfl_Module *module, void **userdata, const char *name, Dwarf_Addr base,
			  const char *file_name, const char *link, GElf_Word crc,
			  char **debuginfo_name)
{
	(void)module, (void)userdata, (void)name, (void)base, (void)file_name, (void)link;
	(void)crc, (void)debuginfo_name;
	return -1;
}

static const Dwfl_Callbacks dwfl_callbacks = {
	.find_elf = elf_find,
	.find_debuginfo = debuginfo_find,
};

static pid_t thread_next(Dwfl *dwfl, void *context, void **thread)
{
	struct process *p = context;

	(void)dwfl;
	if (*thread)
		return 0;
	*thread = p;
	return p->pid;
}

static bool thread_get(Dwfl *dwfl, pid_t tid, void *context, void **thread)
{
	(void)dwfl, (void)tid;
	*thread = context;
	return true;
}

static bool memory_read(Dwfl *dwfl, Dwarf_Addr address, Dwarf_Word *result, void *context)
{
	const struct capture_user_stack *stack = ((struct process *)context)->stack;
	uint64_t offset = address - stack->regs[REG_SP];

	(void)dwfl;
	if (stack->copied_bytes < sizeof(*result) || offset > stack->copied_bytes - sizeof(*result))
		return false;
	memcpy(result, stack->copied + offset, sizeof(*result));
	return true;
}

static bool registers_set(Dwfl_Thread *thread, void *context)
{
	const struct process *p = context;
	Dwarf_Word regs[REGS];

	for (size_t i = 0; i < REGS; i++)
		regs[i] = p->stack->regs[i];
	return dwfl_thread_state_registers(thread, 0, REGS, regs);
}

static const Dwfl_Thread_Callbacks thread_callbacks = {
	.next_thread = thread_next,
	.get_thread = thread_get,
	.memory_read = memory_read,
	.set_initial_registers = registers_set,
};

/* ---- processes ---- */

static void process_forget(struct process *p)
{
	struct module *next;

	if (p->dwfl)
		dwfl_end(p->dwfl);
	for (struct module *m = p->modules; m; m = next) {
		next = m->next;
		free(m);
	}
	*p = (struct process){0};
}

static void everything_forget(struct state *s)
{
	for (size_t i = 0; i < PROCESSES_MAX; i++)
		process_forget(&s->processes[i]);
	elf_files_free(s->files);
	s->files = elf_files_new();
}

/* False: out of memory. */
static bool module_report(struct process *p, size_t index, const struct naming_module *seen)
{
	const uint64_t pages = (p->state->vdso_bytes + 4095) & ~4095ull;
	Dwfl_Module *dwfl_module;
	void **userdata = NULL;
	struct module *m;

	/* Another kind of process has another one. */
	if (seen->is_vdso && (!p->state->vdso || seen->end - seen->begin != pages))
		return true;
	dwfl_module = dwfl_report_module(p->dwfl, seen->name, seen->begin, seen->end);
	if (!dwfl_module)
		return true; /* overlaps another: the process changed while it was looked at */
	dwfl_module_info(dwfl_module, &userdata, NULL, NULL, NULL, NULL, NULL, NULL);
	if (!userdata)
		return true;
	m = *userdata;
	if (!m) {
		m = calloc(1, sizeof(*m));
		if (!m)
			return false;
		m->process = p;
		m->next = p->modules;
		p->modules = m;
		*userdata = m;
	}
	m->index = index;
	m->is_vdso = seen->is_vdso;
	memcpy(m->name, seen->name, sizeof(m->name));
	m->name[sizeof(m->name) - 1] = 0;
	return true;
}

/* Reports the mappings of the process to libdwfl. Returns true if they have changed. */
static bool process_report(struct process *p)
{
	const uint32_t list = p->list;
	const struct naming_module *modules;
	bool memory = true;
	size_t n;

	modules = naming_modules(p->state->naming, &p->list, &n);
	if (p->list == list)
		return false;
	dwfl_report_begin(p->dwfl);
	for (size_t i = 0; i < n && memory; i++)
		memory = module_report(p, i, &modules[i]);
	dwfl_report_end(p->dwfl, NULL, NULL);
	return memory;
}

static bool process_open(struct state *s, struct process *p, const struct naming_stack *stack)
{
	*p = (struct process){.state = s, .pid = stack->pid, .start_time = stack->start_time};
	p->dwfl = dwfl_begin(&dwfl_callbacks);
	return p->dwfl && process_report(p) &&
	       dwfl_attach_state(p->dwfl, s->vdso, p->pid, &thread_callbacks, p);
}

static struct process *process_get(struct state *s, const struct naming_stack *stack)
{
	struct process *oldest = &s->processes[0];

	for (size_t i = 0; i < PROCESSES_MAX; i++) {
		struct process *p = &s->processes[i];

		if (p->dwfl && p->pid == stack->pid && p->start_time == stack->start_time) {
			p->used = ++s->uses;
			return p;
		}
		if (p->used < oldest->used)
			oldest = p;
	}
	process_forget(oldest);
	if (!process_open(s, oldest, stack)) {
		process_forget(oldest);
		return NULL;
	}
	oldest->used = ++s->uses;
	return oldest;
}

static uint64_t cpu_ms(void)
{
	struct timespec t = {0};

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

struct preparing {
	struct state *state;
	uint64_t begin_ms;
	bool program_done;
};

static const char *module_symbol(struct state *s, Dwfl_Module *dwfl_module, uint64_t address,
				 uint64_t *offset)
{
	void **userdata = NULL;
	struct module *m;
	GElf_Addr bias;

	dwfl_module_info(dwfl_module, &userdata, NULL, NULL, NULL, NULL, NULL, NULL);
	m = userdata ? *userdata : NULL;
	if (!m)
		return NULL;
	naming_at(s->naming, m->index);
	dwfl_module_getelf(dwfl_module, &bias); /* finds the file */
	return m->file ? elf_file_symbol(m->file, s->naming, dwfl_module, address, offset) : NULL;
}

/* The program itself and libc: there its threads mostly are. */
static int module_prepare(Dwfl_Module *module, void **userdata, const char *name, Dwarf_Addr begin,
			  void *context)
{
	struct preparing *p = context;
	Dwarf_Addr bias;
	uint64_t offset;

	(void)userdata;
	if (p->program_done && strncmp(name, "libc.so", 7) != 0)
		return DWARF_CB_OK;
	p->program_done = true;
	module_symbol(p->state, module, begin, &offset);
	dwfl_module_eh_cfi(module, &bias);
	return cpu_ms() - p->begin_ms < PREPARE_MS ? DWARF_CB_OK : DWARF_CB_ABORT;
}

/* ---- walking ---- */

struct walk {
	struct process *process;
	struct message_stack_frame *frames;
	size_t n, max;
	bool unmapped; /* an address in no known file */
};

static void frame_name(const struct walk *w, struct message_stack_frame *frame, uint64_t pc,
		       bool is_leaf)
{
	/* A return address may be the first byte behind a call that never returns. */
	uint64_t inside = is_leaf ? pc : pc - 1;
	Dwfl_Module *module = dwfl_addrmodule(w->process->dwfl, inside);
	Dwarf_Addr begin = 0;
	const char *symbol, *name;
	uint64_t offset = 0;

	memset(frame, 0, sizeof(*frame));
	frame->offset = pc;
	if (!module) {
		/* Where run-time code lies says nothing; without it, equal stacks are equal. */
		snprintf(frame->module, sizeof(frame->module), "[anon]");
		frame->offset = 0;
		return;
	}
	symbol = module_symbol(w->process->state, module, inside, &offset);
	name = dwfl_module_info(module, NULL, &begin, NULL, NULL, NULL, NULL, NULL);
	snprintf(frame->module, sizeof(frame->module), "%s", name ? name : "");
	if (symbol) {
		/* without the version: pthread_cond_wait@@GLIBC_2.3.2 */
		snprintf(frame->symbol, sizeof(frame->symbol), "%.*s", (int)strcspn(symbol, "@"),
			 symbol);
		frame->offset = offset + (pc - inside);
	} else {
		frame->offset = pc - begin;
	}
}

static int frame_add(Dwfl_Frame *dwfl_frame, void *context)
{
	struct walk *w = context;
	struct message_stack_frame *frame;
	bool is_activation = false;
	Dwarf_Addr pc;

	if (w->n == w->max || !dwfl_frame_pc(dwfl_frame, &pc, &is_activation) || !pc)
		return DWARF_CB_ABORT;
	frame = &w->frames[w->n++];
	frame_name(w, frame, pc, is_activation);
	if (strcmp(frame->module, "[anon]"))
		return DWARF_CB_OK;
	/* No unwind table covers it; what libdwfl guessed beyond would be noise. */
	w->unmapped = true;
	return DWARF_CB_ABORT;
}

static size_t process_walk(struct process *p, const struct capture_user_stack *stack,
			   struct message_stack_frame *frames, size_t max)
{
	struct walk w = {.process = p, .frames = frames, .max = max};

	p->stack = stack;
	do {
		w.n = 0;
		w.unmapped = false;
		/* Its result says why the walk ended (end of stack, of copy, of tables); what was
		 * found until there is good. */
		dwfl_getthread_frames(p->dwfl, p->pid, frame_add, &w);
		/* Perhaps a library that was mapped since. */
	} while (w.unmapped && process_report(p));
	p->stack = NULL;
	return w.n;
}

static size_t body_name(void *context, struct naming *n, const struct naming_stack *stack,
			struct message_stack_frame *frames, size_t max)
{
	struct state *s = context;
	struct capture_user_stack user = {0};
	struct preparing preparing = {.state = s, .begin_ms = cpu_ms()};
	struct process *p;

	s->naming = n;
	if (elf_files_count(s->files) > FILES_KEPT)
		everything_forget(s);
	p = s->files ? process_get(s, stack) : NULL;
	if (!p)
		return 0;
	if (stack->data_bytes < sizeof(user.regs)) {
		dwfl_getmodules(p->dwfl, module_prepare, &preparing, 0);
		return 0;
	}
	memcpy(user.regs, stack->data, sizeof(user.regs));
	user.copied = stack->data + sizeof(user.regs);
	user.copied_bytes = stack->data_bytes - sizeof(user.regs);
	return process_walk(p, &user, frames, max);
}

static void *body_begin(void)
{
	struct state *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->files = elf_files_new();
	s->vdso = vdso_open(&s->vdso_bytes);
	if (s->files)
		return s;
	free(s);
	return NULL;
}

const struct naming_body unwind_body = {
	.begin = body_begin, .name = body_name, .memory_bytes = 160 << 20};

struct namer_question unwind_question(pid_t tgid, const struct capture_user_stack *stack)
{
	return (struct namer_question){.pid = tgid,
				       .addresses = &stack->regs[REGS - 1],
				       .n_addresses = 1,
				       .data = {stack->regs, stack->copied},
				       .data_bytes = {sizeof(stack->regs), stack->copied_bytes}};
}
