// SPDX-License-Identifier: GPL-2.0-only
/* vcpuscope flame: a recording in; where time went, as weighted stacks, out. */
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host-collector/analyze/describe.h"
#include "host-collector/analyze/flame.h"
#include "host-collector/cli/commands.h"
#include "host-collector/cli/replay.h"
#include "host-collector/view/escape.h"
#include "host-collector/view/folded_text.h"

/* No vCPU given. */
#define EVERY_VCPU UINT64_MAX

struct flame_arguments {
	const char *recording, *kind, *of, *vm, *task, *state, *output;
	uint64_t vcpu;
	bool merge;
};

static const struct option_spec flame_option_table[] = {
	{"RUN.vcs", OPTION_OPERAND, offsetof(struct flame_arguments, recording), NULL,
	 "a recording made by `vcpuscope record`", true},
	{"kind", OPTION_CHOICE, offsetof(struct flame_arguments, kind),
	 "oncpu|offcpu|wakeup|offwake|wall|exits",
	 "where time on a CPU went; where threads waited; who ended that; both; all time of every "
	 "thread (default); what VM-exits cost",
	 false},
	{"of", OPTION_CHOICE, offsetof(struct flame_arguments, of), "tasks|vcpus",
	 "whose time: the guests' tasks' (default of oncpu and wall, and with --task), or the "
	 "vCPU threads' (default of the others, and with --vcpu)",
	 false},
	{"vm", OPTION_STRING, offsetof(struct flame_arguments, vm), "NAME",
	 "of this VM only, by name or number", false},
	{"vcpu", OPTION_NUMBER, offsetof(struct flame_arguments, vcpu), "N", "of this vCPU only",
	 false},
	{"task", OPTION_STRING, offsetof(struct flame_arguments, task), "NAME",
	 "of this guest task only, by name or pid", false},
	{"state", OPTION_STRING, offsetof(struct flame_arguments, state), "LIST",
	 "time in these states only, or with a leading - in all others: running, runnable, "
	 "preempted, sleeping, blocked, stopped, unknown; of vCPUs those of `report vcpu`",
	 false},
	{"merge", OPTION_FLAG, offsetof(struct flame_arguments, merge), NULL,
	 "of wall: one root for all threads of a name", false},
	{"output", OPTION_STRING, offsetof(struct flame_arguments, output), "FILE.folded",
	 "write there instead of to standard output (-o)", false},
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

/* A recording that has been read for its stacks. */
struct reading {
	struct model *model;
	struct pipeline *pipeline;
	struct flame *flame;
	struct recording_info info;
	bool guest; /* it has events of one */
};

static void reading_end(struct reading *r)
{
	pipeline_free(r->pipeline);
	model_free(r->model);
	flame_free(r->flame);
	*r = (struct reading){0};
}

static bool guest_seen(const struct reading *r)
{
	uint32_t vms[MODEL_VMS_MAX];
	size_t n = model_vms(r->model, vms, MODEL_VMS_MAX);

	for (size_t i = 0; i < n; i++) {
		if (model_data_of(r->model, vms[i]).guest_events)
			return true;
	}
	return false;
}

/* 0 or COMMAND_TROUBLE, having said why. */
static int reading_make(const char *path, const struct flame_options *o, struct reading *r)
{
	struct pipeline_options pipeline_options = {0};
	char why[512] = "out of memory";
	int err;

	r->model = pipeline_options.model = model_new();
	if (r->model)
		r->flame = flame_new(r->model, o);
	if (r->flame)
		r->pipeline = pipeline_new(&pipeline_options);
	if (!r->pipeline || replay_run(r->pipeline, path, &r->info, why, sizeof(why))) {
		fprintf(stderr, "vcpuscope flame: %s\n", why);
		return COMMAND_TROUBLE;
	}
	err = flame_finish(r->flame);
	r->guest = guest_seen(r);
	return err ? trouble(path, strerror(-err)) : COMMAND_OK;
}

/* Are the widths what they should be? */
static void coverage_say(const struct reading *r)
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

static int stacks_write(const struct flame_arguments *a, struct folded *f)
{
	FILE *to = a->output ? fopen(a->output, "w") : stdout;
	const char *name = a->output ? a->output : "standard output";
	int err;

	if (!to)
		return trouble(name, strerror(errno));
	err = folded_text_write(f, to);
	if (!err && fflush(to))
		err = -errno;
	if (to != stdout && fclose(to) && !err)
		err = -errno;
	return err ? trouble(name, strerror(-err)) : COMMAND_OK;
}

static int flame_run(const struct command *self, int argc, char **argv)
{
	struct flame_arguments a = {.kind = "wall", .vcpu = EVERY_VCPU};
	struct flame_options o;
	struct reading r = {0};
	int result;

	if (options_parse_or_say(self, argc, argv, &a))
		return COMMAND_USAGE;
	result = options_make(&a, &o);
	if (!result && a.output && !has_suffix(a.output, ".folded")) {
		trouble(a.output, "what to write there? Give it a name that ends in .folded");
		result = COMMAND_USAGE;
	}
	if (result)
		return result;
	result = reading_make(a.recording, &o, &r);
	if (!result && o.subject == FLAME_OF_TASKS && !r.guest && !a.of && !a.task && !a.state) {
		reading_end(&r);
		fprintf(stderr, "vcpuscope flame: %s: no guest events in it: of vCPU threads\n",
			a.recording);
		o.subject = FLAME_OF_VCPUS;
		result = reading_make(a.recording, &o, &r);
	}
	if (!result)
		result = stacks_write(&a, flame_stacks(r.flame));
	if (!result && !folded_count(flame_stacks(r.flame)))
		fprintf(stderr, "vcpuscope flame: %s: nothing in it to show: no stacks\n",
			a.recording);
	if (!result && o.kind == FLAME_WALL)
		coverage_say(&r);
	reading_end(&r);
	return result;
}

const struct command command_flame = {
	.name = "flame",
	.summary = "show where time went, through the boundary, as a flame graph",
	.options = flame_option_table,
	.n_options = sizeof(flame_option_table) / sizeof(flame_option_table[0]),
	.examples = "  vcpuscope flame run.vcs -o wall.folded\n"
		    "  vcpuscope flame run.vcs --kind wall --task fio --state -sleeping\n"
		    "  vcpuscope flame run.vcs --kind wall --vcpu 0 -o vcpu0.folded\n"
		    "  vcpuscope flame run.vcs --kind offwake --state blocked -o offwake.folded\n"
		    "  vcpuscope flame run.vcs --kind exits --vm web1 -o exits.folded\n",
	.run = flame_run,
};
