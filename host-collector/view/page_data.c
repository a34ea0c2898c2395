/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/view/page_data.h"

#include <inttypes.h>
#include <string.h>

#include <json-c/json.h>

#include "host-collector/util/json_string.h"

void page_text_write(const char *text, FILE *out)
{
	struct json_object *string = json_string_new(text);

	fputs(string ? json_object_to_json_string_ext(string, JSON_C_TO_STRING_PLAIN) : "\"\"",
	      out);
	json_object_put(string);
}

/* ---- names ---- */

#define PAIR(NAME, name, meaning, ...) {name, meaning},
static const char *const vcpu_states[][2] = {VCPU_STATES(PAIR)};
static const char *const pcpu_states[][2] = {SCENE_PCPU_STATES(PAIR)};
static const char *const arrows[][2] = {SCENE_ARROW_KINDS(PAIR)};
static const char *const waits[][2] = {WAIT_CLASSES(PAIR)};
#undef PAIR
#define PAIR(NAME, name) {name, ""},
static const char *const guest_states[][2] = {GUEST_CPU_STATES(PAIR)};
#undef PAIR

static void pairs_write(const char *key, const char *const (*pairs)[2], size_t n, FILE *out)
{
	fprintf(out, "\"%s\":[", key);
	for (size_t i = 0; i < n; i++) {
		fputs(i ? ",[" : "[", out);
		page_text_write(pairs[i][0], out);
		fputc(',', out);
		page_text_write(pairs[i][1], out);
		fputc(']', out);
	}
	fputc(']', out);
}

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

void page_names_write(FILE *out)
{
	fputs("{", out);
	pairs_write("vcpu", vcpu_states, COUNT(vcpu_states), out);
	fputs(",", out);
	pairs_write("guest", guest_states, COUNT(guest_states), out);
	fputs(",", out);
	pairs_write("pcpu", pcpu_states, COUNT(pcpu_states), out);
	fputs(",", out);
	pairs_write("arrows", arrows, COUNT(arrows), out);
	fputs(",", out);
	pairs_write("waits", waits, COUNT(waits), out);
	fputs(",\"missing\":{", out);
	for (int m = 0; m < MISSING_COUNT; m++) {
		fprintf(out, "%s\"%s\":", m ? "," : "", missing_data_name((enum missing_data)m));
		page_text_write(missing_data_meaning((enum missing_data)m), out);
	}
	fputs("}}", out);
}

/* ---- scenes ---- */

/* Per piece: gap to the one before, length, state (-1: merged), pid, number, where. */
static void pieces_write(const struct scene *scene, const struct scene_row *row, FILE *out)
{
	int64_t end_ns = scene->begin.ns;

	for (size_t i = 0; i < row->n; i++) {
		const struct track_piece *p = &row->pieces[i];

		fprintf(out, "%s%" PRId64 ",%" PRId64 ",%d,%d,%u,%u", i ? "," : "",
			p->begin.ns - end_ns, p->ns, p->merged ? -1 : p->state, p->pid, p->number,
			p->where);
		end_ns = p->begin.ns + p->ns;
	}
}

/* The shares, in 1/255, of the merged pieces: `states` numbers for each. */
static void shares_write(const struct scene_row *row, int states, FILE *out)
{
	const char *between = "";

	for (size_t i = 0; i < row->n; i++) {
		if (!row->pieces[i].merged)
			continue;
		for (int s = 0; s < states; s++) {
			fprintf(out, "%s%u", between, row->pieces[i].share[s]);
			between = ",";
		}
	}
}

static void row_write(const struct scene *scene, const struct scene_row *row, FILE *out)
{
	static const int states[] = {[SCENE_ROW_PCPU] = SCENE_PCPU_STATE_COUNT,
				     [SCENE_ROW_VCPU] = VCPU_STATE_COUNT,
				     [SCENE_ROW_GUEST] = GUEST_CPU_STATE_COUNT};

	fprintf(out, "{\"kind\":\"%s\",\"number\":%u,\"pieces\":[", scene_row_name(row->kind),
		row->number);
	pieces_write(scene, row, out);
	fputs("],\"shares\":[", out);
	shares_write(row, states[row->kind], out);
	fputs("]}", out);
}

static void arrows_write(const struct scene *scene, FILE *out)
{
	for (size_t i = 0; i < scene->n_arrows; i++) {
		const struct scene_arrow *a = &scene->arrows[i];

		fprintf(out, "%s%d,%zu,%" PRId64 ",%zu,%" PRId64 ",%d,%u", i ? "," : "", a->kind,
			a->from_row, a->from.ns - scene->begin.ns, a->to_row,
			a->to.ns - scene->begin.ns, a->pid, a->number);
	}
}

/* Per mark: begin, length, how many it stands for, their lengths together. */
static void lane_write(const struct scene *scene, const struct scene_lane *lane, FILE *out)
{
	fprintf(out, "{\"kind\":\"%s\",\"name\":", lane->key.kind == LANE_PAIR ? "pair" : "event");
	page_text_write(lane->name, out);
	if (lane->key.of_vcpu)
		fprintf(out, ",\"vcpu\":%" PRIu32, lane->key.vcpu);
	fprintf(out, ",\"cut\":%s,\"marks\":[", lane->cut ? "true" : "false");
	for (size_t i = 0; i < lane->n; i++) {
		const struct lane_mark *m = &lane->marks[i];

		fprintf(out, "%s%" PRId64 ",%" PRId64 ",%" PRIu32 ",%" PRId64, i ? "," : "",
			m->begin.ns - scene->begin.ns, m->ns, m->n, m->sum_ns);
	}
	fputs("]}", out);
}

static void lanes_write(const struct scene *scene, FILE *out)
{
	const char *between = "";

	for (size_t i = 0; i < scene->n_lanes; i++) {
		if (!scene->lanes[i].n)
			continue;
		fputs(between, out);
		lane_write(scene, &scene->lanes[i], out);
		between = ",";
	}
}

static void tasks_write(const struct scene *scene, bool host, FILE *out)
{
	const char *between = "";

	for (size_t i = 0; i < scene->n_names; i++) {
		const struct scene_name *n = &scene->names[i];

		if (n->host != host || !*n->comm)
			continue;
		fprintf(out, "%s\"%d\":", between, n->pid);
		page_text_write(n->comm, out);
		between = ",";
	}
}

static bool is_interrupt(const struct scene_row *row, const struct track_piece *p)
{
	return row->kind == SCENE_ROW_GUEST &&
	       (p->state == GUEST_CPU_HARDIRQ || p->state == GUEST_CPU_SOFTIRQ);
}

/* "STATE:WHERE:NUMBER" to the interrupt's name, for the small numbers, which have one. */
static void interrupts_write(const struct scene *scene, FILE *out)
{
	bool seen[2][2][32] = {{{false}}};
	const char *between = "";
	char name[32];

	for (size_t i = 0; i < scene->n_rows; i++) {
		const struct scene_row *row = &scene->rows[i];

		for (size_t k = 0; k < row->n; k++) {
			const struct track_piece *p = &row->pieces[k];
			bool soft = p->state == GUEST_CPU_SOFTIRQ;

			if (!is_interrupt(row, p) || p->number >= 32 ||
			    seen[soft][!!p->where][p->number])
				continue;
			seen[soft][!!p->where][p->number] = true;
			interrupt_name((enum guest_cpu_state)p->state, p->where, p->number, name,
				       sizeof(name));
			fprintf(out, "%s\"%d:%d:%u\":", between, p->state, p->where, p->number);
			page_text_write(name, out);
			between = ",";
		}
	}
}

void page_scenes_write(const struct scenes *scenes, const struct report *r, FILE *out)
{
	const struct scene *scene;

	fputc('[', out);
	for (size_t i = 0; (scene = scenes_at(scenes, i)); i++) {
		fprintf(out,
			"%s{\"begin\":%" PRId64 ",\"length\":%" PRId64 ",\"grain_ns\":%" PRId64
			",\"cut\":%s,\"rows_left_out\":%zu,\"arrows_left_out\":%" PRIu64
			",\"rows\":[",
			i ? "," : "", scene->begin.ns - r->begin.ns,
			scene->end.ns - scene->begin.ns, scene->grain_ns,
			scene->cut ? "true" : "false", scene->rows_left_out,
			scene->arrows_left_out);
		for (size_t k = 0; k < scene->n_rows; k++) {
			fputs(k ? "," : "", out);
			row_write(scene, &scene->rows[k], out);
		}
		fputs("],\"arrows\":[", out);
		arrows_write(scene, out);
		fprintf(out, "],\"marks_left_out\":%" PRIu64 ",\"lanes\":[", scene->marks_left_out);
		lanes_write(scene, out);
		fputs("],\"host\":{", out);
		tasks_write(scene, true, out);
		fputs("},\"guest\":{", out);
		tasks_write(scene, false, out);
		fputs("},\"interrupts\":{", out);
		interrupts_write(scene, out);
		fputs("}}", out);
	}
	fputc(']', out);
}

/* ---- latencies ---- */

static void cells_write(const struct latency_map *m, FILE *out)
{
	const char *between = "";

	for (unsigned c = 0; c < m->columns; c++) {
		for (unsigned row = 0; row < LATENCY_ROWS; row++) {
			if (!m->counts[c][row])
				continue;
			fprintf(out, "%s%u,%u,%u", between, c, row, m->counts[c][row]);
			between = ",";
		}
	}
}

/* What a map says, without who it is of. */
static void map_write(const struct latency_map *m, const struct report *r, FILE *out)
{
	static const double shares[] = {0.5, 0.95, 0.99, 0.999, 1};

	fprintf(out,
		"\"begin\":%" PRId64 ",\"column_ns\":%" PRId64 ",\"columns\":%u,\"count\":%" PRIu64
		",\"quantiles\":[",
		m->begin.ns - r->begin.ns, m->column_ns, m->columns, m->lengths.count);
	for (size_t i = 0; i < COUNT(shares); i++)
		fprintf(out, "%s%" PRIu64, i ? "," : "",
			histogram_quantile(&m->lengths, shares[i]));
	fputs("],\"cells\":[", out);
	cells_write(m, out);
	fputc(']', out);
}

static void latency_write(const struct latency_map *m, const struct report *r, FILE *out)
{
	fputs("{\"vm\":", out);
	page_text_write(report_vm_name(r, m->vm), out);
	fprintf(out, ",\"kind\":\"%s\",\"meaning\":", latency_kind_name(m->kind));
	page_text_write(latency_kind_meaning(m->kind), out);
	fputc(',', out);
	map_write(m, r, out);
	fputc('}', out);
}

void page_latencies_write(const struct latency_maps *latencies, const struct report *r, FILE *out)
{
	const struct latency_map *m;

	fputs("{\"rows_ns\":[", out);
	for (unsigned row = 0; row <= LATENCY_ROWS; row++)
		fprintf(out, "%s%" PRId64, row ? "," : "", latency_row_ns(row));
	fprintf(out, "],\"vms_left_out\":%s,\"maps\":[",
		latency_maps_left_out(latencies) ? "true" : "false");
	for (size_t i = 0; (m = latency_maps_at(latencies, i)); i++) {
		fputs(i ? "," : "", out);
		latency_write(m, r, out);
	}
	fputs("]}", out);
}

void page_pairs_write(const struct page *page, FILE *out)
{
	fputc('[', out);
	for (size_t i = 0; i < page->n_pairs; i++) {
		const struct page_pair *p = &page->pairs[i];

		fprintf(out, "%s{\"name\":", i ? "," : "");
		page_text_write(p->name, out);
		fputs(",\"from\":", out);
		page_text_write(p->from, out);
		fputs(",\"to\":", out);
		page_text_write(p->to, out);
		fprintf(out,
			",\"total_ns\":%" PRIu64 ",\"unpaired_from\":%" PRIu64
			",\"unpaired_to\":%" PRIu64 ",\"incomplete\":%" PRIu64
			",\"ambiguous\":%" PRIu64 ",",
			p->map->lengths.sum_ns, p->unpaired_from, p->unpaired_to, p->incomplete,
			p->ambiguous);
		map_write(p->map, page->report, out);
		fputc('}', out);
	}
	fputc(']', out);
}
