/* SPDX-License-Identifier: GPL-2.0-only */
/* Reads and writes summaries files; docs/gate.md describes their fields. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <json-c/json.h>

#include "host-collector/compare/figure_name.h"
#include "host-collector/compare/run_summary.h"
#include "host-collector/util/json_string.h"

static const char schema[] = "vcpuscope.summary/1";
enum { FILE_BYTES_MAX = 64 << 20, NESTING_MAX = 8 };

/* ---- writing ---- */

static struct json_object *figure_new(const struct run_figure *f)
{
	struct json_object *o = json_object_new_object();

	json_object_object_add(o, "name", json_string_new(f->name));
	json_object_object_add(o, "count", json_object_new_uint64(f->count));
	for (int s = 0; s < RUN_STATISTIC_COUNT; s++) {
		char text[32];

		if (isnan(f->at[s]))
			continue;
		snprintf(text, sizeof(text), "%.6g", f->at[s]);
		json_object_object_add(o, run_statistic_name((enum run_statistic)s),
				       json_object_new_double_s(f->at[s], text));
	}
	return o;
}

static struct json_object *run_new(const struct run_summary *r)
{
	struct json_object *o = json_object_new_object(), *figures = json_object_new_array();

	json_object_object_add(o, "recording", json_string_new(r->recording));
	json_object_object_add(o, "simulated", json_object_new_boolean(r->simulated));
	json_object_object_add(o, "span_ns", json_object_new_int64(r->span_ns));
	json_object_object_add(o, "lost_events", json_object_new_uint64(r->lost));
	for (size_t i = 0; i < r->n; i++)
		json_object_array_add(figures, figure_new(&r->figures[i]));
	json_object_object_add(o, "figures", figures);
	return o;
}

int run_set_write(const struct run_set *set, FILE *to)
{
	int err = 0;

	/* Line by line: a set of many runs is one small tree after the other. */
	fprintf(to, "{\"schema\": \"%s\", \"runs\": [", schema);
	for (size_t i = 0; i < set->n && !err; i++) {
		struct json_object *run = run_new(&set->runs[i]);
		const char *text =
			run ? json_object_to_json_string_ext(run, JSON_C_TO_STRING_SPACED) : NULL;

		if (text)
			fprintf(to, "%s\n%s", i ? "," : "", text);
		else
			err = -ENOMEM;
		json_object_put(run);
	}
	fprintf(to, "\n]}\n");
	if (!err && ferror(to))
		err = -EIO;
	return err;
}

/* ---- reading ---- */

static bool name_is_plain(const char *name)
{
	size_t len = strlen(name);

	return len && len < FIGURE_NAME_MAX &&
	       strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") ==
		       len;
}

/* The member of that type, NULL if there is none. */
static struct json_object *member(struct json_object *o, const char *name, enum json_type type)
{
	struct json_object *value;

	if (!json_object_object_get_ex(o, name, &value) || !json_object_is_type(value, type))
		return NULL;
	return value;
}

static int figure_read(struct json_object *o, struct run_summary *run)
{
	struct json_object *name = member(o, "name", json_type_string);
	struct json_object *count = member(o, "count", json_type_int);
	struct figure_name current;
	struct run_figure *f;

	if (!name || !count || !name_is_plain(json_object_get_string(name)) ||
	    json_object_get_int64(count) < 0)
		return -EBADMSG;
	current = figure_name_current(json_object_get_string(name));
	if (run_figure_find(run, current.text))
		return -EBADMSG;
	f = run_figure_add(run, current.text);
	if (!f)
		return -ENOMEM;
	f->count = json_object_get_uint64(count);
	for (int s = 0; s < RUN_STATISTIC_COUNT; s++) {
		struct json_object *value;

		if (!json_object_object_get_ex(o, run_statistic_name((enum run_statistic)s),
					       &value))
			continue;
		if (!json_object_is_type(value, json_type_double) &&
		    !json_object_is_type(value, json_type_int))
			return -EBADMSG;
		f->at[s] = json_object_get_double(value);
		if (!isfinite(f->at[s]) || f->at[s] < 0)
			return -EBADMSG;
	}
	return 0;
}

static int run_read(struct json_object *o, struct run_set *set)
{
	struct json_object *recording = member(o, "recording", json_type_string);
	struct json_object *simulated = member(o, "simulated", json_type_boolean);
	struct json_object *span = member(o, "span_ns", json_type_int);
	struct json_object *lost = member(o, "lost_events", json_type_int);
	struct json_object *figures = member(o, "figures", json_type_array);
	struct run_summary *run;
	int err = 0;

	if (!recording || !simulated || !span || !lost || !figures)
		return -EBADMSG;
	run = run_set_add(set, json_object_get_string(recording));
	if (!run)
		return -ENOMEM;
	run->simulated = json_object_get_boolean(simulated);
	run->span_ns = json_object_get_int64(span);
	run->lost = json_object_get_uint64(lost);
	for (size_t i = 0; i < json_object_array_length(figures) && !err; i++)
		err = figure_read(json_object_array_get_idx(figures, i), run);
	return err;
}

static int set_read(struct json_object *root, struct run_set *set)
{
	struct json_object *says = member(root, "schema", json_type_string);
	struct json_object *runs = member(root, "runs", json_type_array);
	int err = 0;

	if (!says || strcmp(json_object_get_string(says), schema) || !runs)
		return -EBADMSG;
	for (size_t i = 0; i < json_object_array_length(runs) && !err; i++)
		err = run_read(json_object_array_get_idx(runs, i), set);
	return err;
}

/* The whole file, ended by a NUL. 0 or -errno. */
static int file_read(const char *path, char **text, size_t *len)
{
	FILE *from = fopen(path, "r");
	size_t capacity = 0, got;
	int err = 0;

	*text = NULL;
	*len = 0;
	if (!from)
		return -errno;
	do {
		char *grown;

		if (capacity - *len < 2) {
			capacity = capacity ? 2 * capacity : 65536;
			grown = realloc(*text, capacity);
			if (!grown || capacity > FILE_BYTES_MAX) {
				err = grown ? -EFBIG : -ENOMEM;
				*text = grown ? grown : *text;
				break;
			}
			*text = grown;
		}
		got = fread(*text + *len, 1, capacity - *len - 1, from);
		*len += got;
	} while (got);
	if (!err && ferror(from))
		err = -EIO;
	if (!err)
		(*text)[*len] = '\0';
	fclose(from);
	return err;
}

bool run_set_is_file(const char *path)
{
	char begin[64] = "";
	FILE *from = fopen(path, "r");
	size_t got;

	if (!from)
		return false;
	got = fread(begin, 1, sizeof(begin) - 1, from);
	fclose(from);
	begin[got] = '\0';
	return begin[strspn(begin, " \t\r\n")] == '{';
}

int run_set_read(struct run_set *set, const char *path, char *why, size_t why_bytes)
{
	struct json_tokener *tokener = NULL;
	struct json_object *root = NULL;
	char *text = NULL;
	size_t len;
	int err = file_read(path, &text, &len);

	if (!err)
		tokener = json_tokener_new_ex(NESTING_MAX);
	if (!err && !tokener)
		err = -ENOMEM;
	if (!err) {
		root = json_tokener_parse_ex(tokener, text, (int)len);
		err = root ? set_read(root, set) : -EBADMSG;
	}
	if (err == -EBADMSG)
		snprintf(why, why_bytes, "%s: is no whole summaries file of this version", path);
	else if (err)
		snprintf(why, why_bytes, "%s: cannot read: %s", path, strerror(-err));
	json_object_put(root);
	if (tokener)
		json_tokener_free(tokener);
	free(text);
	return err;
}
