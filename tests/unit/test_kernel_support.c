// SPDX-License-Identifier: GPL-2.0-only
/* Tests the doctors' text about a kernel without BTF, without tracefs, under lockdown, and
 * without rights. A folder with files of the test simulates the kernel's files. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "bpf/capture/kernel_support.h"
#include "bpf/capture/tracepoint_losses.h"
#include "guest-agent/doctor.h"

#define BTF      "/sys/kernel/btf/vmlinux"
#define TRACEFS  "/sys/kernel/tracing/events/sched/sched_switch/id"
#define DEBUGFS  "/sys/kernel/debug/tracing/events/sched/sched_switch/id"
#define LOCKDOWN "/sys/kernel/security/lockdown"
#define STATUS   "/proc/self/status"

static char root[64];

static void put(const char *path, const char *text)
{
	char full[256];
	FILE *f;

	snprintf(full, sizeof(full), "%s%s", root, path);
	for (char *slash = full + strlen(root); (slash = strchr(slash + 1, '/'));) {
		*slash = '\0';
		assert_true(!mkdir(full, 0755) || errno == EEXIST);
		*slash = '/';
	}
	f = fopen(full, "we");
	assert_non_null(f);
	fputs(text, f);
	assert_int_equal(fclose(f), 0);
}

static void take(const char *path)
{
	char full[256];

	snprintf(full, sizeof(full), "%s%s", root, path);
	assert_int_equal(unlink(full), 0);
}

static int start(void **state)
{
	(void)state;
	snprintf(root, sizeof(root), "/tmp/test_kernel_support.XXXXXX");
	assert_non_null(mkdtemp(root));
	put(BTF, "x");
	put(TRACEFS, "314\n");
	put(LOCKDOWN, "[none] integrity confidentiality\n");
	put(STATUS, "Name:\tx\nCapEff:\t000000c000080000\n"); /* BPF, PERFMON, SYS_PTRACE */
	return 0;
}

static int gone(const char *path, const struct stat *st, int kind, struct FTW *ftw)
{
	(void)st, (void)kind, (void)ftw;
	return remove(path);
}

static int end(void **state)
{
	(void)state;
	return nftw(root, gone, 8, FTW_DEPTH | FTW_PHYS);
}

static struct kernel_support of(enum capture_kind side, enum kernel_support_kind kind)
{
	struct kernel_support s;

	kernel_support_read(root, side, kind, &s);
	assert_true(s.found[0]);
	assert_int_equal(s.works, !s.without[0]);
	assert_int_equal(s.works, !s.remedy[0]);
	return s;
}

static void has(const char *text, const char *part)
{
	if (!strstr(text, part))
		fail_msg("\"%s\" is not in \"%s\"", part, text);
}

static void all_works(void **state)
{
	(void)state;
	for (int i = 0; i < KERNEL_SUPPORT_KINDS; i++)
		assert_true(of(CAPTURE_HOST, (enum kernel_support_kind)i).works);
	has(of(CAPTURE_HOST, KERNEL_SUPPORT_TRACEFS).found, "event 314");
}

static void without_btf_perf_is_left(void **state)
{
	struct kernel_support s;

	(void)state;
	take(BTF);
	s = of(CAPTURE_GUEST, KERNEL_SUPPORT_BTF);
	assert_false(s.works);
	has(s.found, BTF);
	has(s.without, "BPF cannot capture; perf can");
	has(s.remedy, "CONFIG_DEBUG_INFO_BTF");
}

static void without_tracefs_bpf_is_left(void **state)
{
	struct kernel_support s;

	(void)state;
	take(TRACEFS);
	put(DEBUGFS, "7\n"); /* kernels mount it there, too */
	assert_true(of(CAPTURE_HOST, KERNEL_SUPPORT_TRACEFS).works);
	take(DEBUGFS);
	s = of(CAPTURE_HOST, KERNEL_SUPPORT_TRACEFS);
	assert_false(s.works);
	has(s.without, "perf cannot capture");
	has(s.without, "BPF can");
	has(s.remedy, "mount -t tracefs");
	put(TRACEFS, ""); /* a file without a number is no tracefs */
	assert_false(of(CAPTURE_HOST, KERNEL_SUPPORT_TRACEFS).works);
}

static void lockdown_says_its_mode(void **state)
{
	struct kernel_support s;

	(void)state;
	put(LOCKDOWN, "none [integrity] confidentiality\n");
	s = of(CAPTURE_HOST, KERNEL_SUPPORT_LOCKDOWN);
	assert_true(s.works);
	has(s.found, "integrity");
	put(LOCKDOWN, "none integrity [confidentiality]\n");
	s = of(CAPTURE_HOST, KERNEL_SUPPORT_LOCKDOWN);
	assert_false(s.works);
	has(s.found, "confidentiality");
	has(s.without, "neither can capture");
	has(s.remedy, "lockdown=integrity");
	put(LOCKDOWN, "what\n");
	has(of(CAPTURE_HOST, KERNEL_SUPPORT_LOCKDOWN).found, "unknown");
	take(LOCKDOWN);
	has(of(CAPTURE_HOST, KERNEL_SUPPORT_LOCKDOWN).found, "none known");
}

static void each_missing_capability_is_named(void **state)
{
	static const struct {
		const char *caps, *found, *without;
		enum capture_kind side;
	} cases[] = {
		{"0000008000080000", "missing: CAP_PERFMON", "neither BPF nor perf", CAPTURE_HOST},
		{"0000004000080000", "missing: CAP_BPF", "BPF cannot capture; perf can",
		 CAPTURE_HOST},
		{"000000c000000000", "missing: CAP_SYS_PTRACE", "no kvmclock page", CAPTURE_HOST},
		{"0000000000200000", "missing: CAP_SYS_PTRACE", "no kvmclock page", CAPTURE_HOST},
		{"0000000000000000", "missing: CAP_PERFMON CAP_BPF CAP_SYS_PTRACE", "no kvmclock",
		 CAPTURE_HOST},
		{"0000000000000000", "missing: CAP_PERFMON CAP_BPF", "neither BPF nor perf",
		 CAPTURE_GUEST},
		{"0000000000200000", "may trace", "", CAPTURE_GUEST}, /* CAP_SYS_ADMIN */
		{"000000c000000000", "may trace", "", CAPTURE_GUEST},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct kernel_support s;
		char status[64];

		snprintf(status, sizeof(status), "CapInh:\t0\nCapEff:\t%s\n", cases[i].caps);
		put(STATUS, status);
		s = of(cases[i].side, KERNEL_SUPPORT_RIGHTS);
		has(s.found, cases[i].found);
		has(s.without, cases[i].without);
		assert_int_equal(s.works, !cases[i].without[0]);
	}
	put(STATUS, "Name:\tx\n");
	has(of(CAPTURE_HOST, KERNEL_SUPPORT_RIGHTS).found, "unknown");
}

static bool bpf_works, perf_works;
static const char *perf_lacks;

static int backend_try(enum backend_choice backend, char *said, size_t bytes, char *lost,
		       size_t lost_bytes)
{
	const bool works = backend == CAPTURE_BY_BPF ? bpf_works : perf_works;

	snprintf(said, bytes, works ? "attaches" : "refused here");
	if (works && backend == CAPTURE_BY_PERF && perf_lacks)
		tracepoint_losses(CAPTURE_GUEST, perf_lacks, lost, lost_bytes);
	return works ? 0 : -EPERM;
}

static bool said_by_agent(char *text, size_t bytes)
{
	FILE *f = fmemopen(text, bytes, "w");
	bool any;

	assert_non_null(f);
	any = doctor_print(f, root, backend_try);
	fclose(f);
	return any;
}

static void the_agent_says_what_is_left(void **state)
{
	char text[4096];

	(void)state;
	bpf_works = perf_works = true;
	assert_true(said_by_agent(text, sizeof(text)));
	assert_null(strstr(text, "without:"));
	perf_lacks = "softirq_entry, softirq_exit";
	assert_true(said_by_agent(text, sizeof(text)));
	has(text, "without: softirq_entry, softirq_exit: softirqs: ");
	perf_lacks = NULL;
	take(BTF);
	bpf_works = false;
	assert_true(said_by_agent(text, sizeof(text)));
	has(text, "btf           no   " BTF);
	has(text, "without: BPF cannot capture; perf can");
	has(text, "by BPF        no   refused here");
	has(text, "by perf       yes  attaches");
	has(text, "the agent can capture here");
	take(TRACEFS);
	perf_works = false;
	assert_false(said_by_agent(text, sizeof(text)));
	has(text, "the agent cannot capture here");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(all_works, start, end),
		cmocka_unit_test_setup_teardown(without_btf_perf_is_left, start, end),
		cmocka_unit_test_setup_teardown(without_tracefs_bpf_is_left, start, end),
		cmocka_unit_test_setup_teardown(lockdown_says_its_mode, start, end),
		cmocka_unit_test_setup_teardown(each_missing_capability_is_named, start, end),
		cmocka_unit_test_setup_teardown(the_agent_says_what_is_left, start, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
