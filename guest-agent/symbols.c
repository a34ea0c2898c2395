// SPDX-License-Identifier: GPL-2.0-only
#include "guest-agent/symbols.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>

#include "bpf/kernel_symbols.h"
#include "guest-agent/symbol_file.h"

/* A process's mapping of code. */
struct mapping {
	uint64_t begin, end, offset;
	dev_t device;
	ino_t inode;
	char path[256];
};

struct symbols {
	struct kallsyms *kernel; /* NULL: hidden */
	struct symbol_files *files;
};

struct symbols *symbols_new(void)
{
	struct symbols *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->files = symbol_files_new();
	if (!s->files || kallsyms_load(NULL, &s->kernel) == -ENOMEM) {
		symbols_free(s);
		return NULL;
	}
	return s;
}

void symbols_free(struct symbols *s)
{
	if (!s)
		return;
	kallsyms_free(s->kernel);
	symbol_files_free(s->files);
	free(s);
}

bool symbols_kernel(const struct symbols *s)
{
	return s->kernel != NULL;
}

static void text_set(char out[VS_TEXT_MAX], const char *text)
{
	snprintf(out, VS_TEXT_MAX, "%s", text);
}

static void kernel_name(const struct symbols *s, uint64_t address, struct message_stack_frame *f)
{
	struct kallsyms_symbol symbol;

	f->offset = address;
	f->kernel = true;
	if (!s->kernel || !kallsyms_lookup(s->kernel, address, &symbol))
		return;
	text_set(f->symbol, symbol.name);
	text_set(f->module, *symbol.module ? symbol.module : "kernel");
	f->offset = symbol.offset;
}

/* How many of the innermost frames lead from the scheduler to the program that took the stack. */
static size_t plumbing(const struct message_stack *m)
{
	for (size_t i = 0; i < m->n_frames && i < 10; i++) {
		if (!strcmp(m->frames[i].symbol, "__schedule"))
			return i + 1 < m->n_frames ? i + 1 : 0;
	}
	return 0;
}

static void kernel_stack_name(const struct symbols *s, const struct capture_guest_stack *stack,
			      struct message_stack *out)
{
	size_t skipped;

	for (size_t i = 0; i < out->n_frames; i++)
		kernel_name(s, stack->frames[i], &out->frames[i]);
	skipped = stack->role == VS_STACK_WAITER ? plumbing(out) : 0;
	out->n_frames -= skipped;
	memmove(out->frames, out->frames + skipped, out->n_frames * sizeof(out->frames[0]));
}

/* The mapping of code that holds `address`. */
static bool mapping_find(FILE *maps, uint64_t address, struct mapping *m)
{
	char line[512], flags[8];
	unsigned int major, minor;
	unsigned long inode;

	rewind(maps);
	while (fgets(line, sizeof(line), maps)) {
		char *rest;

		/* Most lines are another mapping's: two numbers tell that. */
		m->begin = strtoull(line, &rest, 16);
		m->end = *rest == '-' ? strtoull(rest + 1, &rest, 16) : 0;
		if (address < m->begin || address >= m->end)
			continue;
		*m->path = 0;
		if (sscanf(rest, "%7s %" SCNx64 " %x:%x %lu %255[^\n]", flags, &m->offset, &major,
			   &minor, &inode, m->path) < 5)
			return false;
		m->device = makedev(major, minor);
		m->inode = inode;
		return flags[2] == 'x';
	}
	return false;
}

static void user_name(struct symbols *s, pid_t pid, const struct mapping *m, uint64_t address,
		      struct message_stack_frame *f)
{
	const char *slash = strrchr(m->path, '/');
	struct symbol_file *file;
	char path[96];

	text_set(f->module, slash ? slash + 1 : m->path);
	f->offset = address - m->begin + m->offset;
	if (!slash)
		return;
	/* The very file, in whatever mount namespace, replaced or not. */
	snprintf(path, sizeof(path), "/proc/%d/map_files/%" PRIx64 "-%" PRIx64, pid, m->begin,
		 m->end);
	file = symbol_file_get(s->files, m->device, m->inode, path);
	if (file)
		symbol_file_lookup(file, f->offset, f->symbol, &f->offset);
}

/* libc begins a thread here, and keeps no frame pointer: what seems to follow is chance. */
static bool is_root(const char *symbol)
{
	static const char *const roots[] = {"__libc_start_call_main", "start_thread", "_start",
					    "clone3"};

	for (size_t i = 0; i < sizeof(roots) / sizeof(roots[0]); i++) {
		if (!strcmp(symbol, roots[i]))
			return true;
	}
	return false;
}

static void user_stack_name(struct symbols *s, const struct capture_guest_stack *stack,
			    struct message_stack *out)
{
	struct mapping m = {0};
	char path[32];
	FILE *maps;

	snprintf(path, sizeof(path), "/proc/%d/maps", stack->tgid);
	maps = fopen(path, "re");
	for (size_t i = 0; i < out->n_frames; i++) {
		/* A return address may lie behind the function that ends in the call. */
		const uint64_t address = stack->frames[i] - (i > 0);

		out->frames[i].offset = stack->frames[i];
		if (maps &&
		    ((address >= m.begin && address < m.end) || mapping_find(maps, address, &m)))
			user_name(s, stack->tgid, &m, address, &out->frames[i]);
		if (is_root(out->frames[i].symbol))
			out->n_frames = i + 1;
	}
	if (maps)
		fclose(maps);
}

void symbols_name(struct symbols *s, const struct capture_guest_stack *stack,
		  struct message_stack *out)
{
	out->id = stack->id;
	out->pid = stack->tgid;
	out->n_frames = stack->n < VS_STACK_FRAMES_MAX ? stack->n : VS_STACK_FRAMES_MAX;
	memset(out->frames, 0, out->n_frames * sizeof(out->frames[0]));
	if (stack->tgid)
		user_stack_name(s, stack, out);
	else
		kernel_stack_name(s, stack, out);
}
