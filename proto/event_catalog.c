/* SPDX-License-Identifier: GPL-2.0-only */
#include "proto/event_catalog.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* The number of a type by its name in the catalogue. */
enum {
#define EVENT(number, NAME, name, ...) NUMBER_##name = number,
#include "proto/events.def"
};

const struct event_type event_types[VS_EVENT_TYPE_LIMIT] = {
#define EVENT(number, NAME, type_name, on_sides, task, predict, whose, bits)                       \
	[number] = {.name = #type_name,                                                            \
		    .sides = on_sides,                                                             \
		    .current = task,                                                               \
		    .scope = whose,                                                                \
		    .flags = bits},
#include "proto/events.def"
};

/* Each field with its type, in the order of the types. */
static const uint16_t field_types[] = {
#define FIELD(event, ...) NUMBER_##event,
#include "proto/events.def"
};

#define X(TYPE, c_type, base) enum { BASE_##TYPE = base, SIGNED_##TYPE = (c_type)-1 < (c_type)1 };
EVENT_FIELD_TYPES(X)
#undef X

static const struct event_field fields[] = {
#define FIELD(event, field_name, where, at, bits, type, kernel_field)                              \
	{.name = #field_name,                                                                      \
	 .kernel = kernel_field,                                                                   \
	 .place = EVENT_PLACE_##where,                                                             \
	 .shift = at,                                                                              \
	 .width = bits,                                                                            \
	 .base = BASE_##type,                                                                      \
	 .is_signed = SIGNED_##type},
#include "proto/events.def"
};

static const struct event_tracepoint tracepoints[] = {
#define TRACEPOINT(event, event_system, tracepoint, who, number)                                   \
	{.system = #event_system,                                                                  \
	 .name = #tracepoint,                                                                      \
	 .type = NUMBER_##event,                                                                   \
	 .users = who,                                                                             \
	 .constant = number},
#include "proto/events.def"
};

enum { N_FIELDS = sizeof(fields) / sizeof(fields[0]) };

const struct event_field *event_fields(uint16_t type, size_t *n)
{
	size_t first = 0;

	while (first < N_FIELDS && field_types[first] != type)
		first++;
	for (*n = 0; first + *n < N_FIELDS && field_types[first + *n] == type; (*n)++)
		;
	return &fields[*n ? first : 0];
}

static uint64_t member_get(enum event_place place, const struct vs_event *e)
{
	switch (place) {
	case EVENT_PLACE_pid:
		return (uint64_t)e->pid;
	case EVENT_PLACE_pid2:
		return (uint64_t)e->pid2;
	case EVENT_PLACE_arg0:
		return e->arg0;
	case EVENT_PLACE_arg1:
		break;
	}
	return e->arg1;
}

static void member_set(enum event_place place, struct vs_event *e, uint64_t value)
{
	switch (place) {
	case EVENT_PLACE_pid:
		e->pid = (int32_t)value;
		break;
	case EVENT_PLACE_pid2:
		e->pid2 = (int32_t)value;
		break;
	case EVENT_PLACE_arg0:
		e->arg0 = value;
		break;
	case EVENT_PLACE_arg1:
		e->arg1 = value;
		break;
	}
}

uint64_t event_field_get(const struct event_field *field, const struct vs_event *e)
{
	const unsigned unused = 64u - field->width;
	const uint64_t top = member_get(field->place, e) >> field->shift << unused;

	return field->is_signed ? (uint64_t)((int64_t)top >> unused) : top >> unused;
}

void event_field_set(const struct event_field *field, struct vs_event *e, uint64_t value)
{
	const uint64_t mask = EV_MASK(field->width);
	const uint64_t others = member_get(field->place, e) & ~(mask << field->shift);

	member_set(field->place, e, others | (value & mask) << field->shift);
}

const char *event_field_text(const struct event_field *field, const struct vs_event *e, char *out,
			     size_t out_bytes)
{
	const uint64_t value = event_field_get(field, e);

	if (field->base == 16)
		snprintf(out, out_bytes, "0x%" PRIx64, value);
	else if (field->is_signed)
		snprintf(out, out_bytes, "%" PRId64, (int64_t)value);
	else
		snprintf(out, out_bytes, "%" PRIu64, value);
	return out;
}

const char *event_text(const struct vs_event *e, char *out, size_t out_bytes)
{
	size_t n, used = 0;
	const struct event_field *all = event_fields(e->type, &n);
	char value[32];

	*out = 0;
	for (size_t i = 0; i < n && used < out_bytes; i++) {
		if (all[i].place == EVENT_PLACE_pid)
			continue;
		used += (size_t)snprintf(out + used, out_bytes - used, "%s%s=%s", used ? " " : "",
					 all[i].name,
					 event_field_text(&all[i], e, value, sizeof(value)));
	}
	return out;
}

bool event_field_kernel_name(const struct event_field *field, size_t part,
			     char out[EVENT_FIELD_NAME_BYTES])
{
	const char *at = field->kernel;
	size_t len;

	for (; at && part; part--) {
		at = strchr(at, '|');
		at = at ? at + 1 : NULL;
	}
	len = at ? strcspn(at, "|") : 0;
	if (!len || len >= EVENT_FIELD_NAME_BYTES)
		return false;
	memcpy(out, at, len);
	out[len] = 0;
	return true;
}

const struct event_tracepoint *event_tracepoints(size_t *n)
{
	*n = sizeof(tracepoints) / sizeof(tracepoints[0]);
	return tracepoints;
}

struct event_set event_set_of(const uint16_t *types)
{
	struct event_set set = {0};

	for (; *types; types++)
		set.words[*types / 64] |= 1ull << *types % 64;
	return set;
}

struct event_set event_set_flagged(enum event_flags flag)
{
	struct event_set set = {0};

	for (uint16_t type = 0; type < VS_EVENT_TYPE_LIMIT; type++) {
		if (event_type_is(type, flag))
			set.words[type / 64] |= 1ull << type % 64;
	}
	return set;
}

void event_set_add(struct event_set *set, const struct event_set *more)
{
	const size_t n = sizeof(set->words) / sizeof(set->words[0]);
	bool empty = true;

	for (size_t i = 0; i < n; i++)
		empty = empty && !more->words[i];
	for (size_t i = 0; i < n; i++)
		set->words[i] |= empty ? UINT64_MAX : more->words[i];
}
