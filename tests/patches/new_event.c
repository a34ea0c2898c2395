// SPDX-License-Identifier: GPL-2.0-only
/*
 * Built in a tree to which event.patch was applied: the new event is captured from
 * this kernel, recorded, reported as evidence and exported, though no code names it but this test.
 *
 * usage: new_event VCPUSCOPE   (the program of the same tree)
 */
#include "tests/unit/capture_log.h"

#include "bpf/capture/tracepoint_format.h"
#include "proto/event_catalog.h"
#include "tests/unit/synth.h"

#define MS 1000000ll
enum { VCPU0 = SYNTH_QEMU_PID + 1, HOG = 4242, CODE = -6 };

static const char *vcpuscope;

static void signal_ignore(int number)
{
	(void)number;
}

static void test_the_kernels_hits_are_captured(void **state)
{
	const struct capture_options options = {.kind = CAPTURE_HOST,
						.backend = CAPTURE_BY_BPF,
						.tracepoints = tracepoint_format_read};
	struct log log = {0};
	struct capture *c;
	char why[256];
	size_t found = 0;

	(void)state;
	if (geteuid() || capture_open(&options, &c, why, sizeof(why))) {
		print_message("needs root and BPF: %s\n", geteuid() ? "not root" : why);
		skip();
	}
	signal(SIGUSR1, signal_ignore);
	assert_int_equal(capture_add_thread(c, getpid(), getpid(), 1, true), 0);
	raise(SIGUSR1);
	drain(c, &log);
	capture_close(c);
	for (size_t i = 0; i < log.n; i++) {
		const struct vs_event *e = &log.events[i];

		found += e->type == VS_EVENT_SIGNAL_DELIVER && e->pid == getpid() &&
			 ev_signal_deliver_number(e) == SIGUSR1 &&
			 ev_signal_deliver_code(e) == SI_TKILL;
	}
	free(log.events);
	assert_int_equal(found, 1);
}

/* A vCPU that was kept from its pCPU for 300 ms and then got two signals. */
static void recording_make(const char *path)
{
	const struct synth_options options = {
		.path = path, .guest_cpus = 1, .guest_tsc_offset = 987654321};
	struct vs_event e = {.type = VS_EVENT_SIGNAL_DELIVER, .pid = VCPU0};
	struct synth *s = synth_new(&options);

	assert_non_null(s);
	ev_set_signal_deliver_number(&e, SIGUSR1);
	ev_set_signal_deliver_code(&e, CODE);
	synth_at(s, 1 * MS);
	synth_host_event(s, 0, synth_name(VCPU0, SYNTH_QEMU_PID, "CPU 0/KVM"));
	synth_host_event(s, 0, synth_name(HOG, HOG, "hog"));
	synth_host_event(s, 0, synth_switch(0, 0, VCPU0));
	synth_at(s, 200 * MS);
	synth_host_event(s, 0, e);
	synth_host_event(s, 0, e);
	synth_host_event(s, 0, synth_switch(VCPU0, VS_TASK_RUNNING, HOG));
	synth_at(s, 500 * MS);
	synth_host_event(s, 0, synth_switch(HOG, 1, VCPU0));
	synth_host_event(s, 0, e);
	synth_at(s, 700 * MS);
	synth_free(s);
}

/* Returns what the command prints to standard output or to OUT. The caller frees it. */
static char *output_of(const char *arguments, const char *recording, size_t *bytes)
{
	char command[512], out[128], *text = NULL;
	FILE *f;

	snprintf(out, sizeof(out), "%s.out", recording);
	snprintf(command, sizeof(command), "'%s' %.*s %s %s -o %s >/dev/null", vcpuscope,
		 (int)strcspn(arguments, " "), arguments, recording,
		 arguments + strcspn(arguments, " "), out);
	if (system(command))
		fail_msg("%s", command);
	f = fopen(out, "rb");
	assert_non_null(f);
	text = calloc(1, 1 << 20);
	*bytes = fread(text, 1, (1 << 20) - 1, f);
	fclose(f);
	unlink(out);
	return text;
}

static void test_a_recording_shows_it(void **state)
{
	static const struct {
		const char *arguments, *expected;
	} cases[] = {
		{"report --format text", "signal_deliver: number=10 code=-6"},
		{"report --format json", "signal_deliver: number=10 code=-6"},
		{"report --format html", "signal_deliver: number=10 code=-6"},
		{"export --to csv", "number=10 code=-6\r\n"},
		{"export --to csv", "signal_deliver"},
		{"export --to perfetto", "signal_deliver"},
		{"export --to perfetto", "code"},
	};
	char path[] = "/tmp/new_event.XXXXXX";
	const int fd = mkstemp(path);

	(void)state;
	assert_true(fd >= 0);
	close(fd);
	recording_make(path);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		size_t bytes;
		char *text = output_of(cases[i].arguments, path, &bytes);

		if (!memmem(text, bytes, cases[i].expected, strlen(cases[i].expected)))
			fail_msg("%s: no \"%s\"", cases[i].arguments, cases[i].expected);
		free(text);
	}
	unlink(path);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_kernels_hits_are_captured),
		cmocka_unit_test(test_a_recording_shows_it),
	};

	if (argc != 2) {
		fprintf(stderr, "usage: %s VCPUSCOPE\n", argv[0]);
		return 2;
	}
	vcpuscope = argv[1];
	return cmocka_run_group_tests(tests, NULL, NULL);
}
