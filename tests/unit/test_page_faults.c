// SPDX-License-Identifier: GPL-2.0-only
/* Tests hot ranges of a guest's memory, and that faults on a device's registers do not count as
 * retries. */
#include "host-collector/tables/page_faults.h"
#include "tests/unit/model_script.h"

#define FAULT(T_US, TID, GPA, ERROR) EVENT(HOST, T_US, 0, KVM_PAGE_FAULT, TID, 0, GPA, ERROR)
#define MMIO(T_US, TID, GPA)         EVENT(HOST, T_US, 0, KVM_MMIO, TID, 0, GPA, 2)

enum { WRITE = 2, FETCH = 16, RESERVED = 8 };

static struct page_faults *faults_of(const struct figures_options *options,
				     const struct timeline_event *events, size_t n)
{
	struct model *m = model_new();
	struct page_faults *f = page_faults_analysis.new(m, options);

	assert_non_null(f);
	script_vm(m, 2, "kvm");
	script_run(m, events, n);
	model_finish(m);
	model_free(m);
	return f;
}

static const struct page_faults_range *range_find(const struct page_faults *f, uint64_t gpa,
						  uint32_t vcpu)
{
	const struct page_faults_range *r;

	for (size_t i = 0; (r = page_faults_range(f, i)); i++) {
		if (r->gpa == gpa && r->vcpu == vcpu)
			return r;
	}
	return NULL;
}

static void rows_on_one_page_are_retries(void **unused)
{
	struct timeline_event events[14];
	const struct page_faults_range *r;
	struct page_faults *f;
	size_t n = 0;

	(void)unused;
	/* Ten in a row by one vCPU, between them two of another: no part of the row. */
	for (int i = 0; i < 10; i++) {
		events[n++] = (struct timeline_event)FAULT(i * 100, TID0, 0x40201000, WRITE);
		if (i % 5 == 0)
			events[n++] =
				(struct timeline_event)FAULT(i * 100 + 1, TID1, 0x40202000, FETCH);
	}
	/* The next page, and the first again after a while. */
	events[n++] = (struct timeline_event)FAULT(1000, TID0, 0x40202000, WRITE);
	events[n++] = (struct timeline_event)FAULT(90000, TID0, 0x40201000, WRITE);
	f = faults_of(NULL, events, n);
	r = range_find(f, 0x40200000, 0);
	assert_non_null(r);
	assert_null(page_faults_range(f, 1));
	assert_int_equal(r->faults, 14);
	assert_int_equal(r->writes, 12);
	assert_int_equal(r->fetches, 2);
	assert_int_equal(r->retries, 9 + 1); /* the other vCPU's two are 500 us apart */
	assert_int_equal(r->storms, 1);
	assert_int_equal(r->longest_row, 10);
	assert_int_equal(r->longest_gfn, 0x40201);
	assert_int_equal(r->longest_ns, 900000);
	assert_int_equal(r->mmio, 0);
	page_faults_analysis.free(f);
}

static void registers_of_devices_are_no_retries(void **unused)
{
	static const struct timeline_event events[] = {
		FAULT(0, TID0, 0xfea00014, WRITE),
		MMIO(1, TID0, 0xfea00014),
		FAULT(100, TID0, 0xfea00014, WRITE),
		MMIO(101, TID0, 0xfea00014),
		FAULT(200, TID0, 0xfea00014, WRITE | RESERVED),
		FAULT(300, TID0, 0xfea00014, WRITE | RESERVED),
	};
	struct page_faults *f = faults_of(NULL, events, COUNT(events));
	const struct page_faults_range *r = page_faults_range(f, 0);

	(void)unused;
	assert_int_equal(r->faults, 4);
	assert_int_equal(r->mmio, 4);
	assert_int_equal(r->retries, 0);
	assert_int_equal(r->storms, 0);
	page_faults_analysis.free(f);
}

static void ranges_split_by_vcpu(void **unused)
{
	static const struct timeline_event events[] = {
		FAULT(0, TID0, 0x1000, 0),
		FAULT(1, TID1, 0x2000, 0),
		FAULT(2, TID1, 0x200000, 0),
	};
	struct page_faults *f =
		faults_of(&(struct figures_options){.per_vcpu = true}, events, COUNT(events));

	(void)unused;
	assert_non_null(range_find(f, 0, 0));
	assert_non_null(range_find(f, 0, 1));
	assert_non_null(range_find(f, 0x200000, 1));
	assert_null(range_find(f, 0x200000, 0));
	page_faults_analysis.clear(f);
	assert_null(page_faults_range(f, 0));
	page_faults_analysis.free(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rows_on_one_page_are_retries),
		cmocka_unit_test(registers_of_devices_are_no_retries),
		cmocka_unit_test(ranges_split_by_vcpu),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
