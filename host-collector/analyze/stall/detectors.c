/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/analyze/stall/detectors.h"

/* kernel/watchdog.c: twice watchdog_thresh, whose default is 10 s. */
static const int64_t watchdog_default_ns = 20000000000;

static void result(struct incident *out, enum detector d, enum detector_sight sight,
		   struct finding why)
{
	out->detectors[d] = (struct report_detector){.sight = sight, .why = why};
}

static void scheduler(const struct stall_facts *f, const struct model *m, struct incident *out)
{
	bool yes = f->waiter_ns >= f->than_ns;

	if (f->waiter_ns <= 0)
		result(out, DETECTOR_SCHEDULER, SIGHT_NO,
		       (struct finding){.kind = FINDING_NO_WAITER});
	else
		result(out, DETECTOR_SCHEDULER, yes ? SIGHT_YES : SIGHT_NO,
		       (struct finding){.kind = yes ? FINDING_WAITER : FINDING_SHORT_WAITER,
					.task = {finding_task(m, f->vm, f->waiter_pid)},
					.ns = {f->waiter_ns}});
}

static void ticks(const struct stall_facts *f, struct incident *out)
{
	bool yes = facts_ticks_stopped(f);

	if (!f->tick_interval_ns)
		result(out, DETECTOR_TICKS, SIGHT_BLIND,
		       (struct finding){.kind = FINDING_TICKS_TOO_FEW});
	else
		result(out, DETECTOR_TICKS, yes ? SIGHT_YES : SIGHT_NO,
		       (struct finding){.kind = yes ? FINDING_TICKS_STOPPED : FINDING_TICKS_WENT_ON,
					.ns = {f->tick_gap_ns, f->tick_interval_ns}});
}

static void watchdog(const struct stall_facts *f, const struct model *m, struct incident *out)
{
	int64_t own_ns = model_watchdog_ns(m, f->vm), ns = own_ns ? own_ns : watchdog_default_ns;
	struct finding why = {.kind = FINDING_WATCHDOG_SILENT};

	if (facts_duration(f) < ns)
		why = (struct finding){.kind = own_ns ? FINDING_BELOW_WATCHDOG
						      : FINDING_BELOW_DEFAULT_WATCHDOG,
				       .ns = {ns}};
	else if (out->verdict == VERDICT_VM_PAUSED || out->verdict == VERDICT_MIGRATION)
		why.kind = FINDING_WATCHDOG_PAUSED;
	result(out, DETECTOR_WATCHDOG, SIGHT_NO, why);
}

void detectors_fill(const struct stall_facts *f, const struct model *m, struct incident *out)
{
	enum finding_kind blind = FINDING_NONE;

	if (!f->data.guest_events)
		blind = FINDING_BLIND_NO_GUEST;
	else if (f->lost.alone)
		blind = FINDING_BLIND_LOST_INTERRUPT;
	else if (f->n_pieces)
		blind = FINDING_BLIND_SHORT_WAITS;
	else if (f->kind == GUEST_CPU_UNKNOWN)
		blind = FINDING_BLIND_NO_EVENT;
	else if (f->kind == GUEST_CPU_IDLE)
		blind = FINDING_BLIND_IDLE;
	for (int d = 0; blind && d < DETECTOR_COUNT; d++)
		result(out, (enum detector)d, SIGHT_BLIND, (struct finding){.kind = blind});
	if (blind)
		return;
	scheduler(f, m, out);
	ticks(f, out);
	watchdog(f, m, out);
}

void detectors_watchdog(const struct report_watchdog *line, struct incident *out)
{
	result(out, DETECTOR_WATCHDOG, SIGHT_YES,
	       (struct finding){.kind = FINDING_WATCHDOG_LINE, .n = {line->stuck_s}});
}
