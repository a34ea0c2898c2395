/* SPDX-License-Identifier: GPL-2.0-only */
/* `vcpuscope events`: lists the events that can be named, those that can be recorded of a running
 * VM, or those of a recording, with their fields. */
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bpf/capture/event_source.h"
#include "host-collector/analyze/event/event_reader.h"
#include "host-collector/cli/commands.h"
#include "host-collector/cli/feed.h"
#include "proto/array.h"
#include "proto/program/columns.h"
#include "proto/program/suggest.h"
#include "proto/query/described.h"
#include "host-collector/engine/replay.h"
#include "host-collector/tables/table.h"
#include "host-collector/util/wrap.h"

struct events_arguments {
	const char *operands[2];
	const char *recording, *pattern; /* what the operands are */
	const char *event, *format, *vm;
};

static const struct option_spec events_option_table[] = {
	{.name = "RUN.vcs",
	 .type = OPTION_OPERAND,
	 .offset = offsetof(struct events_arguments, operands[0]),
	 .help = "a recording: list only the events that it contains, and how many there are"},
	{.name = "PATTERN",
	 .type = OPTION_OPERAND,
	 .offset = offsetof(struct events_arguments, operands[1]),
	 .help = "list only events whose name matches this shell pattern: 'kvm:*', '*irq*' "
		 "(default: all)"},
	{.name = "event",
	 .letter = 'e',
	 .type = OPTION_STRING,
	 .offset = offsetof(struct events_arguments, event),
	 .value = "EVENT,...",
	 .help = "check these EVENTs, with their filters and attributes, and list those that "
		 "they name (docs/events.md)"},
	{.name = "vm",
	 .type = OPTION_STRING,
	 .offset = offsetof(struct events_arguments, vm),
	 .value = "NAME",
	 .help = "list what can be recorded of this running VM, including all tracepoints of the "
		 "host's kernel, for `record -e`"},
	{.name = "format",
	 .type = OPTION_CHOICE,
	 .offset = offsetof(struct events_arguments, format),
	 .value = "text|json|csv",
	 .help = "text for people, or json or csv (default text)"},
};

static const struct table_column columns[] = {
	{"event", "event", TABLE_TEXT},
	{"sides", "sides", TABLE_TEXT},
	{"fields", "fields", TABLE_TEXT},
	{"count", "count", TABLE_COUNT}, /* of a recording */
};

enum { COLUMNS = sizeof(columns) / sizeof(columns[0]) };

static const char *side_text(uint8_t sides)
{
	if (sides == (EVENT_HOST | EVENT_GUEST))
		return "host guest";
	return sides == EVENT_GUEST ? "guest" : "host";
}

/* The fields by the kernel's names, each with its unit if it has one: "halted_ns(ns)". */
static void fields_text(const struct event_schema *schema, char *out, size_t out_bytes)
{
	size_t used = 0;

	*out = 0;
	for (size_t i = 0; i < schema->n_fields && used < out_bytes; i++) {
		const struct event_schema_field *f = &schema->fields[i];
		const char *unit = f->base == 16 ? "hex" : f->unit;

		used += (size_t)snprintf(out + used, out_bytes - used, "%s%s%s%s%s",
					 used ? " " : "", f->name, *unit ? "(" : "", unit,
					 *unit ? ")" : "");
	}
}

static void row_add(struct table *t, const struct event_schema *schema, const char *sides,
		    const uint64_t *count)
{
	char name[2 * EVENT_SPEC_NAME_BYTES + 1];
	char fields[EVENT_SCHEMA_FIELDS_MAX * 2 * EVENT_FIELD_NAME_BYTES];

	snprintf(name, sizeof(name), "%s:%s", schema->system, schema->name);
	fields_text(schema, fields, sizeof(fields));
	table_row(t);
	table_text(t, name);
	table_text(t, sides);
	table_text(t, fields);
	if (count)
		table_count(t, *count);
}

/* Text has a line for each event, however long it is: people search it with grep. */
struct rows {
	struct table *table; /* NULL: text */
	size_t n;
};

/* count: in the recording, or NULL. */
static void row_show(struct rows *rows, const struct event_schema *schema, const char *sides,
		     const uint64_t *count)
{
	char name[2 * EVENT_SPEC_NAME_BYTES + 1];
	char fields[EVENT_SCHEMA_FIELDS_MAX * 2 * EVENT_FIELD_NAME_BYTES];
	char number[24] = "";

	rows->n++;
	if (rows->table) {
		row_add(rows->table, schema, sides, count);
		return;
	}
	snprintf(name, sizeof(name), "%s:%s", schema->system, schema->name);
	fields_text(schema, fields, sizeof(fields));
	if (count)
		snprintf(number, sizeof(number), "%12llu  ", (unsigned long long)*count);
	/* What goes to a file or a pipe has one line for each event. */
	if (text_columns(stdout) < TEXT_COLUMNS)
		wrap_print(stdout, "%s%-10s  %-38s  %s\n", number, sides, name, fields);
	else
		printf("%s%-10s  %-38s  %s\n", number, sides, name, fields);
}

static void fitting_add(const struct event_schemas *schemas, const char *pattern, struct rows *rows)
{
	const struct event_schema *schema;
	char name[2 * EVENT_SPEC_NAME_BYTES + 1];

	for (size_t i = 0; (schema = event_schemas_get(schemas, i)); i++) {
		snprintf(name, sizeof(name), "%s:%s", schema->system, schema->name);
		if (!pattern || expr_glob(pattern, name))
			row_show(rows, schema, side_text(schema->sides), NULL);
	}
}

/* ---- what can be recorded of a VM ---- */

struct kernel_names {
	const char *pattern;
	char system[EVENT_SPEC_NAME_BYTES];
	size_t n, capacity;
	char (*names)[2 * EVENT_SPEC_NAME_BYTES + 1]; /* "system:name" */
	bool out_of_memory;
};

static bool on_kernel_name(void *context, const char *name)
{
	struct kernel_names *k = context;
	char full[sizeof(k->names[0])];

	if (strlen(name) >= EVENT_SPEC_NAME_BYTES)
		return true;
	snprintf(full, sizeof(full), "%s:%s", k->system, name);
	if (k->pattern && !expr_glob(k->pattern, full))
		return true;
	k->out_of_memory = ARRAY_RESERVE(&k->names, k->n, &k->capacity, 256) != 0;
	if (k->out_of_memory)
		return false;
	memcpy(k->names[k->n++], full, sizeof(full));
	return true;
}

static bool on_kernel_system(void *context, const char *name)
{
	struct kernel_names *k = context;

	/* Records of ftrace itself are no tracepoints. */
	if (strlen(name) >= sizeof(k->system) || !strcmp(name, "ftrace"))
		return true;
	snprintf(k->system, sizeof(k->system), "%s", name);
	source_tracepoints(name, on_kernel_name, k);
	return !k->out_of_memory;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(a, b);
}

/* Fields that an event cannot have are left out, as in recordings. */
static int kernel_row_show(const char *full, struct rows *rows)
{
	struct source_field fields[SOURCE_FIELDS_MAX];
	struct event_schema schema = {.kind = EVENT_TRACEPOINT, .sides = EVENT_HOST};
	const char *colon = strchr(full, ':');
	int n;

	snprintf(schema.system, sizeof(schema.system), "%.*s", (int)(colon - full), full);
	snprintf(schema.name, sizeof(schema.name), "%s", colon + 1);
	n = source_tracepoint(schema.system, schema.name, fields);
	for (int i = 0; i < n && i < EVENT_SCHEMA_FIELDS_MAX; i++) {
		struct event_schema_field *f = &schema.fields[schema.n_fields++];

		snprintf(f->name, sizeof(f->name), "%.31s", fields[i].name);
		f->base = fields[i].type == USER_HEX ? 16 : 10;
		f->unit = "";
	}
	if (n < 0)
		return n;
	row_show(rows, &schema, side_text(schema.sides), NULL);
	return 0;
}

/* Says what is wrong. */
static int kernel_add(const char *pattern, struct rows *rows)
{
	struct kernel_names k = {.pattern = pattern};
	bool has_names = false;
	int err = 0;

	source_tracepoints(NULL, on_kernel_system, &k);
	has_names = *k.system;
	if (k.n)
		qsort(k.names, k.n, sizeof(k.names[0]), by_name);
	err = k.out_of_memory ? -ENOMEM : 0;
	for (size_t i = 0; !err && i < k.n; i++) {
		err = kernel_row_show(k.names[i], rows);
		/* A module may have been unloaded. */
		if (err == -ENOENT || err == -EPROTO)
			err = 0;
	}
	free(k.names);
	if (err == -EACCES || (!err && !has_names))
		fputs("vcpuscope events: the host's tracepoints cannot be listed: this needs root "
		      "and a mounted tracefs (`vcpuscope doctor`)\n",
		      stderr);
	return err == -EACCES ? 0 : err;
}

/* Built-in events of the guest, and those that are no tracepoints: tracefs of the host lacks them.
 */
static void built_in_add(const struct event_schemas *schemas, const char *pattern,
			 struct rows *rows)
{
	const struct event_schema *schema;
	char name[2 * EVENT_SPEC_NAME_BYTES + 1];

	for (size_t i = 0; (schema = event_schemas_get(schemas, i)); i++) {
		const bool own = !strcmp(schema->system, "vcpuscope");

		snprintf(name, sizeof(name), "%s:%s", schema->system, schema->name);
		if ((own || schema->sides & EVENT_GUEST) && (!pattern || expr_glob(pattern, name)))
			row_show(rows, schema, own ? side_text(schema->sides) : "guest", NULL);
	}
}

/* Says what is wrong. */
static int vm_add(const struct events_arguments *a, const struct event_schemas *schemas,
		  struct rows *rows)
{
	const struct feed_arguments vm = {.vm = a->vm};
	struct feed_place place;
	char why[256];
	int err = feed_find(&vm, &place, why, sizeof(why));

	if (err) {
		fprintf(stderr, "vcpuscope events: %s\n", why);
		return err;
	}
	err = kernel_add(a->pattern, rows);
	if (err)
		return err;
	built_in_add(schemas, a->pattern, rows);
	fputs("vcpuscope events: the guest's other tracepoints are not listed: agents do not "
	      "report their policy; `record -e guest:SYSTEM:NAME` asks for one\n",
	      stderr);
	return 0;
}

/* ---- the events of a recording ---- */

struct counting {
	struct event_choices choices;
	struct event_reader *reader;
	uint64_t counts[EVENT_CHOICES_MAX];
};

static void on_row(void *context, struct event_row *row)
{
	struct counting *c = context;

	c->counts[row->number]++;
}

/* A pattern names tracepoints only. Probes beyond the room for choices are not counted. */
static int probes_add(struct event_choices *choices)
{
	const struct event_schema *schema;
	char text[EVENT_SPEC_NAME_BYTES + EVENT_SPEC_PATH_BYTES + 16];
	struct expr_error error;

	for (size_t i = 0; (schema = event_schemas_get(choices->schemas, i)); i++) {
		if (schema->kind == EVENT_TRACEPOINT || schema->kind == EVENT_USDT)
			continue;
		if (schema->kind == EVENT_UPROBE)
			snprintf(text, sizeof(text), "uprobe:%s@\"%s\"", schema->name,
				 schema->path);
		else
			snprintf(text, sizeof(text), "%s:%s",
				 schema->kind == EVENT_KPROBE ? "kprobe" : "kretprobe",
				 schema->name);
		if (event_choices_add(choices, text, &error) == -ENOMEM)
			return -ENOMEM;
	}
	return 0;
}

/* Says what is wrong. */
static int counting_read(struct counting *c, const char *path)
{
	const struct event_sink sink = {.row = on_row, .context = c};
	struct pipeline_options options = {.model = model_new()};
	struct pipeline *p = NULL;
	struct recording_info info;
	struct expr_error error;
	char why[512] = "out of memory";
	int err = options.model ? event_choices_init(&c->choices) : -ENOMEM;

	if (!err)
		err = described_read(path, c->choices.schemas);
	if (!err)
		err = event_choices_add(&c->choices, "*:*", &error);
	if (!err)
		err = probes_add(&c->choices);
	if (!err) {
		c->reader = event_reader_new(options.model, &c->choices, &sink);
		p = pipeline_new(&options);
		err = c->reader && p ? replay_run(p, path, &info, why, sizeof(why)) : -ENOMEM;
	}
	if (err)
		fprintf(stderr, "vcpuscope events: %s\n", why);
	event_reader_free(c->reader);
	pipeline_free(p);
	model_free(options.model);
	return err;
}

static int recorded_add(const struct events_arguments *a, struct rows *rows)
{
	struct counting c = {.reader = NULL};
	char name[2 * EVENT_SPEC_NAME_BYTES + 1];
	int err = counting_read(&c, a->recording);

	for (size_t i = 0; !err && i < c.choices.n; i++) {
		const struct event_choice *choice = &c.choices.items[i];

		snprintf(name, sizeof(name), "%s:%s", choice->schema->system, choice->schema->name);
		if (c.counts[i] && (!a->pattern || expr_glob(a->pattern, name)))
			row_show(rows, choice->schema, side_text((uint8_t)choice->side),
				 &c.counts[i]);
	}
	event_choices_fini(&c.choices);
	return err;
}

/* One EVENT: all events that it names, and its expressions in each of them. */
static int spec_add(const struct event_schemas *schemas, const struct event_spec *spec,
		    struct rows *rows, struct expr_error *error)
{
	size_t found[EVENT_SPECS_MAX];
	struct expr expr;
	int n = event_schemas_find(schemas, spec, found, EVENT_SPECS_MAX, error), err = 0;

	for (int i = 0; !err && i < n; i++) {
		const struct event_schema *schema = event_schemas_get(schemas, found[i]);

		err = event_spec_expr(schema, &spec->filter, &expr, error);
		if (!err)
			err = event_spec_expr(schema, &spec->key, &expr, error);
		if (!err)
			err = event_spec_expr(schema, &spec->role, &expr, error);
		if (!err)
			row_show(rows, schema, side_text(schema->sides), NULL);
	}
	return n < 0 ? n : err;
}

/* Continues the error message about an unknown EVENT: suggests the nearest name of the list, and
 * says that `record -e` takes other events. */
static void others_say(const struct event_schemas *schemas, const char *text, const char *said)
{
	const struct event_schema *schema, *best = NULL;
	const char *typed = strrchr(text, ':');
	struct suggest s;
	size_t n = 0;

	typed = typed ? typed + 1 : text;
	suggest_begin(&s, typed, strcspn(typed, "/,"));
	for (; (schema = event_schemas_get(schemas, n)); n++) {
		suggest_try(&s, schema->name);
		if (s.best == schema->name)
			best = schema;
	}
	if (best && !strstr(said, "did you mean"))
		fprintf(stderr, "did you mean %s:%s?\n", best->system, best->name);
	fprintf(stderr,
		"`vcpuscope events` lists the %zu events that need no choice. Any other tracepoint or\n"
		"function can be recorded, for example with `vcpuscope record -e block:block_rq_issue`:\n"
		"docs/events.md.\n",
		n);
}

/* Says what is wrong. */
static int specs_add(const struct event_schemas *schemas, const char *text, struct rows *rows)
{
	struct event_spec *specs = calloc(EVENT_SPECS_MAX, sizeof(*specs));
	struct expr_error error = {0};
	size_t n = 0;
	int err = -ENOMEM;

	if (specs)
		err = event_specs_parse(text, specs, EVENT_SPECS_MAX, &n, &error);
	for (size_t i = 0; !err && i < n; i++)
		err = spec_add(schemas, &specs[i], rows, &error);
	if (err && err != -ENOMEM)
		expr_error_print(&error, "vcpuscope events: -e", text, stderr);
	if (err == -ENOENT || (err == -EINVAL && !strpbrk(text, ":/,")))
		others_say(schemas, text, error.text);
	free(specs);
	return err;
}

static int rows_finish(const struct events_arguments *a, struct rows *rows)
{
	if (!rows->n) {
		if (a->pattern)
			fprintf(stderr,
				"vcpuscope events: no event fits '%s'; omit it to list all\n",
				a->pattern);
		else
			fprintf(stderr, "vcpuscope events: %s: has no events\n", a->recording);
		return COMMAND_TROUBLE;
	}
	if (!strcmp(a->format, "json"))
		return command_exit_of(tables_write_json(&rows->table, 1, false, stdout));
	if (!strcmp(a->format, "csv"))
		return command_exit_of(tables_write_csv(&rows->table, 1, stdout));
	return fflush(stdout) || ferror(stdout) ? COMMAND_TROUBLE : COMMAND_OK;
}

/* Decides which operand is the recording, a file that exists, and which the pattern. Prints what is
 * wrong. */
static bool operands_read(struct events_arguments *a)
{
	for (size_t i = 0; i < 2 && a->operands[i]; i++) {
		const char *operand = a->operands[i];
		const size_t len = strlen(operand);
		const bool is_file =
			(len > 4 && !strcmp(operand + len - 4, ".vcs")) || !access(operand, F_OK);
		const char **to = is_file ? &a->recording : &a->pattern;

		if (*to) {
			fprintf(stderr, "vcpuscope events: expected one %s, found '%s' and '%s'\n",
				is_file ? "recording" : "PATTERN", *to, operand);
			return false;
		}
		*to = operand;
	}
	if (a->recording && a->event)
		fputs("vcpuscope events: -e checks EVENTs and reads no recording; use "
		      "`vcpuscope report RUN.vcs events -e ...`\n",
		      stderr);
	if (a->vm && (a->recording || a->event)) {
		fputs("vcpuscope events: --vm is of a running VM; omit the recording and -e\n",
		      stderr);
		return false;
	}
	return !a->recording || !a->event;
}

static int events_run(const struct command *self, int argc, char **argv)
{
	struct events_arguments a = {.format = "text"};
	struct rows rows = {0};
	struct event_schemas *schemas;
	int err, result = COMMAND_TROUBLE;

	if (options_read(self, argc, argv, &a) || !operands_read(&a))
		return COMMAND_USAGE;
	schemas = event_schemas_new();
	if (strcmp(a.format, "text"))
		rows.table = table_new("events", columns, a.recording ? COLUMNS : COLUMNS - 1);
	err = schemas && (rows.table || !strcmp(a.format, "text")) ? 0 : -ENOMEM;
	if (!err && a.event)
		err = specs_add(schemas, a.event, &rows);
	else if (!err && a.vm)
		err = vm_add(&a, schemas, &rows);
	else if (!err && a.recording)
		err = recorded_add(&a, &rows);
	else if (!err)
		fitting_add(schemas, a.pattern, &rows);
	if (err)
		result = a.event && err != -ENOMEM ? COMMAND_USAGE : COMMAND_TROUBLE;
	else
		result = rows_finish(&a, &rows);
	table_free(rows.table);
	event_schemas_free(schemas);
	return result;
}

const struct command command_events = {
	.name = "events",
	.summary = "list the events that can be named, of a VM or of a recording",
	.options = events_option_table,
	.n_options = sizeof(events_option_table) / sizeof(events_option_table[0]),
	.examples = "  vcpuscope events\n"
		    "  vcpuscope events 'kvm:*'\n"
		    "  vcpuscope events run.vcs\n"
		    "  sudo vcpuscope events --vm web1 'block:*'\n"
		    "  vcpuscope events -e 'host:kvm:kvm_exit/exit_reason==48/key=vcpu/'\n",
	.run = events_run,
};
