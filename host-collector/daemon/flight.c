/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/daemon/flight_internal.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock/sample.h"
#include "host-collector/engine/live.h"
#include "host-collector/engine/pair_evidence.h"
#include "host-collector/daemon/flight_ring.h"
#include "host-collector/daemon/incident_summary.h"
#include "host-collector/view/culprit_text.h"
#include "host-collector/view/pair_text.h"

enum {
	AFTERMATH_MS = 300, /* recorded after the end of an incident */
	BEFORE_MS = 2000,   /* kept in the ring before a long stall */
	VERDICT_MS = 1500,  /* a trigger waits this long for the stall that it may be part of */
	LOOK_MS = 1000,     /* interval of the rows that `top` shows */
	TICK_MS = 100,      /* interval of the live model's ticks; the host's heartbeats add more */
	QUIET_TICK_MS = 1000, /* the same for a VM that sends nothing */
	ROWS_MAX = 256,
	TRIES = 10, /* attempts to make a folder */
	TRY_AGAIN_MS = 1000,
	OVER_KEPT_MS = 10000, /* the last seconds of a VM stay in memory this long after its end */
};

static void say(const struct flight_vm *v, const char *line)
{
	v->flight->options.say(v->flight->options.context, flight_vm_name(v), line);
}

/* ---- folders ---- */

static int recording_write(void *context, const char *path)
{
	const struct flight_vm *v = context;

	return flight_ring_write(v->ring, live_model(v->live), path, (uint64_t)clock_realtime_ns());
}

/* waiting: NULL for a snapshot. */
static struct incident_summary summary_of(const struct flight_vm *v, const struct waiting *waiting)
{
	return (struct incident_summary){
		.vm = flight_vm_name(v),
		.incident = waiting && waiting->stall ? &waiting->incident : NULL,
		.firing = waiting && !waiting->stall ? &waiting->firing : NULL,
		.stalls_without_folder = v->suppressed - v->reported_suppressed,
	};
}

static int folder_make(struct flight_vm *v, const struct waiting *waiting, char *path,
		       size_t path_bytes)
{
	const struct incident_summary summary = summary_of(v, waiting);
	const struct incident_request request = {
		.vm = flight_vm_name(v),
		.what = incident_summary_what(&summary),
		.summary = incident_summary_json(&summary),
		.write = recording_write,
		.context = v,
	};
	int err = request.summary
			  ? incident_store_make(v->flight->store, &request, path, path_bytes)
			  : -ENOMEM;

	if (err)
		return err;
	v->folders++;
	v->reported_suppressed = v->suppressed;
	return 0;
}

/* Plans the next attempt to make a folder. After TRIES attempts the ring may have lost the stall.
 */
static void waiting_refused(struct flight_vm *v, int err)
{
	const struct incident_summary summary = summary_of(v, &v->waiting);
	char line[640];

	v->waiting.due_ms = clock_monotonic_ms() + TRY_AGAIN_MS;
	if (v->waiting.tries++ == 0) {
		snprintf(line, sizeof(line), "%s%s gets no folder: %s; tried again for %d s",
			 v->waiting.stall ? "a stall, " : "", incident_summary_what(&summary),
			 strerror(-err), TRIES * TRY_AGAIN_MS / 1000);
		say(v, line);
	}
	if (v->waiting.tries < TRIES)
		return;
	v->waiting.is = false;
	v->suppressed++;
}

static void waiting_serve(struct flight_vm *v)
{
	const uint64_t gap_ms = v->flight->options.config->incident_gap_ns / 1000000;
	char path[512];
	int err;

	if (v->folder_ms && clock_monotonic_ms() - v->folder_ms < gap_ms) {
		v->waiting.is = false;
		v->suppressed++;
		return;
	}
	err = folder_make(v, &v->waiting, path, sizeof(path));
	if (err) {
		waiting_refused(v, err);
		return;
	}
	records_saved(v->records, v->waiting.stall ? &v->waiting.incident : NULL, path);
	v->waiting.is = false;
	v->folder_ms = clock_monotonic_ms();
}

/* Makes one folder in each turn of the loop, as each writes some MiB. Begins with the one that
 * waits longest. */
static void on_serving(uv_idle_t *idle)
{
	const struct flight *f = idle->data;
	struct flight_vm *next = NULL;

	for (struct flight_vm *v = f->vms; v; v = v->next) {
		if (v->live && v->waiting.is && clock_monotonic_ms() >= v->waiting.due_ms &&
		    (!next || v->waiting.due_ms < next->waiting.due_ms))
			next = v;
	}
	if (next)
		waiting_serve(next);
	else
		uv_idle_stop(idle);
}

/* ---- events of the VM ---- */

static int64_t length_of(const struct incident *i)
{
	return i->end.ns - i->begin.ns;
}

static void last_keep(struct flight_vm *v, const struct report *report, const struct incident *at)
{
	v->stalled = true;
	v->last = (struct flight_stall){.verdict = verdict_name(at->verdict),
					.guest_cpu = at->guest_cpu,
					.duration_ns = length_of(at)};
	if (report->wall_known)
		v->last.wall_ns = report_wall_ns(report, at->begin);
	if (at->n_culprits)
		culprit_name(&at->culprits[0], v->last.culprit, sizeof(v->last.culprit));
}

static void on_incident(void *context, const struct report *report)
{
	struct flight_vm *v = context;

	for (size_t i = 0; i < report->n_incidents; i++) {
		const struct incident *at = &report->incidents[i];

		if (at->healthy)
			continue;
		v->incidents++;
		last_keep(v, report, at);
		if (v->metrics)
			metrics_incident(v->metrics, at);
		records_incident(v->records, at);
		v->suppressed += v->waiting.is; /* both share a folder */
		if (!v->waiting.is)
			v->waiting.tries = 0;
		if (!v->waiting.is || !v->waiting.stall)
			v->waiting.due_ms = clock_monotonic_ms() + AFTERMATH_MS;
		if (!v->waiting.is || !v->waiting.stall ||
		    length_of(at) > length_of(&v->waiting.incident))
			v->waiting.incident = *at;
		v->waiting.is = v->waiting.stall = true;
	}
}

static void on_fired(void *context, const struct trigger_firing *firing)
{
	struct flight_vm *v = context;

	v->triggered++;
	records_firing(v->records, firing);
	if (v->waiting.is)
		v->suppressed++;
	else
		v->waiting = (struct waiting){
			.is = true, .due_ms = clock_monotonic_ms() + VERDICT_MS, .firing = *firing};
}

static void on_ongoing(void *context, const struct incident *incident, const char *vm_name)
{
	struct flight_vm *v = context;
	const uint64_t back_ms = (uint64_t)length_of(incident) / 1000000 + BEFORE_MS;

	(void)vm_name;
	records_incident(v->records, incident);
	/* It may last longer than the ring's frames are kept, and its report needs its begin. */
	flight_ring_hold(v->ring, clock_tsc_read() - back_ms * (v->flight->host_hz / 1000));
	v->held_ms = clock_monotonic_ms();
}

static void on_line(void *context, const char *line)
{
	say(context, line);
}

static void on_pair_over(void *context, const struct pair_definition *d, const struct pair *pair)
{
	const struct flight_vm *v = context;
	struct trigger_firing firing = {.trigger = TRIGGER_PAIR, .vm = COLLECTOR_VM};

	if (!watched_vm_config(v->vm)->triggers[TRIGGER_PAIR])
		return;
	pair_over_text(d, pair, firing.text, sizeof(firing.text));
	on_fired(context, &firing);
}

static void on_pair_uncounted(void *context, const struct pair_definition *d,
			      const struct pair_unknown *why)
{
	char line[512];

	say(context, pair_uncounted_text(d, why, line, sizeof(line)));
}

static void on_evidence(void *context, struct incident *incident)
{
	pair_evidence_watched(((const struct flight_vm *)context)->pairs, incident);
}

static void live_forget(struct flight_vm *v)
{
	const struct metrics_part part = {.metrics = v->metrics,
					  .pipeline = v->live ? live_pipeline(v->live) : NULL};

	if (v->records)
		records_vm_end(v->records);
	if (v->metrics && v->live && metrics_past_add(&v->flight->past, &part))
		say(v, "its metrics are missing in the host's sums: out of memory");
	live_free(v->live); /* before what listens to its model */
	activity_free(v->activity);
	triggers_free(v->triggers);
	metrics_free(v->metrics);
	pair_watch_free(v->pairs);
	v->live = NULL;
	v->pairs = NULL;
	v->triggers = NULL;
	v->log_us = 0;
	v->metrics = NULL;
	v->activity = NULL;
	v->n_rows = 0;
	v->looked_ms = v->look_ms = 0;
}

static void live_drop(struct flight_vm *v)
{
	live_forget(v);
	say(v, "stalls are not watched: out of memory");
}

static void live_step(struct flight_vm *v)
{
	v->fresh = false;
	v->ticked_ms = clock_monotonic_ms();
	if (live_tick(v->live, clock_tsc_read()))
		live_drop(v);
}

static bool live_is_due(const struct flight_vm *v)
{
	return clock_monotonic_ms() - v->ticked_ms >= (v->fresh ? TICK_MS : QUIET_TICK_MS);
}

static void on_step(struct turn_task *task)
{
	struct flight_vm *v = (struct flight_vm *)((char *)task - offsetof(struct flight_vm, step));

	if (v->live && !v->over && live_is_due(v))
		live_step(v);
}

static void on_frame(void *context, uint32_t source, uint64_t arrival_tsc, struct frame_item *frame)
{
	struct flight_vm *v = context;

	v->fresh = true;
	flight_ring_push(v->ring, source, arrival_tsc, frame);
	if (v->live && live_frame(v->live, source, arrival_tsc, frame))
		live_drop(v);
	/* A heartbeat lets the models advance. Their memory is in the CPU's cache now. */
	if (v->live && source == VS_SOURCE_HOST && frame->kind == FRAME_HEARTBEAT)
		live_step(v);
}

static bool metrics_wanted(const struct flight *f)
{
	return *f->options.config->metrics || *f->options.config->metrics_file ||
	       records_want_figures(f->records);
}

static void on_begin(void *context)
{
	struct flight_vm *v = context;
	const struct live_options options = {.than_ns = (int64_t)watched_vm_config(v->vm)->stall_ns,
					     .evidence = on_evidence,
					     .incident = on_incident,
					     .ongoing = on_ongoing,
					     .line = on_line,
					     .context = v};
	const struct triggers_options triggers = {
		.limits = watched_vm_config(v->vm)->triggers, .fired = on_fired, .context = v};
	const struct daemon_config *config = v->flight->options.config;
	const struct pair_watch_options pairs = {.definitions = config->pairs,
						 .n = config->n_pairs,
						 .over = on_pair_over,
						 .uncounted = on_pair_uncounted,
						 .context = v};

	flight_ring_clear(v->ring);
	flight_ring_release(v->ring);
	v->held_ms = 0;
	v->over = false;
	live_forget(v);
	v->live = live_new(&options);
	if (v->live)
		v->activity = activity_new(live_model(v->live));
	if (v->live)
		v->triggers = triggers_new(live_model(v->live), &triggers);
	if (v->live && metrics_wanted(v->flight))
		v->metrics = metrics_new(live_model(v->live), live_chains(v->live));
	if (v->live && pairs.n)
		v->pairs = pair_watch_new(live_model(v->live), &pairs);
	if (!v->live || !v->activity || !v->triggers || (pairs.n && !v->pairs) ||
	    (!v->metrics && metrics_wanted(v->flight)))
		live_drop(v);
	records_vm_begin(v->records, v->live, v->metrics);
}

static void on_end(void *context, const char *why)
{
	struct flight_vm *v = context;

	(void)why;
	v->over = true;
	v->over_ms = clock_monotonic_ms();
	if (v->live && live_finish(v->live))
		live_drop(v);
	if (v->live && v->waiting.is)
		waiting_serve(v);
	v->suppressed += v->waiting.is; /* no later frame could complete it */
	v->waiting.is = false;
}

/* ---- life ---- */

struct flight_vm *flight_find(const struct flight *f, const struct watched_vm *vm)
{
	struct flight_vm *v = f->vms;

	while (v && v->vm != vm)
		v = v->next;
	return v;
}

static void vm_free(struct flight_vm *v)
{
	turns_drop(v->flight->loop, &v->step);
	live_forget(v);
	records_vm_free(v->records);
	flight_ring_free(v->ring);
	free(v->rows);
	free(v);
}

int flight_begin(struct flight *f, struct watched_vm *vm)
{
	const struct vm_config *config = watched_vm_config(vm);
	struct flight_vm *v;

	if (!config->flight)
		return 0;
	v = calloc(1, sizeof(*v));
	if (!v)
		return -ENOMEM;
	v->flight = f;
	v->vm = vm;
	v->step.run = on_step;
	v->ring = flight_ring_new(config->flight_ns, config->flight_bytes, f->host_hz);
	v->rows = calloc(ROWS_MAX, sizeof(*v->rows));
	v->records = records_vm_new(f->records, vm);
	if (!v->ring || !v->rows || !v->records) {
		vm_free(v);
		return -ENOMEM;
	}
	v->tap = (struct frame_tap){
		.frame = on_frame, .begin = on_begin, .end = on_end, .context = v};
	v->next = f->vms;
	f->vms = v;
	watched_vm_tap(vm, &v->tap);
	return 0;
}

void flight_end(struct flight *f, struct watched_vm *vm)
{
	for (struct flight_vm **at = &f->vms; *at; at = &(*at)->next) {
		struct flight_vm *v = *at;

		if (v->vm != vm)
			continue;
		*at = v->next;
		watched_vm_untap(vm, &v->tap);
		vm_free(v);
		return;
	}
}

/* Checks the lines of the guest's log that are new. A guest that boots again begins at 0. */
static void log_tick(struct flight_vm *v)
{
	const struct pipeline *p = live_pipeline(v->live);
	const struct message_log_line *line;
	uint64_t newest_us = 0;

	for (size_t i = 0; (line = pipeline_log_line(p, COLLECTOR_VM, i)); i++)
		newest_us = line->dmesg_us;
	if (newest_us < v->log_us)
		v->log_us = 0;
	for (size_t i = 0; (line = pipeline_log_line(p, COLLECTOR_VM, i)); i++) {
		if (line->dmesg_us > v->log_us)
			triggers_log(v->triggers, COLLECTOR_VM, line->text);
	}
	v->log_us = newest_us;
}

static void activity_tick(struct flight_vm *v)
{
	const uint64_t now = clock_monotonic_ms();
	long n;

	if (v->looked_ms && now - v->looked_ms < LOOK_MS)
		return;
	n = activity_look(v->activity, v->rows, ROWS_MAX);
	v->n_rows = n > 0 ? (size_t)n : 0;
	v->look_ms = v->looked_ms ? now - v->looked_ms : 0;
	v->looked_ms = now;
	triggers_activity(v->triggers, v->rows, v->n_rows, (int64_t)v->look_ms * 1000000);
	log_tick(v);
}

/* Releases the ring some time after the last stall in progress: the merged model ends a stall later
 * than the early model, which knows what is in progress. */
static void hold_tick(struct flight_vm *v)
{
	const uint64_t now = clock_monotonic_ms();

	if (!v->held_ms)
		return;
	if (v->waiting.is || live_ongoing(v->live, COLLECTOR_VM)) {
		v->held_ms = now;
	} else if (now - v->held_ms > watched_vm_config(v->vm)->flight_ns / 1000000) {
		flight_ring_release(v->ring);
		v->held_ms = 0;
	}
}

/* Frees the memory of a VM that ended. */
static void over_tick(struct flight_vm *v)
{
	if (!v->live || clock_monotonic_ms() - v->over_ms < OVER_KEPT_MS)
		return;
	live_forget(v);
	flight_ring_clear(v->ring);
}

void flight_tick(struct flight *f)
{
	for (struct flight_vm *v = f->vms; v; v = v->next) {
		if (v->over)
			over_tick(v);
		if (v->live && !v->over && live_is_due(v))
			turns_add(f->loop, &v->step);
		if (v->live && !v->over)
			activity_tick(v);
		if (v->live && !v->over)
			hold_tick(v);
		if (v->pairs && !v->over)
			pair_watch_tick(v->pairs);
		if (v->live && v->waiting.is && clock_monotonic_ms() >= v->waiting.due_ms)
			uv_idle_start(f->serving, on_serving);
	}
	incident_store_tick(f->store);
}

void flight_trigger(struct flight *f, struct watched_vm *vm, enum trigger trigger, const char *text)
{
	struct flight_vm *v = flight_find(f, vm);
	struct trigger_firing firing = {.trigger = trigger, .vm = COLLECTOR_VM};

	if (!v || !v->live || !watched_vm_config(vm)->triggers[trigger])
		return;
	snprintf(firing.text, sizeof(firing.text), "%s", text);
	on_fired(v, &firing);
}

int flight_snapshot(struct flight *f, struct watched_vm *vm, char *path, size_t path_bytes)
{
	struct flight_vm *v = flight_find(f, vm);
	struct flight_ring_stats stats;

	if (!v)
		return -ENOENT;
	flight_ring_stats_get(v->ring, &stats);
	return stats.frames && v->live ? folder_make(v, NULL, path, path_bytes) : -ENODATA;
}

struct flight *flight_new(uv_loop_t *loop, const struct incident_store_options *options,
			  struct records *records)
{
	struct flight *f = calloc(1, sizeof(*f));

	if (!f)
		return NULL;
	f->loop = loop;
	f->options = *options;
	f->records = records;
	if (clock_tsc_hz(&f->host_hz))
		f->host_hz = 1000000000;
	f->store = incident_store_new(loop, options);
	f->serving = calloc(1, sizeof(*f->serving));
	if (!f->store || !f->serving) {
		incident_store_close(f->store);
		free(f->serving);
		free(f);
		return NULL;
	}
	uv_idle_init(loop, f->serving);
	f->serving->data = f;
	return f;
}

static void serving_closed(uv_handle_t *handle)
{
	free(handle);
}

void flight_close(struct flight *f)
{
	if (!f)
		return;
	while (f->vms)
		flight_end(f, f->vms->vm);
	uv_close((uv_handle_t *)f->serving, serving_closed);
	incident_store_close(f->store);
	metrics_sum_fini(&f->past);
	free(f);
}
