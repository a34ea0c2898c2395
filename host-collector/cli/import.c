/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * `vcpuscope import`: converts the output of another tracer to a recording and reports what was
 * converted and what was not.
 */
#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "host-collector/cli/commands.h"
#include "host-collector/import/dat_options.h"
#include "host-collector/import/dat_pair.h"
#include "host-collector/import/foreign.h"
#include "host-collector/import/gather.h"
#include "host-collector/import/trace_dat.h"
#include "host-collector/import/vcpus.h"
#include "host-collector/import/writer.h"
#include "host-collector/util/escape.h"
#include "proto/program/value.h"

enum { ONE_CLOCK_ERROR_NS = 1000000 };

struct import_arguments {
	const char *host, *guest, *vm, *vcpu, *clock, *offset, *output;
	uint64_t tsc_hz, guest_tsc_hz, error_ns;
};

/* The contents of the inputs that are trace.dat files. */
struct import_files {
	bool host_known, guest_known;
	struct dat_options host, guest;
	struct dat_pair pair;
};

static const struct option_spec import_option_table[] = {
	{.name = "host",
	 .type = OPTION_STRING,
	 .required = true,
	 .offset = offsetof(struct import_arguments, host),
	 .value = "FILE",
	 .help = "the host's trace: a trace.dat, or the text of `trace-cmd report`, "
		 "trace_pipe or `perf script`; - is standard input"},
	{.name = "output",
	 .letter = 'o',
	 .type = OPTION_FILE,
	 .required = true,
	 .offset = offsetof(struct import_arguments, output),
	 .value = "RUN.vcs",
	 .help = "the recording to write"},
	{.name = "vcpu",
	 .type = OPTION_STRING,
	 .offset = offsetof(struct import_arguments, vcpu),
	 .value = "TID=INDEX,...",
	 .help = "the vCPU threads (default: those of the guests that the host's trace.dat "
		 "lists, threads named `CPU N/KVM`, and those with KVM events)"},
	{.name = "vm",
	 .type = OPTION_STRING,
	 .offset = offsetof(struct import_arguments, vm),
	 .value = "NAME",
	 .help = "the name of the first VM, which is the one of --guest (default: as the host's "
		 "trace.dat lists it, else vm1)"},
	{.name = "guest",
	 .type = OPTION_STRING,
	 .offset = offsetof(struct import_arguments, guest),
	 .value = "FILE",
	 .help = "the trace of the first VM's guest, in the same formats"},
	{.name = "guest-offset-ns",
	 .type = OPTION_STRING,
	 .offset = offsetof(struct import_arguments, offset),
	 .value = "N",
	 .help = "the host's clock minus the guest's clock, may be negative (default: from the "
		 "sync in the guest's trace.dat; without a sync 0, if the times overlap)"},
	{.name = "guest-error-ns",
	 .type = OPTION_NUMBER,
	 .offset = offsetof(struct import_arguments, error_ns),
	 .value = "N",
	 .help = "the largest possible error of that offset; reports show it (default: derived "
		 "from the sync, or 1000000 without a sync)"},
	{.name = "clock",
	 .type = OPTION_STRING,
	 .offset = offsetof(struct import_arguments, clock),
	 .value = "NAME",
	 .help = "the trace clock of the host's stamps (local, mono, x86-tsc); only shown in "
		 "reports"},
	{.name = "tsc-hz",
	 .type = OPTION_NUMBER,
	 .offset = offsetof(struct import_arguments, tsc_hz),
	 .value = "N",
	 .help = "ticks per second, if the stamps are TSC ticks (clock x86-tsc; text without "
		 "a decimal point)"},
	{.name = "guest-tsc-hz",
	 .type = OPTION_NUMBER,
	 .offset = offsetof(struct import_arguments, guest_tsc_hz),
	 .value = "N",
	 .help = "the same for the guest's trace"},
};

static int trouble_say(const char *what, const char *next)
{
	fprintf(stderr, "vcpuscope import: %s; %s\n", escape(what).text, next);
	return COMMAND_TROUBLE;
}

static int usage_say(const char *what, const char *next)
{
	trouble_say(what, next);
	return COMMAND_USAGE;
}

static int arguments_check(const struct import_arguments *a, int64_t *offset_ns)
{
	if (a->offset && signed_parse(a->offset, offset_ns))
		return usage_say("--guest-offset-ns: expected a number of nanoseconds",
				 "host time minus guest time, such as -1500000");
	if (a->offset && !a->error_ns)
		return usage_say("--guest-offset-ns needs its error",
				 "give its bound with --guest-error-ns N");
	if (!a->guest && (a->offset || a->error_ns))
		return usage_say("--guest-offset-ns and --guest-error-ns need a guest",
				 "give its trace with --guest");
	return COMMAND_OK;
}

/* Returns true if the path can be read twice: a pipe cannot. */
static bool path_is_file(const char *path)
{
	struct stat s;

	return !stat(path, &s) && S_ISREG(s.st_mode);
}

/* Reads what a trace.dat says about itself. A damaged one is reported when its events are read. */
static void file_look(const char *path, struct dat_options *o, bool *known)
{
	FILE *in = path_is_file(path) && trace_dat_is(path) ? fopen(path, "rb") : NULL;
	int err = in ? dat_options_read(o, in) : -ENOENT;

	*known = !err;
	if (err == -ENOTSUP)
		fprintf(stderr,
			"vcpuscope import: %s: its options cannot be read; its relation to the other "
			"file, and its sync, are not checked\n",
			path);
	if (in)
		fclose(in);
	if (err)
		dat_options_fini(o);
}

/* Whether both files belong together, and what the guest's says about its clock. */
static int pair_find(struct import_arguments *a, struct import_files *files,
		     struct gather_options *guest_options)
{
	const struct dat_pair_options options = {.vcpus_stated = a->vcpu, .tick_hz = a->tsc_hz};
	const struct dat_options *host = files->host_known ? &files->host : NULL;
	char why[256];

	if (host && !a->clock && host->clock[0])
		a->clock = host->clock;
	if (!files->guest_known)
		return COMMAND_OK;
	if (files->guest.sync.present && a->offset)
		return usage_say("--guest-offset-ns: the guest's trace.dat has a sync with its "
				 "host, which is used",
				 "omit the option, or give the text of `trace-cmd report -t "
				 "--raw-ts` instead of the file");
	if (dat_pair_find(&files->pair, host, &files->guest, &options, why, sizeof(why))) {
		fprintf(stderr, "vcpuscope import: %s: %s\n", a->guest, why);
		return COMMAND_USAGE;
	}
	if (!files->pair.synced)
		return COMMAND_OK;
	/* libtracecmd adds what the sync says: ticks are the host's. */
	guest_options->tick_hz = a->tsc_hz;
	if (!a->error_ns)
		a->error_ns = files->pair.err_ns;
	printf("clocks: the guest's trace.dat has a sync with its host (%s): its times are the "
	       "host's, +-%" PRIu64 " ns%s\n",
	       files->pair.measured ? "round trips" : "TSC offset", a->error_ns,
	       files->pair.unchecked ? "; the host's input does not say whether it is this host"
				     : "");
	return COMMAND_OK;
}

/* 0, or what the command ends with. */
static int file_gather(const char *path, struct gather *g)
{
	const bool is_file = path_is_file(path);
	const bool is_dat = is_file && trace_dat_is(path);
	const struct foreign *foreign = is_file && !is_dat ? foreign_of(path) : NULL;
	char why[256] = "";
	FILE *in = NULL;
	int err;

	if (foreign) {
		fprintf(stderr,
			"vcpuscope import: %s: is %s: pipe the output of `%s FILE` into vcpuscope, "
			"and give - instead of the file\n",
			path, foreign->is, foreign->text_by);
		return COMMAND_TROUBLE;
	}
	if (is_dat) {
		err = trace_dat_gather(g, path, why, sizeof(why));
		if (err == -EBADMSG) {
			fprintf(stderr, "vcpuscope import: %s: %s\n", path, why);
			err = 0;
		}
	} else {
		in = strcmp(path, "-") ? fopen(path, "rb") : stdin;
		err = in ? gather_text(g, in) : -errno;
	}
	if (in && in != stdin)
		fclose(in);
	if (!err)
		err = gather_finish(g);
	if (err) {
		fprintf(stderr, "vcpuscope import: %s: cannot read: %s\n", path, strerror(-err));
		return COMMAND_TROUBLE;
	}
	return COMMAND_OK;
}

static void count_print(uint64_t n, const char *what)
{
	if (n)
		printf("  %" PRIu64 " %s\n", n, what);
}

static int by_count(const void *a, const void *b)
{
	const struct gather_name *x = a, *y = b;

	return (x->n < y->n) - (x->n > y->n);
}

static void unused_print(struct gather *g)
{
	const struct gather_name *other = &g->names[GATHER_NAMES_MAX];

	qsort(g->names, g->n_names, sizeof(g->names[0]), by_count);
	if (g->unused)
		printf("  %" PRIu64
		       " events without a CPU or a usable name, or of too many kinds: not "
		       "in the recording:\n",
		       g->unused);
	for (size_t i = 0; i < g->n_names; i++)
		printf("    %-32s %" PRIu64 "\n", escape(g->names[i].name).text, g->names[i].n);
	if (other->n)
		printf("    %-32s %" PRIu64 "\n", "other names", other->n);
}

/* In the order in which the recording has them. */
static void others_print(const struct gather *g)
{
	const size_t n = other_events_count(g->others);
	struct message_user_event *e = malloc(sizeof(*e));

	if (g->other)
		printf("  %" PRIu64 " of these are events of %zu kind%s without a type of their "
		       "own; -e EVENT names them:\n",
		       g->other, n, n == 1 ? "" : "s");
	for (uint32_t id = 1; id <= n && e; id++) {
		other_events_describe(g->others, id, e);
		printf("    %-32s %" PRIu64 "\n", escape(e->spec).text,
		       other_events_hits(g->others, id));
	}
	free(e);
}

static void account_print(const char *side, struct gather *g)
{
	printf("%s: %" PRIu64 " events of %" PRIu64 " lines or records, stamps of %" PRIu64 " ns\n",
	       side, g->taken, g->lines, g->unit);
	others_print(g);
	count_print(g->nothing, "lines are headers, comments or stacks");
	unused_print(g);
	if (g->lost_marks)
		printf("  %" PRIu64 " marks of lost events: %" PRIu64 " lost\n", g->lost_marks,
		       g->lost);
	count_print(g->reasons_unknown, "kvm_exit events with an unknown reason");
	count_print(g->invented, "KVM events without a thread: each vCPU gets a made-up thread");
	count_print(g->states_shifted,
		    "task states that the kernel (Linux 4.18) wrote one bit too high: corrected");
	count_print(g->backwards, "events older than their predecessor on the same CPU: sorted");
	count_print(g->steps_back,
		    "of these by more than a second: the input may be two recordings");
	if (g->silences)
		printf("  %" PRIu64 " gaps of more than a minute, %.1f s in total: counted as "
		       "not recorded\n",
		       g->silences, (double)g->silent_ns / 1e9);
	count_print(g->malformed, "malformed lines or records, the first of them:");
	for (size_t i = 0; i < g->malformed && i < GATHER_EXAMPLES; i++)
		printf("    %s\n", escape(g->examples[i]).text);
	count_print(g->torn,
		    "of these are KVM events: they count as lost, and what their threads did "
		    "afterwards is unknown");
	if (g->torn && g->architecture)
		printf("  they look like KVM events of %s, which is not supported: only x86 is\n",
		       g->architecture);
	count_print(g->placeless, "of these have no CPU, or neither a thread nor a vCPU");
	count_print(g->tickless, "of these have stamps in ticks: give their rate with --tsc-hz N");
}

static void vcpus_print(const struct vcpus *v)
{
	for (size_t i = 0; i < v->n; i++) {
		const struct message_vm_info *vm = &v->vms[i];

		printf("VM %s:", escape(vm->name).text);
		for (size_t k = 0; k < vm->n_threads; k++)
			printf("%s vCPU %u is thread %d (%s)", k ? "," : "", vm->threads[k].vcpu,
			       vm->threads[k].tid, escape(vm->threads[k].comm).text);
		printf("\n");
	}
	if (!v->n)
		printf("no vCPU threads: no thread is named `CPU N/KVM` or has KVM events; give "
		       "them with --vcpu TID=INDEX\n");
	count_print(v->left_out, "vCPU threads exceed the maximum of a recording: left out");
}

static double first_s(const struct gather *g)
{
	return (double)g->events[0].e.time / 1e9;
}

static double last_s(const struct gather *g)
{
	return (double)g->events[g->n_events - 1].e.time / 1e9;
}

/* Without an offset and a sync, both clocks are taken as one, which is said, if that can be. */
static int one_clock_assume(struct import_arguments *a, bool synced, const struct gather *host,
			    const struct gather *guest)
{
	if (!a->guest || a->offset || synced || !host->n_events || !guest->n_events)
		return COMMAND_OK;
	if (first_s(host) > last_s(guest) || first_s(guest) > last_s(host)) {
		fprintf(stderr,
			"vcpuscope import: the guest has another clock than the host: its stamps go from %.6f to "
			"%.6f s, the host's from %.6f to %.6f s; give their difference with "
			"--guest-offset-ns N and its error with --guest-error-ns N, or omit --guest\n",
			first_s(guest), last_s(guest), first_s(host), last_s(host));
		return COMMAND_USAGE;
	}
	if (!a->error_ns)
		a->error_ns = ONE_CLOCK_ERROR_NS;
	printf("clocks: no --guest-offset-ns: assuming that the guest's stamps are the host's, +-%" PRIu64
	       " ns\n",
	       a->error_ns);
	return COMMAND_OK;
}

/* The guest that becomes the first VM: that of --guest, else the one that --vm names. */
static const struct dat_guest *guest_first(const struct import_arguments *a,
					   const struct import_files *files)
{
	if (files->pair.guest)
		return files->pair.guest;
	for (size_t i = 0; i < files->host.n_guests && a->vm; i++) {
		if (!strcmp(files->host.guests[i].name, a->vm))
			return &files->host.guests[i];
	}
	return NULL;
}

static int recording_write(const struct import_arguments *a, const struct import_files *files,
			   struct gather *host, struct gather *guest)
{
	const struct vcpus_known known = {
		.stated = a->vcpu,
		.name = a->vm,
		.guests = files->host.guests,
		.n_guests = files->host.n_guests,
		.first = guest_first(a, files),
	};
	char origin[VS_TEXT_MAX];
	struct import_plan plan = {
		.path = a->output,
		.origin = origin,
		.host = host,
		.guest = a->guest ? guest : NULL,
		.guest_err_ns = a->error_ns,
	};
	struct vcpus vcpus;
	int err = vcpus_find(&vcpus, host, &known), result = COMMAND_OK;

	if (err == -EINVAL) {
		result = usage_say("--vcpu: expected a list of threads",
				   "TID=INDEX,TID=INDEX, each index once, such as "
				   "4711=0,4712=1");
		goto out;
	}
	snprintf(origin, sizeof(origin), "text%s%.100s", a->clock ? ", clock " : "",
		 a->clock ? a->clock : "");
	plan.vcpus = &vcpus;
	if (!err)
		err = import_write(&plan);
	if (err) {
		fprintf(stderr, "vcpuscope import: cannot write %s: %s\n", a->output,
			strerror(-err));
		result = COMMAND_TROUBLE;
		goto out;
	}
	vcpus_print(&vcpus);
	printf("%s written; see `vcpuscope report %s`\n", a->output, a->output);
out:
	vcpus_fini(&vcpus);
	return result;
}

static int import_run(const struct command *self, int argc, char **argv)
{
	struct import_arguments a = {0};
	struct gather_options host_options = {0}, guest_options = {.guest = true};
	struct import_files files = {0};
	struct gather *gathers;
	int result;

	if (options_read(self, argc, argv, &a))
		return COMMAND_USAGE;
	result = arguments_check(&a, &guest_options.offset_ns);
	if (result)
		return result;
	gathers = calloc(2, sizeof(*gathers));
	if (!gathers)
		return trouble_say("out of memory", "48 bytes per event are needed");
	host_options.tick_hz = a.tsc_hz;
	guest_options.tick_hz = a.guest_tsc_hz;
	file_look(a.host, &files.host, &files.host_known);
	if (a.guest)
		file_look(a.guest, &files.guest, &files.guest_known);
	result = pair_find(&a, &files, &guest_options);
	if (gather_init(&gathers[0], &host_options) || gather_init(&gathers[1], &guest_options))
		result = trouble_say("out of memory", "48 bytes per event are needed");
	if (!result)
		result = file_gather(a.host, &gathers[0]);
	if (!result && a.guest)
		result = file_gather(a.guest, &gathers[1]);
	if (!result) {
		account_print("host", &gathers[0]);
		if (a.guest)
			account_print("guest", &gathers[1]);
		result = one_clock_assume(&a, files.pair.synced, &gathers[0], &gathers[1]);
	}
	if (!result) {
		result =
			gathers[0].taken + gathers[1].taken
				? recording_write(&a, &files, &gathers[0], &gathers[1])
				: trouble_say("no usable event was found: nothing written",
					      "see the lines above; import reads sched, irq and "
					      "x86 kvm events as `trace-cmd report`, trace_pipe "
					      "and `perf script` (with its CPU column) print them");
	}
	gather_fini(&gathers[0]);
	gather_fini(&gathers[1]);
	free(gathers);
	dat_options_fini(&files.host);
	dat_options_fini(&files.guest);
	return result;
}

const struct command command_import = {
	.name = "import",
	.summary = "convert a trace of trace-cmd, ftrace or perf to a recording",
	.usage = "--host FILE [--guest FILE [--guest-offset-ns N --guest-error-ns N]] -o RUN.vcs",
	.options = import_option_table,
	.n_options = sizeof(import_option_table) / sizeof(import_option_table[0]),
	.examples = "  trace-cmd record -C mono -e kvm -e sched sleep 10\n"
		    "  vcpuscope import --host trace.dat -o run.vcs\n"
		    "  perf script --ns | vcpuscope import --host - --vcpu 4711=0 -o run.vcs\n"
		    "  vcpuscope import --host trace.dat --guest trace-web1.dat -o run.vcs\n"
		    "  vcpuscope import --host host.dat --guest guest.dat --vm web1 \\\n"
		    "    --guest-offset-ns 81234567890 --guest-error-ns 50000 -o run.vcs\n"
		    "  vcpuscope report run.vcs\n",
	.run = import_run,
};
