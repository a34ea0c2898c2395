// SPDX-License-Identifier: GPL-2.0-only
/* Tests the records of other kernels' tracepoints (tests/golden/formats, labelled with their
 * origin): each field is read from its own place, and a missing one is reported. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdbool.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "bpf/capture/tracepoint_format.h"
#include "bpf/capture/tracepoint_losses.h"
#include "bpf/perf/perf_tracepoint.h"

enum { RECORD_BYTES = 512, FIELDS_MAX = 32, FIELD_LINE_BYTES = 256 };

/* Of the kernel that is being tested. */
static char *text;

/* What tracefs would hold: capture reads it by fopen(). */
FILE *__real_fopen(const char *path, const char *mode);
FILE *__wrap_fopen(const char *path, const char *mode);
FILE *__wrap_fopen(const char *path, const char *mode)
{
	static const char events[] = "/tracing/events/";
	const char *name = strstr(path, events);
	char title[128], *begin, *end;

	if (!text || !name || strncmp(path, "/sys/", 5))
		return __real_fopen(path, mode);
	name += strlen(events);
	snprintf(title, sizeof(title), "==> %.*s\n", (int)(strrchr(name, '/') - name), name);
	begin = strstr(text, title);
	if (!begin) {
		errno = ENOENT;
		return NULL;
	}
	begin += strlen(title);
	end = strstr(begin, "==> ");
	return fmemopen(begin, end ? (size_t)(end - begin) : strlen(begin), "r");
}

struct field {
	char name[64];
	unsigned int offset, bytes, is_signed;
	bool negative; /* the number that the test puts there */
};

/* Kernels declare many numbers as int that are never negative, such as CPUs. */
static bool can_be_negative(const char *system, const char *name)
{
	return !strcmp(system, "kvm") && (!strcmp(name, "errno") || !strcmp(name, "vector") ||
					  !strcmp(name, "irq_source_id"));
}

/* A second reader of the same text. 0: this kernel has no such event. */
static size_t fields_of(const char *system, const char *event, struct field *out)
{
	char path[256], line[FIELD_LINE_BYTES];
	size_t n = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/sys/kernel/tracing/events/%s/%s/format", system, event);
	f = fopen(path, "re");
	while (f && n < FIELDS_MAX && fgets(line, sizeof(line), f)) {
		char *name = strchr(line, ';');
		const char *rest = name ? name + 1 : NULL;

		if (strncmp(line, "\tfield:", 7) || !rest)
			continue;
		*name = '\0';
		if (strchr(line, '[')) /* a name or an array of bytes */
			*strchr(line, '[') = '\0';
		name = strrchr(line, ' ');
		assert_non_null(name);
		snprintf(out[n].name, sizeof(out[n].name), "%s", name + 1);
		assert_int_equal(sscanf(rest, " offset:%u; size:%u; signed:%u;", &out[n].offset,
					&out[n].bytes, &out[n].is_signed),
				 3);
		out[n].negative = out[n].is_signed && can_be_negative(system, out[n].name);
		n++;
	}
	if (f)
		fclose(f);
	return n;
}

static const struct field *field_named(const struct field *fields, size_t n, const char *name)
{
	for (size_t i = 0; i < n; i++) {
		if (!strcmp(fields[i].name, name))
			return &fields[i];
	}
	return NULL;
}

/* Each field gets a number of its own. */
static uint64_t number_of(const struct field *f)
{
	const uint64_t number = f->bytes == 1 ? 1 : 1 + f->offset / 4;

	return f->negative ? -number : number;
}

static void record_fill(uint8_t *raw, const struct field *fields, size_t n)
{
	memset(raw, 0x55, RECORD_BYTES); /* what lies between fields is read by nobody */
	for (size_t i = 0; i < n; i++) {
		const uint64_t number = number_of(&fields[i]);

		assert_in_range(fields[i].offset + fields[i].bytes, 1, RECORD_BYTES);
		if (fields[i].bytes <= 8)
			memcpy(raw + fields[i].offset, &number, fields[i].bytes);
	}
}

static uint64_t bits(uint64_t value, unsigned int width)
{
	return width >= 64 ? value : value & ((1ull << width) - 1);
}

static uint64_t expected(const struct event_field *field, const struct field *fields, size_t n)
{
	char name[EVENT_FIELD_NAME_BYTES];

	for (size_t part = 0; event_field_kernel_name(field, part, name); part++) {
		const struct field *f = field_named(fields, n, name);

		if (f) {
			const unsigned int width = 8 * f->bytes;
			const uint64_t raw = bits(number_of(f), width);

			if (field->width == 64 && f->is_signed && width < 64)
				return number_of(f);
			return bits(raw, field->width);
		}
	}
	return 0; /* unknown */
}

static uint64_t member(const struct vs_event *e, const struct event_field *field)
{
	const uint64_t values[] = {[EVENT_PLACE_pid] = (uint32_t)e->pid,
				   [EVENT_PLACE_pid2] = (uint32_t)e->pid2,
				   [EVENT_PLACE_arg0] = e->arg0,
				   [EVENT_PLACE_arg1] = e->arg1};

	return bits(values[field->place] >> field->shift, field->width);
}

/* What perf reads of a record in which each field has another number. */
static void record_check(const struct perf_tracepoint *t, const struct event_tracepoint *row)
{
	struct field fields[FIELDS_MAX];
	const size_t n = fields_of(row->system, row->name, fields);
	uint8_t raw[RECORD_BYTES];
	const struct perf_record record = {.raw = raw, .raw_bytes = sizeof(raw)};
	struct perf_tracepoint plain = *t;
	struct vs_event event;
	size_t n_event;
	const struct event_field *of_event = event_fields(row->type, &n_event);

	plain.finish = NULL; /* as the kernel wrote it */
	plain.constant = 0;
	record_fill(raw, fields, n);
	assert_true(perf_tracepoint_decode(&plain, &record, &event));
	for (size_t i = 0; i < n_event; i++) {
		if (of_event[i].kernel &&
		    member(&event, &of_event[i]) !=
			    bits(expected(&of_event[i], fields, n), of_event[i].width))
			fail_msg("%s:%s: %s", row->system, row->name, of_event[i].kernel);
	}
}

/* Fields of which this kernel's record has none of the names: they read as 0. */
static void absent_add(char *absent, size_t bytes, const struct event_tracepoint *row)
{
	struct field fields[FIELDS_MAX];
	const size_t n = fields_of(row->system, row->name, fields);
	size_t n_event;
	const struct event_field *of_event = event_fields(row->type, &n_event);

	for (size_t i = 0; i < n_event; i++) {
		char name[EVENT_FIELD_NAME_BYTES];
		bool found = !of_event[i].kernel;

		for (size_t part = 0; event_field_kernel_name(&of_event[i], part, name); part++)
			found |= field_named(fields, n, name) != NULL;
		if (!found)
			snprintf(absent + strlen(absent), bytes - strlen(absent), "%s.%s ",
				 row->name, of_event[i].kernel);
	}
}

static void missing_add(char *missing, size_t bytes, const char *name)
{
	if (!strstr(missing, name))
		snprintf(missing + strlen(missing), bytes - strlen(missing), "%s ", name);
}

struct place {
	const char *event, *field;
	unsigned int offset, bytes; /* 0, 0: this kernel's record does not have it */
};

/* The places that differ between kernels, by hand from the kernels' sources. */
static const struct {
	const char *kernel, *missing, *absent;
	struct place places[8];
} kernels[] = {
	{"4.18",
	 "kvm_ple_window_update kvm_apicv_accept_irq kvm_unmap_hva_range ",
	 "kvm_entry.rip kvm_inj_virq.soft kvm_inj_virq.reinjected ",
	 {{"kvm_entry", "rip", 0, 0},
	  {"kvm_exit", "isa", 24, 4},
	  {"kvm_exit", "error_code", 0, 0},
	  {"kvm_page_fault", "fault_address", 8, 8},
	  {"kvm_page_fault", "error_code", 16, 4},
	  {"kvm_inj_virq", "irq", 8, 4},
	  {"kvm_inj_virq", "vector", 0, 0}}},
	{"5.10",
	 "kvm_ple_window kvm_apicv_accept_irq kvm_unmap_hva_range ",
	 "kvm_inj_virq.soft kvm_inj_virq.reinjected ",
	 {{"kvm_entry", "rip", 16, 8},
	  {"kvm_exit", "isa", 24, 4},
	  {"kvm_exit", "error_code", 52, 4},
	  {"kvm_page_fault", "fault_address", 8, 8},
	  {"kvm_page_fault", "error_code", 16, 4},
	  {"kvm_inj_virq", "irq", 8, 4},
	  {"kvm_inj_virq", "vector", 0, 0}}},
	{"5.15",
	 "kvm_ple_window kvm_apicv_accept_irq ",
	 "kvm_inj_virq.soft kvm_inj_virq.reinjected ",
	 {{"kvm_entry", "rip", 16, 8},
	  {"kvm_exit", "isa", 24, 4},
	  {"kvm_exit", "error_code", 52, 4},
	  {"kvm_page_fault", "fault_address", 8, 8},
	  {"kvm_page_fault", "error_code", 16, 4},
	  {"kvm_inj_virq", "irq", 8, 4},
	  {"kvm_inj_virq", "vector", 0, 0}}},
	{"6.1",
	 "kvm_ple_window ",
	 "",
	 {{"kvm_entry", "rip", 16, 8},
	  {"kvm_exit", "error_code", 52, 4},
	  {"kvm_page_fault", "fault_address", 24, 8},
	  {"kvm_page_fault", "error_code", 32, 8},
	  {"kvm_inj_virq", "irq", 0, 0},
	  {"kvm_inj_virq", "vector", 8, 4}}},
	{"6.6",
	 "kvm_ple_window ",
	 "",
	 {{"kvm_entry", "rip", 16, 8},
	  {"kvm_exit", "error_code", 52, 4},
	  {"kvm_page_fault", "fault_address", 24, 8},
	  {"kvm_page_fault", "error_code", 32, 8},
	  {"kvm_inj_virq", "irq", 0, 0},
	  {"kvm_inj_virq", "vector", 8, 4}}},
	{"6.12",
	 "kvm_ple_window ",
	 "",
	 {{"kvm_entry", "rip", 16, 8},
	  {"kvm_exit", "error_code", 52, 4},
	  {"kvm_page_fault", "fault_address", 24, 8},
	  {"kvm_page_fault", "error_code", 32, 8},
	  {"kvm_inj_virq", "vector", 8, 4}}},
	{"6.18",
	 "kvm_ple_window ",
	 "",
	 {{"kvm_entry", "rip", 16, 8},
	  {"kvm_exit", "error_code", 52, 4},
	  {"kvm_page_fault", "fault_address", 24, 8},
	  {"kvm_page_fault", "error_code", 32, 8},
	  {"kvm_inj_virq", "vector", 8, 4}}},
};

static void kernel_load(const char *kernel)
{
	char path[512];
	size_t bytes;
	FILE *f;

	snprintf(path, sizeof(path), "%s/formats/%s.txt", TEST_GOLDEN_DIR, kernel);
	f = __real_fopen(path, "re");
	assert_non_null(f);
	text = calloc(1, 1 << 20);
	assert_non_null(text);
	bytes = fread(text, 1, (1 << 20) - 1, f);
	assert_in_range(bytes, 1000, (1 << 20) - 2);
	fclose(f);
}

static void kernel_unload(void)
{
	free(text);
	text = NULL;
}

static void each_field_is_read_from_its_own_place(void **state)
{
	(void)state;
	for (size_t k = 0; k < sizeof(kernels) / sizeof(kernels[0]); k++) {
		struct tep_handle *tep = tep_alloc();
		const enum tracepoint_users users[] = {BY_HOST, BY_GUEST};
		const struct event_tracepoint *row;
		char missing[256] = "", absent[512] = "";
		size_t n = 0;

		kernel_load(kernels[k].kernel);
		for (size_t u = 0; u < 2; u++) {
			struct perf_tracepoint_source source;

			for (size_t i = 0; perf_tracepoint_source(users[u], i, &source); i++) {
				struct perf_tracepoint t;

				if (perf_tracepoint_resolve(tep, &source, &t))
					fail_msg("%s: %s", kernels[k].kernel, source.row->name);
				record_check(&t, source.row);
				n++;
			}
		}
		for (size_t i = 0; (row = tracepoint_row(i)); i++) {
			struct perf_tracepoint t;
			const int error =
				perf_tracepoint_resolve_row(tep, row, tracepoint_format_read, &t);

			if (error == -ENOENT) {
				missing_add(missing, sizeof(missing), row->name);
				continue;
			}
			assert_int_equal(error, 0);
			absent_add(absent, sizeof(absent), row);
			record_check(&t, row);
			n++;
		}
		assert_true(n > 40);
		assert_string_equal(missing, kernels[k].missing);
		assert_string_equal(absent, kernels[k].absent);
		tep_free(tep);
		kernel_unload();
	}
}

/* What doctor and record name as missing: not a name that a kernel has a newer or older one for. */
static void missing_tracepoints_are_named(void **state)
{
	static const struct {
		const char *kernel, *missing;
	} cases[] = {
		{"4.18", "kvm_apicv_accept_irq, kvm_unmap_hva_range"},
		{"5.10", "kvm_apicv_accept_irq, kvm_unmap_hva_range"},
		{"6.1", ""},
		{"6.12", ""},
		{"6.18", ""},
	};
	char names[256], lost[1024];

	(void)state;
	for (size_t k = 0; k < sizeof(cases) / sizeof(cases[0]); k++) {
		kernel_load(cases[k].kernel);
		names[0] = '\0';
		tracepoint_rows_missing(tracepoint_format_read, true, names, sizeof(names));
		assert_string_equal(names, cases[k].missing);
		tracepoint_losses(CAPTURE_HOST, names, lost, sizeof(lost));
		assert_int_equal(*lost != 0, *names != 0);
		names[0] = '\0';
		tracepoint_rows_missing(tracepoint_format_read, false, names, sizeof(names));
		assert_string_equal(names, "");
		kernel_unload();
	}
	/* A list that has begun goes on; the module is not loaded. */
	text = strdup("");
	snprintf(names, sizeof(names), "signal_generate");
	tracepoint_rows_missing(tracepoint_format_read, true, names, sizeof(names));
	assert_string_equal(names, "signal_generate, kvm:*, block:*");
	kernel_unload();
}

static void fields_that_moved_are_found(void **state)
{
	(void)state;
	for (size_t k = 0; k < sizeof(kernels) / sizeof(kernels[0]); k++) {
		kernel_load(kernels[k].kernel);
		for (const struct place *p = kernels[k].places; p->event; p++) {
			struct tracepoint_field field = {.name = p->field};

			assert_int_equal(tracepoint_format_read("kvm", p->event, &field, 1), 0);
			assert_int_equal(field.offset, p->offset);
			assert_int_equal(field.bytes, p->bytes);
		}
		kernel_unload();
	}
}

/* ---- task states ---- */

enum {
	KERNEL_INTERRUPTIBLE = 0x1,
	KERNEL_UNINTERRUPTIBLE = 0x2,
	KERNEL_STOPPED = 0x4,
	KERNEL_TRACED = 0x8,
	KERNEL_EXIT_DEAD = 0x10,
	KERNEL_EXIT_ZOMBIE = 0x20,
	KERNEL_PARKED = 0x40,
	KERNEL_DEAD = 0x80,
	KERNEL_WAKEKILL = 0x100,
	KERNEL_NOLOAD = 0x400,
	KERNEL_RTLOCK_WAIT = 0x1000,
	KERNEL_FREEZABLE = 0x2000,
	KERNEL_FROZEN = 0x8000,
	KERNEL_IDLE = KERNEL_UNINTERRUPTIBLE | KERNEL_NOLOAD,
	RECORD_MAX = 0x100, /* TASK_REPORT_MAX: preempted */
};

/* task_state_index() of these kernels, read in their sources. */
static unsigned int state_index(unsigned int state, unsigned int exit_state, bool flags)
{
	unsigned int reported = (state | exit_state) & 0x7f, index = 0;

	if (flags ? (state & KERNEL_IDLE) == KERNEL_IDLE : state == KERNEL_IDLE)
		reported = 0x80;
	if (state & (KERNEL_RTLOCK_WAIT | KERNEL_FROZEN))
		reported = KERNEL_UNINTERRUPTIBLE;
	for (; reported; reported >>= 1)
		index++;
	return index;
}

struct task_state {
	unsigned int state, exit_state;
	bool preempted;
	uint64_t expected;
};

/* __trace_sched_switch_state() of these kernels. */
static uint64_t state_recorded(const char *kernel, const struct task_state *s)
{
	const unsigned int index = state_index(s->state, s->exit_state, !strncmp(kernel, "6.", 2));

	if (s->preempted)
		return RECORD_MAX;
	if (!strcmp(kernel, "4.18"))
		return 1u << index;
	return index ? 1u << (index - 1) : 0;
}

static uint64_t state_read(struct perf_tracepoint *t, const struct event_tracepoint *row,
			   uint64_t recorded, int32_t pid)
{
	struct field fields[FIELDS_MAX];
	const size_t n = fields_of(row->system, row->name, fields);
	const struct field *state = field_named(fields, n, "prev_state"),
			   *prev = field_named(fields, n, "prev_pid");
	uint8_t raw[RECORD_BYTES] = {0};
	const struct perf_record record = {.raw = raw, .raw_bytes = sizeof(raw)};
	struct vs_event event;

	memcpy(raw + state->offset, &recorded, state->bytes);
	memcpy(raw + prev->offset, &pid, prev->bytes);
	assert_true(perf_tracepoint_decode(t, &record, &event));
	return ev_sched_switch_state(&event);
}

static void task_states_mean_the_same_on_each_kernel(void **state)
{
	static const struct task_state all[] = {
		{0, 0, false, VS_TASK_RUNNING},
		{0, 0, true, VS_TASK_RUNNING},
		{KERNEL_INTERRUPTIBLE, 0, true, VS_TASK_RUNNING},
		{KERNEL_INTERRUPTIBLE, 0, false, VS_TASK_INTERRUPTIBLE},
		{KERNEL_UNINTERRUPTIBLE, 0, false, VS_TASK_UNINTERRUPTIBLE},
		{KERNEL_UNINTERRUPTIBLE | KERNEL_WAKEKILL, 0, false, VS_TASK_UNINTERRUPTIBLE},
		{KERNEL_STOPPED | KERNEL_WAKEKILL, 0, false, VS_TASK_STOPPED},
		{KERNEL_TRACED | KERNEL_WAKEKILL, 0, false, VS_TASK_TRACED},
		{KERNEL_DEAD, KERNEL_EXIT_ZOMBIE, false, VS_TASK_DEAD},
		{KERNEL_DEAD, KERNEL_EXIT_DEAD, false, VS_TASK_DEAD},
		{KERNEL_PARKED, 0, false, VS_TASK_PARKED},
		{KERNEL_IDLE, 0, false, VS_TASK_UNINTERRUPTIBLE | VS_TASK_IDLE},
	};
	/* Only 5.15 and later have the first, only 6.x the others. */
	static const struct task_state later[] = {
		{KERNEL_RTLOCK_WAIT, 0, false, VS_TASK_UNINTERRUPTIBLE},
		{KERNEL_INTERRUPTIBLE | KERNEL_FREEZABLE, 0, false, VS_TASK_INTERRUPTIBLE},
		{KERNEL_IDLE | KERNEL_FREEZABLE, 0, false, VS_TASK_UNINTERRUPTIBLE | VS_TASK_IDLE},
		{KERNEL_FROZEN, 0, false, VS_TASK_UNINTERRUPTIBLE},
	};
	static const struct {
		const char *kernel;
		size_t later;
	} of[] = {{"4.18", 0}, {"5.10", 0}, {"5.15", 1}, {"6.6", 4}};

	(void)state;
	for (size_t k = 0; k < sizeof(of) / sizeof(of[0]); k++) {
		struct tep_handle *tep = tep_alloc();
		struct perf_tracepoint_source source;
		struct perf_tracepoint t;
		const struct task_state running = {0};
		const bool is_shifted = !strcmp(of[k].kernel, "4.18");

		kernel_load(of[k].kernel);
		assert_true(perf_tracepoint_source(BY_HOST, 0, &source));
		assert_string_equal(source.row->name, "sched_switch");
		assert_int_equal(perf_tracepoint_resolve(tep, &source, &t), 0);
		/* The idle task leaves a CPU: the first record that shows the kind. */
		assert_int_equal(
			state_read(&t, source.row, state_recorded(of[k].kernel, &running), 0),
			VS_TASK_RUNNING);
		assert_int_equal(t.states_shifted, is_shifted);
		for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
			/* A task in an idle sleep and a preempted one have the same number there.
			 */
			if (is_shifted && all[i].state == KERNEL_IDLE)
				continue;
			assert_int_equal(state_read(&t, source.row,
						    state_recorded(of[k].kernel, &all[i]), 100),
					 all[i].expected);
		}
		for (size_t i = 0; i < of[k].later; i++)
			assert_int_equal(state_read(&t, source.row,
						    state_recorded(of[k].kernel, &later[i]), 100),
					 later[i].expected);
		assert_int_equal(t.states_shifted, is_shifted);
		tep_free(tep);
		kernel_unload();
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_field_is_read_from_its_own_place),
		cmocka_unit_test(missing_tracepoints_are_named),
		cmocka_unit_test(fields_that_moved_are_found),
		cmocka_unit_test(task_states_mean_the_same_on_each_kernel),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
