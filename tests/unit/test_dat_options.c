/* SPDX-License-Identifier: GPL-2.0-only */
/* Tests the options of trace.dat about its host or its guest: they are read from both versions
 * of the format, and refused if they contradict each other or the other file. The test writes the
 * files. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "host-collector/import/dat_options.h"
#include "host-collector/import/dat_pair.h"
#include "host-collector/import/gather.h"
#include "host-collector/import/vcpus.h"

enum { BUFFER = 3, TRACECLOCK = 4, CPUCOUNT = 8, TRACEID = 11, TIME_SHIFT, GUEST, TSC2NSEC };
enum { HOST_ID = 0x1100000022, GUEST_ID = 0x3300000044, OTHER_ID = 0x55 };

struct made {
	uint8_t bytes[4096];
	size_t len;
	bool big;
};

static void put(struct made *m, uint64_t value, size_t n)
{
	for (size_t i = 0; i < n; i++)
		m->bytes[m->len++] = (uint8_t)(value >> 8 * (m->big ? n - 1 - i : i));
}

static void put_text(struct made *m, const char *text)
{
	memcpy(m->bytes + m->len, text, strlen(text) + 1);
	m->len += strlen(text) + 1;
}

static void put_option(struct made *m, uint64_t id, const struct made *value)
{
	put(m, id, 2);
	put(m, value->len, 4);
	memcpy(m->bytes + m->len, value->bytes, value->len);
	m->len += value->len;
}

static void put_id(struct made *m, uint64_t id)
{
	struct made v = {.big = m->big};

	put(&v, id, 8);
	put_option(m, TRACEID, &v);
}

static void put_guest(struct made *m, const char *name, uint64_t id, size_t n, const int32_t *tids)
{
	struct made v = {.big = m->big};

	put_text(&v, name);
	put(&v, id, 8);
	put(&v, n, 4);
	for (size_t i = 0; i < n; i++) {
		put(&v, n - 1 - i, 4); /* in any order */
		put(&v, (uint32_t)tids[n - 1 - i], 4);
	}
	put_option(m, GUEST, &v);
}

struct sample {
	uint64_t cpu, time;
	int64_t offset;
};

/* Samples of CPUs in their order; scaling of all of them. */
static void put_sync(struct made *m, uint64_t peer, uint64_t flags, const struct sample *s,
		     size_t n, uint64_t scaling)
{
	struct made v = {.big = m->big};

	put(&v, peer, 8);
	put(&v, flags, 4);
	put(&v, s[n - 1].cpu + 1, 4);
	for (size_t first = 0, last; first < n; first = last) {
		for (last = first; last < n && s[last].cpu == s[first].cpu;)
			last++;
		put(&v, last - first, 4);
		for (size_t i = first; i < last; i++)
			put(&v, s[i].time, 8);
		for (size_t i = first; i < last; i++)
			put(&v, (uint64_t)s[i].offset, 8);
		for (size_t i = first; i < last; i++)
			put(&v, scaling, 8);
	}
	for (size_t i = 0; i < n; i++)
		put(&v, 0, 8);
	put_option(m, TIME_SHIFT, &v);
}

static void put_clock(struct made *m, const char *list)
{
	struct made v = {.big = m->big};

	put_text(&v, list);
	put_option(m, TRACECLOCK, &v);
}

static void put_tsc(struct made *m, uint64_t mult, uint64_t shift)
{
	struct made v = {.big = m->big};

	put(&v, mult, 4);
	put(&v, shift, 4);
	put(&v, 7, 8);
	put_option(m, TSC2NSEC, &v);
}

static void put_buffer(struct made *m, const char *name, const char *clock)
{
	struct made v = {.big = m->big};

	put(&v, 0, 8);
	put_text(&v, name);
	put_text(&v, clock);
	put(&v, 4096, 4);
	put(&v, 0, 4);
	put_option(m, BUFFER, &v);
}

static void put_cpus(struct made *m, uint64_t n)
{
	struct made v = {.big = m->big};

	put(&v, n, 4);
	put_option(m, CPUCOUNT, &v);
}

/* A file of version 7 in which the options are in two sections. */
static struct made file_v7(const struct made *first, const struct made *second)
{
	struct made m = {.big = first->big};
	size_t next;

	put_text(&m, "\027\010\104tracing7");
	put(&m, m.big, 1);
	put(&m, 8, 1);
	put(&m, 4096, 4);
	put_text(&m, "zstd");
	put_text(&m, "1.5.4");
	put(&m, m.len + 8, 8);
	put(&m, 0, 4);
	put(&m, 0, 4);
	put(&m, first->len + 14, 8);
	memcpy(m.bytes + m.len, first->bytes, first->len);
	m.len += first->len;
	put(&m, 0, 2);
	put(&m, 8, 4);
	next = m.len + 8;
	put(&m, second ? next : 0, 8);
	if (!second)
		return m;
	put(&m, 0, 4);
	put(&m, 0, 4);
	put(&m, second->len + 14, 8);
	memcpy(m.bytes + m.len, second->bytes, second->len);
	m.len += second->len;
	put(&m, 0, 2);
	put(&m, 8, 4);
	put(&m, 0, 8);
	return m;
}

static struct made file_v6(const struct made *options)
{
	struct made m = {.big = options->big};

	put_text(&m, "\027\010\104tracing6");
	put(&m, m.big, 1);
	put(&m, 8, 1);
	put(&m, 4096, 4);
	put_text(&m, "header_page");
	put(&m, 3, 8);
	put(&m, 0x616161, 3);
	put_text(&m, "header_event");
	put(&m, 0, 8);
	put(&m, 1, 4); /* an ftrace event */
	put(&m, 2, 8);
	put(&m, 0x6262, 2);
	put(&m, 1, 4); /* a system with an event */
	put_text(&m, "sched");
	put(&m, 1, 4);
	put(&m, 1, 8);
	put(&m, 0x63, 1);
	put(&m, 1, 4);
	put(&m, 0, 1);
	put(&m, 0, 4);
	put(&m, 1, 8);
	put(&m, 0, 1);
	put(&m, 2, 4);
	put_text(&m, "options  ");
	memcpy(m.bytes + m.len, options->bytes, options->len);
	m.len += options->len;
	put(&m, 0, 2);
	put_text(&m, "flyrecord");
	return m;
}

static int read_of(struct dat_options *o, const struct made *m)
{
	FILE *in = fmemopen((void *)m->bytes, m->len, "r");
	int err;

	assert_non_null(in);
	err = dat_options_read(o, in);
	fclose(in);
	return err;
}

static const int32_t tids[] = {101, -1, 103};
static const struct sample samples[] = {
	{0, 100, -5}, {0, 900, 3}, {1, 900, 11}, {1, 100, -4}, {1, 500, 0}};

/* All that is read, of a file that would be a host's and a guest's at once. */
static struct made options_all(bool big)
{
	struct made m = {.big = big};

	put_clock(&m, "local [x86-tsc] mono");
	put_id(&m, HOST_ID);
	put_guest(&m, "web1", GUEST_ID, 3, tids);
	put_guest(&m, "", OTHER_ID, 0, NULL);
	put_sync(&m, OTHER_ID, 1, samples, 5, 1);
	put_tsc(&m, 1 << 20, 21);
	return m;
}

static void check_all(const struct dat_options *o)
{
	assert_true(o->trace_id_known);
	assert_int_equal(o->trace_id, HOST_ID);
	assert_string_equal(o->clock, "x86-tsc");
	assert_int_equal(o->n_guests, 2);
	assert_string_equal(o->guests[0].name, "web1");
	assert_int_equal(o->guests[0].trace_id, GUEST_ID);
	assert_int_equal(o->guests[0].n, 3);
	assert_int_equal(o->guests[0].tids[0], 101);
	assert_int_equal(o->guests[0].tids[1], 0);
	assert_int_equal(o->guests[0].tids[2], 103);
	assert_int_equal(o->guests[1].trace_id, OTHER_ID);
	assert_true(o->tsc_known);
	assert_int_equal(o->tsc_mult, 1 << 20);
	assert_int_equal(o->tsc_shift, 21);
	assert_int_equal(o->tsc_offset, 7);
	assert_true(o->sync.present && o->sync.interpolated && !o->sync.scaled);
	assert_int_equal(o->sync.peer_id, OTHER_ID);
	assert_int_equal(o->sync.n_cpus, 2);
	assert_int_equal(o->sync.first[1], 2);
	assert_int_equal(o->sync.first[2], 5);
	assert_int_equal(o->sync.samples[2].time, 100);
	assert_int_equal(o->sync.samples[2].offset, -4);
	assert_int_equal(o->sync.samples[4].offset, 11);
}

static void both_versions_and_both_byte_orders_say_the_same(void **state)
{
	(void)state;
	for (int big = 0; big < 2; big++) {
		const struct made options = options_all(big), none = {.big = big};
		const struct made files[] = {file_v6(&options), file_v7(&options, NULL),
					     file_v7(&none, &options)};

		for (size_t i = 0; i < 3; i++) {
			struct dat_options o;

			assert_int_equal(read_of(&o, &files[i]), 0);
			check_all(&o);
			assert_int_equal(o.n_cpus, i ? 0 : 2);
			dat_options_fini(&o);
		}
	}
}

static void a_cut_file_is_damaged_at_every_length(void **state)
{
	const struct made options = options_all(false);
	struct made v6 = file_v6(&options), v7 = file_v7(&options, NULL);
	const size_t v6_end = v6.len - sizeof("flyrecord"), v7_end = v7.len;
	struct dat_options o;

	(void)state;
	for (v6.len = 1; v6.len < v6_end; v6.len++) {
		assert_int_equal(read_of(&o, &v6), -EBADMSG);
		dat_options_fini(&o);
	}
	for (v7.len = 1; v7.len < v7_end; v7.len++) {
		assert_int_equal(read_of(&o, &v7), -EBADMSG);
		dat_options_fini(&o);
	}
}

static void what_cannot_be_read_is_refused(void **state)
{
	struct made none = {0}, m = file_v7(&none, NULL), samples_of_none = {0};
	const size_t place = m.len - 8; /* of the next section */
	struct dat_options o;

	(void)state;
	m.bytes[place - 6 - 14] = 1; /* compressed */
	assert_int_equal(read_of(&o, &m), -ENOTSUP);
	dat_options_fini(&o);
	m.bytes[place - 6 - 14] = 0;
	m.bytes[place] = (uint8_t)(place - 6 - 16); /* the section is its own successor */
	assert_int_equal(read_of(&o, &m), -EBADMSG);
	dat_options_fini(&o);
	m.bytes[10] = '8';
	assert_int_equal(read_of(&o, &m), -ENOTSUP);
	dat_options_fini(&o);

	put(&none, TIME_SHIFT, 2);
	put(&none, 44, 4);
	put(&none, HOST_ID, 8);
	put(&none, 0, 4);
	put(&none, 1, 4); /* one CPU */
	put(&none, 0, 4); /* without a sample */
	put(&none, 0, 8);
	put(&none, 0, 8);
	put(&none, 0, 8);
	samples_of_none = file_v7(&none, NULL);
	assert_int_equal(read_of(&o, &samples_of_none), -EBADMSG);
	dat_options_fini(&o);
}

static struct dat_options synced(const struct sample *s, size_t n, uint64_t flags, uint64_t scaling)
{
	struct made m = {0}, file;
	struct dat_options o;

	put_buffer(&m, "", "mono");
	put_cpus(&m, 2);
	put_id(&m, GUEST_ID);
	put_sync(&m, HOST_ID, flags, s, n, scaling);
	file = file_v7(&m, NULL);
	assert_int_equal(read_of(&o, &file), 0);
	assert_string_equal(o.clock, "mono");
	return o;
}

static uint64_t spread(const struct sample *s, size_t n, uint64_t flags, bool *compared)
{
	struct dat_options o = synced(s, n, flags, 1);
	const uint64_t most = dat_sync_spread(&o.sync, compared);

	dat_options_fini(&o);
	return most;
}

static void a_sync_is_as_good_as_its_samples_agree(void **state)
{
	const struct sample one[] = {{0, 100, -5}}, step[] = {{0, 100, -5}, {0, 200, 4}},
			    two[] = {{0, 100, -5}, {0, 300, 5}, {1, 200, 2}},
			    far[] = {{0, 1, INT64_MIN}, {0, 2, INT64_MAX}};
	bool compared;

	(void)state;
	assert_int_equal(spread(one, 1, 0, &compared), 0);
	assert_false(compared);
	assert_int_equal(spread(step, 2, 0, &compared), 9);
	assert_true(compared);
	assert_int_equal(spread(two, 3, 1, &compared), 10);
	/* At time 200, CPU 0 has 0 if it is interpolated, else -5. */
	assert_int_equal(
		spread((const struct sample[]){{0, 100, -5}, {1, 200, 2}}, 2, 0, &compared), 7);
	assert_int_equal(spread((const struct sample[]){{0, 0, 0}, {0, 1000, 10}, {1, 500, 30}}, 3,
				1, &compared),
			 25);
	assert_int_equal(spread((const struct sample[]){{0, 0, 0}, {0, 1000, 10}, {1, 500, 30}}, 3,
				0, &compared),
			 30);
	assert_true(spread(far, 2, 1, &compared) == UINT64_MAX);
}

/* A host's file with one guest. */
static struct dat_options host_of(uint64_t id, const char *clock, uint64_t guest_id,
				  const int32_t *vcpus)
{
	struct made m = {0}, file;
	struct dat_options o;

	put_buffer(&m, "", clock);
	put_id(&m, id);
	if (vcpus)
		put_guest(&m, "web1", guest_id, 2, vcpus);
	file = file_v7(&m, NULL);
	assert_int_equal(read_of(&o, &file), 0);
	return o;
}

static void files_that_do_not_belong_together_are_refused(void **state)
{
	static const int32_t known[] = {101, 102}, unknown[] = {-1, -1};
	static const struct {
		uint64_t host_id, guest_id, scaling;
		const char *clock;
		const int32_t *vcpus;
		uint64_t last_cpu;
		bool stated;
		const char *why; /* NULL: accepted */
	} cases[] = {
		{HOST_ID, GUEST_ID, 1, "mono", known, 1, false, NULL},
		{HOST_ID, GUEST_ID, 1, "mono", NULL, 1, false, NULL},
		{OTHER_ID, GUEST_ID, 1, "mono", known, 1, false, "another host trace"},
		{HOST_ID, OTHER_ID, 1, "mono", known, 1, false, "none of the 1 guest"},
		{HOST_ID, OTHER_ID, 1, "mono", known, 1, true, NULL},
		{HOST_ID, GUEST_ID, 1, "mono", unknown, 1, false, "--vcpu"},
		{HOST_ID, GUEST_ID, 2, "mono", known, 1, false, "scaled"},
		{HOST_ID, GUEST_ID, 1, "boot", known, 1, false, "of the clock mono"},
		{HOST_ID, GUEST_ID, 1, "mono", known, 0, false, "fewer CPUs"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		const struct sample s[] = {{0, 100, -5}, {1, 100, -4}};
		const struct dat_pair_options options = {.vcpus_stated = cases[i].stated};
		struct dat_options host = host_of(cases[i].host_id, cases[i].clock,
						  cases[i].guest_id, cases[i].vcpus);
		struct dat_options guest = synced(s, cases[i].last_cpu + 1, 1, cases[i].scaling);
		char why[256] = "";
		struct dat_pair pair;
		int err = dat_pair_find(&pair, &host, &guest, &options, why, sizeof(why));

		assert_int_equal(err, cases[i].why ? -EINVAL : 0);
		if (cases[i].why && !strstr(why, cases[i].why))
			fail_msg("%s is not in: %s", cases[i].why, why);
		assert_true(err || (pair.synced && pair.measured && !pair.unchecked));
		assert_true(err || !pair.guest == (!cases[i].vcpus || cases[i].stated));
		dat_options_fini(&host);
		dat_options_fini(&guest);
	}
}

static uint64_t error_of(const struct sample *s, size_t n, uint64_t flags, bool tsc, uint64_t hz)
{
	const struct dat_pair_options options = {.tick_hz = hz};
	struct dat_options guest = synced(s, n, flags, 1);
	struct dat_pair pair;
	char why[256] = "";

	guest.n_cpus = 1;
	if (tsc)
		strcpy(guest.clock, "x86-tsc");
	assert_int_equal(dat_pair_find(&pair, NULL, &guest, &options, why, sizeof(why)), 0);
	assert_true(pair.synced && pair.unchecked);
	dat_options_fini(&guest);
	return pair.err_ns;
}

static void the_error_is_what_the_samples_contradict_or_more(void **state)
{
	const struct sample one[] = {{0, 100, -5}}, near[] = {{0, 100, -5}, {0, 200, 4}},
			    far[] = {{0, 100, 0}, {0, 200, 3000000}};
	struct dat_options guest = synced(one, 1, 0, 1);
	const struct dat_pair_options options = {0};
	struct dat_pair pair;
	char why[256] = "";

	(void)state;
	assert_int_equal(error_of(one, 1, 1, false, 0), 1000000);
	assert_int_equal(error_of(near, 2, 1, false, 0), 200000);
	assert_int_equal(error_of(far, 2, 1, false, 0), 3000000);
	assert_int_equal(error_of(near, 2, 0, false, 0), 1000000);  /* from an unknown source */
	assert_int_equal(error_of(one, 1, 0, true, 3000000000), 1); /* KVM's own offset */
	assert_int_equal(error_of(far, 2, 0, true, 3000000000), 1000001);
	/* Ticks of unknown length. */
	guest.n_cpus = 1;
	strcpy(guest.clock, "x86-tsc");
	assert_int_equal(dat_pair_find(&pair, NULL, &guest, &options, why, sizeof(why)), -EINVAL);
	assert_non_null(strstr(why, "--tsc-hz"));
	guest.has_instances = true;
	assert_int_equal(dat_pair_find(&pair, NULL, &guest, &options, why, sizeof(why)), -EINVAL);
	assert_non_null(strstr(why, "several buffers"));
	dat_options_fini(&guest);
}

static void a_guest_without_a_sync_needs_none(void **state)
{
	const struct dat_pair_options options = {0};
	struct dat_options host = host_of(HOST_ID, "mono", GUEST_ID, NULL);
	struct dat_options guest = host_of(OTHER_ID, "boot", GUEST_ID, NULL);
	struct dat_pair pair;
	char why[256] = "";

	(void)state;
	assert_int_equal(dat_pair_find(&pair, &host, &guest, &options, why, sizeof(why)), 0);
	assert_false(pair.synced);
	assert_null(pair.guest);
	dat_options_fini(&host);
	dat_options_fini(&guest);
}

static void listed_guests_are_vms_and_the_paired_one_is_the_first(void **state)
{
	static const char text[] = "CPU 0/KVM-201 [0] 1.0: kvm_entry: vcpu 0\n"
				   "CPU 1/KVM-102 [1] 1.0: kvm_entry: vcpu 1\n"
				   "CPU 1/KVM-301 [2] 1.0: kvm_entry: vcpu 1\n";
	const struct gather_options gather_options = {0};
	const int32_t a[] = {101, 102}, b[] = {-1, 201, 101}; /* 101 twice: the first one has it */
	struct made m = {0}, file;
	struct dat_options o;
	struct gather *g = calloc(1, sizeof(*g));
	FILE *in = fmemopen((void *)text, sizeof(text) - 1, "r");
	struct vcpus_known known = {0};
	struct vcpus v;

	(void)state;
	put_guest(&m, "web1", GUEST_ID, 2, a);
	put_guest(&m, "", OTHER_ID, 3, b);
	file = file_v7(&m, NULL);
	assert_int_equal(read_of(&o, &file), 0);
	assert_true(g && in);
	assert_int_equal(gather_init(g, &gather_options), 0);
	assert_int_equal(gather_text(g, in), 0);
	known.guests = o.guests;
	known.n_guests = o.n_guests;
	assert_int_equal(vcpus_find(&v, g, &known), 0);
	assert_int_equal(v.n, 3);
	assert_string_equal(v.vms[0].name, "web1");
	assert_int_equal(v.vms[0].n_threads, 2);
	assert_int_equal(v.vms[0].threads[0].tid, 101); /* never occurred */
	assert_string_equal(v.vms[0].threads[0].comm, "vcpu 0");
	assert_string_equal(v.vms[0].threads[1].comm, "CPU 1/KVM");
	assert_string_equal(v.vms[1].name, "vm2");
	assert_int_equal(v.vms[1].n_threads, 1);
	assert_int_equal(v.vms[1].threads[0].tid, 201);
	assert_int_equal(v.vms[1].threads[0].vcpu, 1);
	assert_int_equal(v.vms[2].threads[0].tid, 301); /* listed nowhere */
	vcpus_fini(&v);

	known.first = &o.guests[1];
	known.name = "mine";
	assert_int_equal(vcpus_find(&v, g, &known), 0);
	assert_string_equal(v.vms[0].name, "mine");
	assert_int_equal(v.vms[0].threads[0].tid, 201);
	assert_string_equal(v.vms[1].name, "web1");
	vcpus_fini(&v);
	fclose(in);
	gather_fini(g);
	free(g);
	dat_options_fini(&o);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(both_versions_and_both_byte_orders_say_the_same),
		cmocka_unit_test(a_cut_file_is_damaged_at_every_length),
		cmocka_unit_test(what_cannot_be_read_is_refused),
		cmocka_unit_test(a_sync_is_as_good_as_its_samples_agree),
		cmocka_unit_test(files_that_do_not_belong_together_are_refused),
		cmocka_unit_test(the_error_is_what_the_samples_contradict_or_more),
		cmocka_unit_test(a_guest_without_a_sync_needs_none),
		cmocka_unit_test(listed_guests_are_vms_and_the_paired_one_is_the_first),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
