/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/analyze/event/pair_fields.h"

#include <stdlib.h>
#include <string.h>

enum { TEXT_BYTES = VS_USER_TEXT_MAX + 32 };

/* The texts of an event, one after the other. */
struct texts {
	size_t used;
	char bytes[EVENT_SCHEMA_FIELDS_MAX * TEXT_BYTES];
};

/* Sets `text` to the place in *texts. */
static void field_read(const struct event_row *row, size_t i, struct texts *texts,
		       struct pair_field *out)
{
	const struct event_schema_field *field = &row->choice->schema->fields[i];
	const struct expr_value value = event_row_field(row, i);
	char *text = texts->bytes + texts->used;

	*out = (struct pair_field){.name = field->name,
				   .type = value.type,
				   .base = field->base,
				   .number = (int64_t)value.number};
	out->is_number = field->base != 16 && value.type != EXPR_TEXT && value.type != EXPR_NONE;
	if (out->is_number)
		return;
	event_row_field_text(row, i, text, TEXT_BYTES);
	texts->used += strlen(text) + 1;
	out->text = text;
}

struct pair_fields *pair_fields_new(const struct event_row *row)
{
	const struct event_schema *schema = row->choice->schema;
	struct pair_field items[EVENT_SCHEMA_FIELDS_MAX];
	struct pair_fields *fields;
	struct texts texts;
	size_t n = 0, bytes;
	char *copy;

	texts.used = 0;
	for (size_t i = 0; i < schema->n_fields && i < EVENT_SCHEMA_FIELDS_MAX; i++) {
		if (row->choice->fields >> i & 1)
			field_read(row, i, &texts, &items[n++]);
	}
	bytes = sizeof(*fields) + n * sizeof(items[0]);
	fields = malloc(bytes + texts.used);
	if (!fields)
		return NULL;
	fields->n = n;
	copy = (char *)fields + bytes;
	memcpy(copy, texts.bytes, texts.used);
	for (size_t i = 0; i < n; i++) {
		fields->items[i] = items[i];
		if (items[i].text)
			fields->items[i].text = copy + (items[i].text - texts.bytes);
	}
	return fields;
}
