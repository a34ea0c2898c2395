// SPDX-License-Identifier: GPL-2.0-only
#include "host-collector/analyze/event/pair_line.h"

#include <inttypes.h>

#include "host-collector/analyze/event/event_list.h"
#include "host-collector/analyze/event/pair_fields.h"
#include "proto/recording.h"

static void error_write(uint64_t error_ns, bool is_bounded, FILE *out)
{
	if (is_bounded)
		fprintf(out, ",\"error_ns\":%" PRIu64, error_ns);
	else
		fputs(",\"error_ns\":null", out);
}

static void place_write(const struct pair_line_options *o, const struct pair_end *end, FILE *out)
{
	if (end->vm_known) {
		fputs(",\"vm\":", out);
		event_json_text(model_vm_name(o->model, end->vm), out);
	}
	if (end->vcpu_known)
		fprintf(out, ",\"vcpu\":%" PRIu32, end->vcpu);
}

static void fields_write(const struct pair_fields *fields, FILE *out)
{
	const char *before = "";

	if (!fields)
		return;
	fputs(",\"fields\":{", out);
	for (size_t i = 0; i < fields->n; i++) {
		const struct pair_field *f = &fields->items[i];
		const struct expr_value value = {
			.type = f->type, .number = (uint64_t)f->number, .text = f->text};

		if (value.type == EXPR_NONE)
			continue;
		fputs(before, out);
		before = ",";
		event_json_field(f->name, f->base, &value, out);
	}
	fputc('}', out);
}

static void end_write(const struct pair_line_options *o, const char *name,
		      const struct pair_end *end, const struct pair_fields *fields, FILE *out)
{
	fprintf(out, ",\"%s\":{\"event\":", name);
	event_json_text(o->choices->items[end->choice].name, out);
	fprintf(out, ",\"t_ns\":%" PRId64, end->t.ns);
	error_write(end->err_ns, end->err_ns != UINT32_MAX, out);
	fprintf(out, ",\"side\":\"%s\",\"cpu\":%u",
		end->source == VS_SOURCE_HOST ? "host" : "guest", end->cpu);
	place_write(o, end, out);
	if (end->tid >= 0) {
		fprintf(out, ",\"tid\":%" PRId32 ",\"comm\":", end->tid);
		event_json_text(model_task_name(o->model, end->source, end->tid), out);
	}
	fields_write(fields, out);
	fputc('}', out);
}

void pair_line_write(const struct pair *pair, const struct pair_line_options *o, FILE *out)
{
	static const char *const shares[] = {
#define X(NAME, name, head) [SHARE_##NAME] = name,
		STATE_SHARES(X)
#undef X
	};
	char key[2 * PAIR_KEY_BYTES];

	fputc('{', out);
	if (o->name) {
		fputs("\"pair\":", out);
		event_json_text(o->name, out);
		fputc(',', out);
	}
	fprintf(out, "\"stage\":%u,\"key\":", pair->stage);
	event_json_text(pair_key_text(&pair->key, key, sizeof(key)), out);
	fprintf(out, ",\"duration_ns\":%" PRId64, pair->duration_ns);
	error_write(pair->error_ns, pair->error_ns != UINT64_MAX, out);
	fprintf(out, ",\"past_losses\":%s", pair->past_losses ? "true" : "false");
	if (pair->past_both)
		fputs(",\"past_both\":true", out);
	place_write(o, pair->from.vcpu_known ? &pair->from : &pair->to, out);
	end_write(o, "from", &pair->from, pair->from_fields, out);
	end_write(o, "to", &pair->to, pair->to_fields, out);
	for (size_t i = 0; pair->states_known && i < SHARE_COUNT; i++)
		fprintf(out, ",\"%s_ns\":%" PRId64, shares[i], pair->states.ns[i]);
	fputs("}\n", out);
}
