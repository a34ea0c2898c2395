/* SPDX-License-Identifier: GPL-2.0-only */
#include "bpf/capture/event_source.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <bpf/btf.h>

#include "bpf/capture/tracepoint_format.h"

struct vs_user_value source_field_value(const struct source_field *f, size_t i)
{
	struct vs_user_value v = f->first;
	const size_t at = 8 * i;

	if (f->type != USER_TEXT)
		return v;
	if (v.from == VS_FROM_DATA) {
		v.number += (vs_s64)at;
	} else {
		v.offset = (vs_u16)(v.offset + at);
		v.bytes = (vs_u16)(f->bytes - at < 8 ? f->bytes - at : 8);
	}
	return v;
}

/* ---- tracepoints ---- */

/* Returns false for a field that has no place in a value. */
static bool format_field(const struct tep_format_field *f, struct source_field *out)
{
	const unsigned long flags = f->flags;
	const bool text = flags & TEP_FIELD_IS_STRING;

	if (strlen(f->name) >= sizeof(out->name) || f->offset < 0 || f->size <= 0 ||
	    f->offset + f->size > 8192 || flags & TEP_FIELD_IS_RELATIVE)
		return false;
	*out = (struct source_field){.type = USER_UNSIGNED, .bytes = (uint32_t)f->size};
	snprintf(out->name, sizeof(out->name), "%s", f->name);
	out->first.offset = (vs_u16)f->offset;
	out->first.bytes = (vs_u16)f->size;
	if (flags & TEP_FIELD_IS_DYNAMIC) {
		if (!text || f->size != 4)
			return false;
		out->type = USER_TEXT;
		out->bytes = SOURCE_TEXT_BYTES;
		out->first.from = VS_FROM_DATA;
		out->first.bytes = 8;
		return true;
	}
	if (flags & TEP_FIELD_IS_ARRAY) {
		out->type = USER_TEXT;
		out->first.bytes = (vs_u16)(f->size < 8 ? f->size : 8);
		return text && f->size <= VS_USER_TEXT_MAX;
	}
	if (flags & TEP_FIELD_IS_POINTER) {
		out->type = USER_HEX;
	} else if (flags & TEP_FIELD_IS_SIGNED) {
		out->type = USER_SIGNED;
		out->first.is_signed = 1;
	}
	return f->size <= 8;
}

int source_tracepoint(const char *system, const char *name, struct source_field *out)
{
	struct tep_handle *tep = tep_alloc();
	struct tep_event *event;
	int n = 0, error;

	if (!tep)
		return -ENOMEM;
	error = tracepoint_format_parse(tep, system, name, &event);
	if (!error) {
		for (const struct tep_format_field *f = event->format.fields;
		     f && n < SOURCE_FIELDS_MAX; f = f->next)
			n += format_field(f, &out[n]);
	}
	tep_free(tep);
	return error ? error : n;
}

void source_tracepoints(const char *system, bool (*each)(void *context, const char *name),
			void *context)
{
	static const char *const roots[] = {"/sys/kernel/tracing", "/sys/kernel/debug/tracing"};
	const struct dirent *entry;
	char path[256];
	DIR *d = NULL;

	for (size_t i = 0; i < 2 && !d; i++) {
		snprintf(path, sizeof(path), "%s/events/%s", roots[i], system ? system : "");
		d = opendir(path);
	}
	while (d && (entry = readdir(d))) {
		if (entry->d_type == DT_DIR && entry->d_name[0] != '.' &&
		    !each(context, entry->d_name))
			break;
	}
	if (d)
		closedir(d);
}

/* ---- functions ---- */

/* Offsets in struct pt_regs of x86-64: rdi, rsi, rdx, rcx, r8, r9; rax. */
static const vs_u16 argument_offsets[] = {112, 104, 96, 88, 72, 64};
enum { ARGUMENTS = 6, RESULT_OFFSET = 80 };

static struct source_field argument(size_t i, const char *name)
{
	struct source_field f = {
		.type = USER_HEX, .bytes = 8, .first = {.offset = argument_offsets[i], .bytes = 8}};

	if (name && *name)
		snprintf(f.name, sizeof(f.name), "%.31s", name);
	else
		snprintf(f.name, sizeof(f.name), "arg%zu", i + 1);
	return f;
}

/* Sets type and size of a value in a register. Returns false for one that is not in one register.
 */
static bool argument_type(const struct btf *btf, __u32 id, struct source_field *f)
{
	const struct btf_type *t = btf__type_by_id(btf, id);

	while (t && (btf_is_mod(t) || btf_is_typedef(t)))
		t = btf__type_by_id(btf, t->type);
	if (!t)
		return false;
	if (btf_is_ptr(t))
		return true;
	if ((!btf_is_int(t) && !btf_is_any_enum(t)) || t->size > 8 || !t->size)
		return false;
	f->bytes = f->first.bytes = (vs_u16)t->size;
	f->first.is_signed = btf_is_int(t) && btf_int_encoding(t) & BTF_INT_SIGNED;
	f->type = f->first.is_signed ? USER_SIGNED : USER_UNSIGNED;
	return true;
}

/* Returns how many letters two names have in common at their beginning. */
static size_t same_begin(const char *a, const char *b)
{
	size_t n = 0;

	while (a[n] && a[n] == b[n])
		n++;
	return n;
}

static void function_near(const struct btf *btf, const char *name, char near[64])
{
	size_t best = strlen(name) / 2;

	for (__u32 id = 1; id < btf__type_cnt(btf); id++) {
		const struct btf_type *t = btf__type_by_id(btf, id);
		const char *other = btf_is_func(t) ? btf__name_by_offset(btf, t->name_off) : "";
		const size_t same = same_begin(name, other);

		if (same > best && strlen(other) < 64) {
			best = same;
			snprintf(near, 64, "%s", other);
		}
	}
}

static int arguments_read(const struct btf *btf, const struct btf_type *proto, bool is_return,
			  struct source_field *out)
{
	const struct btf_param *params = btf_params(proto);
	int n = 0;

	if (is_return) {
		/* Without a result in one register, there is no field for it. */
		if (proto->type && argument_type(btf, proto->type, &out[0]))
			return 1;
		return 0;
	}
	for (size_t i = 0; i < btf_vlen(proto) && i < ARGUMENTS && params[i].type; i++) {
		out[n] = argument(i, btf__name_by_offset(btf, params[i].name_off));
		/* A struct shifts the registers of later arguments. */
		if (!argument_type(btf, params[i].type, &out[n]))
			break;
		n++;
	}
	return n;
}

/* Returns the type of a function's arguments and result, or NULL if `btf` does not have it. */
static const struct btf_type *function_proto(const struct btf *btf, const char *name)
{
	const __s32 id = btf__find_by_name_kind(btf, name, BTF_KIND_FUNC);

	return id > 0 ? btf__type_by_id(btf, btf__type_by_id(btf, (__u32)id)->type) : NULL;
}

/* Like arguments_read(), for a function in one of the loaded modules. Returns -ENOENT if none has
 * it. */
static int module_read(struct btf *kernel, const char *name, bool is_return,
		       struct source_field *out)
{
	const struct dirent *entry;
	DIR *d = opendir("/sys/kernel/btf");
	int n = -ENOENT;

	while (d && n == -ENOENT && (entry = readdir(d))) {
		const struct btf_type *proto;
		struct btf *module;

		if (entry->d_name[0] == '.' || !strcmp(entry->d_name, "vmlinux"))
			continue;
		module = btf__load_module_btf(entry->d_name, kernel);
		if (!module)
			continue;
		proto = function_proto(module, name);
		if (proto)
			n = arguments_read(module, proto, is_return, out);
		btf__free(module);
	}
	if (d)
		closedir(d);
	return n;
}

int source_function(const char *name, bool is_return, struct source_field *out, char near[64])
{
	struct source_field result = {.name = "ret",
				      .type = USER_HEX,
				      .bytes = 8,
				      .first = {.offset = RESULT_OFFSET, .bytes = 8}};
	struct btf *btf = btf__load_vmlinux_btf();
	const struct btf_type *t = NULL;
	int n = 0;

	near[0] = 0;
	out[0] = result;
	if (!btf) {
		for (; !is_return && n < ARGUMENTS; n++)
			out[n] = argument((size_t)n, NULL);
		return is_return ? 1 : n;
	}
	t = function_proto(btf, name);
	n = t ? arguments_read(btf, t, is_return, out) : module_read(btf, name, is_return, out);
	if (n == -ENOENT)
		function_near(btf, name, near);
	btf__free(btf);
	return n;
}

/* ---- programs ---- */

int source_registers(struct source_field *out)
{
	for (size_t i = 0; i < ARGUMENTS; i++)
		out[i] = argument(i, NULL);
	return ARGUMENTS;
}

/* Sets *offset to the place of a register, by its name without '%', in struct pt_regs. */
static bool register_find(const char *name, size_t len, vs_u16 *offset)
{
	/* The names by size: 8, 4, 2 and 1 bytes. */
	static const struct {
		const char *names[4];
		vs_u16 offset;
	} registers[] = {
		{{"r15", "r15d", "r15w", "r15b"}, 0},  {{"r14", "r14d", "r14w", "r14b"}, 8},
		{{"r13", "r13d", "r13w", "r13b"}, 16}, {{"r12", "r12d", "r12w", "r12b"}, 24},
		{{"rbp", "ebp", "bp", "bpl"}, 32},     {{"rbx", "ebx", "bx", "bl"}, 40},
		{{"r11", "r11d", "r11w", "r11b"}, 48}, {{"r10", "r10d", "r10w", "r10b"}, 56},
		{{"r9", "r9d", "r9w", "r9b"}, 64},     {{"r8", "r8d", "r8w", "r8b"}, 72},
		{{"rax", "eax", "ax", "al"}, 80},      {{"rcx", "ecx", "cx", "cl"}, 88},
		{{"rdx", "edx", "dx", "dl"}, 96},      {{"rsi", "esi", "si", "sil"}, 104},
		{{"rdi", "edi", "di", "dil"}, 112},    {{"rsp", "esp", "sp", "spl"}, 152},
	};

	for (size_t i = 0; i < sizeof(registers) / sizeof(registers[0]); i++) {
		for (size_t k = 0; k < 4; k++) {
			if (strlen(registers[i].names[k]) == len &&
			    !memcmp(registers[i].names[k], name, len)) {
				*offset = registers[i].offset;
				return true;
			}
		}
	}
	return false;
}

/* Reads the operand "%rdi", "-8(%rbp)" or "$5" at `at`. Returns false for another form. */
static bool operand_read(const char *at, struct vs_user_value *v)
{
	const size_t len = strcspn(at, " ");
	char *end;

	if (*at == '$') {
		v->from = VS_FROM_NUMBER;
		v->number = strtoll(at + 1, &end, 0);
		return end == at + len;
	}
	if (*at == '%')
		return register_find(at + 1, len - 1, &v->offset);
	v->from = VS_FROM_USER;
	v->number = *at == '(' ? 0 : strtoll(at, &end, 0);
	if (*at == '(')
		end = (char *)at;
	return !strncmp(end, "(%", 2) && at[len - 1] == ')' && end + 3 < at + len &&
	       register_find(end + 2, (size_t)(at + len - 1 - (end + 2)), &v->offset);
}

int source_usdt(const char *arguments, struct source_field *out)
{
	enum { USDT_ARGUMENTS_MAX = 12 };
	const char *at = arguments;
	int n = 0;

	for (size_t i = 0; i < USDT_ARGUMENTS_MAX && *(at += strspn(at, " ")); i++) {
		struct source_field f = {.type = USER_UNSIGNED};
		char *end;
		const long size = strtol(at, &end, 10);

		f.bytes = (uint32_t)labs(size);
		f.first.bytes = (vs_u16)f.bytes;
		f.first.is_signed = size < 0;
		if (size < 0)
			f.type = USER_SIGNED;
		snprintf(f.name, sizeof(f.name), "arg%zu", i + 1);
		if (*end == '@' && labs(size) >= 1 && labs(size) <= 8 &&
		    operand_read(end + 1, &f.first))
			out[n++] = f;
		at += strcspn(at, " ");
	}
	return n;
}
