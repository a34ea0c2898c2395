// SPDX-License-Identifier: GPL-2.0-only
#include "guest-agent/symbols_body.h"

#include <stdlib.h>
#include <string.h>

#include "guest-agent/symbol_file.h"

static const struct naming_module *module_find(const struct naming_module *modules, size_t n,
					       uint64_t address)
{
	for (size_t i = 0; i < n; i++) {
		if (address >= modules[i].code_begin && address < modules[i].code_end)
			return &modules[i];
	}
	return NULL;
}

/* libc starts threads in these functions, without a frame pointer. Frames beyond them are invalid.
 */
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

static void frame_name(struct symbol_files *files, struct naming *n,
		       const struct naming_module *modules, const struct naming_module *m,
		       uint64_t address, struct message_stack_frame *frame)
{
	struct symbol_file *file;

	memcpy(frame->module, m->name, sizeof(frame->module));
	frame->module[sizeof(frame->module) - 1] = 0;
	frame->offset = address - m->code_begin + m->code_offset;
	if (m->is_vdso)
		return;
	file = symbol_file_get(files, n, (size_t)(m - modules));
	if (file)
		symbol_file_lookup(file, frame->offset, frame->symbol, &frame->offset);
}

static size_t body_name(void *state, struct naming *n, const struct naming_stack *stack,
			struct message_stack_frame *frames, size_t max)
{
	const struct naming_module *modules;
	uint32_t list = 0;
	size_t n_modules;
	bool fresh = false;

	modules = naming_modules(n, &list, &n_modules);
	for (size_t i = 0; i < stack->n_addresses && i < max; i++) {
		/* A return address may lie behind the function that ends in the call. */
		const uint64_t address = stack->addresses[i] - (i > 0);
		const struct naming_module *m = module_find(modules, n_modules, address);

		if (!m && !fresh) { /* perhaps mapped since */
			fresh = true;
			modules = naming_modules(n, &list, &n_modules);
			m = module_find(modules, n_modules, address);
		}
		frames[i] = (struct message_stack_frame){.offset = stack->addresses[i]};
		if (m)
			frame_name(state, n, modules, m, address, &frames[i]);
		if (is_root(frames[i].symbol))
			return i + 1;
	}
	return stack->n_addresses < max ? stack->n_addresses : max;
}

static void *body_begin(void)
{
	return symbol_files_new();
}

const struct naming_body symbols_body = {
	.begin = body_begin, .name = body_name, .memory_bytes = 48 << 20};
