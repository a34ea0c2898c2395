/* SPDX-License-Identifier: GPL-2.0-only */
#include "bpf/tracepoint_source.h"

#include <errno.h>

/* clang-format off */
static const struct tracepoint_source sources[] = {
	{"kvm", "kvm_entry", {.type = VS_EVENT_KVM_ENTRY}, .arg1 = {"rip"}},
	{"kvm", "kvm_exit", {.type = VS_EVENT_KVM_EXIT, .arg0 = {{0}, {.shift = 32}}},
	 .arg0 = {"exit_reason", "isa"}, .arg1 = {"guest_rip"}},
	{"kvm", "kvm_userspace_exit", {.type = VS_EVENT_KVM_USERSPACE_EXIT},
	 .arg0 = {"reason"}, .arg1 = {"errno"}},
};
/* clang-format on */

_Static_assert(sizeof(sources) / sizeof(sources[0]) <= VS_TRACEPOINTS_MAX,
	       "more tracepoints than the programs' table holds");

const struct tracepoint_source *tracepoint_sources(size_t *n)
{
	*n = sizeof(sources) / sizeof(sources[0]);
	return sources;
}

static int field_place(const struct tracepoint_field *field, struct vs_tracepoint_field *out)
{
	/* The programs read at most 8 bytes of a record, which perf keeps below 8 KiB. */
	if (field->bytes > 8 || field->offset > 8192)
		return -EPROTO;
	out->offset = (vs_u16)field->offset;
	out->bytes = (vs_u16)field->bytes;
	out->is_signed = field->is_signed;
	return 0;
}

int tracepoint_resolve(const struct tracepoint_source *source, tracepoint_reader reader,
		       struct vs_tracepoint *out)
{
	struct tracepoint_field fields[2 * VS_TRACEPOINT_PARTS] = {0};
	int error;

	for (size_t i = 0; i < VS_TRACEPOINT_PARTS; i++) {
		fields[i].name = source->arg0[i];
		fields[VS_TRACEPOINT_PARTS + i].name = source->arg1[i];
	}
	*out = source->as;
	error = reader(source->system, source->name, fields, 2 * VS_TRACEPOINT_PARTS);
	for (size_t i = 0; i < VS_TRACEPOINT_PARTS && !error; i++) {
		error = field_place(&fields[i], &out->arg0[i]);
		if (!error)
			error = field_place(&fields[VS_TRACEPOINT_PARTS + i], &out->arg1[i]);
	}
	return error;
}
