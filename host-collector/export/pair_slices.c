/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/export/pair_slices.h"

#include <errno.h>
#include <stdio.h>

#include "host-collector/analyze/event/pair_fields.h"
#include "host-collector/util/escape.h"

enum { RANK_PAIRS = 3 };

/* Returns the first track of the stage that is free at `begin`, or NULL if all are taken. */
static uint64_t *lane_get(struct pair_slices *x, unsigned stage, uint64_t begin, uint64_t end)
{
	struct pair_lanes *lanes = &x->stages[stage];
	char name[TRACE_NAME_BYTES], text[EVENT_CHOICE_NAME_BYTES * 2];
	size_t i = 0;

	while (i < lanes->n && lanes->ends[i] > begin)
		i++;
	if (i == PAIR_LANES_MAX)
		return NULL;
	if (i == lanes->n) {
		if (!x->group)
			x->group = trace_track_new(x->file, 0, "Pairs", RANK_PAIRS);
		pairs_stage_name(x->pairs, stage, text, sizeof(text));
		snprintf(name, sizeof(name), "%.*s", (int)sizeof(name) - 1, escape(text).text);
		lanes->tracks[i] = trace_track_new(x->file, x->group, name,
						   stage * PAIR_LANES_MAX + (uint32_t)i);
		lanes->name = trace_name(x->file, name);
		lanes->n++;
	}
	lanes->ends[i] = end;
	return &lanes->tracks[i];
}

static void end_annotate(const struct pair_slices *x, const char *side, const struct pair_end *end)
{
	char key[32];

	snprintf(key, sizeof(key), "%s event", side);
	trace_annotate_text(x->file, key, escape(x->choices->items[end->choice].name).text);
	snprintf(key, sizeof(key), "%s cpu", side);
	trace_annotate_int(x->file, key, end->cpu);
	if (end->tid < 0)
		return;
	snprintf(key, sizeof(key), "%s tid", side);
	trace_annotate_int(x->file, key, end->tid);
}

/* The fields of an event have any name, so they are a group of their own: "from" or "to". */
static void fields_annotate(const struct pair_slices *x, const char *side,
			    const struct pair_fields *fields)
{
	size_t group;

	if (!fields || !fields->n)
		return;
	group = trace_annotate_group_open(x->file, side);
	for (size_t i = 0; i < fields->n; i++) {
		const struct pair_field *field = &fields->items[i];
		const struct escaped name = escape(field->name);

		if (field->is_number)
			trace_annotate_group_int(x->file, name.text, field->number);
		else
			trace_annotate_group_text(x->file, name.text, escape(field->text).text);
	}
	trace_annotate_group_close(x->file, group);
}

static void pair_annotate(const struct pair_slices *x, const struct pair *pair)
{
	static const char *const shares[] = {
#define X(NAME, name, head) [SHARE_##NAME] = name "_ns",
		STATE_SHARES(X)
#undef X
	};
	const struct pair_end *on = pair->from.vcpu_known ? &pair->from : &pair->to;
	char key[2 * PAIR_KEY_BYTES];

	trace_annotate_text(x->file, "key",
			    escape(pair_key_text(&pair->key, key, sizeof(key))).text);
	trace_annotate_int(x->file, "duration_ns", pair->duration_ns);
	if (pair->error_ns != UINT64_MAX)
		trace_annotate_int(x->file, "error_ns", (int64_t)pair->error_ns);
	if (pair->past_losses)
		trace_annotate_text(x->file, "losses",
				    "events were lost between both; `report pairs` says whether "
				    "such pairs are calls");
	if (on->vm_known)
		trace_annotate_text(x->file, "vm", escape(model_vm_name(x->model, on->vm)).text);
	if (on->vcpu_known)
		trace_annotate_int(x->file, "vcpu", on->vcpu);
	end_annotate(x, "from", &pair->from);
	end_annotate(x, "to", &pair->to);
	for (size_t i = 0; pair->states_known && i < SHARE_COUNT; i++)
		trace_annotate_int(x->file, shares[i], pair->states.ns[i]);
	fields_annotate(x, "from", pair->from_fields);
	fields_annotate(x, "to", pair->to_fields);
}

static void on_settled(void *context, const struct pair *pair)
{
	struct pair_slices *x = context;
	const uint64_t begin = boottime_of(x->boottime, pair->from.t);
	const uint64_t to = boottime_of(x->boottime, pair->to.t), end = to > begin ? to : begin;
	struct trace_event opened;
	const uint64_t *track;

	if (!trace_has(x->file, begin) || !trace_has(x->file, end))
		return;
	track = lane_get(x, pair->stage, begin, end);
	x->left_out += !track;
	if (!track)
		return;
	x->written++;
	opened = trace_event_open(x->file, begin, *track, EVENT_BEGIN, x->stages[pair->stage].name);
	pair_annotate(x, pair);
	trace_event_close(x->file, opened);
	trace_end(x->file, end, *track);
}

int pair_slices_init(struct pair_slices *x)
{
	const struct pairs_options options = {
		.with_fields = true, .narrow = x->narrow, .settled = on_settled, .context = x};

	if (!x->choices)
		return 0;
	x->pairs = pairs_new(x->model, x->choices, &options);
	return x->pairs ? 0 : -ENOMEM;
}

void pair_slices_fini(struct pair_slices *x)
{
	pairs_free(x->pairs);
}

int pair_slices_finish(struct pair_slices *x)
{
	return x->pairs ? pairs_finish(x->pairs) : 0;
}
