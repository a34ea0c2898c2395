/* SPDX-License-Identifier: GPL-2.0-only */
/* Plays scenes frame by frame, as `watch` gets them, and checks each message and its time on the
 * scene's clock. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "host-collector/analyze/scene/strip.h"
#include "host-collector/engine/live.h"
#include "host-collector/util/wrap.h"
#include "host-collector/view/finding_text.h"
#include "host-collector/view/text.h"
#include "tests/unit/synth.h"

#define MS 1000000ll
enum { STRIP_CELLS = 40 };
enum { VCPU0 = SYNTH_QEMU_PID + 1, VCPU1, HOG = 4242, TASK = 77, OTHER = 88, HZ_PER_MS = 2500000 };

struct said {
	int64_t at_ns; /* by the scene's clock */
	char line[640];
};

struct stage {
	struct live *live;
	struct synth *synth;
	int64_t now_ns;
	size_t n_said, n_incidents;
	struct said said[64];
	struct incident incidents[16];
	int64_t reported_ns[16];
	struct strips *strips;
	char drawn[16][STRIP_CELLS + 1]; /* the strip of each, when it was reported */
};

/* What `watch` writes on a terminal of 80 columns: no line is wider. Returns the text; free() it.
 */
static char *narrow_text(const struct stage *s, const struct report *report,
			 const struct incident *ongoing)
{
	const struct text_options options = {.strips = s->strips};
	char *text = calloc(1, 65536);
	FILE *out = tmpfile();

	assert_non_null(text);
	assert_non_null(out);
	setenv("COLUMNS", "80", 1);
	if (report)
		text_incidents_write(report, &options, out);
	else
		text_ongoing_write(ongoing, "a-vm-with-a-long-name-of-its-own", &options, out);
	unsetenv("COLUMNS");
	rewind(out);
	assert_true(fread(text, 1, 65535, out) > 0);
	fclose(out);
	for (char *line = text, *end; (end = strchr(line, '\n')); line = end + 1) {
		*end = '\0';
		assert_true(wrap_width(line) <= 80);
		*end = '\n';
	}
	return text;
}

static void on_line(void *context, const char *line)
{
	struct stage *s = context;

	assert_true(s->n_said < 64);
	s->said[s->n_said].at_ns = s->now_ns;
	print_message("  %7.3f s: %s\n", (double)s->now_ns / 1e9, line);
	snprintf(s->said[s->n_said++].line, sizeof(s->said[0].line), "%s", line);
}

static void on_ongoing(void *context, const struct incident *incident, const char *vm_name)
{
	char line[640];

	snprintf(line, sizeof(line), "ongoing %lld ms: %s CPU %u %s (%s): %s",
		 (long long)((incident->end.ns - incident->begin.ns) / MS), vm_name,
		 incident->guest_cpu, verdict_name(incident->verdict),
		 confidence_name(incident->confidence), because_text(incident).text);
	assert_true(incident->ongoing);
	free(narrow_text(context, NULL, incident));
	on_line(context, line);
}

/* "R" without a pCPU, "#" in the guest, "?" unknown, "o" another state. */
static void strip_draw(struct stage *s, const struct report *report, char *out)
{
	const struct strip *strip;
	char *text;

	assert_int_equal(strips_live(s->strips, report->incidents, 1, STRIP_CELLS), 0);
	strip = strips_find(s->strips, &report->incidents[0]);
	assert_non_null(strip);
	assert_int_equal(strip->n_cells, STRIP_CELLS);
	for (unsigned i = 0; i < STRIP_CELLS; i++) {
		const int state = strip->vcpu_states[i];

		out[i] = state == VCPU_RUNNABLE  ? 'R'
			 : state == VCPU_GUEST   ? '#'
			 : state == VCPU_UNKNOWN ? '?'
						 : 'o';
	}
	print_message("  |%s|\n", out);
	text = narrow_text(s, report, NULL);
	assert_non_null(strstr(text, "\n   vCPU     "));
	free(text);
}

static int on_opened(void *context, struct model *model)
{
	struct stage *s = context;

	s->strips = strips_new(model, STRIP_CELLS, MS);
	return s->strips ? 0 : -ENOMEM;
}

static void on_incident(void *context, const struct report *report)
{
	struct stage *s = context;

	assert_int_equal(report->n_incidents, 1);
	assert_true(s->n_incidents < 16);
	print_message("  %7.3f s: %s, %s, %.3f to %.3f s: %s\n", (double)s->now_ns / 1e9,
		      verdict_name(report->incidents[0].verdict),
		      confidence_name(report->incidents[0].confidence),
		      (double)(report->incidents[0].begin.ns - synth_host_ns(0)) / 1e9,
		      (double)(report->incidents[0].end.ns - synth_host_ns(0)) / 1e9,
		      because_text(&report->incidents[0]).text);
	strip_draw(s, report, s->drawn[s->n_incidents]);
	s->reported_ns[s->n_incidents] = s->now_ns;
	s->incidents[s->n_incidents++] = report->incidents[0];
}

static void on_frame(void *context, uint32_t source, uint64_t arrival_tsc,
		     const struct frame_view *frame)
{
	const struct frame_item item = frame_item_of(frame);
	struct stage *s = context;

	/* The present is the latest arrival: nothing is told before its time. */
	if ((int64_t)((arrival_tsc - synth_host_tsc0) / HZ_PER_MS) * MS > s->now_ns)
		s->now_ns = (int64_t)((arrival_tsc - synth_host_tsc0) / HZ_PER_MS) * MS;
	assert_int_equal(live_frame(s->live, source, arrival_tsc, &item), 0);
	assert_int_equal(live_tick(s->live, arrival_tsc), 0);
}

static int setup_cpus(void **state, uint32_t guest_cpus)
{
	struct stage *s = calloc(1, sizeof(*s));
	const struct live_options options = {.than_ns = 100 * MS,
					     .opened = on_opened,
					     .incident = on_incident,
					     .ongoing = on_ongoing,
					     .line = on_line,
					     .context = s};
	const struct synth_options scene = {.entry = on_frame,
					    .context = s,
					    .guest_cpus = guest_cpus,
					    .guest_tsc_offset = 424242};

	s->live = live_new(&options);
	assert_non_null(s->live);
	assert_non_null(s->strips);
	s->synth = synth_new(&scene);
	*state = s;
	return 0;
}

static int setup(void **state)
{
	return setup_cpus(state, 1);
}

static int setup_two(void **state)
{
	return setup_cpus(state, 2);
}

static int teardown(void **state)
{
	struct stage *s = *state;

	live_free(s->live);
	strips_free(s->strips);
	free(s);
	return 0;
}

/* The guest's CPU 0 and its vCPU are busy, two tasks take turns. */
static bool task_is_current;

static void busy(struct synth *s, int64_t begin, int64_t end)
{
	for (int64_t t = begin; t < end; t += 4 * MS) {
		const int32_t out = task_is_current ? TASK : OTHER;
		const int32_t in = task_is_current ? OTHER : TASK;
		const struct vs_event entry = {
			.type = VS_EVENT_VECTOR_ENTRY, .pid = out, .arg0 = VS_VECTOR_LOCAL_TIMER};
		struct vs_event exit = entry;

		exit.type = VS_EVENT_VECTOR_EXIT;
		synth_at(s, t);
		synth_guest_event(s, 0, entry);
		synth_guest_event(s, 0, exit);
		synth_guest_event(s, 0, synth_switch(out, 0, in));
		task_is_current = !task_is_current;
	}
}

/* One wakes the other, which has to wait. */
static void wake_the_other(struct synth *s)
{
	synth_guest_event(
		s, 0,
		synth_wakeup(task_is_current ? OTHER : TASK, task_is_current ? TASK : OTHER, 0));
}

static const struct said *said_find(const struct stage *s, const char *what)
{
	for (size_t i = 0; i < s->n_said; i++) {
		if (strstr(s->said[i].line, what))
			return &s->said[i];
	}
	return NULL;
}

static void scene_begin(struct stage *s)
{
	task_is_current = false;
	synth_at(s->synth, 1 * MS);
	synth_host_event(s->synth, 0, synth_name(VCPU0, SYNTH_QEMU_PID, "CPU 0/KVM"));
	synth_host_event(s->synth, 0, synth_name(HOG, HOG, "hog"));
	synth_host_event(s->synth, 0, synth_switch(0, 0, VCPU0));
	synth_guest_event(s->synth, 0, synth_name(TASK, TASK, "victim"));
	synth_guest_event(s->synth, 0, synth_name(OTHER, OTHER, "other"));
	busy(s->synth, 2 * MS, 800 * MS);
	/* What came before the clocks were known has no place. */
	synth_host_event(s->synth, 0, synth_switch(VCPU0, VS_TASK_RUNNING, HOG));
	synth_at(s->synth, 801 * MS);
	synth_host_event(s->synth, 0, synth_switch(HOG, 1, VCPU0));
	synth_host_event(s->synth, 0, synth_name(HOG, HOG, "hog"));
	synth_guest_event(s->synth, 0, synth_name(TASK, TASK, "victim"));
	busy(s->synth, 801 * MS, 1000 * MS);
}

static void a_stall_is_told_while_it_lasts_and_when_it_ends(void **state)
{
	struct stage *s = *state;
	const struct incident *i = &s->incidents[0];
	const struct said *said;
	struct live_summary summary;
	int64_t sum = 0;

	scene_begin(s);
	synth_at(s->synth, 1000 * MS);
	synth_host_event(s->synth, 0, synth_switch(VCPU0, VS_TASK_RUNNING, HOG));
	synth_guest_silent(s->synth, true);
	synth_at(s->synth, 3000 * MS);
	synth_host_event(s->synth, 0, synth_switch(HOG, 1, VCPU0));
	synth_guest_silent(s->synth, false);
	busy(s->synth, 3001 * MS, 5000 * MS);
	synth_free(s->synth);
	assert_int_equal(live_finish(s->live), 0);

	said = said_find(s, "web1 CPU 0");
	assert_non_null(said);
	assert_true(said->at_ns >= 1100 * MS && said->at_ns < 1400 * MS);
	assert_non_null(strstr(said->line, "vcpu_not_scheduled"));
	said = said_find(s, "its agent has been silent");
	assert_non_null(said);
	assert_true(said->at_ns > 1500 * MS && said->at_ns < 1800 * MS);
	said = said_find(s, "its agent is back after");
	assert_non_null(said);
	assert_true(said->at_ns > 3000 * MS && said->at_ns < 3300 * MS);

	assert_int_equal(s->n_incidents, 1);
	assert_int_equal(i->verdict, VERDICT_VCPU_NOT_SCHEDULED);
	assert_true(s->reported_ns[0] < 4000 * MS);
	/* The strip is complete when the stall is reported. */
	assert_string_equal(s->drawn[0], "RRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRR");
	for (size_t k = 0; k < VCPU_STATE_COUNT; k++)
		sum += i->breakdown_ns[k];
	assert_int_equal(sum, i->end.ns - i->begin.ns);
	assert_true(llabs(i->breakdown_ns[VCPU_RUNNABLE] - 2000 * MS) < MS);
	assert_true(i->dmesg_known);
	assert_true(llabs((int64_t)i->begin_dmesg_ns - (100000 + 1000) * MS) < 10 * MS);
	live_summarise(s->live, &summary);
	assert_int_equal(summary.incidents, 1);
	assert_int_equal(summary.lost, 0);
	assert_int_equal(summary.late, 0);
}

/* And each time that its length has doubled. */
static void each_stall_is_told_once(void **state)
{
	struct stage *s = *state;
	size_t ongoing = 0;
	int64_t last = 0;

	scene_begin(s);
	for (int64_t t = 1000; t < 4000; t += 1000) {
		synth_at(s->synth, t * MS);
		synth_host_event(s->synth, 0, synth_switch(VCPU0, VS_TASK_RUNNING, HOG));
		synth_guest_silent(s->synth, true);
		synth_at(s->synth, (t + 400) * MS);
		synth_host_event(s->synth, 0, synth_switch(HOG, 1, VCPU0));
		synth_guest_silent(s->synth, false);
		busy(s->synth, (t + 401) * MS, (t + 1000) * MS);
	}
	synth_free(s->synth);
	assert_int_equal(live_finish(s->live), 0);
	for (size_t i = 0; i < s->n_said; i++) {
		const char *line = strstr(s->said[i].line, "ongoing");
		const int64_t length = line ? strtol(line + sizeof("ongoing"), NULL, 10) : 0;

		if (!line)
			continue;
		if (ongoing % 3)
			assert_true(length >= 2 * last);
		else
			assert_true(length >= 100 && length < 200);
		last = length;
		ongoing++;
	}
	assert_int_equal(ongoing, 3 * 3);
	assert_int_equal(s->n_incidents, 3);
}

/* The counter of a quota advances when a throttling is over: until then nobody knows of it. */
static void a_wait_under_a_quota_is_not_sure_while_it_lasts(void **state)
{
	struct stage *s = *state;
	const struct said *said;

	scene_begin(s);
	synth_at(s->synth, 1000 * MS);
	synth_quota(s->synth, 900 * MS, 0);
	synth_host_event(s->synth, 0, synth_switch(VCPU0, VS_TASK_RUNNING, HOG));
	synth_guest_silent(s->synth, true);
	for (int64_t t = 1100; t <= 1800; t += 100) {
		synth_at(s->synth, t * MS);
		synth_quota(s->synth, (t - 100) * MS, 0);
	}
	synth_at(s->synth, 1890 * MS);
	synth_host_event(s->synth, 0, synth_switch(HOG, 1, VCPU0));
	synth_guest_silent(s->synth, false);
	synth_at(s->synth, 1900 * MS);
	synth_quota(s->synth, 1800 * MS, 889 * MS);
	busy(s->synth, 1901 * MS, 4000 * MS);
	synth_free(s->synth);
	assert_int_equal(live_finish(s->live), 0);
	said = said_find(s, "ongoing");
	assert_non_null(said);
	assert_non_null(strstr(said->line, "vcpu_not_scheduled (likely)"));
	assert_non_null(strstr(said->line, "out of CPU quota"));
	assert_int_equal(s->n_incidents, 1);
	assert_int_equal(s->incidents[0].verdict, VERDICT_CGROUP_THROTTLED);
	assert_int_equal(s->incidents[0].confidence, CONFIDENCE_DECIDED);
	assert_string_equal(s->incidents[0].quota.cgroup, "/machine.slice/synth.scope");
	assert_int_equal(s->incidents[0].quota.quota_us, 10000);
	assert_int_equal(s->incidents[0].quota.period_us, 100000);
}

static void a_quiet_guest_is_not_talked_about(void **state)
{
	struct stage *s = *state;

	scene_begin(s);
	busy(s->synth, 1001 * MS, 3000 * MS);
	synth_free(s->synth);
	assert_int_equal(live_finish(s->live), 0);
	assert_int_equal(s->n_said, 0);
	assert_int_equal(s->n_incidents, 0);
	/* At the end it is known how much of that was observed. */
	assert_non_null(live_report(s->live));
	assert_int_equal(live_report(s->live)->n_vcpus, 1);
	/* Its thread's one event came before the host's clocks were known. */
	assert_int_equal(live_report(s->live)->vcpus[0].coverage.answer, ANSWER_CANNOT_TELL);
	assert_true(live_report(s->live)->vcpus[0].coverage.guest_observed_ns > 2900 * MS);
}

/* ---- the agent goes ---- */

/* The vCPU computes and sleeps by turns; the guest says nothing. */
static void host_alone(struct synth *s, int64_t begin, int64_t end)
{
	for (int64_t t = begin; t + 25 * MS <= end; t += 25 * MS) {
		synth_at(s, t + 5 * MS);
		synth_host_event(s, 0, synth_switch(VCPU0, VS_TASK_INTERRUPTIBLE, 0));
		synth_at(s, t + 24 * MS);
		synth_host_event(s, 0, synth_wakeup(VCPU0, HOG, 0));
		synth_at(s, t + 25 * MS);
		synth_host_event(s, 0, synth_switch(0, 0, VCPU0));
	}
}

/* Somebody stops the VM's process. */
static void stopped(struct synth *s, int64_t begin, int64_t end)
{
	synth_at(s, begin);
	synth_host_event(s, 0, synth_switch(VCPU0, VS_TASK_STOPPED, 0));
	synth_at(s, end);
	synth_host_event(s, 0, synth_wakeup(VCPU0, HOG, 0));
	synth_at(s, end + MS);
	synth_host_event(s, 0, synth_switch(0, 0, VCPU0));
}

static size_t said_count(const struct stage *s, const char *what)
{
	size_t n = 0;

	for (size_t i = 0; i < s->n_said; i++)
		n += strstr(s->said[i].line, what) != NULL;
	return n;
}

/* Each stop of 700 ms in the host's half alone: told within a second, and never again. */
static void stop_is_reported(const struct stage *s, size_t incident, int64_t begin_ms)
{
	const struct incident *i = &s->incidents[incident];

	assert_true(s->n_incidents > incident);
	assert_int_equal(i->verdict, VERDICT_VM_PAUSED);
	assert_int_equal(i->confidence, CONFIDENCE_DECIDED);
	assert_true(llabs(i->begin.ns - synth_host_ns(begin_ms * MS)) < 2 * MS);
	assert_true(llabs(i->end.ns - i->begin.ns - 700 * MS) < 3 * MS);
	assert_true(s->reported_ns[incident] - (begin_ms + 700) * MS < 1000 * MS);
	assert_string_equal(i->task_comm, "");
}

static void when_the_channel_closes_the_host_goes_on_alone(void **state)
{
	struct stage *s = *state;
	const struct said *said;

	scene_begin(s);
	busy(s->synth, 1001 * MS, 1990 * MS); /* the last batches wait for an echo when it closes */
	synth_at(s->synth, 2010 * MS);
	synth_note(s->synth, NOTE_CHANNEL_DOWN, "channel is down: closed by the other end");
	synth_guest_silent(s->synth, true);
	host_alone(s->synth, 2010 * MS, 3000 * MS);
	stopped(s->synth, 3000 * MS, 3700 * MS);
	host_alone(s->synth, 3701 * MS, 45000 * MS);
	stop_is_reported(s, 0, 3000);
	stopped(s->synth, 45000 * MS, 45700 * MS);
	host_alone(s->synth, 45701 * MS, 46500 * MS);
	stop_is_reported(s, 1, 45000);
	said = said_find(s, "the channel to its agent is closed: until its agent is back");
	assert_non_null(said);
	assert_true(said->at_ns < 2200 * MS);
	assert_int_equal(said_count(s, "silent"), 0);

	/* It returns: a stall of the guest's own is seen again. */
	synth_guest_silent(s->synth, false);
	synth_guest_restart(s->synth);
	synth_note(s->synth, NOTE_CHANNEL_UP, "");
	busy(s->synth, 46501 * MS, 48000 * MS);
	synth_at(s->synth, 48000 * MS);
	wake_the_other(s->synth);
	busy(s->synth, 48400 * MS, 50000 * MS);
	synth_free(s->synth);
	assert_int_equal(live_finish(s->live), 0);
	assert_non_null(said_find(s, "its agent is back after"));
	assert_int_equal(s->n_incidents, 3);
	assert_int_equal(s->incidents[2].verdict, VERDICT_GUEST_SPIN);
	/* Each of the stops once when it was seen to go on, and twice as it doubled. */
	assert_int_equal(said_count(s, "vm_paused"), 6);
}

/* The port of a guest whose agent was killed stays open, and so it does through a reset. */
static void an_agent_silent_in_a_guest_that_idles_is_gone(void **state)
{
	struct stage *s = *state;
	const struct said *said;

	scene_begin(s);
	busy(s->synth, 1001 * MS, 2000 * MS);
	synth_guest_silent(s->synth, true);
	host_alone(s->synth, 2000 * MS, 6000 * MS);
	stopped(s->synth, 6000 * MS, 6700 * MS);
	host_alone(s->synth, 6701 * MS, 8000 * MS);
	stop_is_reported(s, 0, 6000);
	said = said_find(s, "although the guest idles: until its agent is back");
	assert_non_null(said);
	assert_true(said->at_ns > 4900 * MS && said->at_ns < 5400 * MS);
	host_alone(s->synth, 8001 * MS, 60000 * MS);
	/* It booted anew: the port was open all the time. */
	synth_guest_silent(s->synth, false);
	synth_guest_boot(s->synth, "another", 1000000000);
	busy(s->synth, 60001 * MS, 62000 * MS);
	stopped(s->synth, 62000 * MS, 62700 * MS);
	busy(s->synth, 62702 * MS, 64000 * MS);
	synth_free(s->synth);
	assert_int_equal(live_finish(s->live), 0);
	assert_int_equal(s->n_incidents, 2);
	assert_int_equal(s->incidents[1].verdict, VERDICT_VM_PAUSED);
	assert_non_null(said_find(s, "its agent is back after"));
}

/* A guest that computes may be stuck with its agent: it is waited for as long as a stall may last,
 * and no longer. */
static void an_agent_silent_in_a_guest_that_computes_is_waited_for(void **state)
{
	struct stage *s = *state;
	const struct said *said;

	scene_begin(s);
	synth_at(s->synth, 1000 * MS);
	synth_guest_silent(s->synth, true);
	synth_at(s->synth, 11000 * MS);
	wake_the_other(s->synth);
	synth_guest_silent(s->synth, false);
	busy(s->synth, 11001 * MS, 13000 * MS);
	assert_int_equal(said_count(s, "until its agent is back"), 0);
	assert_int_equal(s->n_incidents, 1);
	assert_int_equal(s->incidents[0].verdict, VERDICT_GUEST_SPIN);
	assert_true(llabs(s->incidents[0].end.ns - s->incidents[0].begin.ns - 10000 * MS) <
		    100 * MS);
	synth_guest_silent(s->synth, true);
	synth_at(s->synth, 44000 * MS);
	said = said_find(s, "its agent has been silent for 30 s: until its agent is back");
	assert_non_null(said);
	assert_true(said->at_ns > 42900 * MS && said->at_ns < 43300 * MS);
	stopped(s->synth, 44000 * MS, 44700 * MS);
	host_alone(s->synth, 44701 * MS, 46000 * MS);
	stop_is_reported(s, 1, 44000);
	synth_free(s->synth);
	assert_int_equal(live_finish(s->live), 0);
	assert_int_equal(s->n_incidents, 2);
}

/* A new agent of another boot, the old one's end unseen: what a CPU did that is seen no more is not
 * known, and hides nothing of what the host does to its vCPU. */
static void what_the_old_agent_told_ends_with_it(void **state)
{
	struct stage *s = *state;

	scene_begin(s);
	synth_host_event(s->synth, 1, synth_switch(0, 0, VCPU1));
	busy(s->synth, 1001 * MS, 1990 * MS);
	synth_guest_event(s->synth, 1, synth_switch(0, 0, TASK));
	busy(s->synth, 1990 * MS, 2001 * MS);
	synth_guest_silent(s->synth, true);
	synth_at(s->synth, 2300 * MS);
	synth_guest_silent(s->synth, false);
	synth_guest_boot(s->synth, "another", 1000000000);
	busy(s->synth, 2301 * MS, 4000 * MS);
	synth_at(s->synth, 4000 * MS);
	synth_host_event(s->synth, 1, synth_switch(VCPU1, VS_TASK_STOPPED, 0));
	busy(s->synth, 4001 * MS, 4700 * MS);
	synth_at(s->synth, 4700 * MS);
	synth_host_event(s->synth, 1, synth_wakeup(VCPU1, HOG, 0));
	synth_host_event(s->synth, 1, synth_switch(0, 0, VCPU1));
	busy(s->synth, 4701 * MS, 6000 * MS);
	stop_is_reported(s, 0, 4000);
	assert_int_equal(s->incidents[0].guest_cpu, 1);
	synth_free(s->synth);
	assert_int_equal(live_finish(s->live), 0);
	assert_int_equal(s->n_incidents, 1);
}

static void what_lasts_at_the_end_is_told_as_ongoing(void **state)
{
	struct stage *s = *state;

	scene_begin(s);
	synth_at(s->synth, 1000 * MS);
	synth_host_event(s->synth, 0, synth_switch(VCPU0, VS_TASK_RUNNING, HOG));
	synth_guest_silent(s->synth, true);
	synth_at(s->synth, 2000 * MS);
	synth_free(s->synth);
	assert_int_equal(live_finish(s->live), 0);
	assert_int_equal(s->n_incidents, 1);
	assert_true(s->incidents[0].ongoing);
	assert_int_equal(live_report(s->live)->vcpus[0].coverage.answer, ANSWER_STALLS);
	assert_int_equal(s->incidents[0].verdict, VERDICT_VCPU_NOT_SCHEDULED);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_stall_is_told_while_it_lasts_and_when_it_ends,
						setup, teardown),
		cmocka_unit_test_setup_teardown(each_stall_is_told_once, setup, teardown),
		cmocka_unit_test_setup_teardown(a_wait_under_a_quota_is_not_sure_while_it_lasts,
						setup, teardown),
		cmocka_unit_test_setup_teardown(a_quiet_guest_is_not_talked_about, setup, teardown),
		cmocka_unit_test_setup_teardown(when_the_channel_closes_the_host_goes_on_alone,
						setup, teardown),
		cmocka_unit_test_setup_teardown(an_agent_silent_in_a_guest_that_idles_is_gone,
						setup, teardown),
		cmocka_unit_test_setup_teardown(
			an_agent_silent_in_a_guest_that_computes_is_waited_for, setup, teardown),
		cmocka_unit_test_setup_teardown(what_the_old_agent_told_ends_with_it, setup_two,
						teardown),
		cmocka_unit_test_setup_teardown(what_lasts_at_the_end_is_told_as_ongoing, setup,
						teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
