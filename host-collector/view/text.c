/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/view/text.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "host-collector/analyze/stall/describe.h"
#include "host-collector/util/escape.h"
#include "host-collector/view/runs.h"
#include "host-collector/view/headline.h"
#include "host-collector/view/text_notes.h"
#include "host-collector/view/text_time.h"
#include "host-collector/util/wrap.h"

enum { BAR_WIDTH = 50, DMESG_ERR_SHOWN_NS = 1000000, STACK_SHOWN = 10 };

enum colour { PLAIN, BOLD, DIM, RED, GREEN, YELLOW };

struct page {
	const struct report *report;
	const struct text_options *options;
	FILE *out;
};

static const char *on(const struct page *p, enum colour c)
{
	static const char *const codes[] = {
		[PLAIN] = "\033[0m",  [BOLD] = "\033[1m",     [DIM] = "\033[2m",
		[RED] = "\033[1;31m", [GREEN] = "\033[1;32m", [YELLOW] = "\033[1;33m"};

	return p->options->colour ? codes[c] : "";
}

struct text_options text_options_for(FILE *out, const char *colour)
{
	const char *no = getenv("NO_COLOR"), *term = getenv("TERM");
	bool can = isatty(fileno(out)) && !(no && *no) && term && strcmp(term, "dumb") != 0;

	if (colour && strcmp(colour, "auto") != 0)
		can = !strcmp(colour, "always");
	return (struct text_options){.colour = can};
}

static int64_t duration(const struct incident *i)
{
	return i->end.ns - i->begin.ns;
}

/* ---- one incident ---- */

struct what_text {
	char text[128];
};

/* What the guest CPU was doing: "task victim (50)", "softirq TIMER in victim (50)", "idle". */
static struct what_text what(const struct incident *i)
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
			 i->kind == GUEST_CPU_SOFTIRQ ? "softirq" : "interrupt", name, comm.text,
			 i->task_pid);
	}
	return w;
}

static const char *verdict_colour(const struct page *p, const struct incident *i)
{
	return on(p, i->healthy ? GREEN : i->confidence == CONFIDENCE_DECIDED ? RED : YELLOW);
}

static void bar_write(const struct page *p, const struct incident *i)
{
	static const char letters[VCPU_STATE_COUNT] = {
		[VCPU_GUEST] = '#',     [VCPU_KVM] = 'k',     [VCPU_VMM] = 'v',
		[VCPU_RUNNABLE] = 'R',  [VCPU_HALTED] = '.',  [VCPU_BLOCKED] = 'B',
		[VCPU_THROTTLED] = 'T', [VCPU_STOPPED] = 'S', [VCPU_UNKNOWN] = '?',
	};
	double all = duration(i) > 0 ? (double)duration(i) : 1, sum = 0;
	int drawn = 0;

	fprintf(p->out, "   vCPU     |");
	for (int s = 0; s < VCPU_STATE_COUNT; s++) {
		sum += (double)i->breakdown_ns[s];
		for (; drawn < (int)(sum / all * BAR_WIDTH + 0.5); drawn++)
			fputc(letters[s], p->out);
	}
	fprintf(p->out, "|\n");
	for (int s = 0; s < VCPU_STATE_COUNT; s++) {
		if (i->breakdown_ns[s])
			fprintf(p->out, "              %c %-9s %9s  %5.1f %%\n", letters[s],
				vcpu_state_name((enum vcpu_state)s),
				duration_text(i->breakdown_ns[s]).text,
				(double)i->breakdown_ns[s] * 100 / all);
	}
}

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
	fprintf(p->out, "%s              %s ", on(p, DIM), whose);
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
	fprintf(p->out, "%s%s\n", i < stack->n_frames ? " < ..." : "", on(p, PLAIN));
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

		fprintf(p->out, "   %-8s %s  %8s  %s\n", k ? "" : "seen",
			time_when(p->report, e->t, false).text, duration_text(e->duration_ns).text,
			escape(e->text).text);
		stack_write(p, "slept in", e->waiter_stack);
		stack_write(p, "woken from", e->waker_stack);
	}
}

static void culprits_write(const struct page *p, const struct incident *i)
{
	for (size_t k = 0; k < i->n_culprits; k++) {
		const struct report_culprit *c = &i->culprits[k];

		fprintf(p->out, "   %-8s ", k ? "" : "who");
		if (c->pid)
			fprintf(p->out, "%s (%d)%s", *c->comm ? escape(c->comm).text : "task",
				c->pid, *c->what ? ", " : "");
		fprintf(p->out, "%s in the %s: %s, %s\n", escape(c->what).text,
			c->host ? "host" : "guest", escape(c->role).text,
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
		fprintf(p->out, "   %-8s %s: %s\n", first ? "missing" : "",
			missing_data_name((enum missing_data)m),
			missing_data_meaning((enum missing_data)m));
		first = false;
	}
}

static void watchdog_write(const struct page *p, const struct report_watchdog *w, const char *head)
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

		fprintf(p->out, "   %-8s %-14s %s: %s\n", d ? "" : "detector",
			detector_name((enum detector)d), sights[x->sight], escape(x->why).text);
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

/* Has this VM's guest no clock of its own here: it was not recorded? */
static bool is_host_only(const struct report *r, uint32_t vm)
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

	if (!i->err_ns || is_host_only(p->report, i->vm))
		fputs("  by the host's clock\n", p->out);
	else if (c && strcmp(c->method, "none") != 0)
		fprintf(p->out, "  clock %s, %s\n", c->method, time_error(i->err_ns).text);
	else
		fprintf(p->out, "  guest times by arrival, %s\n", time_error(i->err_ns).text);
}

static void headline_write(const struct page *p, const struct incident *i)
{
	fprintf(p->out, "%s%s%s", verdict_colour(p, i),
		i->healthy ? "healthy" : verdict_name(i->verdict), on(p, PLAIN));
	if (!i->healthy && i->confidence != CONFIDENCE_UNDETERMINED)
		fprintf(p->out, " (%s)", confidence_name(i->confidence));
	fprintf(p->out, "  %s%s%s%s  VM %s, guest CPU %u, %s\n", on(p, BOLD),
		duration_text(duration(i)).text, i->ongoing ? " so far" : "", on(p, PLAIN),
		escape(report_vm_name(p->report, i->vm)).text, i->guest_cpu, what(i).text);
}

/* With three causes or more, their shares. */
static void runners_up_write(const struct page *p, const struct incident *i)
{
	if (i->n_causes < 3) {
		fprintf(p->out, "            next best: %s\n", verdict_name(i->runner_up));
		return;
	}
	for (size_t k = 0; k < i->n_causes; k++)
		fprintf(p->out, "   %-8s %-22s %s\n", k ? "" : "shares",
			verdict_name(i->causes[k].verdict), duration_text(i->causes[k].ns).text);
}

static void incident_write(const struct page *p, const struct incident *i)
{
	const struct report *r = p->report;

	headline_write(p, i);
	fprintf(p->out, "   when     %s", time_when(r, i->begin, true).text);
	if (i->dmesg_known)
		fprintf(p->out, "  guest dmesg %s .. %s", time_dmesg(i->begin_dmesg_ns).text,
			time_dmesg(i->end_dmesg_ns).text);
	if (i->dmesg_known && i->dmesg_err_ns >= DMESG_ERR_SHOWN_NS)
		fprintf(p->out, " %s", time_error(i->dmesg_err_ns).text);
	incident_clock_write(p, i);
	if (!i->healthy) {
		fprintf(p->out, "   why      %s\n", escape(i->because).text);
		if (i->runner_up != VERDICT_UNDETERMINED)
			runners_up_write(p, i);
	}
	fprintf(p->out, "   denied   %s\n", escape(i->denied).text);
	bar_write(p, i);
	culprits_write(p, i);
	quota_write(p, &i->quota);
	evidence_write(p, i);
	watchdogs_write(p, i);
	if (!i->healthy)
		detectors_write(p, i);
	missing_write(p, i);
}

/* ---- groups ---- */

/* Nearly the same piece of time: one's breakdown stands for the other's. */
static bool same_time(const struct incident *a, const struct incident *b)
{
	const int64_t begin = a->begin.ns > b->begin.ns ? a->begin.ns : b->begin.ns;
	const int64_t end = a->end.ns < b->end.ns ? a->end.ns : b->end.ns;
	const int64_t longer = duration(a) > duration(b) ? duration(a) : duration(b);

	return (end - begin) * 5 >= longer * 4;
}

static bool same_cause(const struct incident *a, const struct incident *b)
{
	return a->vm == b->vm && !a->healthy && !b->healthy && a->verdict == b->verdict &&
	       a->verdict != VERDICT_UNDETERMINED && a->confidence == b->confidence &&
	       a->guest_cpu != b->guest_cpu &&
	       (!a->n_culprits || !b->n_culprits || a->culprits[0].pid == b->culprits[0].pid);
}

/* The block of each incident: blocks[i] is the index of the block's first incident. */
static size_t *blocks_of(const struct report *r)
{
	size_t *blocks = calloc(r->n_incidents ? r->n_incidents : 1, sizeof(*blocks));

	for (size_t i = 0; blocks && i < r->n_incidents; i++) {
		blocks[i] = i;
		for (size_t k = i; k-- > 0;) {
			const struct incident *a = &r->incidents[k], *b = &r->incidents[i];

			if (same_cause(a, b) && same_time(a, b)) {
				blocks[i] = blocks[k];
				break;
			}
		}
	}
	return blocks;
}

static void block_write(const struct page *p, const size_t *blocks, size_t first)
{
	const struct report *r = p->report;
	size_t longest = first, others = 0, again = 0;

	for (size_t i = first; i < r->n_incidents; i++) {
		if (blocks[i] == first &&
		    duration(&r->incidents[i]) > duration(&r->incidents[longest]))
			longest = i;
	}
	incident_write(p, &r->incidents[longest]);
	for (size_t i = first; i < r->n_incidents; i++) {
		const struct incident *x = &r->incidents[i];

		if (blocks[i] != first || i == longest)
			continue;
		if (x->vm == r->incidents[longest].vm &&
		    x->guest_cpu == r->incidents[longest].guest_cpu) {
			fprintf(p->out, "   %-8s %s  %9s  %s\n", again++ ? "" : "again",
				time_when(r, x->begin, false).text, duration_text(duration(x)).text,
				what(x).text);
			continue;
		}
		fprintf(p->out, "   %-8s guest CPU %u, %s, %s from %s\n", others++ ? "" : "also",
			x->guest_cpu, what(x).text, duration_text(duration(x)).text,
			time_when(r, x->begin, false).text);
	}
}

static void incidents_write(const struct page *p)
{
	size_t *blocks = blocks_of(p->report);

	if (blocks)
		runs_join(p->report, blocks);

	for (size_t i = 0; i < p->report->n_incidents; i++) {
		if (!blocks)
			incident_write(p, &p->report->incidents[i]); /* no memory to group them */
		else if (blocks[i] == i)
			block_write(p, blocks, i);
		else
			continue;
		fputc('\n', p->out);
	}
	free(blocks);
}

/* What is too wide goes on in the next line; without memory for that it stays wide. */
static struct page page_open(const struct report *r, const struct text_options *o, FILE *to)
{
	FILE *wrapped = wrap_open(to);

	return (struct page){r, o, wrapped ? wrapped : to};
}

static void page_close(struct page *p, FILE *to)
{
	if (p->out != to)
		fclose(p->out);
}

void text_incidents_write(const struct report *r, const struct text_options *o, FILE *out)
{
	struct page p = page_open(r, o, out);

	incidents_write(&p);
	page_close(&p, out);
}

void text_ongoing_write(const struct incident *i, const char *vm_name, const struct text_options *o,
			FILE *out)
{
	struct page p = page_open(NULL, o, out);

	fprintf(p.out, "%songoing%s  %s so far  VM %s, guest CPU %u, %s: ", on(&p, YELLOW),
		on(&p, PLAIN), duration_text(duration(i)).text, escape(vm_name).text, i->guest_cpu,
		what(i).text);
	if (i->verdict != VERDICT_UNDETERMINED)
		fprintf(p.out, "%s (%s), ", verdict_name(i->verdict),
			confidence_name(i->confidence));
	fprintf(p.out, "%s\n", escape(i->because).text);
	page_close(&p, out);
}

/* ---- head and foot ---- */

static void head_write(const struct page *p)
{
	const struct report *r = p->report;
	struct headline h;
	size_t healthy = 0;

	headline_make(r, &h);
	for (size_t i = 0; i < r->n_incidents; i++)
		healthy += r->incidents[i].healthy;
	if (r->simulated)
		fprintf(p->out,
			"SIMULATED: this recording was made by the simulator, not by a machine.\n");
	if (r->imported)
		fprintf(p->out, "IMPORTED: from another tracer's recording, which may not hold all "
				"that vcpuscope would have captured.\n");
	fprintf(p->out, "%s%s%s%s\n", on(p, BOLD), h.count, on(p, PLAIN), h.rest);
	for (size_t i = 0; i < h.n_lines; i++)
		fprintf(p->out, "%s\n", h.lines[i]);
	if (healthy)
		fprintf(p->out, "%zu long stretch%s in which no task had to wait.\n", healthy,
			healthy == 1 ? "" : "es");
	if (r->cut)
		fprintf(p->out,
			"The recording was cut: the report covers what is complete of it.\n");
	fputc('\n', p->out);
}

static void clock_write(const struct page *p, const struct report_clock *c)
{
	fprintf(p->out, "VM %-8s ", escape(c->vm_name).text);
	if (strcmp(c->method, "none") == 0 && is_host_only(p->report, c->vm)) {
		fputs("no guest times: the guest was not recorded\n", p->out);
		return;
	}
	fputs("guest times ", p->out);
	if (c->untrusted)
		fputs("not proven", p->out);
	else if (strcmp(c->method, "none") == 0)
		fputs("by arrival, error unbounded", p->out);
	else
		fprintf(p->out, "by %s", escape(c->method).text);
	if (strcmp(c->method, "none") != 0)
		fprintf(p->out, ", %s, %" PRIu64 " causality violation%s, %u epoch%s",
			time_error(c->error_ns).text, c->causality_violations,
			c->causality_violations == 1 ? "" : "s", c->epochs,
			c->epochs == 1 ? "" : "s");
	if (c->beside_pauses && !c->untrusted)
		fprintf(p->out, "; %" PRIu64 " event%s beside a pause of the VM, %s",
			c->beside_pauses, c->beside_pauses == 1 ? "" : "s",
			time_error(c->beside_pauses_error_ns).text);
	if (c->disagreements)
		fprintf(p->out,
			"; the hypervisor's TSC offset is contradicted by %" PRIu64 " round trip%s",
			c->disagreements, c->disagreements == 1 ? "" : "s");
	fputc('\n', p->out);
}

static void loss_write(const struct page *p, const struct report_loss *l)
{
	const struct {
		uint64_t n;
		const char *by;
	} parts[] = {
		{l->dropped_kernel, "because the ring of its kernel was full"},
		{l->dropped_user,
		 l->source == VS_SOURCE_HOST ? "by the collector" : "by its agent"},
		{l->lost_channel, "on the way"},
		{l->missed, "not numbered, because a probe was already running on the CPU"},
	};
	uint64_t dropped = l->dropped_kernel + l->dropped_user + l->lost_channel + l->missed;
	bool first = true;

	fprintf(p->out, "%-11s %" PRIu64 " event%s, %" PRIu64 " dropped",
		l->source == VS_SOURCE_HOST ? "host" : escape(l->name).text, l->delivered,
		l->delivered == 1 ? "" : "s", dropped);
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		if (!parts[i].n)
			continue;
		fprintf(p->out, "%s%" PRIu64 " %s", first ? " (" : ", ", parts[i].n, parts[i].by);
		first = false;
	}
	if (!first)
		fputc(')', p->out);
	if (l->nonsense_frames)
		fprintf(p->out, ", %" PRIu64 " malformed frame%s or event%s", l->nonsense_frames,
			l->nonsense_frames == 1 ? "" : "s", l->nonsense_frames == 1 ? "" : "s");
	if (l->unknown_events)
		fprintf(p->out, ", %" PRIu64 " event%s of unknown type", l->unknown_events,
			l->unknown_events == 1 ? "" : "s");
	if (l->unknown_frames)
		fprintf(p->out, ", %" PRIu64 " frame%s of unknown kind", l->unknown_frames,
			l->unknown_frames == 1 ? "" : "s");
	if (l->unplaced)
		fprintf(p->out, ", %" PRIu64 " whose time is not known", l->unplaced);
	if (l->lost_frames)
		fprintf(p->out, ", %" PRIu64 " frame%s lost", l->lost_frames,
			l->lost_frames == 1 ? "" : "s");
	if (l->damaged_bytes)
		fprintf(p->out, ", %" PRIu64 " byte%s damaged", l->damaged_bytes,
			l->damaged_bytes == 1 ? "" : "s");
	if (l->late)
		fprintf(p->out, ", %" PRIu64 " too late", l->late);
	fputc('\n', p->out);
	if (l->config[0])
		fprintf(p->out, "%-11s as requested: %s\n", escape(l->name).text,
			escape(l->config).text);
}

/* Beside what was lost, because it was not. */
static void untold_write(const struct page *p, const struct report_loss *l)
{
	bool first = true;

	for (size_t i = 0; i < EVENT_CLASSES; i++) {
		const struct message_untold *u = &l->untold[i];

		if (!u->count)
			continue;
		if (first)
			fprintf(p->out,
				"%-11s short handlers, only counted: ", escape(l->name).text);
		fprintf(p->out, "%s%" PRIu64 " of %s (", first ? "" : ", ", u->count,
			event_class_name((uint32_t)i));
		fprintf(p->out, "%s, ", duration_text((int64_t)(u->total_ns & INT64_MAX)).text);
		fprintf(p->out, "the longest %s)",
			duration_text((int64_t)(u->max_ns & INT64_MAX)).text);
		first = false;
	}
	if (!first)
		fputc('\n', p->out);
}

void text_report_write(const struct report *r, const struct text_options *o, FILE *out)
{
	struct page p = page_open(r, o, out);

	text_notes_write(r, p.out);
	head_write(&p);
	incidents_write(&p);
	for (size_t i = 0; i < r->n_watchdogs; i++) {
		if (r->watchdogs[i].incident < 0)
			watchdog_write(&p, &r->watchdogs[i], "");
	}
	for (size_t i = 0; i < r->n_clocks; i++)
		clock_write(&p, &r->clocks[i]);
	for (size_t i = 0; i < r->n_losses; i++) {
		loss_write(&p, &r->losses[i]);
		untold_write(&p, &r->losses[i]);
	}
	if (r->dropped_incidents)
		fprintf(p.out, "%" PRIu64 " more stalls than a report holds.\n",
			r->dropped_incidents);
	page_close(&p, out);
}
