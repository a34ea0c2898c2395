// SPDX-License-Identifier: GPL-2.0-only
/* Fuzzes every command that reads a recording, with valid frames and invalid content (mutate.h):
 * the command ends, and no sanitizer reports an error. The input selects the recording, the command
 * and the script of changes. */
#include "fuzz.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "host-collector/cli/commands.h"
#include "host-collector/simulate/simulate.h"
#include "mutate.h"

static const char *const plays[] = {
	"vmm_lock",           "guest_spin.contended", "mixture.steal_then_lock",
	"interrupt_lost",     "vm_paused.qmp",        "demand_paging.swap",
	"decoy.nested",       "guest_irq_storm",      "cgroup_throttled",
	"guest_spin.softirq", "timer_late",           "migration",
};
enum { N_PLAYS = sizeof(plays) / sizeof(plays[0]), ARGS_MAX = 10 };

/* IN and OUT stand for files. */
static const struct {
	const struct command *command;
	const char *arguments[ARGS_MAX];
} runs[] = {
	{&command_report, {"report", "IN"}},
	{&command_report, {"report", "IN", "--all", "--than", "1ms"}},
	{&command_report, {"report", "IN", "--format", "json"}},
	{&command_report, {"report", "IN", "--format", "html", "-o", "OUT"}},
	{&command_report, {"report", "IN", "vcpu", "--top", "0"}},
	{&command_report, {"report", "IN", "tasks", "--per", "vcpu"}},
	{&command_report, {"report", "IN", "irq", "--per", "vector", "--format", "csv"}},
	{&command_report, {"report", "IN", "exits", "--per", "vcpu", "--format", "json"}},
	{&command_report, {"report", "IN", "steal"}},
	{&command_report, {"report", "IN", "chains"}},
	{&command_report, {"report", "IN", "overdue"}},
	{&command_flame, {"flame", "IN"}},
	{&command_flame, {"flame", "IN", "--kind", "offwake", "--of", "vcpus"}},
	{&command_flame, {"flame", "IN", "--kind", "exits", "-o", "OUT.svg"}},
	{&command_flame, {"flame", "IN", "--kind", "oncpu", "-o", "OUT.svg"}},
	{&command_export, {"export", "IN", "--to", "csv", "-o", "OUT"}},
	{&command_export, {"export", "IN", "--to", "perfetto", "-o", "OUT"}},
	{&command_export, {"export", "IN", "--to", "folded", "-o", "OUT"}},
	{&command_top, {"top", "IN", "-b"}},
	{&command_summarize, {"summarize", "IN"}},
	{&command_compare, {"compare", "IN", "--against", "IN"}},
	{&command_clock, {"clock", "IN"}},
	{&command_metrics, {"metrics", "IN"}},
};
enum { N_RUNS = sizeof(runs) / sizeof(runs[0]) };

static struct mutate_recording bases[N_PLAYS];
static char folder[] = "/tmp/fuzz_commands.XXXXXX";
static char in[64], out[64], out_svg[64];

static void files_remove(void)
{
	unlink(in);
	unlink(out);
	unlink(out_svg);
	rmdir(folder);
}

static void prepare(void)
{
	char truth[80], why[512];

	FUZZ_CHECK(mkdtemp(folder));
	snprintf(in, sizeof(in), "%s/in.vcs", folder);
	snprintf(out, sizeof(out), "%s/out", folder);
	snprintf(out_svg, sizeof(out_svg), "%s/out.svg", folder);
	snprintf(truth, sizeof(truth), "%s/truth", folder);
	atexit(files_remove);
	for (size_t i = 0; i < N_PLAYS; i++) {
		const struct simulate_options options = {.scenario = scenario_find(plays[i]),
							 .seed = i + 1,
							 .recording = in,
							 .truth = truth};

		FUZZ_CHECK(options.scenario && !simulate_run(&options, why, sizeof(why)));
		FUZZ_CHECK(!mutate_read(in, &bases[i]));
	}
	unlink(truth);
	/* What the commands write is of no interest; sanitizers write to the descriptor. */
	FUZZ_CHECK(freopen("/dev/null", "w", stdout));
	stderr = fopen("/dev/null", "w");
	FUZZ_CHECK(stderr);
}

static void run(size_t which)
{
	char *argv[ARGS_MAX + 1];
	int argc = 0;

	for (; argc < ARGS_MAX && runs[which].arguments[argc]; argc++) {
		const char *a = runs[which].arguments[argc];

		argv[argc] = !strcmp(a, "IN")        ? in
			     : !strcmp(a, "OUT")     ? out
			     : !strcmp(a, "OUT.svg") ? out_svg
						     : (char *)a;
	}
	argv[argc] = NULL;
	/* 2 from `compare` is a regression, not wrong usage. */
	if (runs[which].command->run(runs[which].command, argc, argv) == COMMAND_USAGE)
		FUZZ_CHECK(runs[which].command == &command_compare);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct mutate_recording r;

	if (len < 2)
		return 0;
	if (!in[0])
		prepare();
	r = mutate_copy(&bases[data[0] % N_PLAYS]);
	mutate_apply(&r, data + 2, len - 2);
	FUZZ_CHECK(!mutate_write(&r, in));
	mutate_free(&r);
	if (data[1] == 255) {
		for (size_t i = 0; i < N_RUNS; i++)
			run(i);
	} else {
		run(data[1] % N_RUNS);
	}
	return 0;
}
