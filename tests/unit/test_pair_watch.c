// SPDX-License-Identifier: GPL-2.0-only
/* Tests pairs that a configuration names, in a live model: counts and reports, and events that
 * become known while other events arrive. */
#include <errno.h>
#include <stdlib.h>

#include "host-collector/view/pair_text.h"
#include "proto/event_fields.h"
#include "proto/user_event.h"
#include "tests/unit/model_script.h"

#define US            1000ll
#define MSI(T_US)     EVENT(HOST, T_US, 0, KVM_MSI, QEMU, 0, 0xfee00000, 0x25)
#define HANDLER(T_US) IRQ(T_US, 0, IRQ_ENTRY, 50, 24)

struct heard {
	struct model *model;
	struct pair_watch *watch;
	size_t n_over, n_said;
	char over[64][256], said[4][512];
};

static void on_over(void *context, const struct pair_definition *d, const struct pair *pair)
{
	struct heard *h = context;

	assert_true(pair->duration_ns > 0);
	assert_true(h->n_over < 64);
	pair_over_text(d, pair, h->over[h->n_over++], sizeof(h->over[0]));
}

static void on_uncounted(void *context, const struct pair_definition *d,
			 const struct pair_unknown *why)
{
	struct heard *h = context;

	assert_true(h->n_said < 4);
	pair_uncounted_text(d, why, h->said[h->n_said++], sizeof(h->said[0]));
}

static void begin(struct heard *h, const struct pair_definition *definitions, size_t n)
{
	const struct pair_watch_options options = {.definitions = definitions,
						   .n = n,
						   .over = on_over,
						   .uncounted = on_uncounted,
						   .context = h};

	memset(h, 0, sizeof(*h));
	h->model = model_new();
	assert_non_null(h->model);
	h->watch = pair_watch_new(h->model, &options);
	assert_non_null(h->watch);
	script_vm(h->model, 2, "kvm");
}

static void end(struct heard *h)
{
	model_free(h->model);
	pair_watch_free(h->watch);
}

#define RUN(h, ...)                                                                                \
	do {                                                                                       \
		const struct timeline_event story_[] = {__VA_ARGS__};                              \
		script_run((h)->model, story_, COUNT(story_));                                     \
	} while (0)

static const struct pair_definition msi = {.name = "msi",
					   .from = "host:kvm:kvm_msi_set_irq",
					   .to = "guest:irq:irq_handler_entry",
					   .than_ns = 10 * US};

static void pairs_are_counted_and_long_ones_reported(void **state)
{
	struct pair_watch_counts counts;
	struct heard h;

	(void)state;
	begin(&h, &msi, 1);
	RUN(&h, MSI(10), HANDLER(15), MSI(20), HANDLER(32), MSI(40), HANDLER(60), HANDLER(70),
	    /* More than a second later. */
	    MSI(1100000), HANDLER(1100011), MSI(1900000));
	pair_watch_tick(h.watch);
	assert_true(pair_watch_get(h.watch, 0, &counts));
	assert_string_equal(counts.name, "msi");
	assert_int_equal(counts.times->count, 4);
	assert_int_equal(counts.times->max_ns, 20 * US);
	assert_int_equal(counts.over, 3);
	assert_int_equal(counts.unpaired, 1);
	assert_false(pair_watch_get(h.watch, 1, &counts));
	/* One of two within a second. */
	assert_int_equal(h.n_over, 2);
	assert_string_equal(h.over[0],
			    "the pair msi took 0.012 ms (error 0.000 ms), key 0, vCPU 0");
	assert_string_equal(h.over[1],
			    "the pair msi took 0.011 ms (error 0.000 ms), key 0, vCPU 0");
	assert_int_equal(h.n_said, 0);
	end(&h);
}

struct each {
	size_t n, calls;
	char names[8][PAIR_NAME_BYTES];
	int64_t ns[8];
};

static void on_each(void *context, const struct pair_definition *d,
		    const struct event_choices *choices, const struct pair *pair)
{
	struct each *e = context;

	assert_true(e->n < 8);
	assert_string_equal(choices->items[pair->from.choice].name, d->from);
	assert_string_equal(choices->items[pair->to.choice].name, d->to);
	assert_non_null(pair->from_fields);
	snprintf(e->names[e->n], sizeof(e->names[0]), "%s", d->name);
	e->ns[e->n++] = pair->duration_ns;
	e->calls += pair->is_call;
}

static void each_long_pair_is_shown(void **state)
{
	static const struct pair_definition two[] = {{.name = "long",
						      .from = "host:kvm:kvm_msi_set_irq",
						      .to = "guest:irq:irq_handler_entry",
						      .than_ns = 10 * US},
						     {.name = "all",
						      .from = "host:kvm:kvm_msi_set_irq",
						      .to = "guest:irq:irq_handler_entry"}};
	struct each each = {.n = 0};
	const struct pair_watch_options options = {
		.definitions = two, .n = 2, .each = on_each, .with_fields = true, .context = &each};
	/* An event of the host may be lost after the second MSI. */
	struct timeline_event story[] = {MSI(10), HANDLER(15),       MSI(20),    HANDLER(32),
					 MSI(40), LOST(HOST, 45, 0), HANDLER(60)};
	struct heard h = {.n_over = 0};

	(void)state;
	h.model = model_new();
	assert_non_null(h.model);
	h.watch = pair_watch_new(h.model, &options);
	assert_non_null(h.watch);
	script_vm(h.model, 2, "kvm");
	story[5].event.arg0 = 1;
	script_run(h.model, story, COUNT(story));
	assert_int_equal(each.n, 0); /* reports of losses may be late */
	assert_int_equal(pair_watch_finish(h.watch), 0);
	assert_int_equal(each.n, 5);
	for (size_t i = 0; i < each.n; i++) {
		static const int64_t want_us[] = {12, 20, 5, 12, 20};

		assert_string_equal(each.names[i], i < 2 ? "long" : "all");
		assert_int_equal(each.ns[i], want_us[i] * US);
	}
	assert_int_equal(each.calls, 3); /* the last of each is past a loss */
	end(&h);
}

static void lost_events_make_no_pair(void **state)
{
	struct pair_watch_counts counts;
	struct heard h;

	(void)state;
	begin(&h, &msi, 1);
	RUN(&h, MSI(10), HANDLER(11), MSI(20), LOST(VM, 30, 0), LOST(HOST, 31, 0), HANDLER(60),
	    MSI(1000000));
	assert_true(pair_watch_get(h.watch, 0, &counts));
	assert_int_equal(counts.times->count, 1);
	assert_int_equal(counts.incomplete, 1);
	assert_int_equal(h.n_over, 0);
	end(&h);
}

/* `n` pairs of 5 us, 1 ms after each other; a begin after every `every`-th one was lost. */
static void many(struct heard *h, int64_t *t_us, int n, int every)
{
	for (int i = 0; i < n; i++, *t_us += 1000) {
		const struct timeline_event pair[] = {MSI(*t_us), HANDLER(*t_us + 5)};

		script_run(h->model, pair, COUNT(pair));
		if (every && i % every == every - 1) {
			/* One event of the host, between both. */
			struct timeline_event lost[] = {MSI(*t_us + 20), LOST(HOST, *t_us + 25, 0),
							HANDLER(*t_us + 55)};

			lost[1].event.arg0 = 1;
			script_run(h->model, lost, COUNT(lost));
		}
	}
}

/* As in a recording, but in rounds. */
static void pairs_past_rare_losses_are_calls(void **state)
{
	const int round = PAIR_ROUND_PAIRS;
	struct pair_watch_counts counts;
	struct heard h;
	int64_t t_us = 10;
	uint64_t past;

	(void)state;
	begin(&h, &msi, 1);
	/* In the first round they wait for its end. None is reported. */
	many(&h, &t_us, round / 2, 200);
	assert_true(pair_watch_get(h.watch, 0, &counts));
	past = counts.undecided;
	assert_in_range(past, 1, round / 2 / 200);
	assert_int_equal(counts.incomplete, 0);
	assert_int_equal(counts.over, 0);
	many(&h, &t_us, round, 200);
	assert_true(pair_watch_get(h.watch, 0, &counts));
	assert_int_equal(counts.undecided, 0);
	assert_int_equal(counts.incomplete, 0);
	assert_true(counts.over > past);
	/* From then on they are calls at once, and reported. */
	past = counts.over;
	h.n_over = 0;
	many(&h, &t_us, 1000, 200);
	many(&h, &t_us, 3000, 0);
	assert_true(pair_watch_get(h.watch, 0, &counts));
	assert_int_equal(counts.undecided, 0);
	assert_true(counts.over > past);
	assert_true(h.n_over >= 1);
	assert_true(counts.times->count > (uint64_t)round);
	end(&h);
}

/* ---- events that a user chose ---- */

static struct timeline_event hit(int64_t t_us, uint32_t id, uint64_t value)
{
	return (struct timeline_event){
		.t = {t_us * US},
		.source = HOST,
		.event = {.cpu = 1,
			  .type = VS_EVENT_USER,
			  .pid = 77,
			  .pid2 = (int32_t)id,
			  .arg0 = value},
	};
}

static void describe(struct model *m, uint32_t id, const char *name)
{
	struct message_user_events *events = calloc(1, sizeof(*events));
	struct message_user_event *e;

	assert_non_null(events);
	events->n = 1;
	e = &events->events[0];
	*e = (struct message_user_event){.id = id,
					 .kind = USER_TRACEPOINT,
					 .system = "my",
					 .n_fields = 1,
					 .fields = {{"job", USER_UNSIGNED, 8}}};
	snprintf(e->name, sizeof(e->name), "%s", name);
	assert_int_equal(user_events_learn(model_user_events(m), VS_SOURCE_HOST, events), 0);
	free(events);
}

static void chosen_events_are_counted_once_they_are_known(void **state)
{
	static const struct pair_definition definitions[] = {
		{.name = "jobs", .from = "my:job_begin", .to = "my:job_end", .key = "job"},
		{.name = "never", .from = "my:nothing", .to = "my:job_end"}};
	struct pair_watch_counts counts;
	struct heard h;

	(void)state;
	begin(&h, definitions, 2);
	RUN(&h, hit(10, 1, 5), hit(20, 2, 5)); /* their descriptions are missing */
	describe(h.model, 1, "job_begin");
	pair_watch_tick(h.watch);
	RUN(&h, hit(30, 1, 6), hit(40, 2, 6)); /* one is missing */
	describe(h.model, 2, "job_end");
	pair_watch_tick(h.watch);
	RUN(&h, hit(50, 1, 7), hit(55, 1, 8), hit(60, 2, 7), hit(75, 2, 8), hit(80, 2, 9),
	    hit(1000000, 1, 9));
	assert_true(pair_watch_get(h.watch, 0, &counts));
	assert_int_equal(counts.times->count, 2);
	assert_int_equal(counts.times->sum_ns, 30 * US);
	for (int i = 0; i < 100; i++)
		pair_watch_tick(h.watch);
	assert_int_equal(h.n_said, 1);
	assert_non_null(strstr(h.said[0], "pair never is not counted: from: "));
	assert_true(pair_watch_get(h.watch, 1, &counts));
	assert_int_equal(counts.times->count, 0);
	end(&h);
}

static void what_is_no_event_is_refused(void **state)
{
	static const struct {
		struct pair_definition definition;
		const char *why;
	} cases[] = {
		{{.from = "kvm:kvm_exit"}, "to is missing"},
		{{.to = "kvm:kvm_exit"}, "from is missing"},
		{{.from = "kvm", .to = "kvm:kvm_exit"}, "from, at character 4: "},
		{{.from = "kvm:kvm_exit", .to = "kvm:kvm_entry//colour/"}, "to, at character "},
	};
	char why[256];

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		assert_int_equal(pair_definition_check(&cases[i].definition, why, sizeof(why)),
				 -EINVAL);
		if (!strstr(why, cases[i].why))
			fail_msg("%s is not in %s", cases[i].why, why);
	}
	assert_int_equal(pair_definition_check(&msi, why, sizeof(why)), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pairs_are_counted_and_long_ones_reported),
		cmocka_unit_test(each_long_pair_is_shown),
		cmocka_unit_test(lost_events_make_no_pair),
		cmocka_unit_test(pairs_past_rare_losses_are_calls),
		cmocka_unit_test(chosen_events_are_counted_once_they_are_known),
		cmocka_unit_test(what_is_no_event_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
