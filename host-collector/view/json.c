/* SPDX-License-Identifier: GPL-2.0-only */
/* The report is built as a tree of json-c, which keeps members in the order of insertion. */
#include "host-collector/view/json.h"

#include <errno.h>
#include <string.h>

#include <json-c/json.h>

#include "host-collector/analyze/stall/coverage.h"
#include "host-collector/util/escape.h"
#include "host-collector/view/culprit_text.h"
#include "host-collector/view/finding_text.h"
#include "host-collector/view/headline.h"
#include "host-collector/util/json_add.h"
#include "host-collector/util/json_string.h"

typedef struct json_object json;

/* Seconds with six decimals, as dmesg prints them. */
static void add_dmesg(json *object, const char *key, uint64_t ns)
{
	char text[32];

	snprintf(text, sizeof(text), "%llu.%06llu", (unsigned long long)(ns / 1000000000),
		 (unsigned long long)(ns / 1000 % 1000000));
	json_add(object, key, json_object_new_double_s((double)ns / 1e9, text));
}

static json *stack_json(const struct stack *stack)
{
	json *array = json_object_new_array_ext((int)stack->n_frames);

	for (size_t i = 0; i < stack->n_frames; i++) {
		const struct stack_frame *from = &stack->frames[i];
		json *frame = json_object_new_object();

		json_add_text(frame, "symbol", from->symbol);
		json_add_text(frame, "module", from->module);
		json_add_uint(frame, "offset", from->offset);
		json_add_bool(frame, "kernel", from->kernel);
		json_object_array_add(array, frame);
	}
	return array;
}

static json *culprit_vm_json(const struct report_culprit *c)
{
	json *vm = json_object_new_object();

	json_add_text(vm, "name", c->vm.name);
	json_add(vm, "vcpu", c->vm.vcpu_known ? json_object_new_int64(c->vm.vcpu) : NULL);
	json_add(vm, "claimed_by_uid", c->vm.claimed ? json_object_new_int64(c->vm.uid) : NULL);
	return vm;
}

static json *culprits_json(const struct incident *i)
{
	json *array = json_object_new_array_ext((int)i->n_culprits);

	for (size_t k = 0; k < i->n_culprits; k++) {
		const struct report_culprit *from = &i->culprits[k];
		const struct culprit_text what = culprit_what_text(from);
		json *culprit = json_object_new_object();

		json_add_text(culprit, "side", from->host ? "host" : "guest");
		json_add_int(culprit, "pid", from->pid);
		json_add_text(culprit, "comm", from->comm);
		json_add_text(culprit, "role", culprit_role_text(from));
		json_add_text(culprit, "cause", verdict_name(from->cause));
		if (*what.text)
			json_add_text(culprit, "what", what.text);
		if (from->n_tasks)
			json_add_uint(culprit, "tasks", from->n_tasks);
		if (*from->cgroup)
			json_add_text(culprit, "cgroup", from->cgroup);
		if (*from->vm.name)
			json_add(culprit, "vm", culprit_vm_json(from));
		json_add_int(culprit, "share_ns", from->share_ns);
		json_object_array_add(array, culprit);
	}
	return array;
}

static json *groups_json(const struct incident *i)
{
	json *array = json_object_new_array_ext((int)i->n_groups);

	for (size_t k = 0; k < i->n_groups; k++) {
		json *group = json_object_new_object();

		json_add_text(group, "cgroup", i->groups[k].cgroup);
		json_add_uint(group, "tasks", i->groups[k].n_tasks);
		json_add_int(group, "share_ns", i->groups[k].share_ns);
		json_object_array_add(array, group);
	}
	return array;
}

static json *causes_json(const struct incident *i)
{
	json *array = json_object_new_array_ext((int)i->n_causes);

	for (size_t k = 0; k < i->n_causes; k++) {
		json *cause = json_object_new_object();

		json_add_text(cause, "verdict", verdict_name(i->causes[k].verdict));
		json_add_int(cause, "share_ns", i->causes[k].ns);
		json_object_array_add(array, cause);
	}
	return array;
}

static json *evidence_json(const struct report *r, const struct incident *i)
{
	json *array = json_object_new_array_ext((int)i->n_evidence);

	for (size_t k = 0; k < i->n_evidence; k++) {
		const struct report_evidence *from = &i->evidence[k];
		const struct stack *waiter = report_stack_find(r, from->waiter_stack);
		const struct stack *waker = report_stack_find(r, from->waker_stack);
		json *evidence = json_object_new_object();

		json_add_int(evidence, "t_ns", from->t.ns);
		json_add_int(evidence, "duration_ns", from->duration_ns);
		json_add_text(evidence, "text", finding_text(&from->seen, 1).text);
		if (waiter)
			json_add(evidence, "waiter_stack", stack_json(waiter));
		if (waker)
			json_add(evidence, "waker_stack", stack_json(waker));
		json_object_array_add(array, evidence);
	}
	return array;
}

static json *detectors_json(const struct incident *i)
{
	json *array = json_object_new_array_ext(DETECTOR_COUNT);

	for (int d = 0; d < DETECTOR_COUNT; d++) {
		const struct report_detector *from = &i->detectors[d];
		json *detector = json_object_new_object();

		json_add_text(detector, "name", detector_name((enum detector)d));
		json_add(detector, "saw",
			 from->sight == SIGHT_BLIND
				 ? NULL
				 : json_object_new_boolean(from->sight == SIGHT_YES));
		json_add_text(detector, "why", finding_text(&from->why, 1).text);
		json_object_array_add(array, detector);
	}
	return array;
}

static json *interrupt_json(const struct incident *i)
{
	json *interrupt = json_object_new_object();
	const char *kind = i->kind == GUEST_CPU_SOFTIRQ ? "softirq" : i->vector ? "vector" : "irq";
	char name[32];

	interrupt_name(i->kind, i->vector, i->number, name, sizeof(name));
	json_add_text(interrupt, "kind", kind);
	json_add_uint(interrupt, "number", i->number);
	json_add_text(interrupt, "name", name);
	return interrupt;
}

static json *lost_interrupt_json(const struct report_lost_interrupt *l)
{
	json *lost = json_object_new_object(), *raiser = json_object_new_object();

	json_add_text(lost, "source", l->source);
	json_add_uint(lost, "vector", l->vector);
	json_add(lost, "irq", l->irq < 0 ? NULL : json_object_new_int(l->irq));
	json_add_int(lost, "begin_ns", l->begin.ns);
	json_add_int(lost, "pending_ns", l->pending_ns);
	json_add_bool(lost, "handled", l->handled);
	json_add_int(raiser, "pid", l->raiser_pid);
	json_add_text(raiser, "comm", l->raiser_comm);
	json_add(lost, "raised_by", raiser);
	return lost;
}

static json *quota_json(const struct report_quota *q)
{
	json *quota = json_object_new_object();

	json_add_text(quota, "cgroup", q->cgroup);
	json_add(quota, "quota_us", q->quota_us ? json_object_new_uint64(q->quota_us) : NULL);
	json_add(quota, "period_us", q->quota_us ? json_object_new_uint64(q->period_us) : NULL);
	return quota;
}

static json *states_json(const int64_t *states_ns)
{
	json *states = json_object_new_object();

	for (int s = 0; s < VCPU_STATE_COUNT; s++)
		json_add_int(states, vcpu_state_name((enum vcpu_state)s), states_ns[s]);
	return states;
}

static json *incident_json(const struct report *r, const struct incident *i)
{
	json *incident = json_object_new_object(), *part;

	if (i->ordinal)
		json_add_uint(incident, "number", i->ordinal);
	json_add_text(incident, "vm", report_vm_name(r, i->vm));
	json_add_uint(incident, "guest_cpu", i->guest_cpu);
	json_add_uint(incident, "vcpu", i->vcpu);
	json_add_text(incident, "kind", guest_cpu_state_name(i->kind));
	part = json_object_new_object();
	json_add_int(part, "pid", i->task_pid);
	json_add_text(part, "comm", i->task_comm);
	json_add(incident, "task", part);
	if (i->kind == GUEST_CPU_HARDIRQ || i->kind == GUEST_CPU_SOFTIRQ)
		json_add(incident, "interrupt", interrupt_json(i));
	json_add_int(incident, "begin_ns", i->begin.ns);
	json_add_int(incident, "end_ns", i->end.ns);
	json_add_int(incident, "duration_ns", i->end.ns - i->begin.ns);
	json_add_uint(incident, "error_ns", i->err_ns);
	if (i->dmesg_known) {
		add_dmesg(incident, "dmesg_begin_s", i->begin_dmesg_ns);
		add_dmesg(incident, "dmesg_end_s", i->end_dmesg_ns);
		json_add_uint(incident, "dmesg_error_ns", i->dmesg_err_ns);
	}
	json_add_bool(incident, "ongoing", i->ongoing);
	json_add_bool(incident, "healthy", i->healthy);
	if (!i->healthy) {
		json_add_text(incident, "verdict", verdict_name(i->verdict));
		if (i->runner_up != VERDICT_UNDETERMINED)
			json_add_text(incident, "runner_up", verdict_name(i->runner_up));
		json_add_text(incident, "confidence", confidence_name(i->confidence));
		json_add_text(incident, "because", because_text(i).text);
		json_add(incident, "causes", causes_json(i));
	}
	if (i->short_waits)
		json_add_int(incident, "short_waits", i->short_waits);
	if (i->aftershock_ns) {
		json_add_int(incident, "aftershock_of_ns", i->aftershock_of.ns);
		json_add_int(incident, "aftershock_charged_ns", i->aftershock_ns);
	}
	json_add_text(incident, "denied", denied_text(i).text);
	json_add(incident, "breakdown_ns", states_json(i->breakdown_ns));
	if (i->inconsistent)
		json_add_bool(incident, "inconsistent", true);
	json_add(incident, "culprits", culprits_json(i));
	if (i->n_groups)
		json_add(incident, "culprit_cgroups", groups_json(i));
	if (*i->quota.cgroup)
		json_add(incident, "quota", quota_json(&i->quota));
	json_add(incident, "evidence", evidence_json(r, i));
	part = json_object_new_array();
	for (int m = 0; m < MISSING_COUNT; m++) {
		if (i->missing & 1u << m)
			json_object_array_add(part, json_object_new_string(missing_data_name(
							    (enum missing_data)m)));
	}
	json_add(incident, "missing", part);
	json_add(incident, "detectors", detectors_json(i));
	if (i->lost_interrupt.known)
		json_add(incident, "lost_interrupt", lost_interrupt_json(&i->lost_interrupt));
	return incident;
}

static json *clock_json(const struct report_clock *c)
{
	json *clock = json_object_new_object();

	json_add_text(clock, "vm", c->vm_name);
	json_add_text(clock, "method", c->method);
	json_add_uint(clock, "error_ns", c->error_ns);
	json_add_uint(clock, "causality_pairs", c->causality_pairs);
	json_add_uint(clock, "causality_violations", c->causality_violations);
	json_add_uint(clock, "epochs", c->epochs);
	if (c->protection != VM_PROTECTION_NONE)
		json_add_text(clock, "protection", vm_protection_name(c->protection));
	if (c->beside_pauses) {
		json_add_uint(clock, "beside_pauses", c->beside_pauses);
		json_add_uint(clock, "beside_pauses_error_ns", c->beside_pauses_error_ns);
	}
	if (c->disagreements)
		json_add_uint(clock, "disagreements", c->disagreements);
	if (c->contradiction_ns)
		json_add_int(clock, "contradiction_ns", c->contradiction_ns);
	return clock;
}

static json *loss_span_json(const struct report_loss_span *s)
{
	json *span = json_object_new_object();

	json_add_int(span, "begin_ns", s->begin.ns);
	json_add_int(span, "end_ns", s->end.ns);
	json_add_uint(span, "dropped_kernel", s->dropped_kernel);
	json_add_uint(span, "dropped_user", s->dropped_user);
	json_add_uint(span, "lost_channel", s->lost_channel);
	return span;
}

static json *aggregated_json(const struct report_loss *l)
{
	json *aggregated = json_object_new_object();

	for (size_t i = 0; i < EVENT_CLASSES; i++) {
		const struct message_aggregated *u = &l->aggregated[i];
		json *of;

		if (!u->count)
			continue;
		of = json_object_new_object();
		json_add_uint(of, "count", u->count);
		json_add_uint(of, "total_ns", u->total_ns);
		json_add_uint(of, "max_ns", u->max_ns);
		json_add(aggregated, event_class_name((uint32_t)i), of);
	}
	return aggregated;
}

static json *loss_json(const struct report_loss *l)
{
	json *loss = json_object_new_object(), *spans = json_object_new_array();

	for (size_t i = 0; i < l->n_spans; i++)
		json_object_array_add(spans, loss_span_json(&l->spans[i]));
	json_add_uint(loss, "emitted", l->emitted);
	json_add_uint(loss, "delivered", l->delivered);
	json_add_uint(loss, "dropped_kernel", l->dropped_kernel);
	json_add_uint(loss, "dropped_user", l->dropped_user);
	json_add_uint(loss, "lost_channel", l->lost_channel);
	json_add_uint(loss, "overdelivered", l->overdelivered);
	json_add_uint(loss, "missed", l->missed);
	json_add_uint(loss, "unplaced", l->unplaced);
	json_add_uint(loss, "unknown_events", l->unknown_events);
	json_add_uint(loss, "unknown_frames", l->unknown_frames);
	json_add_uint(loss, "lost_frames", l->lost_frames);
	json_add_uint(loss, "nonsense_frames", l->malformed_frames);
	json_add_uint(loss, "damaged_bytes", l->damaged_bytes);
	json_add_uint(loss, "late", l->late);
	json_add(loss, "spans", spans);
	json_add(loss, "untold", aggregated_json(l));
	if (l->config[0])
		json_add_text(loss, "config", l->config);
	else
		json_add(loss, "config", NULL);
	return loss;
}

/* One member per source. A VM whose name is taken (or is "host") goes by its number. */
static json *losses_json(const struct report *r)
{
	json *losses = json_object_new_object();

	for (size_t i = 0; i < r->n_losses; i++) {
		const struct report_loss *l = &r->losses[i];
		struct escaped name = escape(l->source == VS_SOURCE_HOST ? "host" : l->name);

		if (l->source != VS_SOURCE_HOST &&
		    (!*name.text || strcmp(name.text, "host") == 0 ||
		     json_object_object_get_ex(losses, name.text, NULL)))
			snprintf(name.text, sizeof(name.text), "vm %u", l->source);
		json_object_object_add(losses, name.text, loss_json(l));
	}
	return losses;
}

static json *reasons_json(const int64_t *ns)
{
	json *reasons = json_object_new_object();

	for (int why = 0; why < UNKNOWN_REASON_COUNT; why++) {
		if (ns[why])
			json_add_int(reasons, unknown_reason_name((enum unknown_reason)why),
				     ns[why]);
	}
	return reasons;
}

static void add_coverage(json *to, const struct report_coverage *c)
{
	json_add_int(to, "span_ns", c->span_ns);
	json_add_int(to, "observed_ns", c->observed_ns);
	json_add(to, "guest_observed_ns",
		 c->guest ? json_object_new_int64(c->guest_observed_ns) : NULL);
	json_add(to, "unknown_ns", reasons_json(c->unknown_ns));
	json_add(to, "guest_unknown_ns", c->guest ? reasons_json(c->guest_unknown_ns) : NULL);
	json_add_text(to, "answer", answer_name(c->answer));
}

static json *gap_json(const struct report *r, const struct report_gap *g)
{
	json *gap = json_object_new_object();

	json_add_text(gap, "vm", report_vm_name(r, g->vm));
	json_add_uint(gap, "vcpu", g->vcpu);
	json_add_text(gap, "side", g->host ? "host" : "guest");
	json_add_int(gap, "begin_ns", g->begin.ns);
	json_add_int(gap, "end_ns", g->end.ns);
	json_add_text(gap, "reason", unknown_reason_name(g->why));
	return gap;
}

/* What the report says first, and how much it rests on. */
static json *coverage_json(const struct report *r)
{
	json *coverage = json_object_new_object(), *array = json_object_new_array();
	struct report_coverage of;
	json *vm;

	json_add_uint(coverage, "needed_percent", r->needed_percent);
	json_add_bool(coverage, "supported", coverage_supports(r));
	for (size_t i = 0; i < r->n_clocks; i++) {
		coverage_of_vm(r, r->clocks[i].vm, &of);
		vm = json_object_new_object();
		json_add_text(vm, "vm", r->clocks[i].vm_name);
		add_coverage(vm, &of);
		json_object_array_add(array, vm);
	}
	json_add(coverage, "vms", array);
	array = json_object_new_array();
	for (size_t i = 0; i < r->n_gaps; i++)
		json_object_array_add(array, gap_json(r, &r->gaps[i]));
	json_add(coverage, "gaps", array);
	json_add_uint(coverage, "dropped_gaps", r->dropped_gaps);
	return coverage;
}

static json *headline_json(const struct report *r)
{
	json *array = json_object_new_array();
	char first[sizeof(((struct headline *)0)->count) + HEADLINE_LINE_BYTES];
	struct headline h;

	headline_make(r, &h);
	snprintf(first, sizeof(first), "%s%s", h.count, h.rest);
	json_object_array_add(array, json_string_new(first));
	for (size_t i = 0; i < h.n_lines; i++)
		json_object_array_add(array, json_string_new(h.lines[i]));
	return array;
}

static json *vcpu_json(const struct report *r, const struct report_vcpu *v)
{
	json *vcpu = json_object_new_object();

	json_add_text(vcpu, "vm", report_vm_name(r, v->vm));
	json_add_uint(vcpu, "vcpu", v->vcpu);
	json_add_int(vcpu, "begin_ns", v->begin.ns);
	json_add_int(vcpu, "end_ns", v->end.ns);
	json_add(vcpu, "states_ns", states_json(v->states_ns));
	add_coverage(vcpu, &v->coverage);
	return vcpu;
}

static json *watchdog_json(const struct report *r, const struct report_watchdog *w)
{
	static const char *const opinions[] = {[WATCHDOG_UNPROVEN] = "unproven",
					       [WATCHDOG_RIGHT] = "right",
					       [WATCHDOG_WRONG] = "wrong"};
	json *line = json_object_new_object(), *task = json_object_new_object();

	json_add_text(line, "vm", report_vm_name(r, w->vm));
	json_add_uint(line, "guest_cpu", w->cpu);
	json_add_uint(line, "stuck_s", w->stuck_s);
	json_add_int(task, "pid", w->pid);
	json_add_text(task, "comm", w->comm);
	json_add(line, "blames", task);
	add_dmesg(line, "dmesg", w->dmesg_us * 1000);
	json_add(line, "incident", w->incident < 0 ? NULL : json_object_new_int(w->incident));
	json_add_text(line, "opinion", opinions[w->opinion]);
	return line;
}

static json *wall_steps_json(const struct report *r)
{
	json *steps = json_object_new_array();

	for (size_t i = 0; i < r->n_wall_steps; i++) {
		json *step = json_object_new_object();

		json_add_int(step, "t_ns", r->wall_steps[i].t.ns);
		json_add_int(step, "by_ns", r->wall_steps[i].by_ns);
		json_object_array_add(steps, step);
	}
	return steps;
}

static json *reboots_json(const struct report *r)
{
	json *reboots = json_object_new_array();

	for (size_t i = 0; i < r->n_reboots; i++) {
		const struct report_reboot *b = &r->reboots[i];
		json *reboot = json_object_new_object();

		json_add_text(reboot, "vm", report_vm_name(r, b->vm));
		json_add_int(reboot, "after_ns", b->after.ns);
		json_add_int(reboot, "until_ns", b->until.ns);
		if (b->reset_known)
			json_add_int(reboot, "reset_ns", b->reset.ns);
		json_add_text(reboot, "why", b->why);
		json_object_array_add(reboots, reboot);
	}
	return reboots;
}

static json *report_json(const struct report *r)
{
	json *root = json_object_new_object(), *array;

	if (!root)
		return NULL;
	json_add_text(root, "schema", "vcpuscope.report/1");
	json_add_bool(root, "simulated", r->simulated);
	json_add_bool(root, "imported", r->imported);
	json_add_bool(root, "complete", !r->cut);
	json_add_int(root, "begin_ns", r->begin.ns);
	json_add_int(root, "end_ns", r->end.ns);
	if (r->windowed) {
		json_add_int(root, "from_ns", r->from.ns);
		json_add_int(root, "until_ns", r->until.ns);
	}
	if (*r->only) {
		json_add_text(root, "only", r->only);
		json_add_uint(root, "unlisted_stalls", r->n_unlisted);
	}
	if (r->wall_known)
		json_add_int(root, "begin_realtime_ns", r->begin.ns + r->wall_offset_ns);
	if (r->n_wall_steps)
		json_add(root, "wall_clock_steps", wall_steps_json(r));
	json_add_int(root, "threshold_ns", r->threshold_ns);
	json_add(root, "headline", headline_json(r));
	json_add(root, "coverage", coverage_json(r));
	array = json_object_new_array_ext((int)r->n_clocks);
	for (size_t i = 0; i < r->n_clocks; i++)
		json_object_array_add(array, clock_json(&r->clocks[i]));
	json_add(root, "clock", array);
	if (r->n_reboots)
		json_add(root, "reboots", reboots_json(r));
	json_add(root, "loss", losses_json(r));
	array = json_object_new_array_ext((int)r->n_incidents);
	for (size_t i = 0; i < r->n_incidents; i++)
		json_object_array_add(array, incident_json(r, &r->incidents[i]));
	json_add(root, "incidents", array);
	json_add_uint(root, "dropped_incidents", r->dropped_incidents);
	array = json_object_new_array_ext((int)r->n_vcpus);
	for (size_t i = 0; i < r->n_vcpus; i++)
		json_object_array_add(array, vcpu_json(r, &r->vcpus[i]));
	json_add(root, "vcpus", array);
	array = json_object_new_array_ext((int)r->n_watchdogs);
	for (size_t i = 0; i < r->n_watchdogs; i++)
		json_object_array_add(array, watchdog_json(r, &r->watchdogs[i]));
	json_add(root, "guest_watchdog", array);
	return root;
}

int json_headline_write(const struct report *r, FILE *out)
{
	json *root = headline_json(r);
	const char *text =
		root ? json_object_to_json_string_ext(root, JSON_C_TO_STRING_NOSLASHESCAPE) : NULL;
	int err = text ? 0 : -ENOMEM;

	if (text && fputs(text, out) < 0)
		err = -EIO;
	json_object_put(root);
	return err;
}

int json_report_write(const struct report *r, bool pretty, FILE *out)
{
	int flags = JSON_C_TO_STRING_NOSLASHESCAPE |
		    (pretty ? JSON_C_TO_STRING_PRETTY | JSON_C_TO_STRING_SPACED : 0);
	json *root = report_json(r);
	const char *text = root ? json_object_to_json_string_ext(root, flags) : NULL;
	int err = 0;

	if (!text)
		err = -ENOMEM;
	else if (fputs(text, out) < 0 || fputc('\n', out) < 0)
		err = -EIO;
	json_object_put(root);
	return err;
}
