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

/* A line of text. printf() would take longer than everything else. What does not fit is cut. */
struct line {
	size_t n;
	char text[2048];
};

static void put(struct line *l, const char *text, size_t len)
{
	const size_t room = sizeof(l->text) - l->n;

	len = len < room ? len : room;
	memcpy(l->text + l->n, text, len);
	l->n += len;
}

static void put_text(struct line *l, const char *text)
{
	put(l, text, strlen(text));
}

static void put_blanks_to(struct line *l, size_t column)
{
	while (l->n < column && l->n < sizeof(l->text))
		l->text[l->n++] = ' ';
}

/* Appends the number with at least `digits` digits, padded with `fill`. */
static void put_number(struct line *l, uint64_t number, unsigned base, unsigned digits, char fill)
{
	char out[32];
	size_t at = sizeof(out);

	do {
		out[--at] = "0123456789abcdef"[number % base];
		number /= base;
	} while (number);
	while (at && sizeof(out) - at < digits)
		out[--at] = fill;
	put(l, out + at, sizeof(out) - at);
}

static void put_signed(struct line *l, int64_t number)
{
	if (number < 0)
		put(l, "-", 1);
	put_number(l, number < 0 ? 0 - (uint64_t)number : (uint64_t)number, 10, 1, '0');
}

static bool is_plain(const char *text)
{
	for (; *text; text++) {
		if (*text < ' ' || *text > '~' || *text == '\\')
			return false;
	}
	return true;
}

/* Appends a name. Most names need no escaping, which is slow. */
static void put_name(struct line *l, const char *text)
{
	if (is_plain(text))
		put_text(l, text);
	else
		put_text(l, escape(text).text);
}

/* "+- 350 ns" */
static void put_error(struct line *l, uint32_t err_ns)
{
	if (err_ns == UINT32_MAX) {
		put_text(l, "    +-inf");
		return;
	}
	put_text(l, "+-");
	put_number(l, err_ns < 10000 ? err_ns : err_ns / 1000, 10, 4, ' ');
	put_text(l, err_ns < 10000 ? " ns" : " us");
}

/* Seconds and nanoseconds since `origin_ns`. */
static void put_time(struct line *l, int64_t t)
{
	const uint64_t length = t < 0 ? 0 - (uint64_t)t : (uint64_t)t;
	struct line seconds = {0};

	if (t < 0)
		put_text(&seconds, "-");
	put_number(&seconds, length / 1000000000, 10, 1, '0');
	put_blanks_to(l, l->n + (seconds.n < 6 ? 6 - seconds.n : 0));
	put(l, seconds.text, seconds.n);
	put_text(l, ".");
	put_number(l, length % 1000000000, 10, 9, '0');
	put_text(l, " ");
}

static void put_place(struct line *l, struct event_row *row)
{
	const bool on_vcpu = event_row_vcpu(row);

	if (!row->vm_known) {
		put_text(l, "-");
		return;
	}
	put_name(l, model_vm_name(event_reader_model(row->reader), row->vm));
	if (!on_vcpu)
		return;
	put_text(l, "/");
	put_number(l, row->vcpu, 10, 1, '0');
}

static void put_task(struct line *l, const struct event_row *row)
{
	const int32_t tid = event_row_task(row);
	const char *name = tid < 0 ? "" : event_row_task_name(row, tid);

	if (tid < 0) {
		put_text(l, "-");
		return;
	}
	put_name(l, name);
	if (*name)
		put_text(l, ":");
	put_signed(l, tid);
}

static void put_field(struct line *l, const struct event_row *row, size_t field)
{
	const struct event_schema_field *f = &row->choice->schema->fields[field];
	const struct expr_value value = event_row_field(row, field);
	const bool hex = event_field_is_hex(f, &value);
	char meaning[64];

	put_text(l, " ");
	put_text(l, f->name);
	put_text(l, hex ? "=0x" : "=");
	if (value.type == EXPR_TEXT)
		put_name(l, value.text);
	else if (value.type == EXPR_NONE)
		put_text(l, "?");
	else if (value.type == EXPR_SIGNED)
		put_signed(l, (int64_t)value.number);
	else
		put_number(l, value.number, hex ? 16 : 10, 1, '0');
	if (!event_row_field_meaning(row, f, meaning, sizeof(meaning)))
		return;
	put_text(l, "(");
	put_name(l, meaning);
	put_text(l, ")");
}

static void text_write(const char *text, FILE *out)
{
	fputs(is_plain(text) ? text : escape(text).text, out);
}

void event_stack_write(const struct event_row *row, FILE *out)
{
	const struct stack *s = row->choice->stack ? event_row_stack(row) : NULL;

	if (!s && row->choice->stack && row->choice->schema->stacks)
		fputs("        (its stack was not recorded)\n", out);
	for (size_t i = 0; s && i < s->n_frames; i++) {
		fputs("        ", out);
		text_write(s->frames[i].symbol, out);
		fprintf(out, "+0x%" PRIx64 "\n", s->frames[i].offset);
	}
}

void event_text_write(struct event_row *row, int64_t origin_ns, FILE *out)
{
	const struct event_schema *schema = row->choice->schema;
	size_t column;
	struct line l;

	l.n = 0;
	put_time(&l, row->t.ns - origin_ns);
	put_error(&l, row->err_ns);
	put_text(&l, row->source == VS_SOURCE_HOST ? " host  [" : " guest [");
	put_number(&l, row->event->cpu, 10, 3, '0');
	put_text(&l, "] ");
	column = l.n;
	put_place(&l, row);
	put_blanks_to(&l, column + 10);
	put_text(&l, " ");
	column = l.n;
	put_task(&l, row);
	put_blanks_to(&l, column + 20);
	put_text(&l, " ");
	put_name(&l, row->choice->name);
	for (size_t i = 0; i < schema->n_fields; i++) {
		if (row->choice->fields >> i & 1)
			put_field(&l, row, i);
	}
	fwrite(l.text, 1, l.n, out);
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

/* Numbers in hexadecimal stand in quotes: most readers of JSON lose their low bits. */
void event_json_field(const char *name, uint8_t base, const struct expr_value *value, FILE *out)
{
	event_json_text(name, out);
	fputc(':', out);
	if (value->type == EXPR_TEXT)
		event_json_text(value->text, out);
	else if (base == 16)
		fprintf(out, "\"0x%" PRIx64 "\"", value->number);
	else if (value->type == EXPR_SIGNED)
		fprintf(out, "%" PRId64, (int64_t)value->number);
	else
		fprintf(out, "%" PRIu64, value->number);
}

/* One object on one line. */
void event_json_fields(struct event_row *row, FILE *out)
{
	const struct event_schema *schema = row->choice->schema;
	const char *before = "";

	fputc('{', out);
	for (size_t i = 0; i < schema->n_fields; i++) {
		const struct expr_value value = event_row_field(row, i);

		if (!(row->choice->fields >> i & 1) || value.type == EXPR_NONE)
			continue;
		fputs(before, out);
		before = ",";
		event_json_field(schema->fields[i].name, schema->fields[i].base, &value, out);
	}
	fputc('}', out);
}

static void json_write(struct event_row *row, FILE *out)
{
	const int32_t tid = event_row_task(row);

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
	fputs(",\"fields\":", out);
	event_json_fields(row, out);
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
		event_stack_write(row, out);
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
