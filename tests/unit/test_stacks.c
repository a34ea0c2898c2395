/* SPDX-License-Identifier: GPL-2.0-only */
/* Tests stacks by key: equal ids of different processes are different stacks, and the memory for
 * the stacks of a guest is bounded. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "host-collector/model/model.h"

static struct message_stack *message(uint32_t id, int32_t pid, const char *leaf)
{
	static struct message_stack m;

	memset(&m, 0, sizeof(m));
	m.id = id;
	m.pid = pid;
	m.n_frames = 1;
	snprintf(m.frames[0].symbol, sizeof(m.frames[0].symbol), "%s", leaf);
	return &m;
}

static void a_guests_ids_are_those_of_a_process(void **unused)
{
	static struct message_vm_info info = {.vm = 3, .name = "a"};
	struct model *m = model_new();

	(void)unused;
	assert_int_equal(model_guest_stack(m, 3, message(7, 0, "k")), -ENOENT);
	assert_int_equal(model_vm(m, &info), 0);
	assert_null(model_guest_stack_of(m, 3, 0, 7));
	assert_int_equal(model_guest_stack(m, 3, message(7, 0, "k")), 0);
	assert_int_equal(model_guest_stack(m, 3, message(7, 50, "u50")), 0);
	assert_int_equal(model_guest_stack(m, 3, message(7, 51, "u51")), 0);
	assert_int_equal(model_guest_stack(m, 3, message(0, 51, "u51")), -EINVAL);
	assert_string_equal(model_guest_stack_of(m, 3, 0, 7)->frames[0].symbol, "k");
	assert_string_equal(model_guest_stack_of(m, 3, 50, 7)->frames[0].symbol, "u50");
	assert_string_equal(model_guest_stack_of(m, 3, 51, 7)->frames[0].symbol, "u51");
	assert_null(model_guest_stack_of(m, 3, 52, 7));
	assert_null(model_guest_stack_of(m, 4, 50, 7));
	assert_null(model_stack_of(m, 7)); /* the host's are its own */
	model_free(m);
}

static void the_oldest_make_room(void **unused)
{
	struct message_stack *big = message(1, 0, "x");
	struct stacks s = {0};
	uint32_t id, present = 0;

	(void)unused;
	assert_int_equal(stacks_init(&s), 0);
	big->n_frames = VS_STACK_FRAMES_MAX;
	for (size_t i = 0; i < big->n_frames; i++) {
		memset(big->frames[i].symbol, 's', VS_TEXT_MAX - 1);
		memset(big->frames[i].module, 'm', VS_TEXT_MAX - 1);
	}
	for (id = 1; id <= 3000; id++) {
		big->id = id;
		assert_int_equal(stacks_put(&s, id, big), 0);
		assert_true(s.bytes <= STACKS_BYTES_MAX);
		assert_non_null(stacks_get(&s, id));
	}
	for (id = 1; id <= 3000; id++)
		present += stacks_get(&s, id) != NULL;
	assert_in_range(present, STACKS_BYTES_MAX / 40000, 2000);
	assert_null(stacks_get(&s, 1));
	assert_non_null(stacks_get(&s, 3000 - present + 1));
	stacks_fini(&s);
}

static void a_stack_is_classified_when_it_is_asked_for(void **unused)
{
	struct stacks s = {0};

	(void)unused;
	assert_int_equal(stacks_init(&s), 0);
	assert_int_equal(stacks_wait_class(&s, 1, true), WAIT_NONE);
	assert_int_equal(stacks_put(&s, 1, message(1, 0, "qemu_wait_io_event")), 0);
	assert_false(stacks_get(&s, 1)->classified);
	assert_int_equal(stacks_wait_class(&s, 1, false), WAIT_IDLE_LOOP);
	assert_int_equal(stacks_wait_class(&s, 1, true), WAIT_PAUSE);
	assert_true(stacks_get(&s, 1)->classified);
	/* another stack with its key */
	assert_int_equal(stacks_put(&s, 1, message(2, 0, "do_sys_poll")), 0);
	assert_int_equal(stacks_wait_class(&s, 1, true), WAIT_POLL);
	stacks_fini(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_guests_ids_are_those_of_a_process),
		cmocka_unit_test(the_oldest_make_room),
		cmocka_unit_test(a_stack_is_classified_when_it_is_asked_for),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
