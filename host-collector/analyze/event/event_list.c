// SPDX-License-Identifier: GPL-2.0-only
#include "host-collector/analyze/event/event_list.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "host-collector/util/csv.h"
#include "host-collector/util/escape.h"

struct event_list {
	struct event_reader *reader;
	struct event_list_options options;
	uint64_t written, left_out;
};

static const char *side_of(const struct event_row *row)
{
	return row->source == VS_SOURCE_HOST ? "host" : "guest";
}

/* "+-350 ns" */
static void error_write(uint32_t err_ns, FILE *out)
{
	if (err_ns == UINT32_MAX)
		fputs("    +-inf", out);
	else if (err_ns < 10000)
		fprintf(out, "+-%4" PRIu32 " ns", err_ns);
	else
		fprintf(out, "+-%4" PRIu32 " us", err_ns / 1000);
}

static bool is_plain(const char *text)
{
	for (; *text; text++) {
		if (*text < ' ' || *text > '~' || *text == '\\')
			return false;
	}
	return true;
}

/* Most names need no escape, which is slow. */
static void text_write(const char *text, FILE *out)
{
	fputs(is_plain(text) ? text : escape(text).text, out);
}

static void fields_write(const struct event_row *row, FILE *out)
{
	const struct event_schema *schema = row->choice->schema;
	char value[96];

	for (size_t i = 0; i < schema->n_fields; i++) {
		if (!(row->choice->fields >> i & 1))
			continue;
		fprintf(out, " %s=", schema->fields[i].name);
		text_write(event_row_field_text(row, i, value, sizeof(value)), out);
	}
}

static void stack_write(const struct event_row *row, FILE *out)
{
	const struct stack *s = event_row_stack(row);

	for (size_t i = 0; s && i < s->n_frames; i++) {
		fputs("        ", out);
		text_write(s->frames[i].symbol, out);
		fprintf(out, "+0x%" PRIx64 "\n", s->frames[i].offset);
	}
}

void event_text_write(struct event_row *row, int64_t origin_ns, FILE *out)
{
	const int64_t t = row->t.ns - origin_ns;
	const int32_t tid = event_row_task(row);
	char place[64] = "-", task[48] = "-";

	if (event_row_vcpu(row))
		snprintf(place, sizeof(place), "%s/%" PRIu32,
			 model_vm_name(event_reader_model(row->reader), row->vm), row->vcpu);
	else if (row->vm_known)
		snprintf(place, sizeof(place), "%s",
			 model_vm_name(event_reader_model(row->reader), row->vm));
	if (tid >= 0)
		snprintf(task, sizeof(task), "%s%s%" PRId32, event_row_task_name(row, tid),
			 *event_row_task_name(row, tid) ? ":" : "", tid);
	fprintf(out, "%6" PRId64 ".%09" PRId64 " ", t / 1000000000, t % 1000000000);
	error_write(row->err_ns, out);
	fprintf(out, " %-5s [%03u] ", side_of(row), row->event->cpu);
	fprintf(out, "%-10s ", is_plain(place) ? place : escape(place).text);
	fprintf(out, "%-20s ", is_plain(task) ? task : escape(task).text);
	text_write(row->choice->name, out);
	fields_write(row, out);
	fputc('\n', out);
}

void event_json_text(const char *text, FILE *out)
{
	fputc('"', out);
	while (*text) {
		const struct character c = character_at(text);

		if (!c.valid || character_is_unsafe(c.code))
			fprintf(out, "\\u%04x",
				!c.valid || c.code > 0xffff ? 0xfffdu : (unsigned)c.code);
		else if (*text == '"' || *text == '\\')
			fprintf(out, "\\%c", *text);
		else
			fwrite(text, 1, c.bytes, out);
		text += c.bytes;
	}
	fputc('"', out);
}

static void json_stack_write(const struct event_row *row, FILE *out)
{
	const struct stack *s = row->choice->stack ? event_row_stack(row) : NULL;

	if (!s)
		return;
	fputs(",\"stack\":[", out);
	for (size_t i = 0; i < s->n_frames; i++) {
		if (i)
			fputc(',', out);
		event_json_text(s->frames[i].symbol, out);
	}
	fputc(']', out);
}

/* One object on one line. */
static void json_write(struct event_row *row, FILE *out)
{
	const struct event_schema *schema = row->choice->schema;
	const int32_t tid = event_row_task(row);
	const char *before = "";
	char value[32];

	fprintf(out, "{\"t_ns\":%" PRId64 ",\"error_ns\":", row->t.ns);
	if (row->err_ns == UINT32_MAX)
		fputs("null", out);
	else
		fprintf(out, "%" PRIu32, row->err_ns);
	fprintf(out, ",\"side\":\"%s\",\"event\":", side_of(row));
	event_json_text(row->choice->name, out);
	fprintf(out, ",\"cpu\":%u", row->event->cpu);
	if (event_row_vcpu(row))
		fprintf(out, ",\"vcpu\":%" PRIu32, row->vcpu);
	if (row->vm_known) {
		fputs(",\"vm\":", out);
		event_json_text(model_vm_name(event_reader_model(row->reader), row->vm), out);
	}
	if (tid >= 0) {
		fprintf(out, ",\"tid\":%" PRId32 ",\"comm\":", tid);
		event_json_text(event_row_task_name(row, tid), out);
	}
	fputs(",\"fields\":{", out);
	for (size_t i = 0; i < schema->n_fields; i++) {
		const struct event_field *place = schema->fields[i].place;

		if (!(row->choice->fields >> i & 1) || !place)
			continue;
		fprintf(out, "%s\"%s\":", before, schema->fields[i].name);
		before = ",";
		/* Numbers in hexadecimal stand in quotes: most readers of JSON lose their low bits.
		 */
		event_field_text(place, row->event, value, sizeof(value));
		fprintf(out, place->base == 16 ? "\"%s\"" : "%s", value);
	}
	fputc('}', out);
	json_stack_write(row, out);
	fputs("}\n", out);
}

static void csv_write(struct event_row *row, FILE *out)
{
	const int32_t tid = event_row_task(row);
	char fields[512], value[96];
	size_t used = 0;
	const struct event_schema *schema = row->choice->schema;

	fprintf(out, "%" PRId64 ",", row->t.ns);
	if (row->err_ns == UINT32_MAX)
		fputs("inf", out);
	else
		fprintf(out, "%" PRIu32, row->err_ns);
	fprintf(out, ",%s,", side_of(row));
	csv_text_write(row->choice->name, out);
	fprintf(out, ",%u,", row->event->cpu);
	event_row_vcpu(row);
	if (row->vm_known)
		csv_text_write(model_vm_name(event_reader_model(row->reader), row->vm), out);
	fputc(',', out);
	if (row->vcpu_known)
		fprintf(out, "%" PRIu32, row->vcpu);
	fputc(',', out);
	if (tid >= 0)
		fprintf(out, "%" PRId32 ",", tid);
	else
		fputc(',', out);
	if (tid >= 0)
		csv_text_write(event_row_task_name(row, tid), out);
	*fields = 0;
	for (size_t i = 0; i < schema->n_fields && used < sizeof(fields); i++) {
		if (row->choice->fields >> i & 1)
			used += (size_t)snprintf(
				fields + used, sizeof(fields) - used, "%s%s=%s", used ? " " : "",
				schema->fields[i].name,
				event_row_field_text(row, i, value, sizeof(value)));
	}
	fputc(',', out);
	csv_text_write(fields, out);
	fputs("\r\n", out);
}

static void on_row(void *context, struct event_row *row)
{
	struct event_list *l = context;
	FILE *out = l->options.out;

	if (!event_row_selected(row, l->options.narrow))
		return;
	if (l->options.top && l->written == l->options.top) {
		l->left_out++;
		return;
	}
	l->written++;
	switch (l->options.format) {
	case EVENT_LIST_TEXT:
		event_text_write(row, model_begin(event_reader_model(row->reader)).ns, out);
		if (row->choice->stack)
			stack_write(row, out);
		break;
	case EVENT_LIST_JSON:
		json_write(row, out);
		break;
	case EVENT_LIST_CSV:
		csv_write(row, out);
		break;
	}
}

struct event_list *event_list_new(struct model *m, const struct event_choices *choices,
				  const struct event_list_options *options)
{
	struct event_list *l = calloc(1, sizeof(*l));
	const struct event_sink sink = {.row = on_row, .context = l};

	if (!l)
		return NULL;
	l->options = *options;
	l->reader = event_reader_new(m, choices, &sink);
	if (!l->reader) {
		free(l);
		return NULL;
	}
	if (options->format == EVENT_LIST_CSV)
		fputs("t_ns,error_ns,side,event,cpu,vm,vcpu,tid,comm,fields\r\n", options->out);
	return l;
}

void event_list_free(struct event_list *l)
{
	if (!l)
		return;
	event_reader_free(l->reader);
	free(l);
}

uint64_t event_list_left_out(const struct event_list *l)
{
	return l->left_out;
}

uint64_t event_list_written(const struct event_list *l)
{
	return l->written;
}
