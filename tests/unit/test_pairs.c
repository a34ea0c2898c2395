// SPDX-License-Identifier: GPL-2.0-only
/* Tests pairs of events: which events belong together, the counts, and where the time went. */
#include <inttypes.h>
#include <stdlib.h>

#include "host-collector/analyze/event/pair_detail.h"
#include "host-collector/analyze/event/pair_fields.h"
#include "tests/unit/model_script.h"

#define US 1000ll
/* An MSI to vCPU 0, and the handler of the guest that serves it. */
#define MSI(T_US) EVENT(HOST, T_US, 0, KVM_MSI, QEMU, 0, 0xfee00000, 0x25)
#define MSI_ERR(T_US, ERR)                                                                         \
	{                                                                                          \
		.t = {(T_US)*US}, .err_ns = (ERR), .source = HOST, .event = {                      \
			.cpu = 0,                                                                  \
			.type = VS_EVENT_KVM_MSI,                                                  \
			.pid = QEMU,                                                               \
			.arg0 = 0xfee00000                                                         \
		}                                                                                  \
	}
#define HANDLER(T_US) IRQ(T_US, 0, IRQ_ENTRY, 50, 24)
#define DONE(T_US)    IRQ(T_US, 0, IRQ_EXIT, 50, 24)

static const char *const msi_to_handler[] = {"kvm:kvm_msi_set_irq", "guest:irq:irq_handler_entry",
					     NULL};

struct run {
	struct event_choices *choices; /* the pairs borrow them */
	struct model *model;
	struct pairs *pairs;
	const struct pair_row *row; /* the first */
};

static struct run run(const char *const *events, const char *key,
		      const struct pairs_options *options, const struct timeline_event *story,
		      size_t n)
{
	struct run r = {.model = model_new(), .choices = malloc(sizeof(*r.choices))};
	struct expr_error error;

	assert_non_null(r.model);
	assert_int_equal(event_choices_init(r.choices), 0);
	for (; *events; events++) {
		if (event_choices_add(r.choices, *events, &error))
			fail_msg("%s: %s", *events, error.text);
	}
	assert_int_equal(event_choices_key(r.choices, key, &error), 0);
	r.pairs = pairs_new(r.model, r.choices, options);
	assert_non_null(r.pairs);
	script_vm(r.model, 2, "kvm");
	script_run(r.model, story, n);
	model_finish(r.model);
	assert_int_equal(pairs_finish(r.pairs), 0);
	r.row = pairs_row(r.pairs, 0);
	return r;
}

static void run_end(struct run *r)
{
	pairs_free(r->pairs);
	model_free(r->model);
	event_choices_fini(r->choices);
	free(r->choices);
}

static const struct pairs_options all = {.kept = PAIR_KEPT_MAX};

#define RUN(events, key, options, ...)                                                             \
	({                                                                                         \
		const struct timeline_event story_[] = {__VA_ARGS__};                              \
		run(events, key, options, story_, COUNT(story_));                                  \
	})

static void counts_are(const struct pair_row *row, uint64_t calls, uint64_t total_us,
		       uint64_t unpaired_from, uint64_t unpaired_to, uint64_t incomplete,
		       uint64_t ambiguous)
{
	assert_non_null(row);
	assert_int_equal(row->calls.times.count, calls);
	assert_int_equal(row->calls.times.sum_ns, total_us * 1000);
	assert_int_equal(row->unpaired_from, unpaired_from);
	assert_int_equal(row->unpaired_to, unpaired_to);
	assert_int_equal(row->incomplete, incomplete);
	assert_int_equal(row->ambiguous, ambiguous);
}

/* The example of docs/pairs.md. */
static void test_an_end_takes_the_newest_begin(void **state)
{
	struct run r = RUN(msi_to_handler, "vcpu", &all, MSI(10), HANDLER(15), /* 5 us */
			   MSI(20), MSI(30), HANDLER(42), /* 12 us; the first one is unpaired */
			   HANDLER(50),                   /* unpaired */
			   MSI(60));                      /* unpaired */

	(void)state;
	counts_are(r.row, 2, 17, 2, 1, 0, 0);
	assert_int_equal(pairs_kept(r.pairs, 0)->duration_ns, 12 * US);
	assert_int_equal(pairs_kept(r.pairs, 0)->from.t.ns, 30 * US);
	assert_int_equal(pairs_kept(r.pairs, 1)->duration_ns, 5 * US);
	assert_null(pairs_kept(r.pairs, 2));
	assert_null(pairs_row(r.pairs, 1));
	run_end(&r);
}

static void test_a_loss_between_makes_a_pair_incomplete(void **state)
{
	struct run r = RUN(msi_to_handler, "vcpu", &all, HANDLER(5), MSI(10), LOST(VM, 14, 0),
			   HANDLER(15), MSI(20), HANDLER(25));

	(void)state;
	counts_are(r.row, 1, 5, 0, 1, 1, 0);
	run_end(&r);
	/* Another guest CPU cannot have the handler of vCPU 0; any host CPU can have its MSI. */
	r = RUN(msi_to_handler, "vcpu", &all, MSI(10), LOST(VM, 14, 1), HANDLER(15),
		KVM(18, 1, ENTRY, TID1, 0), MSI(20), LOST(HOST, 22, 1), HANDLER(25));
	counts_are(r.row, 1, 5, 0, 0, 1, 0);
	run_end(&r);
}

enum { RARE_PAIRS = 300, RARE_EVENTS = 2 * RARE_PAIRS + 8 };

/* Many pairs, and between the events of the newest a loss of a handler's CPU and one of the host.
 */
static struct run rare_run(uint64_t lost, size_t pairs)
{
	static struct timeline_event story[RARE_EVENTS];
	size_t n = 0;
	int64_t t = 10;

	for (size_t i = 0; i < pairs; i++, t += 1000) {
		story[n++] = (struct timeline_event)MSI(t);
		story[n++] = (struct timeline_event)HANDLER(t + 5);
	}
	story[n++] = (struct timeline_event)MSI(t);
	story[n++] = (struct timeline_event)EVENT(VM, t + 2, 0, LOST, 0, 0, lost, 0);
	story[n++] = (struct timeline_event)IRQ(t + 3, 0, IRQ_EXIT, 50, 24);
	story[n++] = (struct timeline_event)EVENT(HOST, t + 4, 0, LOST, 0, 0, lost, 0);
	story[n++] = (struct timeline_event)HANDLER(t + 6);
	return run(msi_to_handler, "vcpu", &all, story, n);
}

static void test_pairs_past_rare_losses_are_calls(void **state)
{
	struct run r = rare_run(1, RARE_PAIRS);

	(void)state;
	counts_are(r.row, RARE_PAIRS + 1, 5 * RARE_PAIRS + 6, 0, 0, 0, 0);
	assert_int_equal(r.row->calls_past_losses, 1);
	assert_int_equal(r.row->calls_past_both, 1);
	assert_true(r.row->wrong_expected > 0 && r.row->wrong_expected < 0.1);
	assert_int_equal(pairs_kept(r.pairs, 0)->duration_ns, 6 * US);
	run_end(&r);
	/* Too few pairs to say that losses are rare. */
	r = rare_run(1, 50);
	counts_are(r.row, 50, 250, 0, 0, 1, 0);
	run_end(&r);
	/* Bursts are not independent. */
	r = rare_run(100, RARE_PAIRS);
	counts_are(r.row, RARE_PAIRS, 5 * RARE_PAIRS, 0, 0, 1, 0);
	assert_int_equal(r.row->calls_past_both, 0);
	run_end(&r);
}

/* The loss becomes known only after the pair: its interval began within it. */
static void test_late_news_of_a_loss_count(void **state)
{
	struct run r = RUN(msi_to_handler, "vcpu", &all,
			   EVENT(HOST, 5, 1, KVM_EXIT, TID1, 0, 12, 0), MSI(10), HANDLER(15),
			   {.t = {20 * US},
			    .source = HOST,
			    .event = {.cpu = 1, .type = VS_EVENT_LOST, .time = 1, .arg0 = 3}},
			   MSI(30), HANDLER(35));

	(void)state;
	counts_are(r.row, 1, 5, 0, 0, 1, 0);
	run_end(&r);
}

static void test_two_candidates_within_the_error_are_ambiguous(void **state)
{
	/* The end is 2 us after the second begin, the error is 3 us: the first may be its own. */
	struct run r = RUN(msi_to_handler, "vcpu", &all, MSI_ERR(10, 3000), MSI_ERR(20, 3000),
			   HANDLER(22), MSI_ERR(40, 3000), HANDLER(45));

	(void)state;
	counts_are(r.row, 1, 5, 1, 0, 0, 1);
	run_end(&r);
	/* A begin right behind the end of a pair, without an end: it may be the pair's. */
	r = RUN(msi_to_handler, "vcpu", &all, MSI_ERR(10, 3000), HANDLER(20), MSI_ERR(22, 3000),
		MSI_ERR(50, 3000), HANDLER(60));
	counts_are(r.row, 1, 10, 1, 0, 0, 1);
	run_end(&r);
}

static void test_a_begin_right_after_its_end_belongs_to_it(void **state)
{
	/* The stamps have the wrong order, within the error. */
	struct run r = RUN(msi_to_handler, "vcpu", &all, HANDLER(10), MSI_ERR(12, 3000),
			   MSI_ERR(40, 3000), HANDLER(45));

	(void)state;
	counts_are(r.row, 2, 5, 0, 0, 0, 0);
	assert_int_equal(pairs_kept(r.pairs, 1)->duration_ns, 0);
	assert_int_equal(pairs_kept(r.pairs, 1)->error_ns, 1000);
	run_end(&r);
	/* Beyond the error it does not. */
	r = RUN(msi_to_handler, "vcpu", &all, HANDLER(10), MSI_ERR(14, 3000), MSI_ERR(40, 3000),
		HANDLER(45));
	counts_are(r.row, 1, 5, 1, 1, 0, 0);
	run_end(&r);
	/* If an end follows, it may be that one's. */
	r = RUN(msi_to_handler, "vcpu", &all, HANDLER(10), MSI_ERR(12, 3000), HANDLER(45));
	counts_are(r.row, 0, 0, 0, 0, 0, 1);
	run_end(&r);
	/* On one side the order is known. */
	r = RUN(((const char *const[]){"guest:irq:irq_handler_entry", "guest:irq:irq_handler_exit",
				       NULL}),
		"vcpu", &all, DONE(10), HANDLER(10), HANDLER(40), DONE(45));
	counts_are(r.row, 1, 5, 1, 1, 0, 0);
	run_end(&r);
}

static void test_stages_follow_each_other(void **state)
{
	static const char *const three[] = {"kvm:kvm_msi_set_irq", "guest:irq:irq_handler_entry",
					    "guest:irq:irq_handler_exit", NULL};
	const struct pairs_options cycle = {.cycle = true};
	struct run r = RUN(three, "vcpu", &cycle, MSI(10), HANDLER(15), DONE(22), MSI(30),
			   HANDLER(36), DONE(40));
	char name[256];

	(void)state;
	counts_are(pairs_row(r.pairs, 0), 2, 11, 0, 0, 0, 0);
	counts_are(pairs_row(r.pairs, 1), 2, 11, 0, 0, 0, 0);
	/* From the last one back to the first: the first MSI ends nothing, the last exit begins
	 * nothing. */
	counts_are(pairs_row(r.pairs, 2), 1, 8, 1, 1, 0, 0);
	assert_string_equal(pairs_stage_name(r.pairs, 2, name, sizeof(name)),
			    "guest:irq:irq_handler_exit -> host:kvm:kvm_msi_set_irq");
	run_end(&r);
}

/* How long a task runs: a switch to it begins, a switch away ends. */
static void test_roles_and_cycles_of_one_event(void **state)
{
	static const char *const runs[] = {
		"guest:sched:sched_switch//role=(next_pid?1:0)|(prev_pid?2:0)/", NULL};
	static const char *const exits[] = {"guest:irq:irq_handler_entry", NULL};
	const struct pairs_options cycle = {.cycle = true};
	struct run r = RUN(runs, "cpu", &all, SWITCH(VM, 10, 0, 0, 50, 0),
			   SWITCH(VM, 14, 0, 50, 51, 1), SWITCH(VM, 20, 0, 51, 0, 1),
			   SWITCH(VM, 90, 0, 0, 50, 0), SWITCH(VM, 93, 0, 50, 0, 1));

	(void)state;
	counts_are(r.row, 3, 4 + 6 + 3, 0, 0, 0, 0);
	run_end(&r);
	r = RUN(exits, "irq", &cycle, HANDLER(10), HANDLER(15), HANDLER(27));
	counts_are(r.row, 2, 17, 1, 1, 0, 0);
	run_end(&r);
}

static void test_a_row_for_each_key(void **state)
{
	static const char *const handlers[] = {"guest:irq:irq_handler_entry",
					       "guest:irq:irq_handler_exit", NULL};
	const struct pairs_options per_key = {.per_key = true};
	struct run r = RUN(handlers, "irq", &per_key, IRQ(10, 0, IRQ_ENTRY, 50, 24),
			   IRQ(11, 0, IRQ_ENTRY, 50, 25), IRQ(13, 0, IRQ_EXIT, 50, 25),
			   IRQ(19, 0, IRQ_EXIT, 50, 24));
	char key[32];

	(void)state;
	counts_are(pairs_row(r.pairs, 0), 1, 9, 0, 0, 0, 0);
	assert_string_equal(pair_key_text(&pairs_row(r.pairs, 0)->key, key, sizeof(key)), "24");
	counts_are(pairs_row(r.pairs, 1), 1, 2, 0, 0, 0, 0);
	assert_null(pairs_row(r.pairs, 2));
	run_end(&r);
}

/* What is shown does not change what is counted. */
static void test_thresholds_only_select(void **state)
{
	const struct pairs_options than = {.kept = 8, .than_ns = 10 * US};
	const struct pairs_options lower = {.kept = 8, .lower_ns = 10 * US};
	struct run r;

	(void)state;
#define FOUR MSI(10), HANDLER(15), MSI(20), HANDLER(32), MSI(40), HANDLER(48), MSI(50), HANDLER(60)
	r = RUN(msi_to_handler, "vcpu", &than, FOUR);
	counts_are(r.row, 4, 5 + 12 + 8 + 10, 0, 0, 0, 0);
	assert_int_equal(r.row->calls.beyond, 2);
	assert_int_equal(pairs_kept(r.pairs, 0)->duration_ns, 12 * US);
	assert_int_equal(pairs_kept(r.pairs, 1)->duration_ns, 10 * US);
	assert_null(pairs_kept(r.pairs, 2));
	run_end(&r);
	r = RUN(msi_to_handler, "vcpu", &lower, FOUR);
	counts_are(r.row, 4, 5 + 12 + 8 + 10, 0, 0, 0, 0);
	assert_int_equal(r.row->calls.beyond, 2);
	assert_int_equal(pairs_kept(r.pairs, 0)->duration_ns, 5 * US);
	assert_int_equal(pairs_kept(r.pairs, 1)->duration_ns, 8 * US);
	run_end(&r);
}

/* From the MSI to the handler: 10 us in the guest, 20 us in an exit, 30 us without a pCPU. */
static void test_time_goes_to_the_states_of_the_vcpu(void **state)
{
	struct run r = RUN(msi_to_handler, "vcpu", &all, SWITCH(HOST, 10, 1, 0, TID0, 0),
			   KVM(11, 1, ENTRY, TID0, 0), MSI(100), KVM(105, 1, EXIT, TID0, 1),
			   SWITCH(HOST, 115, 1, TID0, 999, 0), SWITCH(HOST, 145, 1, 999, TID0, 0),
			   KVM(155, 1, ENTRY, TID0, 0), HANDLER(160), KVM(200, 1, EXIT, TID0, 1),
			   MSI(300000), HANDLER(300001));
	const struct pair *pair = pairs_kept(r.pairs, 0);

	(void)state;
	counts_are(r.row, 2, 61, 0, 0, 0, 0);
	assert_int_equal(pair->duration_ns, 60 * US);
	assert_true(pair->states_known);
	assert_int_equal(pair->states.ns[SHARE_GUEST], 10 * US);
	assert_int_equal(pair->states.ns[SHARE_EXITS], 20 * US);
	assert_int_equal(pair->states.ns[SHARE_WAITED], 30 * US);
	assert_int_equal(r.row->calls.with_states, 2);
	assert_int_equal(r.row->calls.states.ns[SHARE_EXITS], 21 * US);
	run_end(&r);
}

/* vCPU 0 of one VM is not vCPU 0 of the other. */
static void test_vms_do_not_mix(void **state)
{
	struct message_vm_info other = {.vm = 2, .name = "web2", .qemu_pid = 200, .n_threads = 1};
	struct run r = {.model = model_new(), .choices = malloc(sizeof(*r.choices))};
	struct expr_error error;
	const struct timeline_event story[] = {
		IRQ(10, 0, IRQ_ENTRY, 50, 24),
		EVENT(2, 12, 0, IRQ_EXIT, 50, 0, 24, 0),
		IRQ(15, 0, IRQ_EXIT, 50, 24),
	};

	(void)state;
	other.threads[0] = (struct message_vm_thread){.tid = 210, .is_vcpu = true};
	assert_int_equal(event_choices_init(r.choices), 0);
	assert_int_equal(event_choices_add(r.choices, "irq:irq_handler_entry", &error), 0);
	assert_int_equal(event_choices_add(r.choices, "irq:irq_handler_exit", &error), 0);
	assert_int_equal(event_choices_key(r.choices, "irq", &error), 0);
	r.pairs = pairs_new(r.model, r.choices, &all);
	script_vm(r.model, 2, "kvm");
	assert_int_equal(model_vm(r.model, &other), 0);
	script_run(r.model, story, COUNT(story));
	model_finish(r.model);
	assert_int_equal(pairs_finish(r.pairs), 0);
	counts_are(pairs_row(r.pairs, 0), 1, 5, 0, 1, 0, 0);
	run_end(&r);
}

static void test_detail_shows_what_lies_between(void **state)
{
	static const char *const events[] = {
		"kvm:kvm_msi_set_irq",
		"guest:irq:irq_handler_entry,host:sched:sched_switch//untraced/", NULL};
	static const struct timeline_event story[] = {
		SWITCH(HOST, 90, 1, 0, TID0, 0),
		SWITCH(HOST, 95, 0, 0, 7, 0),
		MSI(100),
		SWITCH(HOST, 115, 1, TID0, 999, 0),
		SWITCH(HOST, 116, 0, 7, 0, 0),
		SWITCH(HOST, 145, 1, 999, TID0, 0),
		HANDLER(160),
		SWITCH(HOST, 170, 1, TID0, 0, 0),
	};
	struct pair_detail_options options;
	struct pair_detail *d;
	struct run r = run(events, "vcpu", &all, story, COUNT(story));
	struct model *m = model_new();
	char why[200];

	(void)state;
	assert_int_equal(pair_detail_parse("+15us,samevcpu", &options, why, sizeof(why)), 0);
	d = pair_detail_new(m, r.choices, r.pairs, &options);
	assert_non_null(d);
	script_vm(m, 2, "kvm");
	script_run(m, story, COUNT(story));
	model_finish(m);
	assert_int_equal(pair_detail_finish(d), 0);
	/* MSI, two switches of the vCPU's thread, the handler, and one switch within 15 us. */
	for (size_t i = 0; i < 5; i++)
		assert_non_null(pair_detail_get(d, 0, i));
	assert_null(pair_detail_get(d, 0, 5));
	assert_int_equal(pair_detail_get(d, 0, 1)->t.ns, 115 * US);
	assert_non_null(strstr(pair_detail_get(d, 0, 4)->text, "0.000070000 "));
	pair_detail_free(d);
	model_free(m);
	run_end(&r);
	assert_int_equal(pair_detail_parse("-1ms,hide<20us,samecpu", &options, why, sizeof(why)),
			 0);
	assert_int_equal(options.before_ns, 1000 * US);
	assert_int_equal(options.hide_ns, 20 * US);
	assert_int_not_equal(pair_detail_parse("sameworld", &options, why, sizeof(why)), 0);
	assert_string_equal(why, "--detail: expected -1ms, +1ms, hide<1ms, samevcpu, samecpu, "
				 "sametask or samekey, found 'sameworld'");
}

/* ---- fields ---- */

struct fields_seen {
	unsigned n;
	char from[256], to[256];
};

static void fields_write(const struct pair_fields *fields, char *out, size_t out_bytes)
{
	size_t used = 0;

	assert_non_null(fields);
	for (size_t i = 0; i < fields->n; i++) {
		const struct pair_field *f = &fields->items[i];

		used += f->is_number ? (size_t)snprintf(out + used, out_bytes - used,
							"%s=%" PRId64 " ", f->name, f->number)
				     : (size_t)snprintf(out + used, out_bytes - used, "%s=%s ",
							f->name, f->text);
		assert_true(used < out_bytes);
	}
}

static void on_settled(void *context, const struct pair *pair)
{
	struct fields_seen *seen = context;

	seen->n++;
	fields_write(pair->from_fields, seen->from, sizeof(seen->from));
	fields_write(pair->to_fields, seen->to, sizeof(seen->to));
}

static void test_a_settled_pair_has_the_fields_of_its_events(void **state)
{
	struct fields_seen seen = {.n = 0};
	const struct pairs_options options = {
		.kept = 4, .with_fields = true, .settled = on_settled, .context = &seen};
	/* The last MSI waits at the end, and a handler without an MSI. */
	struct run r = RUN(msi_to_handler, "vcpu", &options, MSI(5), MSI(10), HANDLER(15),
			   HANDLER(17), HANDLER(18), MSI(30));

	(void)state;
	counts_are(r.row, 1, 5, 2, 2, 0, 0);
	assert_int_equal(seen.n, 1);
	assert_string_equal(seen.from, "address=0xfee00000 data=0x25 ");
	assert_string_equal(seen.to, "irq=24 ");
	assert_null(pairs_kept(r.pairs, 0)->from_fields);
	run_end(&r);
}

static void test_only_the_fields_that_are_shown_are_kept(void **state)
{
	static const char *const events[] = {"kvm:kvm_msi_set_irq//fields=data/",
					     "guest:irq:irq_handler_entry", NULL};
	struct fields_seen seen = {.n = 0};
	const struct pairs_options options = {
		.with_fields = true, .settled = on_settled, .context = &seen};
	struct run r = RUN(events, "vcpu", &options, MSI(10), HANDLER(15));

	(void)state;
	assert_int_equal(seen.n, 1);
	assert_string_equal(seen.from, "data=0x25 ");
	run_end(&r);
}

static const struct pairs_options by_trigger = {.kept = PAIR_KEPT_MAX, .with_intervals = true};
#define TRIGGER(T_US) EVENT(HOST, T_US, 1, KVM_EXIT, TID0, 0, 12 | 1ull << 32, 0xabc)

static void row_is_of(const struct run *r, size_t i, unsigned interval, uint64_t calls,
		      uint64_t total_us, uint64_t unpaired_from)
{
	const struct pair_row *row = pairs_row(r->pairs, i);

	counts_are(row, calls, total_us, unpaired_from, 0, 0, 0);
	assert_int_equal(row->interval, interval);
}

/* A pair belongs to the interval of its end, also if a trigger lies between its events. */
static void test_a_trigger_begins_an_interval(void **state)
{
	static const char *const events[] = {
		"kvm:kvm_msi_set_irq",
		"guest:irq:irq_handler_entry,kvm:kvm_exit//trigger,untraced/", NULL};
	const struct timeline_event story[] = {
		MSI(10),     HANDLER(15), TRIGGER(20), MSI(30),
		TRIGGER(35), HANDLER(42), MSI(50),     TRIGGER(60),
	};
	struct run r = run(events, "vcpu", &by_trigger, story, COUNT(story));

	(void)state;
	assert_int_equal(pairs_intervals(r.pairs), 4);
	assert_int_equal(pairs_interval_begin(r.pairs, 1).ns, 20 * US);
	assert_int_equal(pairs_interval_begin(r.pairs, 3).ns, 60 * US);
	row_is_of(&r, 0, 0, 1, 5, 0);
	row_is_of(&r, 1, 1, 0, 0, 0);
	row_is_of(&r, 2, 2, 1, 12, 1);
	row_is_of(&r, 3, 3, 0, 0, 0);
	assert_null(pairs_row(r.pairs, 4));
	assert_int_equal(pairs_kept(r.pairs, 0)->duration_ns, 12 * US);
	run_end(&r);
	/* Where nobody asks for intervals, it has no effect. */
	r = run(events, "vcpu", &all, story, COUNT(story));
	assert_int_equal(pairs_intervals(r.pairs), 0);
	counts_are(r.row, 2, 17, 1, 0, 0, 0);
	run_end(&r);
}

/* The event of two groups is one event. */
static void test_a_hit_triggers_once(void **state)
{
	static const char *const events[] = {"kvm:kvm_msi_set_irq",
					     "guest:irq:irq_handler_entry//trigger/",
					     "guest:irq:irq_handler_entry//trigger/", NULL};
	struct run r = RUN(events, "vcpu", &by_trigger, MSI(10), HANDLER(15), MSI(20), HANDLER(30));

	(void)state;
	assert_int_equal(pairs_intervals(r.pairs), 3);
	run_end(&r);
}

/* A trigger that ends a pair: the pair belongs to the interval that ends with it. */
static void test_a_trigger_may_be_part_of_pairs(void **state)
{
	static const char *const events[] = {"kvm:kvm_msi_set_irq",
					     "guest:irq:irq_handler_entry//trigger/", NULL};
	const struct pairs_options per_key = {.with_intervals = true, .per_key = true};
	struct run r = RUN(events, "vcpu", &by_trigger, MSI(10), HANDLER(15), MSI(20), HANDLER(30));

	(void)state;
	assert_int_equal(pairs_intervals(r.pairs), 3);
	row_is_of(&r, 0, 0, 1, 5, 0);
	row_is_of(&r, 1, 1, 1, 10, 0);
	row_is_of(&r, 2, 2, 0, 0, 0);
	run_end(&r);
	r = RUN(events, "vcpu", &per_key, MSI(10), HANDLER(15), MSI(20), HANDLER(30));
	row_is_of(&r, 0, 0, 1, 5, 0);
	row_is_of(&r, 1, 1, 1, 10, 0);
	assert_int_equal(pairs_row(r.pairs, 1)->key.number, 0);
	assert_int_equal(pairs_row(r.pairs, 1)->key.type, EXPR_UNSIGNED);
	assert_null(pairs_row(r.pairs, 2));
	run_end(&r);
}

/* The last interval has what the others have no room for. */
static void test_intervals_are_bounded(void **state)
{
	enum { HITS = PAIR_INTERVALS_MAX + 40 };
	static const char *const events[] = {"kvm:kvm_msi_set_irq",
					     "guest:irq:irq_handler_entry//trigger/", NULL};
	static struct timeline_event story[2 * HITS];
	struct run r;

	(void)state;
	for (int i = 0; i < HITS; i++) {
		story[2 * i] = (struct timeline_event)MSI(10 + 10 * i);
		story[2 * i + 1] = (struct timeline_event)HANDLER(15 + 10 * i);
	}
	r = run(events, "vcpu", &by_trigger, story, COUNT(story));
	assert_int_equal(pairs_intervals(r.pairs), PAIR_INTERVALS_MAX);
	assert_int_equal(pairs_limits_get(r.pairs).intervals_joined,
			 HITS - (PAIR_INTERVALS_MAX - 1));
	row_is_of(&r, 0, 0, 1, 5, 0);
	row_is_of(&r, PAIR_INTERVALS_MAX - 2, PAIR_INTERVALS_MAX - 2, 1, 5, 0);
	row_is_of(&r, PAIR_INTERVALS_MAX - 1, PAIR_INTERVALS_MAX - 1, 41, 205, 0);
	assert_null(pairs_row(r.pairs, PAIR_INTERVALS_MAX));
	run_end(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_an_end_takes_the_newest_begin),
		cmocka_unit_test(test_a_loss_between_makes_a_pair_incomplete),
		cmocka_unit_test(test_pairs_past_rare_losses_are_calls),
		cmocka_unit_test(test_late_news_of_a_loss_count),
		cmocka_unit_test(test_two_candidates_within_the_error_are_ambiguous),
		cmocka_unit_test(test_a_begin_right_after_its_end_belongs_to_it),
		cmocka_unit_test(test_stages_follow_each_other),
		cmocka_unit_test(test_roles_and_cycles_of_one_event),
		cmocka_unit_test(test_a_row_for_each_key),
		cmocka_unit_test(test_thresholds_only_select),
		cmocka_unit_test(test_time_goes_to_the_states_of_the_vcpu),
		cmocka_unit_test(test_vms_do_not_mix),
		cmocka_unit_test(test_detail_shows_what_lies_between),
		cmocka_unit_test(test_a_settled_pair_has_the_fields_of_its_events),
		cmocka_unit_test(test_only_the_fields_that_are_shown_are_kept),
		cmocka_unit_test(test_a_trigger_begins_an_interval),
		cmocka_unit_test(test_a_trigger_may_be_part_of_pairs),
		cmocka_unit_test(test_a_hit_triggers_once),
		cmocka_unit_test(test_intervals_are_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
