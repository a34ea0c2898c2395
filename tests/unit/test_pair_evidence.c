/* SPDX-License-Identifier: GPL-2.0-only */
/* Tests pairs that the user named as evidence of a stall: only those of its vCPU that overlap
 * it, the longest of them, their number, and a bounded number of lines. */
#include "host-collector/engine/pair_evidence.h"
#include "host-collector/view/finding_text.h"
#include "tests/unit/model_tale.h"

#define MSI(T_US, ADDRESS) EVENT(HOST, T_US, 0, KVM_MSI, QEMU, 0, ADDRESS, 0x25)
#define HANDLER(T_US, CPU) IRQ(T_US, CPU, IRQ_ENTRY, 50, 24)
enum { TO_VCPU0 = 0xfee00000, TO_VCPU1 = 0xfee01000, LINES_MAX = 8 };

static struct tale tale;

static const struct pair_definition msi = {
	.name = "msi", .from = "host:kvm:kvm_msi_set_irq", .to = "guest:irq:irq_handler_entry"};

/* Guest CPU 0 runs task 50 from 200 to 800 ms, and task 60 waits for it; guest CPU 1 runs task 43.
 */
static void stall_begin(struct tale *t)
{
	tale_begin(t);
	ADD(t, SWITCH(HOST, 0, 1, 0, TID1, 0));
	ADD(t, SWITCH(VM, 2, 1, 0, 43, 0));
	ADD(t, WAKEUP(VM, 210000, 0, 60, 50, 0));
}

static void stall_end(struct tale *t)
{
	ADD(t, SWITCH(VM, 800000, 0, 50, 60, 0));
	ADD(t, SWITCH(VM, 990000, 0, 60, 42, 1));
}

/* The evidence about pairs, as "MS LENGTH_US TEXT". */
struct lines {
	size_t n;
	char text[LINES_MAX][sizeof(struct finding_text) + 48];
};

static void on_evidence(void *context, struct incident *incident)
{
	pair_evidence_watched(context, incident);
}

static void judge(struct tale *t, const struct pair_definition *pairs, size_t n, struct lines *out)
{
	const struct pair_watch_options watch = {.definitions = pairs, .n = n};
	struct report_options options = {.than_ns = 100000000, .evidence = on_evidence};
	struct model *m = model_new();
	struct pair_watch *w = pair_watch_new(m, &watch);
	struct report_builder *b;
	struct report *r;

	*out = (struct lines){.n = 0};
	assert_non_null(w);
	options.evidence_context = w;
	b = report_builder_new(m, &options);
	script_vm(m, 2, "kvm");
	tale_play(t, m);
	model_finish(m);
	r = report_builder_finish(b);
	assert_non_null(r);
	for (size_t i = 0; i < r->n_incidents; i++) {
		const struct incident *x = &r->incidents[i];

		assert_true(x->n_evidence <= REPORT_EVIDENCE_MAX);
		for (size_t k = 0; k < x->n_evidence; k++) {
			const struct finding_text text = finding_text(&x->evidence[k].seen, 1);

			if (x->guest_cpu || x->begin.ns != 200000000 || !strstr(text.text, "pair"))
				continue;
			assert_true(out->n < LINES_MAX);
			snprintf(out->text[out->n++], sizeof(out->text[0]), "%lld %lld %s",
				 (long long)x->evidence[k].t.ns / 1000000,
				 (long long)x->evidence[k].duration_ns / 1000, text.text);
		}
	}
	report_free(r);
	report_builder_free(b);
	pair_watch_free(w);
	model_free(m);
}

static void those_of_the_vcpu_that_overlap_it(void **state)
{
	static struct lines got;
	struct tale *t = &tale;

	(void)state;
	stall_begin(t);
	/* Before it, and of the other vCPU. */
	ADD(t, MSI(100000, TO_VCPU0));
	ADD(t, HANDLER(190000, 0));
	ADD(t, MSI(220000, TO_VCPU1));
	ADD(t, HANDLER(795000, 1));
	/* One that begins before it, one within it. */
	ADD(t, MSI(199000, TO_VCPU0));
	ADD(t, HANDLER(201000, 0));
	ADD(t, MSI(300000, TO_VCPU0));
	ADD(t, HANDLER(700000, 0));
	/* One that ends after it, and one after it. */
	ADD(t, MSI(799000, TO_VCPU0));
	ADD(t, HANDLER(805000, 0));
	ADD(t, MSI(810000, TO_VCPU0));
	ADD(t, HANDLER(900000, 0));
	stall_end(t);
	judge(t, &msi, 1, &got);
	assert_int_equal(got.n, 1);
	assert_string_equal(got.text[0],
			    "300 400000 pair msi, host:kvm:kvm_msi_set_irq to "
			    "guest:irq:irq_handler_entry, key 0, within 0 us, the longest of 3");
}

static void no_pair_is_no_evidence(void **state)
{
	static const struct pair_definition unknown = {
		.name = "unknown", .from = "host:test:nothing", .to = "host:test:nothing"};
	static struct lines got;
	struct tale *t = &tale;

	(void)state;
	stall_begin(t);
	ADD(t, MSI(300000, TO_VCPU1));
	ADD(t, HANDLER(700000, 1));
	stall_end(t);
	judge(t, &msi, 1, &got);
	assert_int_equal(got.n, 0);
	judge(t, &unknown, 1, &got);
	assert_int_equal(got.n, 0);
}

/* Short pairs in great number do not displace a long one, and the line says that some are missing.
 */
static void a_long_pair_is_not_displaced(void **state)
{
	static struct lines got;
	struct tale *t = &tale;

	(void)state;
	stall_begin(t);
	ADD(t, MSI(210000, TO_VCPU0));
	ADD(t, HANDLER(310000, 0));
	for (int i = 0; i < 3 * PAIR_HISTORY_KEPT; i++) {
		ADD(t, MSI(311000 + i * 100, TO_VCPU0));
		ADD(t, HANDLER(311020 + i * 100, 0));
	}
	/* Late enough that the others are settled, and so kept. */
	ADD(t, MSI(700000, TO_VCPU0));
	ADD(t, HANDLER(700010, 0));
	stall_end(t);
	judge(t, &msi, 1, &got);
	assert_int_equal(got.n, 1);
	assert_non_null(strstr(got.text[0], "210 100000 pair msi, "));
	assert_non_null(strstr(got.text[0], "the longest that was kept of "));
}

static void more_definitions_than_fit_are_counted(void **state)
{
	static struct pair_definition many[PAIR_WATCH_MAX];
	static struct lines got;
	struct tale *t = &tale;

	(void)state;
	for (size_t i = 0; i < PAIR_WATCH_MAX; i++) {
		many[i] = msi;
		snprintf(many[i].name, sizeof(many[i].name), "pair%zu", i);
	}
	stall_begin(t);
	ADD(t, MSI(300000, TO_VCPU0));
	ADD(t, HANDLER(700000, 0));
	stall_end(t);
	judge(t, many, PAIR_WATCH_MAX, &got);
	assert_int_equal(got.n, REPORT_EVIDENCE_PAIRS);
	assert_non_null(strstr(got.text[0], "pair pair0, "));
	assert_non_null(strstr(got.text[3], "pair pair3, "));
	assert_string_equal(got.text[4], "200 0 12 pairs of other names");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(those_of_the_vcpu_that_overlap_it),
		cmocka_unit_test(no_pair_is_no_evidence),
		cmocka_unit_test(a_long_pair_is_not_displaced),
		cmocka_unit_test(more_definitions_than_fit_are_counted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
