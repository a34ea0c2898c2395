// SPDX-License-Identifier: GPL-2.0-only
/*
 * Pairs against the truth: MSIs of the host to four vCPUs, each followed by the guest's handler
 * after a random time, with stamps of the guest that are off by up to the error that they state.
 * Some events are lost.
 *
 * The truth: without losses each pair is found, and only these, with a duration that is right
 * within its error. With losses no pair is invented, also if some MSIs have no handler; except, at
 * 1 % of losses, at most 0.1 % of the calls, and only of those with losses between their events. If
 * each MSI has a handler, then 99.9 % of the pairs whose events were both delivered are calls. The
 * same holds for a live joiner, which decides in rounds, after its first round. The
 * pairs between whose events an end and then a begin may have been lost are counted exactly, as a
 * second reading of the losses finds them.
 */
#include <stdlib.h>

#include "host-collector/analyze/event/pairs.h"
#include "tests/unit/model_script.h"

#define US 1000ll

enum { VCPUS = 4, PAIRS = 1000, RUNS = 12, EVENTS = 4 * VCPUS * PAIRS + 2 * VCPUS };

struct true_pair {
	int64_t from, to;           /* true times */
	int64_t from_seen, to_seen; /* stamps */
	bool from_lost, to_lost;    /* or no handler */
};

struct true_loss {
	bool guest;
	uint16_t cpu;
	uint64_t count;
	int64_t since, until;
};

struct scene {
	struct true_pair pairs[VCPUS][PAIRS];
	struct timeline_event events[EVENTS];
	size_t n;
	struct true_loss losses[EVENTS];
	size_t n_losses;
};

static uint64_t state_of_random = 1;

static uint64_t random_below(uint64_t n)
{
	state_of_random ^= state_of_random << 13;
	state_of_random ^= state_of_random >> 7;
	state_of_random ^= state_of_random << 17;
	return state_of_random % n;
}

static void event_add(struct scene *s, uint32_t source, int64_t t, uint16_t cpu, uint16_t type,
		      uint64_t arg0, uint32_t err_ns)
{
	s->events[s->n++] = (struct timeline_event){
		.t = {t},
		.err_ns = err_ns,
		.source = source,
		.event = {.cpu = cpu, .type = type, .pid = QEMU, .arg0 = arg0},
	};
}

static int by_time(const void *a, const void *b)
{
	const struct timeline_event *x = a, *y = b;

	return x->t.ns < y->t.ns ? -1 : x->t.ns > y->t.ns;
}

/* As captures write it: at the time of the newest event before, `time` and `arg1` say that the loss
 * ends later. In old streams it has the time of its end. */
static struct timeline_event lost_event(const struct timeline_event *next, uint64_t count,
					int64_t since, bool old)
{
	struct timeline_event e = *next;

	e.event = (struct vs_event){.cpu = next->event.cpu,
				    .type = VS_EVENT_LOST,
				    .time = 1,
				    .arg0 = count,
				    .arg1 = old ? 0 : 2};
	if (!old)
		e.t.ns = since == INT64_MIN ? 0 : since + 1;
	return e;
}

/* Of a CPU: lost since its event before, until `now`. */
static void loss_note(struct scene *s, bool guest, uint16_t cpu, uint64_t count, int64_t since,
		      int64_t now)
{
	s->losses[s->n_losses++] = (struct true_loss){guest, cpu, count, since, now};
}

/* Replaces lost events by LOST before the next event of their CPU, or at the end. */
static void losses_mark(struct scene *s, uint64_t permille, bool old)
{
	static struct timeline_event out[EVENTS];
	uint64_t lost[2][VCPUS] = {{0}};
	int64_t last[2][VCPUS];
	size_t n = 0;

	s->n_losses = 0;
	for (size_t i = 0; i < 2ull * VCPUS; i++)
		last[i / VCPUS][i % VCPUS] = INT64_MIN;

	for (size_t i = 0; i < s->n; i++) {
		const struct timeline_event *e = &s->events[i];
		const bool guest = e->source != HOST;
		uint64_t *here = &lost[guest][e->event.cpu];

		if (random_below(1000) < permille) {
			++*here;
			for (size_t v = 0; v < VCPUS; v++) {
				for (size_t k = 0; k < PAIRS; k++) {
					struct true_pair *p = &s->pairs[v][k];

					p->from_lost |=
						e->source == HOST && p->from_seen == e->t.ns;
					p->to_lost |= e->source != HOST && p->to_seen == e->t.ns;
				}
			}
			continue;
		}
		if (*here) {
			out[n++] = lost_event(e, *here, last[guest][e->event.cpu], old);
			loss_note(s, guest, e->event.cpu, *here, last[guest][e->event.cpu],
				  e->t.ns);
			*here = 0;
		}
		last[guest][e->event.cpu] = e->t.ns;
		out[n++] = *e;
	}
	for (size_t i = 0; i < 2ull * VCPUS; i++) {
		struct timeline_event end = s->events[s->n - 1];

		end.source = i < VCPUS ? HOST : VM;
		end.event.cpu = (uint16_t)(i % VCPUS);
		if (!lost[i / VCPUS][i % VCPUS])
			continue;
		out[n++] = lost_event(&end, lost[i / VCPUS][i % VCPUS], last[i / VCPUS][i % VCPUS],
				      old);
		loss_note(s, i >= VCPUS, end.event.cpu, lost[i / VCPUS][i % VCPUS],
			  last[i / VCPUS][i % VCPUS], end.t.ns);
	}
	memcpy(s->events, out, n * sizeof(out[0]));
	s->n = n;
	if (!old)
		qsort(s->events, n, sizeof(s->events[0]), by_time);
}

struct setting {
	uint32_t err_ns;   /* of the guest's stamps */
	uint64_t lost;     /* of 1,000 events */
	bool old;          /* form of the losses */
	uint64_t partless; /* of 1,000 MSIs: they have no handler */
	uint64_t round;    /* pairs of a round; 0: all are decided at the end */
};

static void scene_make(struct scene *s, const struct setting *set)
{
	const uint32_t err_ns = set->err_ns;

	s->n = 0;
	memset(s->pairs, 0, sizeof(s->pairs));
	for (uint32_t v = 0; v < VCPUS; v++) {
		int64_t t = 100 * US + (int64_t)random_below(50 * US);

		for (size_t k = 0; k < PAIRS; k++) {
			struct true_pair *p = &s->pairs[v][k];

			/* Stamps differ: what is lost is found by its stamp. */
			p->from = p->from_seen = t * VCPUS + v;
			p->to = p->from + 4 * (int64_t)random_below(10 * US);
			p->to_seen = p->to + 4 * ((int64_t)random_below(2ull * err_ns / 4 + 1) -
						  err_ns / 4);
			event_add(s, HOST, p->from_seen, (uint16_t)random_below(VCPUS),
				  VS_EVENT_KVM_MSI, 0xfee00000u | v << 12, 0);
			p->to_lost = random_below(1000) < set->partless;
			if (!p->to_lost)
				event_add(s, VM, p->to_seen, (uint16_t)v, VS_EVENT_IRQ_ENTRY, 24,
					  err_ns);
			t += 20 * US + (int64_t)random_below(30 * US);
		}
	}
	qsort(s->events, s->n, sizeof(s->events[0]), by_time);
	losses_mark(s, set->lost, set->old);
}

/* ---- a second reading of the losses, without errors ---- */

static bool loss_is_within(const struct true_loss *l, int64_t from, int64_t to)
{
	return l->since < to && l->until > from;
}

/* An end of this vCPU may have been lost between both, and then a begin. */
static bool is_torn(const struct scene *s, uint16_t vcpu, int64_t from, int64_t to)
{
	for (size_t i = 0; i < s->n_losses; i++) {
		const struct true_loss *end = &s->losses[i];

		if (!end->guest || end->cpu != vcpu || !loss_is_within(end, from, to))
			continue;
		for (size_t k = 0; k < s->n_losses; k++) {
			const struct true_loss *begin = &s->losses[k];

			if (!begin->guest && loss_is_within(begin, from, to) &&
			    (end->since > from ? end->since : from) <=
				    (begin->until < to ? begin->until : to))
				return true;
		}
	}
	return false;
}

/* Counts the torn ones of all begins that an end of their vCPU follows. */
static uint64_t torn_count(const struct scene *s)
{
	int64_t begin[VCPUS];
	uint64_t n = 0;

	memset(begin, 0, sizeof(begin));
	for (size_t i = 0; i < s->n; i++) {
		const struct timeline_event *e = &s->events[i];

		if (e->event.type == VS_EVENT_KVM_MSI) {
			begin[e->event.arg0 >> 12 & 0xff] = e->t.ns;
		} else if (e->event.type == VS_EVENT_IRQ_ENTRY && begin[e->event.cpu]) {
			n += is_torn(s, e->event.cpu, begin[e->event.cpu], e->t.ns);
			begin[e->event.cpu] = 0;
		}
	}
	return n;
}

/* ---- the runs ---- */

struct counted {
	uint64_t calls, past_both, invented, delivered, incomplete, torn, ambiguous, unpaired;
};

static bool is_true(const struct scene *s, const struct pair *pair)
{
	for (size_t k = 0; k < PAIRS; k++) {
		const struct true_pair *p = &s->pairs[pair->to.vcpu][k];

		if (p->from_seen != pair->from.t.ns || p->to_seen != pair->to.t.ns)
			continue;
		return llabs(pair->duration_ns - (p->to - p->from)) <= (int64_t)pair->error_ns;
	}
	return false;
}

struct found {
	const struct scene *scene;
	const struct pairs *pairs;
	/* Of certain pairs, of those past losses, and of those past both. */
	uint64_t n[3], invented[3];
	/* Of these, calls, and those whose round has not ended. */
	uint64_t calls[3], invented_calls[3], waiting[3], invented_waiting[3];
};

/* Takes the decision about pairs that waited for it: all of a kind are calls, or none is. */
static void waiting_take(struct found *f, const struct pair_row *row, bool is_over)
{
	const uint64_t calls[] = {0, row->calls_past_losses - row->calls_past_both,
				  row->calls_past_both};
	const uint64_t waiting[] = {0, row->past_losses.times.count, row->past_both.times.count};

	for (int i = 1; i < 3; i++) {
		if (f->waiting[i] == waiting[i] && !is_over)
			continue;
		if (calls[i] > f->calls[i]) {
			assert_int_equal(calls[i], f->calls[i] + f->waiting[i]);
			f->calls[i] = calls[i];
			f->invented_calls[i] += f->invented_waiting[i];
		}
		f->waiting[i] = f->invented_waiting[i] = 0;
	}
}

static void on_settled(void *context, const struct pair *pair)
{
	struct found *f = context;
	const int kind = pair->past_losses + pair->past_both;
	const bool invented = !is_true(f->scene, pair);
	struct pair_row row = *pairs_row(f->pairs, 0);

	/* As it was before this pair. */
	row.calls_past_losses -= pair->is_call && kind;
	row.calls_past_both -= pair->is_call && kind == 2;
	row.past_losses.times.count -= !pair->is_call && kind == 1;
	row.past_both.times.count -= !pair->is_call && kind == 2;
	waiting_take(f, &row, false);
	f->n[kind]++;
	f->invented[kind] += invented;
	f->calls[kind] += pair->is_call;
	f->invented_calls[kind] += pair->is_call && invented;
	f->waiting[kind] += !pair->is_call;
	f->invented_waiting[kind] += !pair->is_call && invented;
}

static void scene_run(const struct scene *s, uint64_t round_pairs, struct counted *out)
{
	struct found found = {.scene = s};
	const struct pairs_options options = {
		.settled = on_settled, .context = &found, .round_pairs = round_pairs};
	struct model *m = model_new();
	struct event_choices choices;
	const struct pair_row *row;
	struct expr_error error;
	struct pairs *p;

	assert_int_equal(event_choices_init(&choices), 0);
	assert_int_equal(event_choices_add(&choices, "kvm:kvm_msi_set_irq", &error), 0);
	assert_int_equal(event_choices_add(&choices, "irq:irq_handler_entry", &error), 0);
	assert_int_equal(event_choices_key(&choices, "vcpu", &error), 0);
	p = pairs_new(m, &choices, &options);
	assert_non_null(p);
	found.pairs = p;
	script_vm(m, VCPUS, "kvm");
	script_run(m, s->events, s->n);
	model_finish(m);
	assert_int_equal(pairs_finish(p), 0);
	row = pairs_row(p, 0);
	waiting_take(&found, row, true);
	assert_int_equal(found.invented[0], 0);
	assert_int_equal(row->calls.times.count, found.n[0] + row->calls_past_losses);
	assert_int_equal(row->calls_past_losses, found.calls[1] + found.calls[2]);
	assert_int_equal(row->calls_past_both, found.calls[2]);
	if (!round_pairs) {
		assert_true(!found.calls[2] || found.calls[2] == found.n[2]);
		assert_true(!found.calls[1] || found.calls[1] == found.n[1]);
	}
	out->past_both += row->calls_past_both;
	out->invented += found.invented_calls[1] + found.invented_calls[2];
	out->calls += row->calls.times.count;
	out->incomplete += row->incomplete;
	out->torn += torn_count(s);
	out->ambiguous += row->ambiguous;
	out->unpaired += row->unpaired_from + row->unpaired_to;
	for (size_t v = 0; v < VCPUS; v++) {
		for (size_t k = 0; k < PAIRS; k++)
			out->delivered += !s->pairs[v][k].from_lost && !s->pairs[v][k].to_lost;
	}
	pairs_free(p);
	model_free(m);
	event_choices_fini(&choices);
}

static struct counted many(struct setting set)
{
	static struct scene scene;
	struct counted c = {0};

	for (int i = 0; i < RUNS; i++) {
		scene_make(&scene, &set);
		scene_run(&scene, set.round, &c);
	}
	print_message(
		"error %u ns, of 1000 %d lost, %d without handler, rounds of %d: %d delivered, %d calls, "
		"%d incomplete (%d torn), %d ambiguous, %d unpaired, %d past both, "
		"%d invented\n",
		set.err_ns, (int)set.lost, (int)set.partless, (int)set.round, (int)c.delivered,
		(int)c.calls, (int)c.incomplete, (int)c.torn, (int)c.ambiguous, (int)c.unpaired,
		(int)c.past_both, (int)c.invented);
	return c;
}

static void test_all_pairs_are_found_without_losses(void **state)
{
	struct counted c;

	(void)state;
	c = many((struct setting){.err_ns = 0, .lost = 0, .partless = 0});
	assert_int_equal(c.calls, c.delivered);
	assert_int_equal(c.unpaired, 0);
	/* Some stamps have the wrong order. Two of them in a row are ambiguous. */
	c = many((struct setting){.err_ns = 4000, .lost = 0, .partless = 0});
	assert_int_equal(c.calls + c.ambiguous, c.delivered);
	assert_int_equal(c.unpaired, 0);
	assert_true(1000 * c.calls >= 998 * c.delivered);
}

static void test_delivered_pairs_are_found_at_one_percent_of_losses(void **state)
{
	struct counted c = many((struct setting){.err_ns = 0, .lost = 10, .partless = 0});

	(void)state;
	assert_int_equal(c.incomplete + c.past_both, c.torn);
	assert_true(1000 * (c.calls - c.invented) >= 999 * c.delivered);
	assert_true(1000 * c.invented <= c.calls);
	c = many((struct setting){.lost = 10, .old = true});
	assert_int_equal(c.incomplete + c.past_both, c.torn);
	assert_true(1000 * (c.calls - c.invented) >= 999 * c.delivered);
	assert_true(1000 * c.invented <= c.calls);
	/* With errors also those are incomplete whose neighbours may have the other order. */
	c = many((struct setting){.err_ns = 4000, .lost = 10, .partless = 0});
	assert_true(1000 * (c.calls + c.incomplete + c.ambiguous) >= 999 * c.delivered);
}

static void test_none_is_invented_where_events_were_lost(void **state)
{
	struct counted c;

	(void)state;
	c = many((struct setting){.err_ns = 0, .lost = 200, .partless = 0});
	assert_int_equal(c.invented, 0);
	assert_true(c.calls + c.incomplete >= c.delivered);
	c = many((struct setting){.err_ns = 4000, .lost = 200, .partless = 0});
	assert_int_equal(c.invented, 0);
	assert_true(1000 * (c.calls + c.incomplete + c.ambiguous) >= 999 * c.delivered);
}

/* Then a single loss is enough to make a wrong pair. */
static void test_none_is_invented_where_some_events_have_no_partner(void **state)
{
	static const uint64_t losses[] = {10, 50, 200}, partless[] = {5, 30, 200};
	struct counted c;

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		for (size_t k = 0; k < 3; k++) {
			c = many((struct setting){
				.err_ns = 0, .lost = losses[i], .partless = partless[k]});
			assert_true(1000 * c.invented <= (losses[i] > 10 ? 0 : c.calls));
		}
	}
	many((struct setting){.err_ns = 4000, .lost = 10, .partless = 30});
}

/* A live joiner: the rule is that of a recording, with the evidence of two rounds. */
static void test_a_live_joiner_decides_as_a_recording_does(void **state)
{
	static const uint64_t losses[] = {10, 50, 200};
	struct counted c;

	(void)state;
	c = many((struct setting){.lost = 10, .round = 1000});
	assert_true(c.past_both > 0);
	assert_true(1000 * (c.calls - c.invented) >= 995 * c.delivered);
	assert_true(1000 * c.invented <= c.calls);
	for (size_t i = 1; i < 3; i++) {
		c = many((struct setting){.lost = losses[i], .round = 1000});
		assert_int_equal(c.invented, 0);
		assert_true(c.calls + c.incomplete >= c.delivered);
	}
	for (size_t i = 0; i < 3; i++) {
		c = many((struct setting){.lost = losses[i], .partless = 30, .round = 1000});
		assert_true(1000 * c.invented <= (losses[i] > 10 ? 0 : c.calls));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all_pairs_are_found_without_losses),
		cmocka_unit_test(test_delivered_pairs_are_found_at_one_percent_of_losses),
		cmocka_unit_test(test_none_is_invented_where_events_were_lost),
		cmocka_unit_test(test_none_is_invented_where_some_events_have_no_partner),
		cmocka_unit_test(test_a_live_joiner_decides_as_a_recording_does),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
