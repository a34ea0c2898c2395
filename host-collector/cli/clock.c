/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * `vcpuscope clock RUN.vcs` shows the clocks of a recording (clock_show.c), `vcpuscope clock --pid
 * N` those of a running VM (clock_live.c). `vcpuscope clock eval` converts one instant to each
 * clock of a VM, for scripts and tests.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "clock/eval.h"
#include "host-collector/cli/clock_live.h"
#include "host-collector/cli/clock_show.h"
#include "host-collector/cli/commands.h"

struct clock_options {
	const char *what, *format, *convert;
	const char *tsc_offset, *scaling, *pvclock;
	const char *host_tsc, *guest_tsc, *kvmclock;
	const char *inverse;
	uint64_t pid;
};

#define FIELD(name) offsetof(struct clock_options, name)
static const struct option_spec clock_option_table[] = {
	{.name = "RUN.vcs|eval",
	 .type = OPTION_OPERAND,
	 .offset = FIELD(what),
	 .help = "the recording whose clocks to show, or the word eval"},
	{.name = "pid",
	 .letter = 'p',
	 .type = OPTION_NUMBER,
	 .offset = FIELD(pid),
	 .value = "N",
	 .help = "show the clocks of the VM of process N, as KVM on this host has them now"},
	{.name = "format",
	 .type = OPTION_CHOICE,
	 .offset = FIELD(format),
	 .value = "text|json",
	 .help = "with a recording: text for people, or json (default text)"},
	{.name = "convert",
	 .type = OPTION_STRING,
	 .offset = FIELD(convert),
	 .value = "FILE",
	 .help = "with a recording: print what each clock read at the guest TSCs in FILE, one "
		 "per line; - is standard input"},
	{.name = "tsc-offset",
	 .type = OPTION_STRING,
	 .offset = FIELD(tsc_offset),
	 .value = "N",
	 .help = "the TSC offset: KVM adds it to the (scaled) host TSC; may be negative "
		 "(default 0; see tsc-offset in debugfs)"},
	{.name = "scaling",
	 .type = OPTION_STRING,
	 .offset = FIELD(scaling),
	 .value = "RATIO/FRAC",
	 .help = "TSC scaling: multiply by RATIO, then shift right by FRAC (48 with VMX, 32 "
		 "with SVM) (default: none)"},
	{.name = "pvclock",
	 .type = OPTION_STRING,
	 .offset = FIELD(pvclock),
	 .value = "FIELDS",
	 .help = "the kvmclock parameters of the vCPU: tsc_timestamp=N, system_time=N, mul=N, "
		 "shift=N and flags=N, separated by commas, without blanks"},
	{.name = "host-tsc",
	 .type = OPTION_STRING,
	 .offset = FIELD(host_tsc),
	 .value = "N",
	 .help = "the instant as a host TSC"},
	{.name = "guest-tsc",
	 .type = OPTION_STRING,
	 .offset = FIELD(guest_tsc),
	 .value = "N",
	 .help = "the instant as a guest TSC"},
	{.name = "kvmclock",
	 .type = OPTION_STRING,
	 .offset = FIELD(kvmclock),
	 .value = "N",
	 .help = "the instant as a kvmclock time in nanoseconds"},
	{.name = "inverse",
	 .type = OPTION_CHOICE,
	 .offset = FIELD(inverse),
	 .value = "first|last",
	 .help = "which host TSC to use, the first or the last, if the clock reads N at "
		 "several (default first)"},
};
#undef FIELD

static int refuse(const char *what)
{
	fprintf(stderr, "vcpuscope clock: %s; see `vcpuscope clock --help`\n", what);
	return COMMAND_USAGE;
}

static const char *request_read(const struct clock_options *o, struct clock_eval_request *request)
{
	const struct {
		const char *text;
		enum clock_eval_from from;
	} instants[] = {
		{o->host_tsc, CLOCK_EVAL_HOST_TSC},
		{o->guest_tsc, CLOCK_EVAL_GUEST_TSC},
		{o->kvmclock, CLOCK_EVAL_KVMCLOCK},
	};
	struct clock_params *p = &request->params;

	if (o->tsc_offset && clock_eval_parse_offset(o->tsc_offset, &p->scaling.offset))
		return "--tsc-offset takes an integer from -2^63 to 2^64-1";
	if (o->scaling && clock_eval_parse_scaling(o->scaling, &p->scaling))
		return "--scaling takes RATIO/FRAC, RATIO from 1 to 2^64-1 and FRAC from 1 to 63";
	if (o->pvclock && clock_eval_parse_pvclock(o->pvclock, &p->pvclock))
		return "--pvclock takes tsc_timestamp=N,system_time=N,mul=N,shift=N[,flags=N], mul "
		       "from 1 to 2^32-1 and shift from -31 to 31";
	p->has_pvclock = o->pvclock != NULL;
	for (size_t i = 0; i < sizeof(instants) / sizeof(instants[0]); i++) {
		if (!instants[i].text)
			continue;
		if (request->from)
			return "give only one of --host-tsc, --guest-tsc and --kvmclock";
		request->from = instants[i].from;
		if (clock_eval_parse_u64(instants[i].text, &request->value))
			return "--host-tsc, --guest-tsc and --kvmclock take an integer from 0 to 2^64-1";
	}
	if (!request->from)
		return "the instant is missing: give --host-tsc N, --guest-tsc N or --kvmclock N";
	if (request->from == CLOCK_EVAL_KVMCLOCK && !p->has_pvclock)
		return "--kvmclock needs the vCPU's --pvclock parameters";
	if (o->inverse && !strcmp(o->inverse, "last"))
		request->inverse = CLOCK_EVAL_LAST;
	return NULL;
}

static int clock_run(const struct command *self, int argc, char **argv)
{
	struct clock_options options = {.format = "text"};
	struct clock_eval_request request = {0};
	struct clock_eval_result result;
	const char *wrong;

	if (options_read(self, argc, argv, &options))
		return COMMAND_USAGE;
	if (!options.what && options.pid && options.pid <= INT32_MAX)
		return clock_live_show((pid_t)options.pid, stdout);
	if (!options.what)
		return refuse("the clocks to show are missing: give a recording, --pid N or eval");
	if (strcmp(options.what, "eval"))
		return clock_show(options.what, options.convert, !strcmp(options.format, "json"));
	wrong = request_read(&options, &request);
	if (wrong)
		return refuse(wrong);
	if (clock_eval(&request, &result)) {
		fprintf(stderr, "vcpuscope clock: no host TSC below 2^64 gives that value\n");
		return COMMAND_TROUBLE;
	}
	printf("host_tsc %" PRIu64 "\n", result.host.ticks);
	printf("guest_tsc %" PRIu64 "\n", result.guest.ticks);
	if (result.has_kvmclock)
		printf("kvmclock_ns %" PRIu64 "\n", result.kvmclock.ns);
	printf("host_tsc_span %" PRIu64 "\n", result.span_ticks);
	if (result.stepped_over)
		fprintf(stderr,
			"vcpuscope clock: the clock never reads exactly %" PRIu64
			"; showing the next value\n",
			request.value);
	return COMMAND_OK;
}

const struct command command_clock = {
	.name = "clock",
	.summary = "show the clocks of a recording or a VM, or convert an instant",
	.usage =
		"RUN.vcs [--format text|json | --convert FILE]\n"
		"       vcpuscope clock --pid N\n"
		"       vcpuscope clock eval [--tsc-offset N] [--scaling RATIO/FRAC] [--pvclock FIELDS] "
		"(--host-tsc N | --guest-tsc N | --kvmclock N)",
	.options = clock_option_table,
	.n_options = sizeof(clock_option_table) / sizeof(clock_option_table[0]),
	.examples =
		"  vcpuscope clock run.vcs\n"
		"  vcpuscope clock --pid 4711\n"
		"  vcpuscope clock eval --tsc-offset -81502304 --host-tsc 7305511870021\n"
		"  vcpuscope clock eval --scaling 234562480592213/48 --tsc-offset 0 --guest-tsc 5000000\n"
		"",
	.notes =
		"clock eval prints one line `NAME VALUE` per clock; host_tsc_span is the number of host TSC\n"
		"ticks for which the given clock reads the same value. docs/clocks.md has the formulas.\n",
	.run = clock_run,
};
