// SPDX-License-Identifier: GPL-2.0-only
/* `vcpuscope flame`: shows where the time in a recording was spent, as weighted stacks. */
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host-collector/analyze/stall/describe.h"
#include "host-collector/analyze/flame/flame.h"
#include "host-collector/cli/commands.h"
#include "host-collector/cli/flame_draw.h"
#include "host-collector/util/escape.h"
#include "host-collector/view/folded_text.h"
#include "proto/program/output.h"

/* No vCPU given. */
#define EVERY_VCPU UINT64_MAX

struct flame_arguments {
	const char *recording, *other, *kind, *of, *vm, *task, *state, *output;
	uint64_t vcpu;
	bool merge, diff;
	struct flame_look look;
};

static const struct option_spec flame_option_table[] = {
	{.name = "RUN.vcs",
	 .type = OPTION_OPERAND,
	 .required = true,
	 .offset = offsetof(struct flame_arguments, recording),
	 .help = "a recording made by `vcpuscope record`, or folded text (.folded)"},
	{.name = "AFTER.vcs",
	 .type = OPTION_OPERAND,
	 .offset = offsetof(struct flame_arguments, other),
	 .help = "with --diff: what to compare the first with"},
	{.name = "diff",
	 .type = OPTION_FLAG,
	 .offset = offsetof(struct flame_arguments, diff),
	 .help = "how the second differs from the first, every frame coloured, grey where that may be "
		 "chance"},
	{.name = "normalise",
	 .type = OPTION_FLAG,
	 .offset = offsetof(struct flame_arguments, look.normalise),
	 .help = "of --diff: compare shares of all (default: time per second of recording)"},
	{.name = "kind",
	 .type = OPTION_CHOICE,
	 .offset = offsetof(struct flame_arguments, kind),
	 .value = "oncpu|offcpu|wakeup|offwake|wall|exits",
	 .help = "where time on a CPU went; where threads waited; who ended that; both; all time of every "
		 "thread (default); what VM-exits cost"},
	{.name = "of",
	 .type = OPTION_CHOICE,
	 .offset = offsetof(struct flame_arguments, of),
	 .value = "tasks|vcpus",
	 .help = "whose time: the guests' tasks' (default of oncpu and wall, and with --task), or the "
		 "vCPU threads' (default of the others, and with --vcpu)"},
	{.name = "vm",
	 .type = OPTION_STRING,
	 .offset = offsetof(struct flame_arguments, vm),
	 .value = "NAME",
	 .help = "of this VM only, by name or number"},
	{.name = "vcpu",
	 .type = OPTION_NUMBER,
	 .offset = offsetof(struct flame_arguments, vcpu),
	 .value = "N",
	 .help = "of this vCPU only"},
	{.name = "task",
	 .type = OPTION_STRING,
	 .offset = offsetof(struct flame_arguments, task),
	 .value = "NAME",
	 .help = "of this guest task only, by name or pid"},
	{.name = "state",
	 .type = OPTION_STRING,
	 .offset = offsetof(struct flame_arguments, state),
	 .value = "LIST",
	 .help = "time in these states only, or with a leading - in all others: running, runnable, "
		 "preempted, sleeping, blocked, stopped, unknown; of vCPUs those of `report vcpu`"},
	{.name = "merge",
	 .type = OPTION_FLAG,
	 .offset = offsetof(struct flame_arguments, merge),
	 .help = "of wall: one root for all threads of a name"},
	{.name = "title",
	 .type = OPTION_STRING,
	 .offset = offsetof(struct flame_arguments, look.title),
	 .value = "TEXT",
	 .help = "of the graph"},
	{.name = "colors",
	 .type = OPTION_CHOICE,
	 .offset = offsetof(struct flame_arguments, look.colors),
	 .value = "hot|io|wakeup|chain|mem|sides",
	 .help = "the palette (default by kind)"},
	{.name = "width",
	 .type = OPTION_NUMBER,
	 .offset = offsetof(struct flame_arguments, look.width),
	 .value = "N",
	 .help = "of the graph, pixels (default 1200)"},
	{.name = "minwidth",
	 .type = OPTION_STRING,
	 .offset = offsetof(struct flame_arguments, look.min_width),
	 .value = "N",
	 .help = "leave out frames of less than N pixels (default 0.1)"},
	{.name = "inverted",
	 .type = OPTION_FLAG,
	 .offset = offsetof(struct flame_arguments, look.inverted),
	 .help = "roots on top (icicle)"},
	{.name = "reverse",
	 .type = OPTION_FLAG,
	 .offset = offsetof(struct flame_arguments, look.reverse),
	 .help = "merge from the leaves"},
	{.name = "output",
	 .letter = 'o',
	 .type = OPTION_STRING,
	 .offset = offsetof(struct flame_arguments, output),
	 .value = "FILE.svg|FILE.folded",
	 .help = "a graph or folded text, by its name (default: folded text to standard output)"},
};

static int trouble(const char *what, const char *why)
{
	fprintf(stderr, "vcpuscope flame: %s: %s\n", what, why);
	return COMMAND_TROUBLE;
}

/* From words to flame_options; says what is wrong. */
static int options_make(const struct flame_arguments *a, struct flame_options *o)
{
	char why[256];

	*o = (struct flame_options){.vm = a->vm, .vcpu = -1, .task = a->task};
	if (flame_kind_parse(a->kind, &o->kind))
		return COMMAND_USAGE;
	o->subject = flame_subject_of(o->kind);
	if (a->vcpu != EVERY_VCPU) {
		o->vcpu = a->vcpu < VS_CPUS_MAX ? (int32_t)a->vcpu : VS_CPUS_MAX;
		o->subject = FLAME_OF_VCPUS;
	}
	if (a->task)
		o->subject = FLAME_OF_TASKS;
	if (a->of)
		o->subject = strcmp(a->of, "tasks") ? FLAME_OF_VCPUS : FLAME_OF_TASKS;
	if (o->kind == FLAME_EXITS && o->subject == FLAME_OF_TASKS) {
		trouble(a->kind, "a guest's task knows no VM-exits; leave --of and --task away");
		return COMMAND_USAGE;
	}
	o->threads = o->kind == FLAME_WALL && !a->merge;
	if (a->state && flame_states_parse(o->subject, a->state, &o->states, why, sizeof(why))) {
		trouble("--state", why);
		return COMMAND_USAGE;
	}
	return COMMAND_OK;
}

/* Are the widths what they should be? */
static void coverage_say(const struct flame_reading *r)
{
	struct flame_coverage c;

	flame_coverage_get(r->flame, &c);
	fprintf(stderr,
		"vcpuscope flame: %zu threads, %s of wall time, %.2f %% counted, %.2f %% unknown\n",
		c.threads, duration_text(c.wall_ns).text,
		c.wall_ns ? 100.0 * (double)c.counted_ns / (double)c.wall_ns : 100.0,
		c.wall_ns ? 100.0 * (double)c.unknown_ns / (double)c.wall_ns : 0.0);
	if (c.off)
		fprintf(stderr,
			"vcpuscope flame: of %zu threads more than 0.5 %% is missing or double; "
			"most of %s: %.2f %% counted\n",
			c.off, escape(c.worst).text, c.worst_percent);
	if (c.forgotten)
		fprintf(stderr, "vcpuscope flame: %llu threads too many at once: forgotten\n",
			(unsigned long long)c.forgotten);
}

static bool has_suffix(const char *text, const char *suffix)
{
	size_t len = strlen(text), n = strlen(suffix);

	return len > n && !strcmp(text + len - n, suffix);
}

/* Says what is wrong. */
static bool arguments_check(const struct flame_arguments *a)
{
	const bool to_stdout = output_is_stdout(a->output);
	const bool svg = !to_stdout && has_suffix(a->output, ".svg");
	char why[256];

	if (!to_stdout && !svg && !has_suffix(a->output, ".folded"))
		trouble(a->output,
			"what to write there? Give it a name that ends in .svg or .folded");
	else if (a->diff && !a->other)
		trouble("--diff", "needs two recordings: vcpuscope flame --diff A.vcs B.vcs");
	else if (!a->diff && a->other)
		trouble(a->other, "one recording at a time; --diff compares two");
	else if (a->diff && !svg && !(a->output && to_stdout))
		trouble("--diff",
			"writes an SVG graph; give -o FILE.svg, or -o - for standard output");
	else if (flame_look_check(&a->look, why, sizeof(why)))
		fprintf(stderr, "vcpuscope flame: %s\n", why);
	else
		return true;
	return false;
}

/* Calls `write` for the output. */
static int output_write(const struct flame_arguments *a,
			int (*write)(const struct flame_arguments *a, void *what, FILE *to),
			void *what)
{
	FILE *to;
	int err = output_open(a->output, &to), closed;

	if (!err) {
		err = write(a, what, to);
		closed = output_close(to);
		err = err ? err : closed;
	}
	return err ? trouble(output_name(a->output), strerror(-err)) : COMMAND_OK;
}

struct drawing {
	struct folded *stacks;
	enum flame_kind kind;
};

static int stacks_write(const struct flame_arguments *a, void *what, FILE *to)
{
	const struct drawing *d = what;

	if (a->output && has_suffix(a->output, ".svg"))
		return flame_draw(d->stacks, d->kind, a->recording, &a->look, to);
	return folded_text_write(d->stacks, to);
}

static int read_or_say(const char *path, const struct flame_options *o, struct flame_reading *r)
{
	char why[512];

	if (!flame_read(path, o, NULL, r, why, sizeof(why)))
		return COMMAND_OK;
	fprintf(stderr, "vcpuscope flame: %s\n", why);
	return COMMAND_TROUBLE;
}

/* What was asked for is not in the recording. */
static void nothing_say(const struct flame_arguments *a, const struct flame_options *o)
{
	const struct {
		const char *option, *value;
	} asked[] = {{"--vm", a->vm}, {"--task", a->task}, {"--state", a->state}, {"--of", a->of}};
	bool narrowed = false;

	fprintf(stderr, "vcpuscope flame: %s: ", a->recording);
	fprintf(stderr, o->kind == FLAME_EXITS ? "no VM-exits in it" : "nothing in it to show");
	for (size_t i = 0; i < sizeof(asked) / sizeof(asked[0]); i++) {
		if (asked[i].value)
			fprintf(stderr, "%s %s %s", narrowed ? "" : " of", asked[i].option,
				asked[i].value);
		narrowed |= asked[i].value != NULL;
	}
	if (a->vcpu != EVERY_VCPU)
		fprintf(stderr, "%s --vcpu %llu", narrowed ? "" : " of",
			(unsigned long long)a->vcpu);
	if (narrowed || a->vcpu != EVERY_VCPU)
		fprintf(stderr, "; `vcpuscope report %s tasks` and `vcpu` tell what there is",
			a->recording);
	else if (o->kind == FLAME_EXITS)
		fprintf(stderr, ": KVM's events were not captured");
	fputc('\n', stderr);
}

static int stacks_run(const struct flame_arguments *a, struct flame_options *o)
{
	struct flame_reading r;
	int result = read_or_say(a->recording, o, &r);

	if (!result && r.flame && o->subject == FLAME_OF_TASKS && !r.guest && !a->of && !a->task &&
	    !a->state) {
		flame_reading_end(&r);
		fprintf(stderr, "vcpuscope flame: %s: no guest events in it: of vCPU threads\n",
			a->recording);
		o->subject = FLAME_OF_VCPUS;
		result = read_or_say(a->recording, o, &r);
	}
	if (!result)
		result = output_write(a, stacks_write,
				      &(struct drawing){flame_reading_stacks(&r), o->kind});
	if (!result && !folded_count(flame_reading_stacks(&r)))
		nothing_say(a, o);
	else if (!result && r.flame && o->kind == FLAME_WALL)
		coverage_say(&r);
	flame_reading_end(&r);
	return result;
}

struct drawn {
	char *text;
	size_t len;
};

static int drawn_write(const struct flame_arguments *a, void *what, FILE *to)
{
	const struct drawn *d = what;

	(void)a;
	return fwrite(d->text, 1, d->len, to) == d->len ? 0 : -EIO;
}

/* Drawn before the output is opened: what cannot be read leaves no file. */
static int difference_run(const struct flame_arguments *a, const struct flame_options *o)
{
	struct drawn d = {NULL, 0};
	FILE *memory = open_memstream(&d.text, &d.len);
	char why[512] = "out of memory";
	int err = memory ? flame_draw_difference(a->recording, a->other, o, &a->look, memory, why,
						 sizeof(why))
			 : -ENOMEM;
	int result = COMMAND_TROUBLE;

	if (memory && fclose(memory) && !err)
		err = -ENOMEM;
	if (err)
		fprintf(stderr, "vcpuscope flame: %s\n", why);
	else
		result = output_write(a, drawn_write, &d);
	free(d.text);
	return result;
}

static int flame_run(const struct command *self, int argc, char **argv)
{
	struct flame_arguments a = {.kind = "wall", .vcpu = EVERY_VCPU};
	struct flame_options o;
	int result;

	if (options_read(self, argc, argv, &a) || !arguments_check(&a))
		return COMMAND_USAGE;
	result = options_make(&a, &o);
	if (result)
		return result;
	return a.diff ? difference_run(&a, &o) : stacks_run(&a, &o);
}

const struct command command_flame = {
	.name = "flame",
	.summary = "show where time went, through the boundary, as a flame graph",
	.options = flame_option_table,
	.n_options = sizeof(flame_option_table) / sizeof(flame_option_table[0]),
	.examples = "  vcpuscope flame run.vcs -o wall.svg\n"
		    "  vcpuscope flame run.vcs -o wall.folded\n"
		    "  vcpuscope flame run.vcs --kind wall --task fio --state -sleeping\n"
		    "  vcpuscope flame run.vcs --kind wall --vcpu 0 -o vcpu0.folded\n"
		    "  vcpuscope flame run.vcs --kind offwake --state blocked -o offwake.folded\n"
		    "  vcpuscope flame run.vcs --kind exits --vm web1 -o exits.folded\n"
		    "  vcpuscope flame --diff before.vcs after.vcs --kind oncpu -o diff.svg\n",
	.run = flame_run,
};
