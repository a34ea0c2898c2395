/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/record/unwind.h"

#include <elfutils/libdwfl.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "host-collector/record/module.h"

enum {
	PROCESSES_KEPT = 8, /* the VM, and who wakes it */
	PROCESSES_MAX = 72,
	REPORT_AGAIN_MS = 1000, /* look for new mappings at most this often */
	REG_SP = 7,             /* DWARF numbers of x86-64 */
	REGS = 17,
};

struct process {
	pid_t pid;
	unsigned long long start_time; /* tells a process from a later one of the same pid */
	uint64_t used;                 /* for eviction */
	int64_t reported_ms;
	Dwfl *dwfl;
	struct module_list *modules;
	const struct capture_user_stack *stack; /* the one being unwound */
};

struct unwinder {
	uint64_t uses;
	size_t kept;
	struct process processes[PROCESSES_MAX];
};

static int64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000ll + t.tv_nsec / 1000000;
}

/* ---- what libdwfl asks for ---- */

/* module.h finds the names itself, and an unwinder needs .eh_frame only. */
static int debuginfo_find(Dwfl_Module *module, void **userdata, const char *name, Dwarf_Addr base,
			  const char *file_name, const char *link, GElf_Word crc,
			  char **debuginfo_name)
{
	(void)module, (void)userdata, (void)name, (void)base, (void)file_name, (void)link;
	(void)crc, (void)debuginfo_name;
	return -1;
}

static const Dwfl_Callbacks dwfl_callbacks = {
	.find_elf = module_find_elf,
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
	if (p->dwfl)
		dwfl_end(p->dwfl);
	module_list_free(p->modules);
	memset(p, 0, sizeof(*p));
}

/* Field 22 of /proc/PID/stat; 0 if the process is gone or only its corpse is there. */
static unsigned long long start_time_read(pid_t pid)
{
	unsigned long long start = 0;
	char path[64], text[1024];
	const char *after;
	char state = 0;
	size_t len;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	f = fopen(path, "re");
	if (!f)
		return 0;
	len = fread(text, 1, sizeof(text) - 1, f);
	fclose(f);
	text[len] = 0;
	after = strrchr(text, ')'); /* the name may hold anything */
	if (!after ||
	    sscanf(after + 1,
		   " %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d "
		   "%*d %*d %llu",
		   &state, &start) != 2 ||
	    state == 'Z' || state == 'X')
		return 0;
	return start;
}

static int process_report(struct process *p)
{
	p->reported_ms = now_ms();
	return module_list_report(p->modules, p->dwfl);
}

static int process_open(struct process *p, pid_t pid, unsigned long long start_time)
{
	int err;

	p->pid = pid;
	p->start_time = start_time;
	p->dwfl = dwfl_begin(&dwfl_callbacks);
	p->modules = module_list_new(pid);
	if (!p->dwfl || !p->modules)
		return -ENOMEM;
	err = process_report(p);
	if (err)
		return err;
	if (!dwfl_attach_state(p->dwfl, NULL, pid, &thread_callbacks, p))
		return -ENOEXEC; /* no file of it that libdwfl can read */
	return 0;
}

static int process_get(struct unwinder *u, pid_t pid, struct process **out)
{
	unsigned long long start_time = start_time_read(pid);
	struct process *oldest = &u->processes[0];
	int err;

	for (size_t i = 0; i < u->kept; i++) {
		struct process *p = &u->processes[i];

		if (p->pid == pid && (p->start_time == start_time)) {
			p->used = ++u->uses;
			*out = p;
			return 0;
		}
		if (p->pid == pid)
			process_forget(p); /* dead, or another one by now */
		if (p->used < oldest->used)
			oldest = p;
	}
	if (!start_time)
		return -ESRCH;
	process_forget(oldest);
	err = process_open(oldest, pid, start_time);
	if (err) {
		process_forget(oldest);
		return err;
	}
	oldest->used = ++u->uses;
	*out = oldest;
	return 0;
}

static int module_prepare(Dwfl_Module *module, void **userdata, const char *name, Dwarf_Addr begin,
			  void *context)
{
	Dwarf_Addr bias;
	uint64_t offset;

	(void)userdata, (void)name, (void)context;
	module_symbol(module, begin, &offset);
	dwfl_module_eh_cfi(module, &bias);
	return DWARF_CB_OK;
}

int unwinder_prepare(struct unwinder *u, pid_t tgid)
{
	struct process *process;
	int err = process_get(u, tgid, &process);

	if (!err)
		dwfl_getmodules(process->dwfl, module_prepare, NULL, 0);
	return err;
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
	const char *path, *symbol, *slash;
	Dwarf_Addr begin = 0;
	uint64_t offset = 0;

	memset(frame, 0, sizeof(*frame));
	frame->offset = pc;
	if (!module) {
		/* Where run-time code lies says nothing; without it, equal stacks are equal. */
		snprintf(frame->module, sizeof(frame->module), "[anon]");
		frame->offset = 0;
		return;
	}
	symbol = module_symbol(module, inside, &offset);
	path = dwfl_module_info(module, NULL, &begin, NULL, NULL, NULL, NULL, NULL);
	slash = path ? strrchr(path, '/') : NULL;
	if (path && !strncmp(path, "[vdso", 5))
		path = "[vdso]";
	snprintf(frame->module, sizeof(frame->module), "%s", slash ? slash + 1 : path ? path : "");
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

long unwinder_run(struct unwinder *u, pid_t tgid, const struct capture_user_stack *stack,
		  struct message_stack_frame *frames, size_t max)
{
	struct walk w = {.frames = frames, .max = max};
	int err = process_get(u, tgid, &w.process);

	if (err)
		return err;
	w.process->stack = stack;
	for (;;) {
		w.n = 0;
		w.unmapped = false;
		/* Its result says why the walk ended (end of stack, of copy, of tables); what was
		 * found until there is good. */
		dwfl_getthread_frames(w.process->dwfl, tgid, frame_add, &w);
		/* Perhaps a library that was mapped since. */
		if (!w.unmapped || now_ms() - w.process->reported_ms < REPORT_AGAIN_MS ||
		    process_report(w.process))
			break;
	}
	w.process->stack = NULL;
	return (long)w.n;
}

struct unwinder *unwinder_new(void)
{
	struct unwinder *u = calloc(1, sizeof(*u));

	if (u)
		u->kept = PROCESSES_KEPT;
	return u;
}

void unwinder_keep(struct unwinder *u, size_t n)
{
	u->kept = n < 1 ? 1 : n < PROCESSES_MAX ? n : PROCESSES_MAX;
	for (size_t i = u->kept; i < PROCESSES_MAX; i++)
		process_forget(&u->processes[i]);
}

void unwinder_free(struct unwinder *u)
{
	if (!u)
		return;
	for (size_t i = 0; i < PROCESSES_MAX; i++)
		process_forget(&u->processes[i]);
	free(u);
}
