/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The block of one incident. What matters most comes first: the verdict, why, who, how sure, what
 * to do; then the strip of time and the evidence.
 */
#include <inttypes.h>
#include <string.h>

#include "host-collector/analyze/scene/strip.h"
#include "host-collector/util/duration.h"
#include "host-collector/util/escape.h"
#include "host-collector/util/wrap.h"
#include "host-collector/view/advice.h"
#include "host-collector/view/culprit_text.h"
#include "host-collector/view/finding_text.h"
#include "host-collector/view/text_internal.h"
#include "host-collector/view/text_time.h"
#include "host-collector/view/verdict_words.h"

enum { DMESG_ERR_SHOWN_NS = 1000000, STACK_SHOWN = 10 };

struct what_text incident_what(const struct incident *i)
{
	struct escaped comm = escape(i->task_comm);
	struct what_text w;
	char name[32];

	if (i->kind == GUEST_CPU_IDLE) {
		snprintf(w.text, sizeof(w.text), "idle");
	} else if (i->kind == GUEST_CPU_UNKNOWN && i->lost_interrupt.known) {
		snprintf(w.text, sizeof(w.text), "interrupt 0x%02x not handled",
			 i->lost_interrupt.vector);
	} else if (i->kind == GUEST_CPU_UNKNOWN && i->short_waits) {
		snprintf(w.text, sizeof(w.text), "%u short waits", i->short_waits);
	} else if (i->kind == GUEST_CPU_UNKNOWN) {
		snprintf(w.text, sizeof(w.text), "guest side unknown");
	} else if (i->kind == GUEST_CPU_TASK) {
		snprintf(w.text, sizeof(w.text), "task %.64s (%d)", comm.text, i->task_pid);
	} else {
		interrupt_name(i->kind, i->vector, i->number, name, sizeof(name));
		snprintf(w.text, sizeof(w.text), "%s %s in %.48s (%d)",
			 i->kind == GUEST_CPU_SOFTIRQ ? "softirq" : "interrupt", name,
			 i->task_pid ? comm.text : "the idle task", i->task_pid);
	}
	return w;
}

static const char *verdict_colour(const struct page *p, const struct incident *i)
{
	return page_colour(p, i->healthy                            ? GREEN
			      : i->confidence == CONFIDENCE_DECIDED ? RED
								    : YELLOW);
}

/* ---- the strip of time ---- */

static const char letters[VCPU_STATE_COUNT] = {
	[VCPU_GUEST] = '#',     [VCPU_KVM] = 'k',     [VCPU_VMM] = 'v',
	[VCPU_RUNNABLE] = 'R',  [VCPU_HALTED] = '.',  [VCPU_BLOCKED] = 'B',
	[VCPU_THROTTLED] = 'T', [VCPU_STOPPED] = 'S', [VCPU_UNKNOWN] = '?',
};

static void run_name(const struct strip_run *run, char *out, size_t out_bytes)
{
	char interrupt[32];

	switch (run->state) {
	case GUEST_CPU_TASK:
		if (*run->comm)
			snprintf(out, out_bytes, "%s", escape(run->comm).text);
		else
			snprintf(out, out_bytes, "task %d", run->pid);
		break;
	case GUEST_CPU_IDLE:
		snprintf(out, out_bytes, "idle");
		break;
	case GUEST_CPU_HARDIRQ:
	case GUEST_CPU_SOFTIRQ:
		interrupt_name(run->state, run->vector, run->number, interrupt, sizeof(interrupt));
		snprintf(out, out_bytes, "%s", interrupt);
		break;
	default:
		snprintf(out, out_bytes, "?");
	}
}

/* "|compute       |kworker/0:1 ": a run begins at its bar. Its name is cut to its length. */
static void runs_write(const struct page *p, const struct strip *strip)
{
	fprintf(p->out, "   %-8s ", "guest");
	for (uint16_t k = 0; k < strip->n_runs; k++) {
		const struct strip_run *run = &strip->runs[k];
		char name[ESCAPED_MAX];
		const char *at = name;

		run_name(run, name, sizeof(name));
		fputc('|', p->out);
		for (uint16_t n = 1; n < run->n; n++) {
			unsigned bytes = *at ? character_at(at).bytes : 0;

			if (bytes)
				fwrite(at, 1, bytes, p->out);
			else if (k + 1 < strip->n_runs)
				fputc(' ', p->out);
			at += bytes;
		}
	}
	fputc('\n', p->out);
}

static void strip_write(const struct page *p, const struct incident *i)
{
	const struct strip *strip = p->options->strips ? strips_find(p->options->strips, i) : NULL;

	if (!strip || (unsigned)strip->n_cells + TEXT_LABEL_COLUMNS > p->columns)
		return;
	if (strip->n_runs)
		runs_write(p, strip);
	fprintf(p->out, "   %-8s ", "vCPU");
	for (uint16_t k = 0; k < strip->n_cells; k++)
		fputc(letters[strip->vcpu_states[k]], p->out);
	fprintf(p->out, "\n%*s0%*s\n", TEXT_LABEL_COLUMNS, "", strip->n_cells - 1,
		duration_text(incident_ns(i)).text);
}

/* "S stopped 401 ms (97.5 %), v vmm 5.0 ms (1.2 %)": the states by their share. */
static void breakdown_write(const struct page *p, const struct incident *i)
{
	double all = incident_ns(i) > 0 ? (double)incident_ns(i) : 1;
	bool done[VCPU_STATE_COUNT] = {false};

	fprintf(p->out, "   %-8s ", "states");
	for (int n = 0;; n++) {
		int most = -1;

		for (int s = 0; s < VCPU_STATE_COUNT; s++) {
			if (!done[s] && i->breakdown_ns[s] &&
			    (most < 0 || i->breakdown_ns[s] > i->breakdown_ns[most]))
				most = s;
		}
		if (most < 0)
			break;
		done[most] = true;
		fprintf(p->out, "%s%c %s %s (%.1f %%)", n ? ", " : "", letters[most],
			vcpu_state_name((enum vcpu_state)most),
			duration_text(i->breakdown_ns[most]).text,
			(double)i->breakdown_ns[most] * 100 / all);
	}
	fputc('\n', p->out);
}

/* ---- evidence ---- */

/* Frames that every wait or every system call has. They would push the meaningful ones off the
 * line. */
static bool frame_is_common(const struct stack_frame *f)
{
	static const char *const common[] = {
		"__schedule",     "schedule",      "schedule_timeout",
		"try_to_wake_up", "do_syscall_64", "entry_SYSCALL_64_after_hwframe",
	};

	for (size_t i = 0; i < sizeof(common) / sizeof(*common); i++) {
		if (strcmp(f->symbol, common[i]) == 0)
			return true;
	}
	return false;
}

static void stack_write(const struct page *p, const char *whose, uint32_t id)
{
	const struct stack *stack = report_stack_find(p->report, id);
	size_t shown = 0, i = 0;

	if (!stack)
		return;
	fprintf(p->out, "%s              %s ", page_colour(p, DIM), whose);
	for (; i < stack->n_frames && shown < STACK_SHOWN; i++) {
		const struct stack_frame *f = &stack->frames[i];
		const char *between = shown ? " < " : "";

		if (frame_is_common(f))
			continue;
		if (*f->symbol)
			fprintf(p->out, "%s%s", between, escape(f->symbol).text);
		else
			fprintf(p->out, "%s%s+0x%" PRIx64, between,
				*f->module ? escape(f->module).text : "?", f->offset);
		shown++;
	}
	fprintf(p->out, "%s%s\n", i < stack->n_frames ? " < ..." : "", page_colour(p, PLAIN));
}

static void quota_write(const struct page *p, const struct report_quota *q)
{
	if (!*q->cgroup)
		return;
	fprintf(p->out, "   %-8s cgroup %s", "quota", escape(q->cgroup).text);
	if (q->quota_us)
		fprintf(p->out, ": %" PRIu64 " us of CPU time in every %" PRIu64 " us\n",
			q->quota_us, q->period_us);
	else
		fputs(": its quota had been taken away when it was read\n", p->out);
}

static void evidence_write(const struct page *p, const struct incident *i)
{
	for (size_t k = 0; k < i->n_evidence; k++) {
		const struct report_evidence *e = &i->evidence[k];

		fprintf(p->out, "   %-8s %9s  %8s  %s\n", k ? "" : "seen",
			time_since(i->begin, e->t).text, duration_text(e->duration_ns).text,
			escape(finding_text(&e->seen, 1).text).text);
		stack_write(p, "slept in", e->waiter_stack);
		stack_write(p, "woken from", e->waker_stack);
	}
}

static void culprits_write(const struct page *p, const struct incident *i)
{
	for (size_t k = 0; k < i->n_culprits; k++) {
		const struct report_culprit *c = &i->culprits[k];
		const struct culprit_text what = culprit_what_text(c);

		fprintf(p->out, "   %-8s ", k ? "" : "who");
		if (c->pid)
			fprintf(p->out, "%s (%d)%s", *c->comm ? escape(c->comm).text : "task",
				c->pid, *what.text ? ", " : "");
		fprintf(p->out, "%s in the %s: %s, %s\n", escape(what.text).text,
			c->host ? "host" : "guest", culprit_role_text(c),
			duration_text(c->share_ns).text);
	}
	for (size_t k = 0; k < i->n_groups; k++) {
		const struct report_group *g = &i->groups[k];

		fprintf(p->out, "            cgroup %s: %s (%u task%s)\n", escape(g->cgroup).text,
			duration_text(g->share_ns).text, g->n_tasks, g->n_tasks == 1 ? "" : "s");
	}
}

static void missing_write(const struct page *p, const struct incident *i)
{
	bool first = true;

	for (int m = 0; m < MISSING_COUNT; m++) {
		if (!(i->missing & 1u << m))
			continue;
		fprintf(p->out, "   %-8s %s: %s", first ? "missing" : "",
			missing_data_name((enum missing_data)m),
			missing_data_meaning((enum missing_data)m));
		if (p->given->missing & 1u << m)
			fputc('\n', p->out);
		else
			fprintf(p->out, ". %s\n", advice_of_missing((enum missing_data)m));
		p->given->missing |= 1u << m;
		first = false;
	}
}

void watchdog_write(const struct page *p, const struct report_watchdog *w, const char *head)
{
	static const char *const opinions[] = {
		[WATCHDOG_UNPROVEN] = "whether it is to blame is not proven",
		[WATCHDOG_RIGHT] = "it is to blame",
		[WATCHDOG_WRONG] = "which is not to blame",
	};

	fprintf(p->out, "%sguest's log %s: CPU#%u stuck for %us, blames %s (%d)", head,
		time_dmesg(w->dmesg_us * 1000).text, w->cpu, w->stuck_s,
		*w->comm ? escape(w->comm).text : "task", w->pid);
	if (w->incident >= 0)
		fprintf(p->out, ", %s\n", opinions[w->opinion]);
	else
		fprintf(p->out, " of VM %s; no stall in this recording explains it\n",
			escape(report_vm_name(p->report, w->vm)).text);
}

/* What the guest's own watchdog said of this incident. */
static void watchdogs_write(const struct page *p, const struct incident *i)
{
	const struct report *r = p->report;

	for (size_t k = 0; k < r->n_watchdogs; k++) {
		if (r->watchdogs[k].incident >= 0 && &r->incidents[r->watchdogs[k].incident] == i)
			watchdog_write(p, &r->watchdogs[k], "   watchdog ");
	}
}

/* Who saw it, and why the others did not. */
static void detectors_write(const struct page *p, const struct incident *i)
{
	static const char *const sights[] = {
		[SIGHT_BLIND] = "no data", [SIGHT_NO] = "saw none", [SIGHT_YES] = "saw it"};

	for (int d = 0; d < DETECTOR_COUNT; d++) {
		const struct report_detector *x = &i->detectors[d];

		fprintf(p->out, "   %-8s %-14s  %s: %s\n", d ? "" : "detector",
			detector_name((enum detector)d), sights[x->sight],
			escape(finding_text(&x->why, 1).text).text);
	}
}

static const struct report_clock *clock_of(const struct report *r, uint32_t vm)
{
	for (size_t i = 0; i < r->n_clocks; i++) {
		if (r->clocks[i].vm == vm)
			return &r->clocks[i];
	}
	return NULL;
}

bool vm_is_host_only(const struct report *r, uint32_t vm)
{
	for (size_t i = 0; i < r->n_losses; i++) {
		if (r->losses[i].source == vm && r->losses[i].delivered)
			return false;
	}
	return true;
}

/* By which clock an incident's times are, and how sure they are. */
static void incident_clock_write(const struct page *p, const struct incident *i)
{
	const struct report_clock *c = clock_of(p->report, i->vm);

	if (!i->err_ns || vm_is_host_only(p->report, i->vm))
		fputs(", by the host's clock\n", p->out);
	else if (c && strcmp(c->method, "none") != 0)
		fprintf(p->out, ", clock %s, %s\n", c->method, time_error(i->err_ns).text);
	else
		fprintf(p->out, ", guest times by arrival, %s\n", time_error(i->err_ns).text);
}

static void headline_write(const struct page *p, const struct incident *i)
{
	if (i->ordinal)
		fprintf(p->out, "%u. ", i->ordinal);
	fprintf(p->out, "%s%s%s", verdict_colour(p, i),
		i->healthy ? "healthy" : verdict_name(i->verdict), page_colour(p, PLAIN));
	if (!i->healthy && i->confidence != CONFIDENCE_UNDETERMINED)
		fprintf(p->out, " (%s)", confidence_name(i->confidence));
	fprintf(p->out, "  %s%s%s%s  VM %s, guest CPU %u, %s\n", page_colour(p, BOLD),
		duration_text(incident_ns(i)).text, i->ongoing ? " so far" : "",
		page_colour(p, PLAIN), escape(report_vm_name(p->report, i->vm)).text, i->guest_cpu,
		incident_what(i).text);
}

/* How firmly the evidence supports the verdict, and what else it may have been. */
static void sure_write(const struct page *p, const struct incident *i)
{
	fprintf(p->out, "   %-8s %s: %s", "sure", confidence_name(i->confidence),
		advice_of_confidence(i->confidence));
	if (i->n_causes && i->confidence != CONFIDENCE_DECIDED)
		fprintf(p->out, "; %s explains %s", verdict_name(i->causes[0].verdict),
			duration_text(i->causes[0].ns).text);
	if (i->runner_up != VERDICT_UNDETERMINED && i->n_causes < 3 &&
	    i->confidence != CONFIDENCE_UNDETERMINED)
		fprintf(p->out, "; next best: %s", verdict_name(i->runner_up));
	fputc('\n', p->out);
	for (size_t k = 0; k < i->n_causes && i->n_causes >= 3; k++)
		fprintf(p->out, "   %-8s %-22s %s\n", k ? "" : "shares",
			verdict_name(i->causes[k].verdict), duration_text(i->causes[k].ns).text);
}

static void advice_write(const struct page *p, enum verdict v)
{
	if (p->given->verdicts & 1u << v)
		fprintf(p->out, "   %-8s as above for %s\n", "do", verdict_name(v));
	else
		fprintf(p->out, "   %-8s %s\n", "do", verdict_words(v).advice);
	p->given->verdicts |= 1u << v;
}

static void when_write(const struct page *p, const struct incident *i)
{
	fprintf(p->out, "   %-8s %s", "when", time_when(p->report, i->begin, true).text);
	incident_clock_write(p, i);
	if (!i->dmesg_known)
		return;
	fprintf(p->out, "   %-8s %s .. %s in the guest's log", "dmesg",
		time_dmesg(i->begin_dmesg_ns).text, time_dmesg(i->end_dmesg_ns).text);
	if (i->dmesg_err_ns >= DMESG_ERR_SHOWN_NS)
		fprintf(p->out, ", %s", time_error(i->dmesg_err_ns).text);
	fputc('\n', p->out);
}

void incident_write(const struct page *p, const struct incident *i)
{
	headline_write(p, i);
	if (!i->healthy) {
		fprintf(p->out, "   %-8s %s\n", "why", escape(because_text(i).text).text);
		culprits_write(p, i);
		sure_write(p, i);
		advice_write(p, i->verdict);
	}
	when_write(p, i);
	fprintf(p->out, "   %-8s %s\n", "denied", escape(denied_text(i).text).text);
	strip_write(p, i);
	breakdown_write(p, i);
	if (i->healthy)
		culprits_write(p, i);
	quota_write(p, &i->quota);
	evidence_write(p, i);
	watchdogs_write(p, i);
	if (!i->healthy)
		detectors_write(p, i);
	missing_write(p, i);
}
