/* SPDX-License-Identifier: GPL-2.0-only */
#include "bpf/capture/tracepoint_source.h"

#include <errno.h>

enum { FIELDS = 2 * VS_TRACEPOINT_PARTS };

const struct event_tracepoint *tracepoint_row(size_t index)
{
	size_t n, rows = 0;
	const struct event_tracepoint *all = event_tracepoints(&n);

	for (size_t i = 0; i < n && rows < VS_TRACEPOINTS_MAX; i++) {
		if (all[i].users & BY_ROW && rows++ == index)
			return &all[i];
	}
	return NULL;
}

/* The fields of a row that are read from its record, and their places in the event. */
struct layout {
	size_t n;
	char names[FIELDS][EVENT_FIELD_NAME_BYTES];
	const struct event_field *fields[FIELDS];
	struct vs_tracepoint_field *places[FIELDS];
};

static struct vs_tracepoint_field *place_free(const struct layout *l,
					      struct vs_tracepoint_field parts[VS_TRACEPOINT_PARTS])
{
	for (size_t i = 0; i < VS_TRACEPOINT_PARTS; i++) {
		bool used = false;

		for (size_t k = 0; k < l->n; k++)
			used |= l->places[k] == &parts[i];
		if (!used)
			return &parts[i];
	}
	return NULL;
}

/* A field with two names ("vector|irq") has two places, of which one stays empty: a name that this
 * kernel's record does not have reads as zero. */
static int layout_make(const struct event_tracepoint *row, struct vs_tracepoint *out,
		       struct layout *l)
{
	size_t n;
	const struct event_field *fields = event_fields(row->type, &n);

	l->n = 0;
	for (size_t i = 0; i < n; i++) {
		char name[EVENT_FIELD_NAME_BYTES];

		if (fields[i].place != EVENT_PLACE_arg0 && fields[i].place != EVENT_PLACE_arg1)
			continue; /* the capture reads the current task by itself */
		for (size_t part = 0; event_field_kernel_name(&fields[i], part, name); part++) {
			struct vs_tracepoint_field *place = place_free(
				l, fields[i].place == EVENT_PLACE_arg0 ? out->arg0 : out->arg1);

			if (!place)
				return -EPROTO;
			__builtin_memcpy(l->names[l->n], name, sizeof(name));
			l->fields[l->n] = &fields[i];
			l->places[l->n++] = place;
		}
	}
	return 0;
}

static int field_place(const struct tracepoint_field *found, const struct event_field *field,
		       struct vs_tracepoint_field *out)
{
	const unsigned int room = field->width / 8u;

	/* The programs read at most 8 bytes of a record, which perf keeps below 8 KiB. */
	if (found->bytes > 8 || found->offset > 8192)
		return -EPROTO;
	out->offset = (vs_u16)found->offset;
	out->bytes = (vs_u16)(found->bytes < room ? found->bytes : room);
	out->shift = field->shift;
	/* The reader of a narrow field extends its sign: here it would overwrite the next field. */
	out->is_signed = found->is_signed && field->width == 64;
	return 0;
}

int tracepoint_resolve(const struct event_tracepoint *row, tracepoint_reader reader,
		       struct vs_tracepoint *out)
{
	const struct event_type *type = event_type_of(row->type);
	struct tracepoint_field found[FIELDS] = {0};
	struct layout layout;
	int error;

	*out = (struct vs_tracepoint){.type = row->type,
				      .scope = type->scope,
				      .always = (type->flags & EVENT_VCPU_STATE) != 0};
	error = layout_make(row, out, &layout);
	for (size_t i = 0; i < layout.n; i++)
		found[i].name = layout.names[i];
	if (!error)
		error = reader(row->system, row->name, found, layout.n);
	for (size_t i = 0; i < layout.n && !error; i++)
		error = field_place(&found[i], layout.fields[i], layout.places[i]);
	return error;
}
