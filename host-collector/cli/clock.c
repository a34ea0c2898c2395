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
	 .help = "a recording whose clocks to show, or the word eval"},
	{.name = "pid",
	 .letter = 'p',
	 .type = OPTION_NUMBER,
	 .offset = FIELD(pid),
	 .value = "N",
	 .help = "instead: the VM of process N, as KVM on this host has it now"},
	{.name = "format",
	 .type = OPTION_CHOICE,
	 .offset = FIELD(format),
	 .value = "text|json",
	 .help = "of a recording's clocks"},
	{.name = "convert",
	 .type = OPTION_STRING,
	 .offset = FIELD(convert),
	 .value = "FILE",
	 .help = "instead: what every clock read at the guest TSCs in FILE, one a line (- for stdin)"},
	{.name = "tsc-offset",
	 .type = OPTION_STRING,
	 .offset = FIELD(tsc_offset),
	 .value = "N",
	 .help = "added to the (scaled) host TSC, may be negative; default 0 (debugfs tsc-offset)"},
	{.name = "scaling",
	 .type = OPTION_STRING,
	 .offset = FIELD(scaling),
	 .value = "RATIO/FRAC",
	 .help = "TSC scaling: multiply by RATIO, shift right by FRAC (48 VMX, 32 SVM); default none"},
	{.name = "pvclock",
	 .type = OPTION_STRING,
	 .offset = FIELD(pvclock),
	 .value = "FIELDS",
	 .help = "tsc_timestamp=N,system_time=N,mul=N,shift=N,flags=N of the vCPU"},
	{.name = "host-tsc",
	 .type = OPTION_STRING,
	 .offset = FIELD(host_tsc),
	 .value = "N",
	 .help = "the instant, by the host's TSC"},
	{.name = "guest-tsc",
	 .type = OPTION_STRING,
	 .offset = FIELD(guest_tsc),
	 .value = "N",
	 .help = "the instant, by the guest's TSC"},
	{.name = "kvmclock",
	 .type = OPTION_STRING,
	 .offset = FIELD(kvmclock),
	 .value = "N",
	 .help = "the instant, by kvmclock, in ns"},
	{.name = "inverse",
	 .type = OPTION_CHOICE,
	 .offset = FIELD(inverse),
	 .value = "first|last",
	 .help = "of all host ticks at which that clock reads N, which to take; default first"},
};
#undef FIELD

static int refuse(const char *what)
{
	fprintf(stderr, "vcpuscope: clock: %s\n", what);
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
			return "give one of --host-tsc, --guest-tsc and --kvmclock, not two";
		request->from = instants[i].from;
		if (clock_eval_parse_u64(instants[i].text, &request->value))
			return "--host-tsc, --guest-tsc and --kvmclock take an integer from 0 to 2^64-1";
	}
	if (!request->from)
		return "say which instant: --host-tsc N, --guest-tsc N or --kvmclock N";
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
		return refuse("say which clocks: a recording, --pid N, or eval");
	if (strcmp(options.what, "eval"))
		return clock_show(options.what, options.convert, !strcmp(options.format, "json"));
	wrong = request_read(&options, &request);
	if (wrong)
		return refuse(wrong);
	if (clock_eval(&request, &result)) {
		fprintf(stderr, "vcpuscope: clock eval: no host TSC below 2^64 gives that value\n");
		return COMMAND_TROUBLE;
	}
	printf("host_tsc %" PRIu64 "\n", result.host.ticks);
	printf("guest_tsc %" PRIu64 "\n", result.guest.ticks);
	if (result.has_kvmclock)
		printf("kvmclock_ns %" PRIu64 "\n", result.kvmclock.ns);
	printf("host_tsc_span %" PRIu64 "\n", result.span_ticks);
	if (result.stepped_over)
		fprintf(stderr,
			"vcpuscope: clock eval: no host tick reads exactly %" PRIu64
			"; the next one is shown\n",
			request.value);
	return COMMAND_OK;
}

const struct command command_clock = {
	.name = "clock",
	.summary = "the clocks of a recording; or what each reads at one instant (clock eval)",
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
		"\n"
		"prints one `name value` line per clock; host_tsc_span is how many ticks after host_tsc\n"
		"the given clock still reads the same. docs/clocks.md has the formulas.\n",
	.run = clock_run,
};
