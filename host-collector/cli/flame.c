// SPDX-License-Identifier: GPL-2.0-only
/* `vcpuscope flame`: shows where the time in a recording was spent, as weighted stacks. */
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host-collector/analyze/flame/flame.h"
#include "host-collector/cli/commands.h"
#include "host-collector/cli/flame_draw.h"
#include "host-collector/cli/narrow_options.h"
#include "host-collector/decode/config_text.h"
#include "host-collector/util/duration.h"
#include "host-collector/util/escape.h"
#include "host-collector/view/folded_text.h"
#include "proto/program/output.h"

struct flame_arguments {
	const char *recording, *other, *kind, *of, *state, *output;
	struct narrow_arguments narrow;
	struct narrow shown; /* from `narrow` */
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
	 .help = "with --diff: the recording to compare the first one with"},
	{.name = "diff",
	 .type = OPTION_FLAG,
	 .offset = offsetof(struct flame_arguments, diff),
	 .help = "draw how the second recording differs from the first; frames are colored by "
		 "their change, and gray if it may be chance"},
	{.name = "normalise",
	 .type = OPTION_FLAG,
	 .offset = offsetof(struct flame_arguments, look.normalise),
	 .help = "with --diff: compare shares of the whole instead of time per second of "
		 "recording"},
	{.name = "kind",
	 .type = OPTION_CHOICE,
	 .offset = offsetof(struct flame_arguments, kind),
	 .value = "oncpu|offcpu|wakeup|offwake|wall|exits|looks",
	 .help = "what the widths show. oncpu: time on a CPU; offcpu: waiting time; wakeup: "
		 "the tasks that ended the waits; offwake: waits and what ended them; wall: "
		 "all time of each thread (default); exits: the time of VM-exits; looks: the time in "
		 "which the condition of `record --look` held, and no other time"},
	{.name = "of",
	 .type = OPTION_CHOICE,
	 .offset = offsetof(struct flame_arguments, of),
	 .value = "tasks|vcpus",
	 .help = "show the guests' tasks (default for oncpu, wall and --task) or the vCPU "
		 "threads (default otherwise, and with --vcpu)"},
	NARROW_OPTION_ROWS(offsetof(struct flame_arguments, narrow), "to"),
	{.name = "state",
	 .type = OPTION_STRING,
	 .offset = offsetof(struct flame_arguments, state),
	 .value = "LIST",
	 .help = "only time in these states, or, with a leading -, in all others: running, "
		 "runnable, preempted, sleeping, blocked, stopped, unknown; for vCPUs the "
		 "states of `report vcpu`; all (default: all, but a graph of all guest tasks "
		 "leaves out sleeping)"},
	{.name = "merge",
	 .type = OPTION_FLAG,
	 .offset = offsetof(struct flame_arguments, merge),
	 .help = "with wall: merge all threads of the same name"},
	{.name = "title",
	 .type = OPTION_STRING,
	 .offset = offsetof(struct flame_arguments, look.title),
	 .value = "TEXT",
	 .help = "the title of the graph"},
	{.name = "colors",
	 .type = OPTION_CHOICE,
	 .offset = offsetof(struct flame_arguments, look.colors),
	 .value = "hot|io|wakeup|chain|mem|sides",
	 .help = "the palette of the graph (default: depends on --kind)"},
	{.name = "width",
	 .type = OPTION_NUMBER,
	 .offset = offsetof(struct flame_arguments, look.width),
	 .value = "N",
	 .help = "the width of the graph in pixels (default: that of the window, 1200 where "
		 "no script runs)"},
	{.name = "minwidth",
	 .type = OPTION_STRING,
	 .offset = offsetof(struct flame_arguments, look.min_width),
	 .value = "N",
	 .help = "omit frames narrower than N pixels (default 0.1)"},
	{.name = "inverted",
	 .type = OPTION_FLAG,
	 .offset = offsetof(struct flame_arguments, look.inverted),
	 .help = "draw the roots at the top (icicle graph)"},
	{.name = "reverse",
	 .type = OPTION_FLAG,
	 .offset = offsetof(struct flame_arguments, look.reverse),
	 .help = "merge the stacks from their leaves"},
	{.name = "output",
	 .letter = 'o',
	 .type = OPTION_STRING,
	 .offset = offsetof(struct flame_arguments, output),
	 .value = "FILE.svg|FILE.folded",
	 .help = "write a graph or folded stacks, depending on the suffix; - is standard "
		 "output (default: folded stacks to -)"},
};

static int trouble(const char *what, const char *why)
{
	fprintf(stderr, "vcpuscope flame: %s: %s\n", what, why);
	return COMMAND_TROUBLE;
}

static bool has_suffix(const char *text, const char *suffix)
{
	size_t len = strlen(text), n = strlen(suffix);

	return len > n && !strcmp(text + len - n, suffix);
}

/* In a picture of all tasks those that sleep would take nearly all of the width. Text is for other
 * programs, which get everything. */
static bool sleep_is_left_out(const struct flame_arguments *a, const struct flame_options *o)
{
	return !a->state && !a->diff && o->kind == FLAME_WALL && o->subject == FLAME_OF_TASKS &&
	       !o->task && !o->pid && a->output && has_suffix(a->output, ".svg") &&
	       !flame_is_text(a->recording);
}

/* From words to flame_options; says what is wrong. */
static int options_make(const struct flame_arguments *a, struct flame_options *o)
{
	char why[256];

	*o = (struct flame_options){.vm = a->shown.vm,
				    .vcpu = (int32_t)a->shown.vcpu,
				    .task = a->shown.task,
				    .pid = a->shown.pid,
				    .time = &a->shown};
	if (flame_kind_parse(a->kind, &o->kind))
		return COMMAND_USAGE;
	o->subject = flame_subject_of(o->kind);
	if (o->vcpu >= 0)
		o->subject = FLAME_OF_VCPUS;
	if (o->task || o->pid)
		o->subject = FLAME_OF_TASKS;
	if (a->of)
		o->subject = strcmp(a->of, "tasks") ? FLAME_OF_VCPUS : FLAME_OF_TASKS;
	if (o->kind == FLAME_LOOKS && a->state) {
		trouble("--state", "looks have no states; --when of `record` chose them");
		return COMMAND_USAGE;
	}
	if (o->kind == FLAME_EXITS && o->subject == FLAME_OF_TASKS) {
		trouble(a->kind, "guest tasks have no VM-exits; omit --of and --task");
		return COMMAND_USAGE;
	}
	o->threads = o->kind == FLAME_WALL && !a->merge;
	if (a->state && flame_states_parse(o->subject, a->state, &o->states, why, sizeof(why))) {
		trouble("--state", why);
		return COMMAND_USAGE;
	}
	if (sleep_is_left_out(a, o))
		o->states = ~(1u << FLAME_TASK_SLEEPING);
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
			"vcpuscope flame: %zu threads have more than 0.5 %% missing or counted twice; "
			"the worst is %s: %.2f %% counted\n",
			c.off, escape(c.worst).text, c.worst_percent);
	if (c.forgotten)
		fprintf(stderr, "vcpuscope flame: too many threads at once: %llu were dropped\n",
			(unsigned long long)c.forgotten);
}

/* Says what is wrong. */
static bool arguments_check(const struct flame_arguments *a)
{
	const bool to_stdout = output_is_stdout(a->output);
	const bool svg = !to_stdout && has_suffix(a->output, ".svg");
	char why[256];

	if (!to_stdout && !svg && !has_suffix(a->output, ".folded"))
		trouble(a->output, "the name decides the format: it must end in .svg or .folded");
	else if (a->diff && !a->other)
		trouble("--diff", "needs two recordings: vcpuscope flame --diff A.vcs B.vcs");
	else if (!a->diff && a->other)
		trouble(a->other, "only one recording can be drawn; --diff compares two");
	else if (a->diff && !svg && !(a->output && to_stdout))
		trouble("--diff",
			"writes an SVG graph; give -o FILE.svg, or -o - for standard output");
	else if (a->diff && a->narrow.around != UINT64_MAX)
		trouble("--around",
			"names a stall of one recording; with --diff give --from and --to");
	else if ((flame_is_text(a->recording) || (a->other && flame_is_text(a->other))) &&
		 narrow_is_given(&a->narrow))
		trouble(flame_is_text(a->recording) ? a->recording : a->other,
			"folded stacks have no times, VMs or tasks to select by");
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
	const char *name; /* of what is drawn */
};

static int stacks_write(const struct flame_arguments *a, void *what, FILE *to)
{
	const struct drawing *d = what;

	if (a->output && has_suffix(a->output, ".svg"))
		return flame_draw(d->stacks, d->kind, d->name, &a->look, to);
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

/* Prints why no stack was found. */
static void nothing_say(const struct flame_arguments *a, const struct flame_options *o)
{
	const struct {
		const char *option, *value;
	} asked[] = {{"--vm", a->narrow.vm}, {"--task", a->narrow.task}, {"--state", a->state},
		     {"--of", a->of},        {"--from", a->narrow.from}, {"--to", a->narrow.to}};
	const struct {
		const char *option;
		uint64_t value;
	} numbers[] = {{"--vcpu", a->narrow.vcpu},
		       {"--pid", a->narrow.pid},
		       {"--around", a->narrow.around}};
	bool narrowed = false;

	fprintf(stderr, "vcpuscope flame: %s: ", a->recording);
	fprintf(stderr, "%s",
		o->kind == FLAME_EXITS   ? "it has no VM-exits"
		: o->kind == FLAME_LOOKS ? "it has no looks"
					 : "it has nothing to show");
	for (size_t i = 0; i < sizeof(asked) / sizeof(asked[0]); i++) {
		if (asked[i].value)
			fprintf(stderr, "%s %s %s", narrowed ? "" : " for", asked[i].option,
				asked[i].value);
		narrowed |= asked[i].value != NULL;
	}
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		if (numbers[i].value == UINT64_MAX)
			continue;
		fprintf(stderr, "%s %s %llu", narrowed ? "" : " for", numbers[i].option,
			(unsigned long long)numbers[i].value);
		narrowed = true;
	}
	if (narrowed)
		fprintf(stderr, "; `vcpuscope report %s tasks` and `vcpu` show what it contains",
			a->recording);
	else if (o->kind == FLAME_EXITS)
		fprintf(stderr, ": KVM's events were not captured");
	else if (o->kind == FLAME_LOOKS)
		fprintf(stderr,
			"; `record --look` and `--guest-look` take them while a condition holds");
	fputc('\n', stderr);
}

/* Appends the condition of the looks that are shown. */
static void looks_describe(const struct flame_options *o, const struct flame_reading *r, char *name,
			   size_t name_bytes)
{
	struct pipeline_source s;

	for (size_t i = 0; r->pipeline && !pipeline_source_get(r->pipeline, i, &s); i++) {
		const struct message_config *config = s.config ? &s.config->in_force : NULL;
		const bool of_guest = o->subject == FLAME_OF_TASKS;
		const uint64_t period_ns = !of_guest ? s.look_period_ns
					   : config  ? config->look_period_ns
						     : 0;
		const size_t len = strlen(name);

		if (!period_ns)
			continue;
		snprintf(name + len, name_bytes - len, "; ");
		config_look_describe(period_ns, of_guest ? config->look_when : s.look_when, name,
				     name_bytes);
		return;
	}
}

/* The recording, and the window if there is one. */
static void name_make(const struct flame_arguments *a, const struct flame_options *o,
		      const struct flame_reading *r, char *name, size_t name_bytes)
{
	int64_t begin_ns = r->model ? model_begin(r->model).ns : 0;
	size_t len;

	if (a->shown.cut)
		snprintf(name, name_bytes, "%.400s, from +%.3f s to +%.3f s", a->recording,
			 (double)(a->shown.from.ns - begin_ns) / 1e9,
			 (double)(a->shown.until.ns - begin_ns) / 1e9);
	else
		snprintf(name, name_bytes, "%.400s", a->recording);
	len = strlen(name);
	if (sleep_is_left_out(a, o))
		snprintf(name + len, name_bytes - len,
			 "; sleeping tasks are left out (--state all shows them)");
	if (o->kind == FLAME_LOOKS)
		looks_describe(o, r, name, name_bytes);
}

static int stacks_run(const struct flame_arguments *a, struct flame_options *o)
{
	struct flame_reading r;
	char name[512];
	int result = read_or_say(a->recording, o, &r);

	if (!result && r.flame && o->subject == FLAME_OF_TASKS && !r.guest && !a->of && !o->task &&
	    !o->pid && !a->state) {
		flame_reading_end(&r);
		fprintf(stderr,
			"vcpuscope flame: %s: it has no guest events: showing vCPU threads\n",
			a->recording);
		o->subject = FLAME_OF_VCPUS;
		o->states = 0;
		result = read_or_say(a->recording, o, &r);
	}
	if (!result && r.flame && o->kind == FLAME_LOOKS && o->subject == FLAME_OF_VCPUS &&
	    !a->of && o->vcpu < 0 && !folded_count(flame_reading_stacks(&r)) && r.guest) {
		flame_reading_end(&r);
		o->subject = FLAME_OF_TASKS;
		result = read_or_say(a->recording, o, &r);
	}
	if (!result) {
		name_make(a, o, &r, name, sizeof(name));
		result = output_write(a, stacks_write,
				      &(struct drawing){flame_reading_stacks(&r), o->kind, name});
	}
	if (!result && !folded_count(flame_reading_stacks(&r)))
		nothing_say(a, o);
	else if (!result && r.flame && o->kind == FLAME_WALL)
		coverage_say(&r);
	if (!result && r.flame && sleep_is_left_out(a, o))
		fprintf(stderr, "vcpuscope flame: sleeping tasks are left out; --state all shows "
				"them\n");
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
	struct flame_options both[2] = {*o, *o};
	struct narrow after;
	struct drawn d = {NULL, 0};
	char why[512] = "out of memory";
	FILE *memory;
	int err, result = narrow_read("flame", &a->narrow, a->other, NULL, &after);

	if (result)
		return result;
	both[1].time = &after;
	memory = open_memstream(&d.text, &d.len);
	err = memory ? flame_draw_difference(a->recording, a->other, both, &a->look, memory, why,
					     sizeof(why))
		     : -ENOMEM;
	result = COMMAND_TROUBLE;

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
	struct flame_arguments a = {.kind = "wall", .narrow = NARROW_ARGUMENTS("to")};
	struct flame_options o;
	int result;

	if (options_read(self, argc, argv, &a) || !arguments_check(&a))
		return COMMAND_USAGE;
	result = narrow_read(self->name, &a.narrow, a.recording, NULL, &a.shown);
	if (!result)
		result = options_make(&a, &o);
	if (result)
		return result;
	return a.diff ? difference_run(&a, &o) : stacks_run(&a, &o);
}

const struct command command_flame = {
	.name = "flame",
	.summary = "draw where the time of host and guest went, as a flame graph",
	.options = flame_option_table,
	.n_options = sizeof(flame_option_table) / sizeof(flame_option_table[0]),
	.examples = "  vcpuscope flame run.vcs -o wall.svg\n"
		    "  vcpuscope flame run.vcs -o wall.folded\n"
		    "  vcpuscope flame run.vcs --kind wall --task fio --state -sleeping\n"
		    "  vcpuscope flame run.vcs --kind wall --vcpu 0 -o vcpu0.folded\n"
		    "  vcpuscope flame run.vcs --around 2 -o stall2.svg\n"
		    "  vcpuscope flame run.vcs --kind offwake --state blocked -o offwake.folded\n"
		    "  vcpuscope flame run.vcs --kind exits --vm web1 -o exits.folded\n"
		    "  vcpuscope flame --diff before.vcs after.vcs --kind oncpu -o diff.svg\n",
	.run = flame_run,
};
