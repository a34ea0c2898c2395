// SPDX-License-Identifier: GPL-2.0-only
/*
 * Each key of each stage waits for the partner of its newest event. An end takes the newest begin
 * before it, and a begin that another one follows stays unpaired. Across the boundary the order of
 * two events is unknown if their distance is within the error of the clocks. An end without a begin
 * then waits for a begin that comes right after it; what follows decides whether they belong
 * together.
 */
#include "host-collector/analyze/event/pairs.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host-collector/analyze/event/pair_fields.h"
#include "host-collector/analyze/event/pairs_internal.h"
#include "proto/text.h"

/* A pair waits this long for reports of losses, which arrive late. */
#define PENDING_NS (MODEL_HOLD_NS + 50000000ll)

enum { PENDING_FIRST = 64 }; /* the ring's first capacity, a power of two */

static bool has_roles(const struct event_choices *choices)
{
	for (size_t i = 0; i < choices->n; i++) {
		if (choices->items[i].role.n)
			return true;
	}
	return false;
}

unsigned pairs_stages(const struct event_choices *choices, bool cycle)
{
	if (choices->n_groups == 1)
		return cycle || has_roles(choices);
	return choices->n_groups - !cycle;
}

static unsigned group_of_end(const struct pairs *p, unsigned stage)
{
	return (stage + 1) % p->choices->n_groups;
}

/* Returns true if one event can be both an end and a begin of this stage. */
static bool stage_has_same(const struct pairs *p, unsigned stage)
{
	const struct event_choices *c = p->choices;

	for (size_t i = 0; i < c->n; i++) {
		for (size_t k = 0; k < c->n; k++) {
			const struct event_choice *from = &c->items[i], *to = &c->items[k];

			if (from->group == stage && to->group == group_of_end(p, stage) &&
			    !from->untraced && !to->untraced && from->schema == to->schema &&
			    from->side == to->side)
				return true;
		}
	}
	return false;
}

static bool key_names_cpu(const struct event_choice *c)
{
	for (size_t i = 0; i < c->key.n; i++) {
		const struct expr_node *node = &c->key.nodes[i];

		/* The CPU must be the whole key: an operation could turn several CPUs into one
		 * value. */
		if (node->op != EXPR_FIELD || c->key.n > 1)
			continue;
		if (node->index == EVENT_COMMON_CPU)
			return true;
		if (node->index == EVENT_COMMON_VCPU && c->side == EVENT_GUEST)
			return true;
	}
	return false;
}

/* ---- keys ---- */

/* Returns true if the key is a single field that is shown in hexadecimal, such as an address. */
static bool key_is_hex(const struct event_choice *c)
{
	const struct expr_node *node = &c->key.nodes[0];

	return c->key.n == 1 && node->op == EXPR_FIELD && node->index < c->schema->n_fields &&
	       c->schema->fields[node->index].base == 16;
}

bool pair_key_of(struct event_row *row, bool of_vm, struct pair_key *out)
{
	const struct expr_value value = event_row_eval(row, &row->choice->key);

	*out = (struct pair_key){
		.type = value.type, .number = value.number, .hex = key_is_hex(row->choice)};
	if (value.type == EXPR_TEXT) {
		out->number = text_hash(value.text);
		snprintf(out->text, sizeof(out->text), "%s", value.text);
	}
	if (of_vm) {
		event_row_vcpu(row);
		out->of_vm = row->vm_known;
		out->vm = row->vm_known ? row->vm : 0;
	}
	return value.type != EXPR_NONE && (!of_vm || row->vm_known);
}

bool pair_key_names_vm(const struct expr *key)
{
	for (size_t i = 0; i < key->n; i++) {
		if (key->nodes[i].op == EXPR_FIELD && (key->nodes[i].index == EVENT_COMMON_VCPU ||
						       key->nodes[i].index == EVENT_COMMON_GTASK))
			return true;
	}
	return false;
}

bool pairs_of_vm(const struct event_choices *choices)
{
	for (size_t i = 0; i < choices->n; i++) {
		const struct event_choice *c = &choices->items[i];

		if (!c->untraced && (c->side == EVENT_GUEST || pair_key_names_vm(&c->key)))
			return true;
	}
	return false;
}

const char *pair_key_text(const struct pair_key *key, char *out, size_t out_bytes)
{
	if (key->type == EXPR_NONE)
		snprintf(out, out_bytes, "all");
	else if (key->type == EXPR_TEXT)
		snprintf(out, out_bytes, "%s", key->text);
	else if (key->type == EXPR_SIGNED || (!key->hex && key->number <= INT64_MAX))
		snprintf(out, out_bytes, "%" PRId64, (int64_t)key->number);
	else
		snprintf(out, out_bytes, "0x%" PRIx64, key->number);
	return out;
}

/* ---- fields ---- */

static void fields_drop(struct pair_fields **fields)
{
	free(*fields);
	*fields = NULL;
}

/* Keeps the fields of the event that is being taken. */
static void fields_take(struct pairs *p, struct pair_fields **fields)
{
	fields_drop(fields);
	if (!p->options.with_fields)
		return;
	*fields = pair_fields_new(p->row);
	if (!*fields)
		p->rows.out_of_memory = true;
}

/* ---- pairs that wait ---- */

static void mark_drop(struct pairs *p, uint32_t mark)
{
	if (mark != STATE_MARK_NONE)
		state_mark_drop(p->marks, mark);
}

static void marks_drop(struct pairs *p, const struct pair_pending *w)
{
	mark_drop(p, w->from_mark);
	mark_drop(p, w->to_mark);
}

static bool states_ready(const struct pairs *p, const struct pair_pending *w)
{
	return w->to_mark == STATE_MARK_NONE ||
	       (state_mark_ready(p->marks, w->from_mark) && state_mark_ready(p->marks, w->to_mark));
}

static void pending_settle(struct pairs *p)
{
	struct pair_pending *w = pending_at(p, p->pending_first++);

	if (w->to_mark != STATE_MARK_NONE && states_ready(p, w)) {
		w->pair.states_known = true;
		w->pair.states = state_marks_between(p->marks, w->from_mark, w->to_mark);
	} else if (w->to_mark != STATE_MARK_NONE) {
		p->limits.states_given_up++;
	}
	marks_drop(p, w);
	if (w->alone)
		pair_evidence_at(p, w->pair.stage, w->round)->alone +=
			!w->near_loss && !w->alone_maybe;
	else
		pair_rows_count(p, w);
	fields_drop(&w->from_fields);
	fields_drop(&w->to_fields);
}

static void pending_advance(struct pairs *p, struct host_ns now)
{
	while (p->pending_first < p->pending_end) {
		const struct pair_pending *w = pending_at(p, p->pending_first);

		if (now.ns - w->pair.to.t.ns < PENDING_NS || !states_ready(p, w))
			return;
		pending_settle(p);
	}
}

/* Returns the sum of both errors, or UINT64_MAX if one of them is unbounded. */
static uint64_t error_of(const struct pair_end *a, const struct pair_end *b)
{
	return a->err_ns == UINT32_MAX || b->err_ns == UINT32_MAX ? UINT64_MAX
								  : (uint64_t)a->err_ns + b->err_ns;
}

int64_t pairs_doubt_ns(const struct pair_end *a, const struct pair_end *b)
{
	const uint64_t error = error_of(a, b);

	return a->source == b->source || error == UINT64_MAX ? 0 : (int64_t)error;
}

/* Without memory the ring keeps its size, and pairs are settled sooner. */
static void pending_grow(struct pairs *p)
{
	const uint64_t capacity = 2 * (p->pending_mask + 1);
	struct pair_pending *bigger = calloc(capacity, sizeof(*bigger));

	if (!bigger)
		return;
	for (uint64_t i = p->pending_first; i < p->pending_end; i++)
		bigger[i & (capacity - 1)] = *pending_at(p, i);
	free(p->pending);
	p->pending = bigger;
	p->pending_mask = capacity - 1;
}

static struct pair_pending *pending_add(struct pairs *p, unsigned stage,
					const struct pair_end *from, const struct pair_end *to)
{
	const uint64_t waiting = p->pending_end - p->pending_first;
	struct pair_pending *w;

	if (waiting > p->pending_mask && waiting < p->options.pending_max)
		pending_grow(p);
	if (waiting > p->pending_mask || waiting == p->options.pending_max)
		pending_settle(p);
	w = pending_at(p, p->pending_end++);
	*w = (struct pair_pending){
		.pair = {.stage = stage, .from = *from, .to = *to},
		.since = p->now,
		.round = p->rows.rounds[stage].newest,
		.from_mark = STATE_MARK_NONE,
		.to_mark = STATE_MARK_NONE,
		.before = UINT64_MAX,
	};
	pairs_losses_apply(p, w);
	return w;
}

/* Marks the newest pair as ambiguous, because its end may belong to a begin after it. Likewise the
 * pairs before. */
static void newest_is_ambiguous(struct pairs *p, const struct pair_open *o)
{
	for (uint64_t i = o->newest; i != UINT64_MAX && i >= p->pending_first;) {
		struct pair_pending *w = pending_at(p, i);

		w->ambiguous = true;
		i = w->before;
	}
}

/* Takes two begins or two ends that follow each other. One of them has no partner, unless the
 * partner was lost. */
static uint64_t found_alone(struct pairs *p, unsigned stage, const struct pair_end *first,
			    const struct pair_end *second)
{
	pending_add(p, stage, first, second)->alone = true;
	return p->pending_end - 1;
}

/* Takes the marks and the fields. */
static void pair_found(struct pairs *p, struct pair_open *o, uint32_t from_mark, uint32_t to_mark)
{
	const uint64_t before = o->from_near ? o->newest : UINT64_MAX;
	struct pair_pending *w;
	int64_t duration = o->to.t.ns - o->from.t.ns;

	pair_rows_found(p, o->stage);
	w = pending_add(p, o->stage, &o->from, &o->to);
	o->newest = p->pending_end - 1;
	o->newest_to = o->to;
	o->after_pair = true;
	w->pair.key = o->key;
	w->order_unsure = o->from_near;
	w->before = before;
	w->from_mark = from_mark;
	w->to_mark = to_mark;
	w->from_fields = o->from_fields;
	w->to_fields = o->to_fields;
	o->from_fields = o->to_fields = NULL;
	w->pair.error_ns = error_of(&o->from, &o->to);
	/* The true duration is between 0 and this duration plus the error. */
	w->pair.duration_ns = duration > 0 ? duration : 0;
	if (duration < 0 && w->pair.error_ns != UINT64_MAX)
		w->pair.error_ns -= (uint64_t)-duration;
	if (from_mark == STATE_MARK_NONE || to_mark == STATE_MARK_NONE) {
		marks_drop(p, w);
		w->from_mark = w->to_mark = STATE_MARK_NONE;
	}
}

/* ---- open keys ---- */

static void from_drop(struct pairs *p, struct pair_open *o)
{
	mark_drop(p, o->from_mark);
	fields_drop(&o->from_fields);
	o->from_mark = STATE_MARK_NONE;
	o->has_from = o->from_maybe = o->from_follows = o->from_near = false;
}

static void to_drop(struct pairs *p, struct pair_open *o)
{
	mark_drop(p, o->to_mark);
	fields_drop(&o->to_fields);
	o->to_mark = STATE_MARK_NONE;
	o->has_to = o->to_ambiguous = o->to_follows = false;
}

/* Takes a begin without an end. If it came within the clocks' error after the end of the previous
 * pair, that end may belong to it. */
static void from_unpaired(struct pairs *p, struct pair_open *o, const struct pair_end *next)
{
	pair_rows_unpaired(p, o, true, next != NULL);
	if (o->from_near)
		newest_is_ambiguous(p, o);
	else if (next)
		o->alone = found_alone(p, o->stage, &o->from, next);
	from_drop(p, o);
}

/* Takes an end without a begin. */
static void to_unpaired(struct pairs *p, struct pair_open *o, bool now)
{
	if (!o->to_ambiguous)
		pair_rows_unpaired(p, o, false, now);
	if (o->to_follows)
		found_alone(p, o->stage, &o->newest_to, &o->to);
	to_drop(p, o);
}

/* The begin right after the end belongs to it, because nothing contradicts this. */
static void maybe_confirm(struct pairs *p, struct pair_open *o)
{
	if (o->to_ambiguous) {
		pair_row_of(p, o->stage, &o->key, o->to.t)->ambiguous++;
	} else {
		pair_found(p, o, o->from_mark, STATE_MARK_NONE);
		o->from_mark = STATE_MARK_NONE;
	}
	from_drop(p, o);
	to_drop(p, o);
}

static void open_close(struct pairs *p, struct pair_open *o)
{
	if (!o->used)
		return;
	if (o->has_from && o->from_maybe)
		maybe_confirm(p, o);
	if (o->has_from)
		from_unpaired(p, o, NULL);
	if (o->has_to)
		to_unpaired(p, o, false);
	o->used = false;
}

static struct pair_open *open_get(struct pairs *p, unsigned stage, const struct pair_key *key)
{
	const bool full = p->index.count == p->index.capacity;
	struct pair_open *o;
	bool fresh;

	o = &p->open[lru_put(&p->index, pair_key_hash(stage, key), &fresh)];
	if (!fresh)
		return o;
	p->limits.evicted += full && o->used && (o->has_from || o->has_to);
	open_close(p, o);
	*o = (struct pair_open){.used = true,
				.stage = stage,
				.key = *key,
				.newest = UINT64_MAX,
				.alone = UINT64_MAX,
				.from_mark = STATE_MARK_NONE,
				.to_mark = STATE_MARK_NONE};
	return o;
}

/* Returns true if a begin may be before the end of the newest pair. */
static bool begins_near(struct pairs *p, const struct pair_open *o, const struct pair_end *begin)
{
	if (o->newest == UINT64_MAX || begin->source == o->newest_to.source ||
	    begin->t.ns - o->newest_to.t.ns > pairs_doubt_ns(begin, &o->newest_to))
		return false;
	if (o->newest >= p->pending_first)
		pending_at(p, o->newest)->order_unsure = true;
	return true;
}

static void begins(struct pairs *p, struct pair_open *o, const struct pair_end *end, uint32_t mark)
{
	bool follows = o->has_from && !o->from_maybe;

	if (o->has_from && o->from_maybe)
		maybe_confirm(p, o);
	else if (o->has_from)
		from_unpaired(p, o, end);
	if (o->has_to &&
	    (end->source == o->to.source || end->t.ns - o->to.t.ns > pairs_doubt_ns(end, &o->to)))
		to_unpaired(p, o, true);
	o->after_pair = false;
	o->from_near = begins_near(p, o, end);
	o->from_maybe = o->has_to;
	o->from_follows = follows;
	o->from = *end;
	fields_take(p, &o->from_fields);
	o->has_from = true;
	o->from_mark = mark;
}

static bool same_vcpu(const struct pair_end *from, const struct pair_end *to)
{
	return from->vcpu_known &&
	       (!to->vcpu_known || (from->vm == to->vm && from->vcpu == to->vcpu));
}

/* The end may belong to either of two begins: the newest, or the one before. */
static bool is_ambiguous(const struct pair_open *o, const struct pair_end *end)
{
	return o->from.source != end->source &&
	       (o->from_maybe ||
		(o->from_follows && end->t.ns - o->from.t.ns <= pairs_doubt_ns(&o->from, end)));
}

static void to_take(struct pairs *p, struct pair_open *o, const struct pair_end *end)
{
	o->to = *end;
	fields_take(p, &o->to_fields);
}

/* Takes an end that may also belong to a begin right after it. */
static void ends_ambiguously(struct pairs *p, struct pair_open *o, const struct pair_end *end)
{
	pair_row_of(p, o->stage, &o->key, end->t)->ambiguous++;
	if (o->from_near)
		newest_is_ambiguous(p, o);
	/* The end may also belong to the begin before it. */
	if (o->from_follows && o->alone >= p->pending_first && o->alone != UINT64_MAX)
		pending_at(p, o->alone)->alone_maybe = true;
	from_drop(p, o);
	to_drop(p, o);
	to_take(p, o, end);
	o->has_to = o->to_ambiguous = true;
	o->after_pair = o->to_follows = false;
}

static void ends(struct pairs *p, struct pair_open *o, const struct pair_end *end)
{
	uint32_t mark = STATE_MARK_NONE;

	if (!o->has_from) {
		if (o->has_to) {
			if (!o->to_ambiguous)
				found_alone(p, o->stage, &o->to, end);
			to_unpaired(p, o, true);
		}
		to_take(p, o, end);
		o->has_to = true;
		o->to_ambiguous = false;
		o->to_follows = o->after_pair;
		o->after_pair = false;
		return;
	}
	if (is_ambiguous(o, end)) {
		ends_ambiguously(p, o, end);
		return;
	}
	to_take(p, o, end);
	if (same_vcpu(&o->from, end) && o->from_mark != STATE_MARK_NONE)
		mark = state_mark(p->marks, o->from.vm, o->from.vcpu, end->t);
	pair_found(p, o, o->from_mark, mark);
	o->from_mark = STATE_MARK_NONE;
	from_drop(p, o);
	o->has_to = false;
}

/* ---- events ---- */

static unsigned roles_of(struct event_row *row)
{
	const struct expr_value role =
		row->choice->role.n ? event_row_eval(row, &row->choice->role)
				    : (struct expr_value){.type = EXPR_SIGNED,
							  .number = EVENT_BEGINS | EVENT_ENDS};

	return role.type == EXPR_NONE ? 0 : (unsigned)role.number & (EVENT_BEGINS | EVENT_ENDS);
}

static void end_fill(struct event_row *row, struct pair_end *out)
{
	*out = (struct pair_end){
		.t = row->t,
		.err_ns = row->err_ns,
		.source = row->source,
		.cpu = row->event->cpu,
		.choice = (uint16_t)row->number,
		.tid = event_row_task(row),
		.vcpu_known = event_row_vcpu(row),
	};
	out->vm_known = row->vm_known;
	out->vm = row->vm;
	out->vcpu = row->vcpu;
}

/* Remembers the hit. Returns whether it was the last one, too: an event that several groups name is
 * passed once for each. */
static bool same_hit(struct trigger_hit *last, const struct event_row *row)
{
	const struct trigger_hit hit = {row->t, row->source, row->event->seq, row->event->cpu};
	const bool same = last->t.ns == hit.t.ns && last->source == hit.source &&
			  last->seq == hit.seq && last->cpu == hit.cpu;

	*last = hit;
	return same;
}

static void on_row(void *context, struct event_row *row)
{
	struct pairs *p = context;
	const struct event_choice *c = row->choice;
	struct pair_key key;
	struct pair_end end;
	unsigned roles;

	p->now = row->t;
	p->row = row;
	if (row->err_ns != UINT32_MAX && row->err_ns > p->worst_err_ns)
		p->worst_err_ns = row->err_ns;
	pending_advance(p, row->t);
	if ((c->untraced && !c->trigger) || !event_row_selected(row, p->options.narrow))
		return;
	if (c->trigger && !same_hit(&p->last_trigger, row))
		pair_rows_trigger(p, row->t);
	if (c->untraced)
		return;
	roles = roles_of(row);
	if (!roles)
		return;
	if (!pair_key_of(row, p->of_vm, &key)) {
		p->limits.without_key++;
		return;
	}
	end_fill(row, &end);
	/* The end comes first: what begins here must not count as its begin. */
	for (unsigned stage = 0; stage < p->n_stages; stage++) {
		if (roles & EVENT_ENDS && group_of_end(p, stage) == c->group)
			ends(p, open_get(p, stage, &key), &end);
	}
	for (unsigned stage = 0; stage < p->n_stages; stage++) {
		uint32_t mark = STATE_MARK_NONE;

		if (!(roles & EVENT_BEGINS) || stage != c->group)
			continue;
		if (end.vcpu_known && p->marks)
			mark = state_mark(p->marks, end.vm, end.vcpu, end.t);
		begins(p, open_get(p, stage, &key), &end, mark);
	}
}

/* ---- from outside ---- */

struct pairs *pairs_new(struct model *m, const struct event_choices *choices,
			const struct pairs_options *options)
{
	struct pairs *p = calloc(1, sizeof(*p));
	const struct event_sink sink = {
		.row = on_row, .lost = pairs_lost, .lost_over = pairs_lost_over, .context = p};

	if (!p)
		return NULL;
	p->choices = choices;
	p->options = *options;
	if (p->options.kept > PAIR_KEPT_MAX)
		p->options.kept = PAIR_KEPT_MAX;
	p->n_stages = pairs_stages(choices, options->cycle);
	p->of_vm = pairs_of_vm(choices);
	for (unsigned stage = 0; stage < p->n_stages; stage++)
		p->same[stage] = stage_has_same(p, stage);
	for (size_t i = 0; i < choices->n; i++) {
		p->bound[i] = key_names_cpu(&choices->items[i]);
		p->triggers |= options->with_intervals && choices->items[i].trigger;
	}
	if (!p->options.open_max)
		p->options.open_max = PAIR_OPEN_MAX;
	if (!p->options.pending_max)
		p->options.pending_max = PAIR_PENDING_MAX;
	p->open = calloc(p->options.open_max, sizeof(*p->open));
	p->pending_mask = PENDING_FIRST - 1;
	p->pending = calloc(PENDING_FIRST, sizeof(*p->pending));
	if (!p->open || !p->pending || lru_init(&p->index, p->options.open_max) ||
	    pair_rows_init(p))
		goto fail;
	/* The marks must receive a span before the pairs receive the event after it. */
	if (!options->without_states)
		p->marks = state_marks_new(m, p->options.open_max + 2 * p->options.pending_max);
	if (p->marks || options->without_states)
		p->reader = event_reader_new(m, choices, &sink);
	if (p->reader)
		return p;
fail:
	pairs_free(p);
	return NULL;
}

void pairs_free(struct pairs *p)
{
	if (!p)
		return;
	event_reader_free(p->reader);
	state_marks_free(p->marks);
	for (size_t i = 0; i < p->n_losses; i++)
		free(p->losses[i].newest);
	for (uint32_t i = 0; p->open && i < p->options.open_max; i++) {
		free(p->open[i].from_fields);
		free(p->open[i].to_fields);
	}
	for (uint32_t i = 0; p->pending && i <= p->pending_mask; i++) {
		free(p->pending[i].from_fields);
		free(p->pending[i].to_fields);
	}
	pair_rows_fini(p);
	lru_fini(&p->index);
	free(p->open);
	free(p->pending);
	free(p);
}

int pairs_finish(struct pairs *p)
{
	if (p->marks)
		state_marks_finish(p->marks);
	for (uint32_t i = 0; i < lru_slots(&p->index); i++)
		open_close(p, &p->open[i]);
	while (p->pending_first < p->pending_end)
		pending_settle(p);
	pair_rows_complete(p);
	if (pair_rows_decide(p))
		p->rows.out_of_memory = true;
	pair_rows_sort(p);
	return p->rows.out_of_memory ? -ENOMEM : 0;
}

struct pairs_limits pairs_limits_get(const struct pairs *p)
{
	return p->limits;
}

static void group_name(const struct pairs *p, unsigned group, char *out, size_t out_bytes)
{
	size_t used = 0;

	*out = 0;
	for (size_t i = 0; i < p->choices->n && used < out_bytes; i++) {
		const struct event_choice *c = &p->choices->items[i];

		if (c->group == group && !c->untraced)
			used += (size_t)snprintf(out + used, out_bytes - used, "%s%s",
						 used ? "|" : "", c->name);
	}
}

const char *pairs_stage_name(const struct pairs *p, unsigned stage, char *out, size_t out_bytes)
{
	char from[256], to[256];

	group_name(p, stage, from, sizeof(from));
	group_name(p, group_of_end(p, stage), to, sizeof(to));
	snprintf(out, out_bytes, "%s -> %s", from, to);
	return out;
}
