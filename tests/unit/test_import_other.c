/* SPDX-License-Identifier: GPL-2.0-only */
/* Tests imported events for which vcpuscope has no type: their values, their descriptions, and
 * the bounds. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "host-collector/import/gather.h"
#include "host-collector/import/other_events.h"

struct kept {
	struct other_events *o;
	struct other_hit hit;
	struct message_user_event description;
	uint64_t values[VS_USER_VALUES_MAX];
};

static int setup(void **state)
{
	struct kept *k = calloc(1, sizeof(*k));

	assert_non_null(k);
	k->o = other_events_new();
	assert_non_null(k->o);
	*state = k;
	return 0;
}

static int teardown(void **state)
{
	struct kept *k = *state;

	other_events_free(k->o);
	free(k);
	return 0;
}

/* Keeps a hit of the text. Returns where its values are. */
static uint64_t take(struct kept *k, const char *system, const char *name, const char *text)
{
	uint32_t id;
	uint64_t at;

	other_hit_parse(&k->hit, system, name, text);
	assert_int_equal(other_events_take(k->o, &k->hit, &id, &at), 0);
	return at;
}

static void assert_field(const struct kept *k, size_t i, const char *name,
			 enum user_field_type type, uint32_t bytes)
{
	assert_true(i < k->description.n_fields);
	assert_string_equal(k->description.fields[i].name, name);
	assert_int_equal(k->description.fields[i].type, type);
	assert_int_equal(k->description.fields[i].bytes, bytes);
}

static void names_and_values_of_a_text_become_typed_fields(void **state)
{
	struct kept *k = *state;
	const uint64_t at = take(k, "nvme", "nvme_complete_rq",
				 "nvme0: disk=nvme0n1, qid=3, cmdid=17, off=-5, flags=0x1f, "
				 "comm=a b c cmd=(x)");

	other_events_describe(k->o, 1, &k->description);
	assert_string_equal(k->description.spec, "nvme:nvme_complete_rq");
	assert_string_equal(k->description.system, "nvme");
	assert_string_equal(k->description.name, "nvme_complete_rq");
	assert_int_equal(k->description.kind, USER_TRACEPOINT);
	assert_int_equal(k->description.n_fields, 7);
	assert_field(k, 0, "disk", USER_TEXT, 8);
	assert_field(k, 1, "qid", USER_UNSIGNED, 8);
	assert_field(k, 2, "cmdid", USER_UNSIGNED, 8);
	assert_field(k, 3, "off", USER_SIGNED, 8);
	assert_field(k, 4, "flags", USER_HEX, 8);
	assert_field(k, 5, "comm", USER_TEXT, 8);
	assert_field(k, 6, "cmd", USER_TEXT, 8);
	assert_int_equal(other_events_values(k->o, 1, at, k->values), 7);
	assert_memory_equal(&k->values[0], "nvme0n1", 8);
	assert_int_equal(k->values[1], 3);
	assert_int_equal(k->values[2], 17);
	assert_int_equal((int64_t)k->values[3], -5);
	assert_int_equal(k->values[4], 0x1f);
	assert_memory_equal(&k->values[5], "a b c\0\0", 8);
	assert_memory_equal(&k->values[6], "(x)\0\0\0\0", 8);
}

static void a_text_without_fields_is_kept_whole_up_to_its_bound(void **state)
{
	struct kept *k = *state;
	char text[200];
	uint64_t at;

	memset(text, 'y', sizeof(text) - 1);
	text[sizeof(text) - 1] = 0;
	at = take(k, "", "kvm_fpu", text);
	other_events_describe(k->o, 1, &k->description);
	assert_string_equal(k->description.spec, OTHER_SYSTEM_UNKNOWN ":kvm_fpu");
	assert_int_equal(k->description.n_fields, 1);
	assert_field(k, 0, "text", USER_TEXT, OTHER_WHOLE_BYTES);
	assert_int_equal(other_events_values(k->o, 1, at, k->values), OTHER_WHOLE_BYTES / 8);
	assert_memory_equal(k->values, text, OTHER_WHOLE_BYTES);

	take(k, "a", "without_text", "");
	other_events_describe(k->o, 2, &k->description);
	assert_int_equal(k->description.n_fields, 0);
}

static void a_field_that_one_hit_does_not_have_is_left_out(void **state)
{
	struct kept *k = *state;
	const uint64_t first = take(k, "s", "e", "a=1 b=2 c=3");
	const uint64_t second = take(k, "s", "e", "c=30 a=10"); /* in another order */

	other_events_describe(k->o, 1, &k->description);
	assert_int_equal(other_events_hits(k->o, 1), 2);
	assert_int_equal(k->description.n_fields, 2);
	assert_field(k, 0, "a", USER_UNSIGNED, 8);
	assert_field(k, 1, "c", USER_UNSIGNED, 8);
	assert_int_equal(other_events_values(k->o, 1, first, k->values), 2);
	assert_int_equal(k->values[0], 1);
	assert_int_equal(k->values[1], 3);
	assert_int_equal(other_events_values(k->o, 1, second, k->values), 2);
	assert_int_equal(k->values[0], 10);
	assert_int_equal(k->values[1], 30);
}

static void a_field_that_only_a_later_hit_has_is_left_out(void **state)
{
	struct kept *k = *state;

	take(k, "s", "e", "a=1");
	take(k, "s", "e", "a=1 b=2");
	other_events_describe(k->o, 1, &k->description);
	assert_int_equal(k->description.n_fields, 1);
	assert_field(k, 0, "a", USER_UNSIGNED, 8);
}

static void numbers_become_texts_where_another_hit_has_a_text(void **state)
{
	struct kept *k = *state;
	const uint64_t hex = take(k, "s", "e", "a=0x10 b=1");
	const uint64_t minus = take(k, "s", "e", "a=-9223372036854775808 b=-1");
	const uint64_t word = take(k, "s", "e", "a=none b=2");

	other_events_describe(k->o, 1, &k->description);
	assert_field(k, 0, "a", USER_TEXT, 24);
	assert_field(k, 1, "b", USER_SIGNED, 8);
	assert_int_equal(other_events_values(k->o, 1, hex, k->values), 4);
	assert_string_equal((char *)k->values, "0x10");
	assert_int_equal(k->values[3], 1);
	other_events_values(k->o, 1, minus, k->values);
	assert_string_equal((char *)k->values, "-9223372036854775808");
	other_events_values(k->o, 1, word, k->values);
	assert_string_equal((char *)k->values, "none");
}

static void long_texts_are_cut_and_what_has_no_room_is_left_out(void **state)
{
	struct kept *k = *state;
	static const char long_text[] = "0123456789abcdef0123456789abcdefMORE";
	char text[1024] = "";
	size_t len = 0;
	uint64_t at;

	for (int i = 0; i < 5; i++)
		len += (size_t)sprintf(text + len, "t%d=%s ", i, long_text);
	sprintf(text + len, "n=7");
	at = take(k, "s", "texts", text);
	other_events_describe(k->o, 1, &k->description);
	/* Four texts need all 16 values. */
	assert_int_equal(k->description.n_fields, 4);
	for (size_t i = 0; i < 4; i++)
		assert_int_equal(k->description.fields[i].bytes, OTHER_TEXT_BYTES);
	assert_int_equal(other_events_values(k->o, 1, at, k->values), VS_USER_VALUES_MAX);
	for (size_t i = 0; i < 4; i++)
		assert_memory_equal(&k->values[i * 4], long_text, OTHER_TEXT_BYTES);

	len = 0;
	for (int i = 0; i < 20; i++)
		len += (size_t)sprintf(text + len, "f%d=%d ", i, i);
	at = take(k, "s", "fields", text);
	other_events_describe(k->o, 2, &k->description);
	assert_int_equal(k->description.n_fields, VS_USER_FIELDS_MAX);
	assert_int_equal(other_events_values(k->o, 2, at, k->values), VS_USER_FIELDS_MAX);
	for (size_t i = 0; i < VS_USER_FIELDS_MAX; i++)
		assert_int_equal(k->values[i], i);
}

static void names_that_are_none_give_no_field(void **state)
{
	struct kept *k = *state;

	take(k, "s", "e",
	     "9x=1 a==2 =3 a_name_of_a_field_that_is_longer_than_it_may=4 good=5 good=6");
	other_events_describe(k->o, 1, &k->description);
	assert_int_equal(k->description.n_fields, 1);
	assert_field(k, 0, "good", USER_UNSIGNED, 8);
}

static void there_is_room_for_so_many_events(void **state)
{
	struct kept *k = *state;
	uint32_t id;
	uint64_t at;
	char name[16];

	for (int i = 0; i < OTHER_EVENTS_MAX; i++) {
		snprintf(name, sizeof(name), "e%d", i);
		take(k, "s", name, "a=1");
	}
	assert_int_equal(other_events_count(k->o), 256);
	other_hit_parse(&k->hit, "s", "one_more", "a=1");
	assert_int_equal(other_events_take(k->o, &k->hit, &id, &at), -ENOSPC);
	take(k, "s", "e77", "a=1"); /* known ones still are */
	assert_int_equal(other_events_count(k->o), 256);
	assert_int_equal(other_events_hits(k->o, 78), 2);
	other_hit_parse(&k->hit, "other", "e77", "a=1"); /* another system is another event */
	assert_int_equal(other_events_take(k->o, &k->hit, &id, &at), -ENOSPC);
}

static void names_with_other_bytes_are_refused(void **state)
{
	static const char *const names[] = {"", "a b", "a\x1b[0m", "a\"b", "\xff"};
	struct kept *k = *state;
	uint32_t id;
	uint64_t at;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		other_hit_parse(&k->hit, "s", names[i], "a=1");
		assert_int_equal(other_events_take(k->o, &k->hit, &id, &at), -ENOSPC);
	}
	other_hit_parse(&k->hit, "s y", "e", "a=1");
	assert_int_equal(other_events_take(k->o, &k->hit, &id, &at), -ENOSPC);
	memset(k->hit.name, 'a', sizeof(k->hit.name)); /* without an end */
	assert_int_equal(other_events_take(k->o, &k->hit, &id, &at), -ENOSPC);
	assert_int_equal(other_events_count(k->o), 0);
}

static void hits_become_events_with_their_values_in_order_of_time(void **state)
{
	static const char text[] =
		"x-5 [001] 2.0: nvme:nvme_setup_cmd: dev=8 sector=77 bytes=4096\n"
		"x-5 [001] 1.0: nvme:nvme_setup_cmd: dev=9 sector=78 bytes=512\n"
		"x-5 3.0: nvme:nvme_setup_cmd: dev=9 sector=78 bytes=512\n";
	const struct gather_options options = {0};
	struct gather *g = calloc(1, sizeof(*g));
	FILE *in = fmemopen((void *)text, sizeof(text) - 1, "r");
	const struct vs_event *e;

	(void)state;
	assert_non_null(g);
	assert_non_null(in);
	assert_int_equal(gather_init(g, &options), 0);
	assert_int_equal(gather_text(g, in), 0);
	assert_int_equal(gather_finish(g), 0);
	assert_int_equal(g->taken, 2);
	assert_int_equal(g->other, 2);
	assert_int_equal(g->unused, 1); /* on no CPU */
	assert_string_equal(g->names[0].name, "nvme_setup_cmd");
	for (size_t i = 0, n = 0; i < g->n_events; i++) {
		e = &g->events[i].e;
		assert_int_equal(e->seq, i);
		if (e->type == VS_EVENT_USER) {
			assert_int_equal(e->time, ++n * 1000000000);
			assert_int_equal(e->pid, 5);
			assert_int_equal(ev_user_id(e), 1);
			assert_int_equal(ev_user_first(e), n == 1 ? 9 : 8);
			assert_int_equal(ev_user_second(e), n == 1 ? 78 : 77);
			e = &g->events[i + 1].e;
			assert_int_equal(e->type, VS_EVENT_USER_MORE);
			assert_int_equal(ev_user_more_part(e), 1);
			assert_int_equal(ev_user_more_first(e), n == 1 ? 512 : 4096);
		}
	}
	fclose(in);
	gather_fini(g);
	free(g);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		CASE(names_and_values_of_a_text_become_typed_fields),
		CASE(a_text_without_fields_is_kept_whole_up_to_its_bound),
		CASE(a_field_that_one_hit_does_not_have_is_left_out),
		CASE(a_field_that_only_a_later_hit_has_is_left_out),
		CASE(numbers_become_texts_where_another_hit_has_a_text),
		CASE(long_texts_are_cut_and_what_has_no_room_is_left_out),
		CASE(names_that_are_none_give_no_field),
		CASE(there_is_room_for_so_many_events),
		CASE(names_with_other_bytes_are_refused),
		cmocka_unit_test(hits_become_events_with_their_values_in_order_of_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
