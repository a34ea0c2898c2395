/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/engine/live.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host-collector/analyze/stall/builder.h"
#include "host-collector/analyze/stall/coverage.h"
#include "host-collector/analyze/stall/describe.h"
#include "host-collector/engine/account.h"
#include "host-collector/util/duration.h"
#include "proto/recording.h"

enum { AGENTS_MAX = MODEL_VMS_MAX };
static const int64_t silent_after_ns = 500000000; /* five heartbeats */
/* The guest's stream ends this long after the last frame of its agent: the first value if all
 * vCPUs have been seen idle meanwhile, when a live agent would have sent a frame; the second in
 * any case. */
static const int64_t ends_after_idle_ns = 3000000000, ends_after_ns = 30000000000;
/* The open stalls of the merged model are ongoing only if it is at most this far behind. */
static const int64_t behind_ns = 1000000000;

/* A stall that was reported. */
struct said {
	uint32_t vm;
	uint16_t cpu;
	bool still;     /* found again in this tick */
	int64_t length; /* time of its last report, ns */
};

struct agent {
	uint32_t vm;
	bool silent, gone;
	uint64_t heard_tsc; /* time of the last frame before the silence */
	struct host_ns heard;
	/* Since the last frame: the vCPUs that halted, and whether one of them ran before it
	 * halted. */
	uint64_t idled[VS_CPUS_MAX / 64];
	bool slept;
};

struct live {
	struct live_options options;
	struct model *model, *early;
	struct report_builder *builder, *early_builder;
	struct pipeline *pipeline;
	uint64_t incidents;
	int err; /* of a callback: 0 or -ENOMEM */
	size_t n_said, n_agents;
	struct said said[LIVE_ONGOING_MAX];
	struct agent agents[AGENTS_MAX];
	struct incident ongoing[LIVE_ONGOING_MAX];
	struct report *report; /* of the whole stall, after it has ended */
};

static void on_incident(void *context, const struct report *report)
{
	struct live *l = context;

	l->incidents++;
	l->options.incident(l->options.context, report);
}

/* An incident's report has what is known of the sources by then. */
static void on_prepare(void *context)
{
	struct live *l = context;
	int err = account_give(l->pipeline, l->model, 0, l->builder);

	l->err = l->err ? l->err : err;
}

/* the early model has seen its end; the merged model will report it */
static void on_early_incident(void *context, const struct report *report)
{
	(void)context;
	(void)report;
}

static bool on_dmesg(void *context, uint32_t vm, struct host_ns t, struct dmesg_time *out)
{
	struct live *l = context;

	return account_dmesg(&l->pipeline, vm, t, out);
}

/* What the host's events show about a guest whose agent is silent. */
static void idle_note(struct agent *a, const struct vcpu_span *span)
{
	const uint32_t bit = span->vcpu % VS_CPUS_MAX;

	if (span->state != VCPU_HALTED || span->end.ns - a->heard.ns <= silent_after_ns)
		return;
	a->idled[bit / 64] |= 1ull << bit % 64;
	a->slept |= span->begin.ns - a->heard.ns > silent_after_ns;
}

static void on_early_span(void *context, const struct vcpu_span *span)
{
	struct live *l = context;

	for (size_t i = 0; i < l->n_agents; i++) {
		if (l->agents[i].vm == span->vm && l->agents[i].silent && !l->agents[i].gone)
			idle_note(&l->agents[i], span);
	}
}

struct live *live_new(const struct live_options *options)
{
	struct report_options report = {.needed_percent = COVERAGE_NEEDED_PERCENT,
					.than_ns = options->than_ns,
					.dmesg = on_dmesg,
					.incident = on_incident};
	struct pipeline_options pipeline = {.live = true};
	struct live *l = calloc(1, sizeof(*l));
	const struct model_observer idling = {.vcpu_span = on_early_span, .context = l};

	if (!l)
		return NULL;
	l->options = *options;
	report.context = l;
	report.evidence = options->evidence;
	report.evidence_context = options->context;
	l->model = model_new();
	l->early = model_new();
	if (!l->model || !l->early || model_observe(l->early, &idling))
		goto fail;
	if (options->opened && options->opened(options->context, l->model))
		goto fail;
	report.prepare = on_prepare;
	l->builder = report_builder_new(l->model, &report);
	report.incident = on_early_incident;
	report.evidence = NULL;
	report.prepare = NULL;
	l->early_builder = report_builder_new(l->early, &report);
	pipeline.model = l->model;
	pipeline.early = l->early;
	l->pipeline = pipeline_new(&pipeline);
	if (!l->builder || !l->early_builder || !l->pipeline)
		goto fail;
	return l;
fail:
	live_free(l);
	return NULL;
}

struct model *live_model(struct live *l)
{
	return l->model;
}

struct chains *live_chains(const struct live *l)
{
	return report_builder_chains(l->builder);
}

const struct pipeline *live_pipeline(const struct live *l)
{
	return l->pipeline;
}

void live_free(struct live *l)
{
	if (!l)
		return;
	pipeline_free(l->pipeline);
	model_free(l->model);
	model_free(l->early);
	report_free(l->report);
	report_builder_free(l->builder);
	report_builder_free(l->early_builder);
	free(l);
}

static void __attribute__((format(printf, 2, 3))) say(struct live *l, const char *format, ...)
{
	char line[640];
	va_list args;

	va_start(args, format);
	vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	l->options.line(l->options.context, line);
}

static struct said *said_find(struct live *l, uint32_t vm, uint16_t cpu)
{
	for (size_t i = 0; i < l->n_said; i++) {
		if (l->said[i].vm == vm && l->said[i].cpu == cpu)
			return &l->said[i];
	}
	return NULL;
}

/* Reports an ongoing stall when it is first found, and again each time its length has doubled. If
 * both models have it, the one that is asked first reports it. */
static void ongoing_report(struct live *l, struct report_builder *b, const struct model *m)
{
	size_t n = report_builder_ongoing(b, l->ongoing, LIVE_ONGOING_MAX);

	for (size_t i = 0; i < n; i++) {
		const struct incident *at = &l->ongoing[i];
		struct said *said = said_find(l, at->vm, at->guest_cpu);
		const int64_t length = at->end.ns - at->begin.ns;

		if (!said && l->n_said == LIVE_ONGOING_MAX)
			return;
		if (!said) {
			said = &l->said[l->n_said++];
			*said = (struct said){.vm = at->vm, .cpu = at->guest_cpu};
		}
		if (said->still)
			continue;
		said->still = true;
		/* A shorter one is another stall. */
		if (length < 2 * said->length && length >= said->length)
			continue;
		said->length = length;
		l->options.ongoing(l->options.context, at, model_vm_name(m, at->vm));
	}
}

static void said_forget(struct live *l)
{
	size_t kept = 0;

	for (size_t i = 0; i < l->n_said; i++) {
		if (!l->said[i].still)
			continue;
		l->said[kept] = l->said[i];
		l->said[kept++].still = false;
	}
	l->n_said = kept;
}

static struct agent *agent_get(struct live *l, uint32_t vm)
{
	for (size_t i = 0; i < l->n_agents; i++) {
		if (l->agents[i].vm == vm)
			return &l->agents[i];
	}
	if (l->n_agents == AGENTS_MAX)
		return NULL;
	l->agents[l->n_agents] = (struct agent){.vm = vm};
	return &l->agents[l->n_agents++];
}

/* Describes what the host knows: "; vCPU 0 guest for 1.2 s, vCPU 1 runnable for 400 ms". */
static void vcpus_describe(const struct live *l, uint32_t vm, struct host_ns now, char *out,
			   size_t out_bytes)
{
	uint32_t vcpus[4];
	size_t n = model_vcpus(l->early, vm, vcpus, 4), len = 0;

	out[0] = '\0';
	for (size_t i = 0; i < n && i < 4 && len < out_bytes; i++) {
		struct vcpu_span span;

		if (model_vcpu_current(l->early, vm, vcpus[i], &span))
			continue;
		len += (size_t)snprintf(out + len, out_bytes - len, "%s vCPU %u %s for %s",
					len ? "," : ";", vcpus[i], vcpu_state_name(span.state),
					duration_text(now.ns - span.begin.ns).text);
	}
}

/* Returns true if all vCPUs were idle at some time. */
static bool guest_idles(const struct live *l, struct agent *a)
{
	uint32_t vcpus[VS_CPUS_MAX];
	const size_t n = model_vcpus(l->early, a->vm, vcpus, VS_CPUS_MAX);
	bool all = n > 0;

	for (size_t i = 0; i < n && i < VS_CPUS_MAX; i++) {
		const uint32_t bit = vcpus[i] % VS_CPUS_MAX;
		struct vcpu_span span;

		if (!model_vcpu_current(l->early, a->vm, vcpus[i], &span))
			/* the model has not yet passed on the span of a vCPU that still sleeps */
			idle_note(a, &span);
		all = all && a->idled[bit / 64] & 1ull << bit % 64;
	}
	return all && a->slept;
}

static void agent_silent(struct live *l, struct agent *a, const struct pipeline_source *s,
			 struct host_ns heard, struct host_ns now)
{
	char vcpus[256];

	a->silent = true;
	a->heard_tsc = s->heard_tsc;
	a->heard = heard;
	memset(a->idled, 0, sizeof(a->idled));
	a->slept = false;
	if (a->gone)
		return;
	vcpus_describe(l, s->source, now, vcpus, sizeof(vcpus));
	say(l, "%s: its agent has been silent for %s%s", s->name,
	    duration_text(now.ns - heard.ns).text, vcpus);
}

/* From here on the merge does not wait for the guest's stream. */
static int agent_gone(struct live *l, struct agent *a, const struct pipeline_source *s,
		      const char *why)
{
	if (a->gone)
		return 0;
	a->gone = true;
	say(l, "%s: %s: until its agent is back, stalls are reported from the host's side alone",
	    s->name, why);
	return pipeline_guest_end(l->pipeline, s->source);
}

static int agent_check(struct live *l, const struct pipeline_source *s, struct host_ns now)
{
	struct agent *a = agent_get(l, s->source);
	struct host_ns heard, fell;
	int64_t silence_ns;
	bool idles;
	int err = 0;

	if (!a || !s->hello || !pipeline_host_ns(l->pipeline, s->heard_tsc, &heard))
		return 0;
	silence_ns = now.ns - heard.ns;
	if (a->silent && s->heard_tsc != a->heard_tsc && !s->channel_down &&
	    pipeline_host_ns(l->pipeline, a->heard_tsc, &fell)) {
		a->silent = a->gone = false;
		say(l, "%s: its agent is back after %s", s->name,
		    duration_text(heard.ns - fell.ns).text);
	}
	if (s->channel_down) {
		err = agent_gone(l, a, s, "the channel to its agent is closed");
		if (!a->silent)
			agent_silent(l, a, s, heard, now);
	} else if (!a->silent && silence_ns > silent_after_ns) {
		agent_silent(l, a, s, heard, now);
	}
	if (err || !a->silent || a->gone)
		return err;
	idles = guest_idles(l, a);
	if (silence_ns > ends_after_ns)
		err = agent_gone(l, a, s, "its agent has been silent for 30 s");
	else if (idles && silence_ns > ends_after_idle_ns)
		err = agent_gone(l, a, s,
				 "its agent has been silent for 3 s although the guest idles");
	return err;
}

int live_frame(struct live *l, uint32_t source, uint64_t arrival_tsc,
	       const struct frame_item *frame)
{
	int err = frame->batch ? pipeline_batch(l->pipeline, source, arrival_tsc, frame)
			       : pipeline_frame(l->pipeline, source, arrival_tsc, &frame->frame);

	return err ? err : l->err;
}

int live_tick(struct live *l, uint64_t now_tsc)
{
	struct pipeline_source s;
	uint32_t source;
	struct host_ns now;
	int err = pipeline_tick(l->pipeline, now_tsc);

	if (!err)
		err = l->err;
	if (err || !pipeline_host_ns(l->pipeline, now_tsc, &now))
		return err;
	ongoing_report(l, l->early_builder, l->early);
	if (now.ns - model_now(l->model).ns < behind_ns)
		ongoing_report(l, l->builder, l->model);
	said_forget(l);
	for (size_t i = 0; pipeline_source_number(l->pipeline, i, &source) && !err; i++) {
		if (source == VS_SOURCE_HOST)
			continue;
		pipeline_source_get(l->pipeline, i, &s);
		err = agent_check(l, &s, now);
	}
	return err;
}

int live_finish(struct live *l)
{
	int err = pipeline_finish(l->pipeline);

	if (!err)
		err = account_give(l->pipeline, l->model, 0, l->builder);
	/* Reports what is still open. */
	l->report = report_builder_finish(l->builder);
	return err;
}

const struct report *live_report(const struct live *l)
{
	return l->report;
}

bool live_host_ns(const struct live *l, uint64_t tsc, struct host_ns *out)
{
	return pipeline_host_ns(l->pipeline, tsc, out);
}

size_t live_ongoing(const struct live *l, uint32_t vm)
{
	size_t n = 0;

	for (size_t i = 0; i < l->n_said; i++)
		n += l->said[i].vm == vm;
	return n;
}

bool live_source(const struct live *l, uint32_t source, struct pipeline_source *out)
{
	uint32_t number;

	for (size_t i = 0; pipeline_source_number(l->pipeline, i, &number); i++) {
		if (number == source)
			return !pipeline_source_get(l->pipeline, i, out);
	}
	return false;
}

void live_summarise(const struct live *l, struct live_summary *out)
{
	struct timeline_stats stats;
	struct pipeline_source s;

	pipeline_timeline_stats(l->pipeline, &stats);
	*out = (struct live_summary){
		.incidents = l->incidents, .events = stats.merged, .late = stats.late};
	for (size_t i = 0; !pipeline_source_get(l->pipeline, i, &s); i++)
		out->lost += s.emitted > s.delivered ? s.emitted - s.delivered : 0;
}
