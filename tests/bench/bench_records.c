/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Measures the cost of records and figures for a daemon with 50 VMs. This program runs only the
 * daemon's code of records, figures, outbox and metrics (daemon/records.h and what it uses). It
 * does not compare whole daemons, because their CPU time varies by more than the goal.
 *
 *   tick       records_tick() ten times a second, with nothing to write
 *   figures    lines of figures, one for each VM every 10 s instead of every 5 minutes
 *   incidents  lines of incidents, as many as `outbox_rate` allows: 600 a minute
 *   metrics    CPU time that the counters of the figures add to an event: a live stream with and
 *              without them, in turns
 *
 * The first three run in real time, with the files and the fsync() of a real outbox. Their cost is
 * the CPU time of all threads of this process. The VMs are not processes: each has the counters of
 * a busy VM (busy_scene.h), from which its figures are computed.
 *
 *   bench_records [SECONDS [FOLDER]]
 *
 * SECONDS: length of each of 5 rounds, at least 11. FOLDER: folder for the outbox (default: .).
 * Exit code 1: the goal is missed.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "clock/sample.h"
#include "host-collector/daemon/records.h"
#include "host-collector/engine/live.h"
#include "host-collector/metrics/metrics.h"
#include "tests/bench/busy_scene.h"
#include "tests/bench/busy_stream.h"
#include "tests/bench/figure.h"

enum {
	VMS = 50,
	ROUNDS = 5,
	SECONDS = 20,
	FEED_EVENTS = 20000, /* of each VM */
	EVENTS = 500000,     /* in the stream for `metrics` */
	METRICS_ROUNDS = 15,
	FIGURES_EVERY_S = 10, /* in this program */
	FIGURES_S = 300,      /* the default of a daemon */
	RATE_PER_MIN = 600,
	WAKE_UPS_PER_S = 100, /* for each VM's vCPU */
	EVENTS_PER_WAKE_UP = 3,
	TICK_US = 100000,
};

#define GOAL_PCT 0.2

static void must(bool ok)
{
	if (!ok) {
		fprintf(stderr, "bench_records: out of memory, or no outbox\n");
		exit(2);
	}
}

static double cpu_s(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* ---- VMs without processes ---- */

struct watched_vm {
	struct vm_config config;
	struct live *live;
	struct metrics *metrics;
	struct records_vm *records;
};

const struct vm_config *watched_vm_config(const struct watched_vm *vm)
{
	return &vm->config;
}

pid_t watched_vm_pid(const struct watched_vm *vm)
{
	(void)vm;
	return getpid();
}

const char *watched_vm_version(const struct watched_vm *vm)
{
	(void)vm;
	return "QEMU 7.2.15 (Debian 1:7.2+dfsg-7)";
}

void watched_vm_status_get(const struct watched_vm *vm, struct watched_vm_status *out)
{
	(void)vm;
	*out = (struct watched_vm_status){.state = WATCHED_RUNNING};
}

static struct watched_vm *on_find(void *context, pid_t pid, const char *name)
{
	(void)context, (void)pid, (void)name;
	return NULL;
}

static void on_say(void *context, const char *vm, const char *line)
{
	(void)context;
	fprintf(stderr, "bench_records: %s %s\n", vm, line);
}

/* ---- live streams ---- */

/* Feeds the stream to `live`. Returns the CPU time of this thread, in seconds. */
static double feed_s(struct live *live, const struct busy_stream *s)
{
	struct frame_maker *maker = frame_maker_new();
	double began;

	must(maker);
	began = cpu_s(CLOCK_THREAD_CPUTIME_ID);
	for (size_t i = 0; i < s->n; i++) {
		const struct busy_arrival *a = &s->arrivals[i];
		const struct frame_item item = busy_arrival_item(a, maker);

		must(!live_frame(live, a->source, a->tsc, &item));
	}
	began = cpu_s(CLOCK_THREAD_CPUTIME_ID) - began;
	frame_maker_free(maker);
	return began;
}

static void on_incident(void *context, const struct report *report)
{
	(void)context, (void)report;
}

static struct live *live_make(void)
{
	const struct live_options options = {.than_ns = 100000000, .incident = on_incident};
	struct live *live = live_new(&options);

	must(live);
	return live;
}

static double one_s(const struct busy_stream *s, bool counted)
{
	struct live *live = live_make();
	struct metrics *metrics = counted ? metrics_new(live_model(live), live_chains(live)) : NULL;
	double used;

	must(!counted || metrics);
	used = feed_s(live, s);
	must(!live_finish(live));
	metrics_free(metrics);
	live_free(live);
	return used;
}

/* Prints the values multiplied by `by`. Returns their median, not multiplied. */
static double show(const char *name, double *values, size_t n, double by, const char *unit)
{
	const struct figure f = {.name = name, .unit = unit};

	for (size_t i = 0; i < n; i++)
		values[i] *= by;
	figure_print(&f, values, n);
	return values[n / 2] / by;
}

/* seconds per event */
static double metrics_cost(void)
{
	double differences[METRICS_ROUNDS];
	struct busy_stream s;

	must(!busy_stream_make(&s, EVENTS));
	for (int round = 0; round < METRICS_ROUNDS; round++) {
		const bool first = round % 2;
		const double a = one_s(&s, first), b = one_s(&s, !first);

		differences[round] = (first ? a - b : b - a) / (double)s.events;
	}
	busy_stream_fini(&s);
	return show("records: counters, of an event", differences, METRICS_ROUNDS, 1e9, "ns");
}

/* ---- records ---- */

struct bench {
	struct daemon_config config;
	struct records *records;
	struct watched_vm vms[VMS];
	uint64_t said; /* incidents */
};

static void vms_make(struct bench *b)
{
	struct busy_stream s;

	must(!busy_stream_make(&s, FEED_EVENTS));
	for (int i = 0; i < VMS; i++) {
		struct watched_vm *vm = &b->vms[i];

		vm_config_default(&vm->config);
		snprintf(vm->config.name, sizeof(vm->config.name), "vm%d", i);
		vm->live = live_make();
		vm->metrics = metrics_new(live_model(vm->live), live_chains(vm->live));
		must(vm->metrics);
		feed_s(vm->live, &s);
		vm->records = records_vm_new(b->records, vm);
		must(vm->records);
		records_vm_begin(vm->records, vm->live, vm->metrics);
	}
	busy_stream_fini(&s);
}

/* A stall with every part that a stall can have: three causes, culprits, texts. */
static void incident_add(struct bench *b)
{
	static struct incident i;
	const int64_t begin = synth_raw_ns0 + (int64_t)b->said * 1000000000;

	i = (struct incident){.vm = SYNTH_VM,
			      .kind = GUEST_CPU_TASK,
			      .pcpu_known = true,
			      .begin = {begin},
			      .end = {begin + 200000000},
			      .verdict = VERDICT_VCPU_NOT_SCHEDULED,
			      .confidence = CONFIDENCE_DECIDED,
			      .n_causes = 3,
			      .causes = {{VERDICT_VCPU_NOT_SCHEDULED, 150000000},
					 {VERDICT_VM_PAUSED, 30000000},
					 {VERDICT_GUEST_SPIN, 20000000}},
			      .n_culprits = REPORT_CULPRITS_MAX};
	i.breakdown_ns[VCPU_RUNNABLE] = 200000000;
	for (int c = 0; c < REPORT_CULPRITS_MAX; c++) {
		i.culprits[c] = (struct report_culprit){.host = true,
							.role = CULPRIT_HELD_PCPU,
							.pid = getpid(),
							.share_ns = 20000000,
							.n_tasks = 1,
							.cause = VERDICT_VCPU_NOT_SCHEDULED,
							.vm = {.name = "vm1"}};
		snprintf(i.culprits[c].comm, sizeof(i.culprits[c].comm), "CPU %d/KVM", c);
		snprintf(i.culprits[c].cgroup, sizeof(i.culprits[c].cgroup),
			 "/machine.slice/machine-qemu\\x2d%d\\x2dvm%d.scope/libvirt/emulator", c,
			 c);
	}
	records_incident(b->vms[b->said % VMS].records, &i);
	b->said++;
}

/* Returns the CPU time of all threads during `seconds`, in seconds per second. per_s: number of
 * incidents per second. */
static double spend(struct bench *b, double seconds, double per_s)
{
	const uint64_t began_ms = clock_monotonic_ms(), said = b->said;
	const double began = cpu_s(CLOCK_PROCESS_CPUTIME_ID);
	double passed;

	do {
		usleep(TICK_US);
		passed = (double)(clock_monotonic_ms() - began_ms) / 1000;
		while ((double)(b->said - said) < passed * per_s)
			incident_add(b);
		records_tick(b->records);
	} while (passed < seconds);
	return (cpu_s(CLOCK_PROCESS_CPUTIME_ID) - began) / passed;
}

static uint64_t written(const struct bench *b, enum segment_kind kind)
{
	struct outbox_stats stats;

	must(records_stats(b->records, &stats) && !stats.error);
	return stats.written[kind];
}

/* Measures one round of each part, in turns. */
static void round_play(struct bench *b, double seconds, double *tick, double *figure,
		       double *incident)
{
	uint64_t before;

	b->config.figures_every_ns = 24ull * 3600 * 1000000000;
	*tick = spend(b, seconds, 0);
	before = written(b, SEGMENT_INCIDENTS);
	*incident = spend(b, seconds, RATE_PER_MIN / 60.0) - *tick;
	*incident *= seconds / (double)(written(b, SEGMENT_INCIDENTS) - before);
	b->config.figures_every_ns = FIGURES_EVERY_S * 1000000000ull;
	before = written(b, SEGMENT_FIGURES);
	*figure = spend(b, seconds, 0) - *tick;
	*figure *= seconds / (double)(written(b, SEGMENT_FIGURES) - before);
}

static void records_make(struct bench *b, const char *folder)
{
	const struct records_options options = {
		.config = &b->config, .root = "", .say = on_say, .vm_find = on_find};

	daemon_config_default(&b->config);
	must(snprintf(b->config.directory, sizeof(b->config.directory), "%s", folder) <
	     (int)sizeof(b->config.directory));
	b->config.outbox = true;
	b->config.outbox_rate = 2 * RATE_PER_MIN;
	b->config.figures_every_ns = FIGURES_EVERY_S * 1000000000ull;
	snprintf(b->config.labels, sizeof(b->config.labels), "zone=fra1, rack=r12, ring=canary");
	snprintf(b->config.ship, sizeof(b->config.ship), "/bin/true");
	b->records = records_new(uv_default_loop(), &options);
	must(b->records);
}

int main(int argc, char **argv)
{
	const double seconds = argc > 1 ? strtod(argv[1], NULL) : SECONDS;
	double tick[ROUNDS], figure[ROUNDS], incident[ROUNDS], sum, event_s, incident_s;
	const struct figure goal = {.name = "records and figures of 50 VMs, no incidents",
				    .unit = "% of a CPU",
				    .goal_is = FIGURE_AT_MOST,
				    .goal = GOAL_PCT};
	bool good;
	char folder[512], command[600];
	struct bench *b = calloc(1, sizeof(*b));

	snprintf(folder, sizeof(folder), "%s/bench_records.XXXXXX", argc > 2 ? argv[2] : ".");
	must(b && seconds > FIGURES_EVERY_S && mkdtemp(folder));
	event_s = metrics_cost();
	records_make(b, folder);
	vms_make(b);
	for (int r = 0; r < ROUNDS; r++)
		round_play(b, seconds, &tick[r], &figure[r], &incident[r]);
	sum = show("records: ticks", tick, ROUNDS, 100, "% of a CPU");
	sum += show("records: a line of figures", figure, ROUNDS, 1e6, "us") * VMS / FIGURES_S;
	incident_s = show("records: a line of an incident", incident, ROUNDS, 1e6, "us");
	sum += event_s * VMS * WAKE_UPS_PER_S * EVENTS_PER_WAKE_UP;
	printf("%d VMs, figures every 5 minutes, vCPUs that wake up %d times a second; with %d "
	       "incidents a minute %.3f %% of a CPU\n",
	       VMS, WAKE_UPS_PER_S, RATE_PER_MIN, 100 * (sum + incident_s * RATE_PER_MIN / 60));
	good = figure_print_one(&goal, 100 * sum);
	records_close(b->records);
	for (int i = 0; i < VMS; i++) {
		metrics_free(b->vms[i].metrics);
		live_free(b->vms[i].live);
	}
	free(b);
	snprintf(command, sizeof(command), "rm -rf '%s'", folder);
	if (system(command))
		fprintf(stderr, "bench_records: %s stays\n", folder);
	return !good;
}
