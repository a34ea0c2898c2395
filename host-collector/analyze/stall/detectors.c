/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/analyze/stall/detectors.h"

#include "host-collector/analyze/stall/describe.h"

/* kernel/watchdog.c: twice watchdog_thresh, whose default is 10 s. */
static const int64_t watchdog_default_ns = 20000000000;

static void say(struct incident *out, enum detector d, enum detector_sight sight, const char *why)
{
	out->detectors[d].sight = sight;
	describe(out->detectors[d].why, sizeof(out->detectors[d].why), "%s", why);
}

static void scheduler(const struct stall_facts *f, const struct model *m, struct incident *out)
{
	struct report_detector *d = &out->detectors[DETECTOR_SCHEDULER];

	if (f->waiter_ns <= 0) {
		say(out, DETECTOR_SCHEDULER, SIGHT_NO, "no other task waited for this CPU");
		return;
	}
	d->sight = f->waiter_ns >= f->than_ns ? SIGHT_YES : SIGHT_NO;
	describe(d->why, sizeof(d->why), "%s waited %s%s for this CPU",
		 task_text(m, f->vm, f->waiter_pid).text, d->sight == SIGHT_YES ? "" : "only ",
		 duration_text(f->waiter_ns).text);
}

static void ticks(const struct stall_facts *f, struct incident *out)
{
	struct report_detector *d = &out->detectors[DETECTOR_TICKS];

	if (!f->tick_interval_ns) {
		say(out, DETECTOR_TICKS, SIGHT_BLIND, "too few ticks were seen to know their rate");
		return;
	}
	d->sight = facts_ticks_stopped(f) ? SIGHT_YES : SIGHT_NO;
	describe(d->why, sizeof(d->why),
		 d->sight == SIGHT_YES ? "none for %s, normally one every %s"
				       : "they went on, at most %s apart; normally one every %s",
		 duration_text(f->tick_gap_ns).text, duration_text(f->tick_interval_ns).text);
}

static void watchdog(const struct stall_facts *f, const struct model *m, struct incident *out)
{
	struct report_detector *d = &out->detectors[DETECTOR_WATCHDOG];
	int64_t own_ns = model_watchdog_ns(m, f->vm), ns = own_ns ? own_ns : watchdog_default_ns;

	if (facts_duration(f) < ns) {
		d->sight = SIGHT_NO;
		describe(d->why, sizeof(d->why), "the stall is shorter than its threshold, %s%s",
			 duration_text(ns).text, own_ns ? "" : " by default");
	} else if (out->verdict == VERDICT_VM_PAUSED || out->verdict == VERDICT_MIGRATION) {
		say(out, DETECTOR_WATCHDOG, SIGHT_NO,
		    "no such line in the guest's log: its watchdog does not count time in which the VM was paused");
	} else {
		say(out, DETECTOR_WATCHDOG, SIGHT_NO,
		    "no such line in the recorded part of the guest's log; the watchdog may be off");
	}
}

void detectors_fill(const struct stall_facts *f, const struct model *m, struct incident *out)
{
	const char *blind = NULL;

	if (!f->data.guest_events)
		blind = "no event of the guest was recorded";
	else if (f->lost.alone)
		blind = "an interrupt that is not handled keeps no task waiting and stops no tick";
	else if (f->n_pieces)
		blind = "the vCPU had many short waits, each of them too short for this detector";
	else if (f->kind == GUEST_CPU_UNKNOWN)
		blind = "no event of the guest shows what this CPU did at that time";
	else if (f->kind == GUEST_CPU_IDLE)
		blind = "the guest's CPU idled";
	for (int d = 0; blind && d < DETECTOR_COUNT; d++)
		say(out, (enum detector)d, SIGHT_BLIND, blind);
	if (blind)
		return;
	scheduler(f, m, out);
	ticks(f, out);
	watchdog(f, m, out);
}

void detectors_watchdog(const struct report_watchdog *line, struct incident *out)
{
	struct report_detector *d = &out->detectors[DETECTOR_WATCHDOG];

	d->sight = SIGHT_YES;
	describe(d->why, sizeof(d->why), "the guest's log says that its CPU was stuck for %u s",
		 line->stuck_s);
}
