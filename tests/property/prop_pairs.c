// SPDX-License-Identifier: GPL-2.0-only
/*
 * Pairs against the truth: MSIs of the host to four vCPUs, each followed by the guest's handler
 * after a random time, with stamps of the guest that are off by up to the error that they state.
 * Some events are lost.
 *
 * The truth: without losses each pair is found, and only these, with a duration that is right
 * within its error. With losses no pair is invented, and each pair whose events were both delivered
 * is counted: as a call, or as incomplete or ambiguous.
 */
#include <stdlib.h>

#include "host-collector/analyze/event/pairs.h"
#include "tests/unit/model_script.h"

#define US 1000ll

enum { VCPUS = 4, PAIRS = 15, RUNS = 4000, EVENTS = 4 * VCPUS * PAIRS + 2 * VCPUS };

struct true_pair {
	int64_t from, to;           /* true times */
	int64_t from_seen, to_seen; /* stamps */
	bool from_lost, to_lost;
};

struct scene {
	struct true_pair pairs[VCPUS][PAIRS];
	struct timeline_event events[EVENTS];
	size_t n;
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

static struct timeline_event lost_event(const struct timeline_event *like, uint64_t count)
{
	struct timeline_event e = *like;

	e.event = (struct vs_event){
		.cpu = like->event.cpu, .type = VS_EVENT_LOST, .time = 1, .arg0 = count};
	return e;
}

/* Replaces lost events by LOST before the next event of their CPU, or at the end. */
static void losses_mark(struct scene *s, uint64_t permille)
{
	uint64_t lost[2][VCPUS] = {{0}};
	struct timeline_event out[EVENTS];
	size_t n = 0;

	for (size_t i = 0; i < s->n; i++) {
		const struct timeline_event *e = &s->events[i];
		uint64_t *here = &lost[e->source != HOST][e->event.cpu];

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
			out[n++] = lost_event(e, *here);
			*here = 0;
		}
		out[n++] = *e;
	}
	for (size_t i = 0; i < 2ull * VCPUS; i++) {
		struct timeline_event last = s->events[s->n - 1];

		last.source = i < VCPUS ? HOST : VM;
		last.event.cpu = (uint16_t)(i % VCPUS);
		if (lost[i / VCPUS][i % VCPUS])
			out[n++] = lost_event(&last, lost[i / VCPUS][i % VCPUS]);
	}
	memcpy(s->events, out, n * sizeof(out[0]));
	s->n = n;
}

static void scene_make(struct scene *s, uint32_t err_ns, uint64_t permille)
{
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
			event_add(s, VM, p->to_seen, (uint16_t)v, VS_EVENT_IRQ_ENTRY, 24, err_ns);
			t += 20 * US + (int64_t)random_below(30 * US);
		}
	}
	qsort(s->events, s->n, sizeof(s->events[0]), by_time);
	losses_mark(s, permille);
}

struct counted {
	uint64_t calls, delivered, accounted, unpaired, ambiguous;
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

static void scene_run(const struct scene *s, struct counted *out)
{
	const struct pairs_options options = {.kept = PAIR_KEPT_MAX};
	struct model *m = model_new();
	struct event_choices choices;
	const struct pair_row *row;
	const struct pair *pair;
	struct expr_error error;
	struct pairs *p;

	assert_int_equal(event_choices_init(&choices), 0);
	assert_int_equal(event_choices_add(&choices, "kvm:kvm_msi_set_irq", &error), 0);
	assert_int_equal(event_choices_add(&choices, "irq:irq_handler_entry", &error), 0);
	assert_int_equal(event_choices_key(&choices, "vcpu", &error), 0);
	p = pairs_new(m, &choices, &options);
	assert_non_null(p);
	script_vm(m, VCPUS, "kvm");
	script_run(m, s->events, s->n);
	model_finish(m);
	assert_int_equal(pairs_finish(p), 0);
	row = pairs_row(p, 0);
	/* All of them are kept. */
	assert_true(row->times.count <= PAIR_KEPT_MAX);
	for (size_t i = 0; (pair = pairs_kept(p, i)); i++) {
		if (!is_true(s, pair))
			fail_msg("invented: %lld to %lld", (long long)pair->from.t.ns,
				 (long long)pair->to.t.ns);
	}
	out->calls += row->times.count;
	out->accounted += row->times.count + row->incomplete + row->ambiguous;
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

static struct counted many(uint32_t err_ns, uint64_t permille)
{
	static struct scene scene;
	struct counted c = {0};

	for (int i = 0; i < RUNS / 4; i++) {
		scene_make(&scene, err_ns, permille);
		scene_run(&scene, &c);
	}
	print_message("error %u ns, %llu of 1000 lost: %llu delivered, %llu calls, %llu accounted, "
		      "%llu ambiguous, %llu unpaired\n",
		      err_ns, (unsigned long long)permille, (unsigned long long)c.delivered,
		      (unsigned long long)c.calls, (unsigned long long)c.accounted,
		      (unsigned long long)c.ambiguous, (unsigned long long)c.unpaired);
	return c;
}

static void test_all_pairs_are_found_without_losses(void **state)
{
	struct counted c;

	(void)state;
	c = many(0, 0);
	assert_int_equal(c.calls, c.delivered);
	assert_int_equal(c.unpaired, 0);
	/* Some stamps have the wrong order. Two of them in a row are ambiguous. */
	c = many(4000, 0);
	assert_int_equal(c.calls + c.ambiguous + c.unpaired, c.delivered);
	assert_true(1000 * c.calls >= 998 * c.delivered);
}

static void test_none_is_invented_where_events_were_lost(void **state)
{
	static const uint64_t permilles[] = {10, 200};
	struct counted c;

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		c = many(0, permilles[i]);
		assert_true(c.accounted >= c.delivered);
		c = many(4000, permilles[i]);
		assert_true(1000 * c.accounted >= 999 * c.delivered);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all_pairs_are_found_without_losses),
		cmocka_unit_test(test_none_is_invented_where_events_were_lost),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
