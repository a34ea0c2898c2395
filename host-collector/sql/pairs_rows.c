/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/sql/rows.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "host-collector/analyze/event/pairs.h"
#include "proto/query/described.h"

struct sql_pairs {
	const struct model *model;
	struct event_choices choices;
	struct pairs *pairs;
	sql_row_take *take;
	void *context;
	struct sql_row row;
};

static void end_number(struct sql_row *row, unsigned column, int64_t number)
{
	if (number >= 0)
		sql_row_number(row, column, number);
}

static void on_settled(void *context, const struct pair *pair)
{
	struct sql_pairs *x = context;
	struct sql_row *row = &x->row;
	char key[48];

	sql_row_clear(row);
	sql_row_number(row, PAIRS_begin_ns, pair->from.t.ns);
	sql_row_number(row, PAIRS_end_ns, pair->to.t.ns);
	sql_row_number(row, PAIRS_duration_ns, pair->duration_ns);
	if (pair->error_ns <= INT64_MAX)
		sql_row_number(row, PAIRS_error_ns, (int64_t)pair->error_ns);
	sql_row_text(row, PAIRS_key, pair_key_text(&pair->key, key, sizeof(key)));
	if (pair->from.vm_known)
		sql_row_text(row, PAIRS_vm, model_vm_name(x->model, pair->from.vm));
	else if (pair->to.vm_known)
		sql_row_text(row, PAIRS_vm, model_vm_name(x->model, pair->to.vm));
	if (pair->from.vcpu_known)
		sql_row_number(row, PAIRS_vcpu, pair->from.vcpu);
	else if (pair->to.vcpu_known)
		sql_row_number(row, PAIRS_vcpu, pair->to.vcpu);
	sql_row_text(row, PAIRS_from_event, x->choices.items[pair->from.choice].name);
	sql_row_text(row, PAIRS_to_event, x->choices.items[pair->to.choice].name);
	sql_row_number(row, PAIRS_from_cpu, pair->from.cpu);
	sql_row_number(row, PAIRS_to_cpu, pair->to.cpu);
	end_number(row, PAIRS_from_tid, pair->from.tid);
	end_number(row, PAIRS_to_tid, pair->to.tid);
	sql_row_number(row, PAIRS_past_losses, pair->past_losses);
	sql_row_number(row, PAIRS_past_both, pair->past_both);
	for (unsigned i = 0; pair->states_known && i < SHARE_COUNT; i++)
		sql_row_number(row, PAIRS_guest_ns + i, pair->states.ns[i]);
	x->take(x->context, row);
}

/* Returns 0, -ENOMEM, or -EINVAL with one line in `why`. */
static int choices_make(struct sql_pairs *x, const struct sql_source *source,
			const struct sql_wanted *w, char *why, size_t why_bytes)
{
	struct expr_error error = {0};
	const char *what = "first event", *key;
	int err = event_choices_init(&x->choices);

	if (err)
		return err;
	err = described_read(source->recording, x->choices.schemas);
	if (!err)
		err = event_choices_add(&x->choices, w->from, &error);
	if (!err) {
		what = "second event";
		err = event_choices_add(&x->choices, w->to, &error);
	}
	if (!err) {
		what = "key";
		key = *w->key ? w->key : event_choices_cross(&x->choices) ? "vcpu" : "cpu";
		err = event_choices_key(&x->choices, key, &error);
	}
	if (err == -EINVAL)
		snprintf(why, why_bytes, "pairs: %s, at character %zu: %s", what, error.at + 1,
			 error.text);
	return err;
}

struct sql_pairs *sql_pairs_new(struct model *m, const struct sql_source *source,
				const struct sql_wanted *wanted, sql_row_take *take, void *context,
				char *why, size_t why_bytes)
{
	struct sql_pairs *x = calloc(1, sizeof(*x));
	const struct pairs_options options = {
		.narrow = source->narrow, .settled = on_settled, .context = x};

	if (!x)
		return NULL;
	x->model = m;
	x->take = take;
	x->context = context;
	if (!*wanted->from || !*wanted->to)
		snprintf(why, why_bytes, "pairs needs two events: pairs('A', 'B', 'key')");
	else if (!choices_make(x, source, wanted, why, why_bytes))
		x->pairs = pairs_new(m, &x->choices, &options);
	if (x->pairs)
		return x;
	sql_pairs_free(x);
	return NULL;
}

int sql_pairs_finish(struct sql_pairs *x)
{
	return pairs_finish(x->pairs);
}

void sql_pairs_free(struct sql_pairs *x)
{
	if (!x)
		return;
	pairs_free(x->pairs);
	event_choices_fini(&x->choices);
	free(x);
}
