/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/view/finding_text.h"

#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "host-collector/analyze/stall/facts.h"
#include "host-collector/util/duration.h"
#include "host-collector/view/verdict_words.h"

/*
 * A sentence, or a part of one. {ns0} and {ns1} stand for durations, {n0} to {n2} for numbers,
 * {task0} and {task1} for tasks, {name} for the name. Each other word in braces is a row of
 * `values` below.
 */
struct wording {
	const char *text;
};

/* By kind; verdict_words.c has those of FINDING_CAUSE. */
static const struct wording sentences[FINDING_COUNT] = {
	/* why */
	[FINDING_THREAD_SIGNALLED] =
		{"the vCPU thread was stopped for {ns0} by a signal from {task0}"},
	[FINDING_THREAD_FROZEN] = {"the vCPU thread was frozen with its cgroup for {ns0}"},
	[FINDING_THREAD_TRACED] = {"the vCPU thread was stopped for {ns0} by its tracer {task0}"},
	[FINDING_THREAD_STOPPED] =
		{"the vCPU thread was stopped for {ns0}; the recording does not show who stopped it"},
	[FINDING_VM_PAUSED] = {"the VM was paused by its VMM for {ns0}"},
	[FINDING_PCPU_WAIT] = {"the vCPU was ready to run but waited {ns0} for a pCPU"},
	[FINDING_HELD_BY] = {", held by {holder}"},
	[FINDING_HELD_BY_KIND] = {", held by {n0} tasks such as {task0} in turn: {ns0}"},
	[FINDING_HELD_BY_CGROUP] = {", held by {n0} tasks in cgroup {name} in turn: {ns0}"},
	[FINDING_HELD_BY_SEVERAL] = {", held by several tasks in turn, longest by {holder}: {ns0}"},
	[FINDING_OR_QUOTA] = {"; or its cgroup is out of CPU quota, which the kernel counts only "
			      "when the wait ends"},
	[FINDING_QUOTA_PCPU_IDLE] =
		{"the vCPU was ready to run for {ns0} but did not run although its pCPU was idle, "
		 "as happens under a CPU quota"},
	[FINDING_QUOTA_USED] = {"the VM's cgroup was out of CPU quota for {ns0}"},
	[FINDING_QUOTA_USED_BY] = {"the VM's cgroup {name} was out of CPU quota for {ns0}"},
	[FINDING_QUOTA_RATE] = {": it gets {ns0} of CPU time in every {ns1}"},
	[FINDING_BIG_LOCK] = {"the vCPU thread waited {ns0} for QEMU's big lock"},
	[FINDING_LOCK_RELEASED_BY] = {", released by {task0}"},
	[FINDING_PAGE_WAIT] = {"the vCPU thread waited {ns0} for {awaited}"},
	[FINDING_IRQ_STORM] = {"{n0} interrupts in the guest took {ns0} of {ns1}"},
	[FINDING_LOCK_COINCIDENCE] = {"the guest waited {ns0} for "},
	[FINDING_LOCK_HALTED] =
		{"the guest halted with a task to run for {ns0}, waiting for a lock held by "},
	[FINDING_LOCK_SPUN] = {"the guest spun for {ns0}, waiting for a lock held by "},
	[FINDING_IPI_MAYBE_SENT] = {"the guest waited {ns0} for the answer to an interrupt that it "
				    "may have sent to "},
	[FINDING_IPI_SENT] =
		{"the guest waited {ns0} for the answer to an interrupt that it sent to "},
	[FINDING_PEER_VCPU] = {"vCPU {n0}, which did not run ({state}{keeper})"},
	[FINDING_PEER_CPU] = {"CPU {n0}, whose vCPU did not run ({state}{keeper})"},
	[FINDING_PEER_TASK_ON_CPU] =
		{"{task1} on CPU {n0}, whose vCPU did not run ({state}{keeper})"},
	[FINDING_WAIT_ENDED_WITH_IT] = {"; the wait ended when it ran again"},
	[FINDING_TASK_KEPT_CPU] = {"{task0} kept the guest's CPU for {ns0}"},
	[FINDING_INTERRUPT_KEPT_CPU] = {"the guest stayed in {context} {name} for {ns0}"},
	[FINDING_IDLE_TOOK_NO_INTERRUPT] = {"the idle guest CPU took no interrupt for {ns0}"},
	[FINDING_WHILE_HALTED] = {" while its vCPU halted, as a paravirtual lock does"},
	[FINDING_WHILE_RAN] = {" while its vCPU ran"},
	[FINDING_ANSWER_AWAITED_IN] = {"; it waited for another CPU's answer in {name}"},
	[FINDING_SPUN_IN] = {"; it spun in {name}"},
	[FINDING_REQUEST_SENT_TO] = {"; it had sent a request to "},
	[FINDING_MAY_HAVE_AWAITED] = {"; it may have waited for "},
	[FINDING_LIKELY_AWAITED] = {"; it most likely waited for "},
	[FINDING_GUEST_PEER_TASK] = {"{task0}, which kept CPU {n0} meanwhile"},
	[FINDING_GUEST_PEER_TASK_IRQS_OFF] =
		{"{task0}, which kept CPU {n0}, interrupts off, meanwhile"},
	[FINDING_GUEST_PEER_INTERRUPT] = {"CPU {n0}, which was in {context} {name} meanwhile"},
	[FINDING_EARLIER_DEBT] =
		{"; the guest's kernel charged {task0} for {ns0} of the previous stall"},
	[FINDING_DEVICE_ACCESS] =
		{"the guest waited {ns0} for QEMU to complete its access to a device"},
	[FINDING_DEVICE_POLLED_PORT] =
		{"the guest read a device {n0} times (port 0x{hex1}) in {ns0}, and its VMM did not "
		 "complete what it waited for"},
	[FINDING_DEVICE_POLLED_ADDRESS] =
		{"the guest read a device {n0} times (address 0x{hex1}) in {ns0}, and its VMM did "
		 "not complete what it waited for"},
	[FINDING_CLOCK_AHEAD] = {"the guest's clock went ahead by {ns0}: this is not a stall, but "
				 "the guest may take it for one"},
	[FINDING_CLOCK_BACK] =
		{"the guest's clock went back by {ns0}: this is not a stall, but the "
		 "guest may take it for one"},
	[FINDING_NESTED] =
		{"{task0} ran a nested guest for {ns0}: a stall inside it cannot be seen "
		 "from this host"},
	[FINDING_INTERRUPT_LOST] =
		{"KVM accepted an interrupt for the vCPU ({name}, vector {vector}{irq}, raised by "
		 "{task0}), and its handler did not run for {ns0}"},
	[FINDING_ALTHOUGH_HALTED] = {", although the vCPU halted"},
	[FINDING_ALTHOUGH_GUEST_RAN] = {", although the guest went on"},
	[FINDING_TIMES_UNPROVEN] =
		{"the guest's times are not proven: what the host did meanwhile is not known"},
	[FINDING_NO_SINGLE_CAUSE] =
		{"no single cause: {verdict} took {ns0} of the {ns1} that were denied"},
	[FINDING_FURTHER_CAUSE] = {", {verdict} {ns0}"},
	[FINDING_NO_EXPLANATION] = {"nothing that was seen explains the {ns0} that were denied"},
	[FINDING_NO_CAUSE_OF_HALF] =
		{"no cause explains half of the {ns1} that were denied; {verdict} explains {ns0}"},
	[FINDING_INCONSISTENT] = {"a bug of vcpuscope, please report it with the recording: "},
	[FINDING_IN_VCPU] = {"vCPU {n0} of VM {name}: "},
	[FINDING_IN_INCIDENT] = {"stall {n1} of the report, on vCPU {n0} of VM {name}: "},
	[FINDING_STATES_SUM] = {"its states sum to {exact0}, {exact1} passed"},
	[FINDING_STATE_NEGATIVE] =
		{"state {state} has {negative} (all states sum to {exact0}, {exact1} passed)"},
	[FINDING_BEYOND_RECORDING] = {"its time exceeds the recording's"},
	/* denied */
	[FINDING_DENIED_NOTHING] = {"nothing"},
	[FINDING_DENIED_HANDLER] = {"interrupt {vector}: its handler did not run"},
	[FINDING_DENIED_CLOCK_SET] = {"nothing: the guest's clock was set"},
	[FINDING_DENIED_READY_TASK] =
		{"{task0} was ready to run on this CPU for {ns0} and did not run"},
	[FINDING_DENIED_ONE_MORE] = {"; so was 1 other task"},
	[FINDING_DENIED_MORE] = {"; so were {n0} other tasks"},
	[FINDING_DENIED_INTERRUPTED] = {"{task0} was interrupted and did not run"},
	[FINDING_DENIED_BY_HOST] =
		{"this CPU did not run: the host kept its vCPU from the guest for {ns0}"},
	[FINDING_DENIED_IN_PIECES] =
		{"this CPU did not run: the host kept its vCPU from the guest for {ns0} in all, in "
		 "{n0} short waits"},
	[FINDING_DENIED_IN_ALL] =
		{"this CPU did not run: the host kept its vCPU from the guest for {ns0} in all"},
	[FINDING_DENIED_BY_OTHER_CPU] =
		{"{task0} waited for another CPU of the guest, which did not run"},
	[FINDING_DENIED_ALL_ELSE] = {"nothing else ran on this CPU"},
	[FINDING_DENIED_BY_INTERRUPTS] = {"{task0}: interrupts took {ns0} of its time on the CPU"},
	[FINDING_DENIED_TICKS] = {"timer ticks did not come for {ns0}; one every {ns1} is normal"},
	/* seen */
	[FINDING_SEEN_STOP_SIGNAL] = {"stopped by {signal} from {task0}"},
	[FINDING_SEEN_FROZEN] = {"frozen with its cgroup"},
	[FINDING_SEEN_TRACER] = {"stopped by its tracer {task0}"},
	[FINDING_SEEN_DEBUGGER] = {"stopped by a debugger"},
	[FINDING_SEEN_EARLIER_SIGNAL] = {"stopped by a signal sent before the recording"},
	[FINDING_SEEN_MIGRATION] = {"paused by its VMM to complete its migration"},
	[FINDING_SEEN_PAUSE] = {"paused by its VMM"},
	[FINDING_SEEN_PCPU_SHARED] =
		{"ready to run, but pCPU {n0} was held by several tasks in turn for {ns1}, longest "
		 "by {task0}: {ns0}"},
	[FINDING_SEEN_PCPU_HELD] = {"ready to run, but pCPU {n0} was held by {task0} for {ns0}"},
	[FINDING_SEEN_PCPU_IDLE] = {"ready to run, but not run although pCPU {n0} was idle"},
	[FINDING_SEEN_PCPU_WAIT] = {"ready to run on pCPU {n0}, but not run"},
	[FINDING_SEEN_SLEEP] = {"slept in the host, waiting for {awaited}"},
	[FINDING_SEEN_SLEEP_WOKEN] =
		{"slept in the host, waiting for {awaited}, until {task0} woke it"},
	[FINDING_SEEN_IN_KVM] = {"the host kernel handled an exit"},
	[FINDING_SEEN_IN_VMM] = {"the VMM handled an exit"},
	[FINDING_SEEN_THROTTLED] = {"out of its cgroup's CPU quota"},
	[FINDING_SEEN_UNKNOWN] = {"unknown"},
	[FINDING_SEEN_UNKNOWN_WHY] = {"unknown: {unknown}"},
	[FINDING_SEEN_PENDING] = {"interrupt {vector} ({name}) was pending; then its handler ran"},
	[FINDING_SEEN_PENDING_OPEN] =
		{"interrupt {vector} ({name}) was pending; its handler has not run since"},
	[FINDING_SEEN_HOST_LOG] = {"the host's kernel log: {name}"},
	[FINDING_SEEN_WAITER] =
		{"in the guest, {task0} waited for this CPU; {n0} task{s} waited that long"},
	[FINDING_SEEN_CALLS] = {"in the guest, {sampled} spins in {name}: {n0} of {n1} stack "
				"samples show it waiting for other CPUs' answers"},
	[FINDING_SEEN_SPINS] = {"in the guest, {sampled} spins in {name}: {n0} of {n1} stack "
				"samples show it waiting for a lock"},
	[FINDING_SEEN_COMPUTES] =
		{"in the guest, {sampled} computes: {n0} of {n1} stack samples show no wait for a "
		 "lock, most of them in {code}"},
	[FINDING_SEEN_TICKS] = {"in the guest, {n0} timer tick{s} (one every {ns0} is normal), the "
				"longest gap {ns1}"},
	[FINDING_SEEN_INTERRUPTS] = {"in the guest, {context} {name} took {ns0} in {n0} part{s}"},
	[FINDING_SEEN_EVENT] = {"{name}"},
	[FINDING_SEEN_EVENTS] = {"{name}, the first of {n0}"},
	[FINDING_SEEN_KEPT_EVENTS] = {"{name}, the oldest that was kept of {n0} or more"},
	[FINDING_SEEN_HITS] = {"{n0} hit{s} of other events that were chosen"},
	[FINDING_SEEN_HITS_OR_MORE] = {"{n0} or more hit{s} of other events that were chosen"},
	[FINDING_SEEN_PAIR] = {"pair {name}, {pair_error}{past_losses}"},
	[FINDING_SEEN_PAIRS] = {"pair {name}, {pair_error}{past_losses}, the longest of {n0}"},
	[FINDING_SEEN_KEPT_PAIRS] =
		{"pair {name}, {pair_error}{past_losses}, the longest that was kept of {n0} or more"},
	[FINDING_SEEN_OTHER_PAIRS] = {"{n0} pair{s} of other names"},
	/* detectors */
	[FINDING_NO_WAITER] = {"no other task waited for this CPU"},
	[FINDING_SHORT_WAITER] = {"{task0} waited only {ns0} for this CPU"},
	[FINDING_WAITER] = {"{task0} waited {ns0} for this CPU"},
	[FINDING_TICKS_TOO_FEW] = {"too few ticks were seen to know their rate"},
	[FINDING_TICKS_STOPPED] = {"none for {ns0}, normally one every {ns1}"},
	[FINDING_TICKS_WENT_ON] = {"they went on, at most {ns0} apart; normally one every {ns1}"},
	[FINDING_BELOW_WATCHDOG] = {"the stall is shorter than its threshold, {ns0}"},
	[FINDING_BELOW_DEFAULT_WATCHDOG] =
		{"the stall is shorter than its threshold, {ns0} by default"},
	[FINDING_WATCHDOG_PAUSED] =
		{"no such line in the guest's log: its watchdog does not count time in which the VM "
		 "was paused"},
	[FINDING_WATCHDOG_SILENT] =
		{"no such line in the recorded part of the guest's log; the watchdog may be off"},
	[FINDING_WATCHDOG_LINE] = {"the guest's log says that its CPU was stuck for {n0} s"},
	[FINDING_BLIND_NO_GUEST] = {"no event of the guest was recorded"},
	[FINDING_BLIND_LOST_INTERRUPT] =
		{"an interrupt that is not handled keeps no task waiting and stops no tick"},
	[FINDING_BLIND_SHORT_WAITS] =
		{"the vCPU had many short waits, each of them too short for this detector"},
	[FINDING_BLIND_NO_EVENT] = {"no event of the guest shows what this CPU did at that time"},
	[FINDING_BLIND_IDLE] = {"the guest's CPU idled"},
};

/* ---- values ---- */

static void __attribute__((format(printf, 2, 3)))
append(struct finding_text *t, const char *format, ...)
{
	size_t used = strlen(t->text);
	va_list args;

	va_start(args, format);
	vsnprintf(t->text + used, sizeof(t->text) - used, format, args);
	va_end(args);
}

static void duration_write(const struct finding *f, unsigned i, struct finding_text *t)
{
	append(t, "%s", duration_text(f->ns[i]).text);
}

/* To the nanosecond. */
static void exact_write(const struct finding *f, unsigned i, struct finding_text *t)
{
	append(t, "%" PRId64 " ns", f->ns[i]);
}

static void negative_write(const struct finding *f, unsigned i, struct finding_text *t)
{
	append(t, "%" PRId64 " ns", (int64_t)f->n[i]);
}

/* How far away the true duration of a pair may be. */
static void pair_error_write(const struct finding *f, unsigned i, struct finding_text *t)
{
	if (f->ns[i] == FINDING_NS_UNKNOWN)
		append(t, "of unknown error");
	else
		append(t, "within %s", duration_text(f->ns[i]).text);
}

static void past_losses_write(const struct finding *f, unsigned i, struct finding_text *t)
{
	if (f->n[i])
		append(t, ", unsure: events were lost");
}

static void number_write(const struct finding *f, unsigned i, struct finding_text *t)
{
	append(t, "%" PRIu64, f->n[i]);
}

static void hex_write(const struct finding *f, unsigned i, struct finding_text *t)
{
	append(t, "%" PRIx64, f->n[i]);
}

/* The ending of a plural, by n[0]. */
static void plural_write(const struct finding *f, unsigned i, struct finding_text *t)
{
	append(t, "%s", f->n[i] == 1 ? "" : "s");
}

static void task_write(const struct finding *f, unsigned i, struct finding_text *t)
{
	const struct finding_task *task = &f->task[i];

	if (!task->pid)
		append(t, "the idle task");
	else if (*task->comm)
		append(t, "%s (%d)", task->comm, task->pid);
	else
		append(t, "task %d", task->pid);
}

/* The task that the stack samples show; n: 0 if it was an interrupt. */
static void sampled_write(const struct finding *f, unsigned i, struct finding_text *t)
{
	if (f->n[i])
		task_write(f, 0, t);
	else
		append(t, "the interrupt");
}

/* A host task, after its VM if it is a thread of a VMM. */
static void holder_write(const struct finding *f, unsigned i, struct finding_text *t)
{
	append(t, "%s%s", f->name, *f->name ? ": " : "");
	task_write(f, i, t);
}

static void name_write(const struct finding *f, unsigned i, struct finding_text *t)
{
	(void)i;
	append(t, "%s", f->name);
}

static void code_write(const struct finding *f, unsigned i, struct finding_text *t)
{
	(void)i;
	append(t, "%s", *f->name ? f->name : "its program's own code");
}

static void vector_write(const struct finding *f, unsigned i, struct finding_text *t)
{
	append(t, "0x%02" PRIx64, f->n[i]);
}

/* The guest's irq number, if it is known. */
static void irq_write(const struct finding *f, unsigned i, struct finding_text *t)
{
	if ((int64_t)f->n[i] >= 0)
		append(t, ", irq %" PRIu64, f->n[i]);
}

static void context_write(const struct finding *f, unsigned i, struct finding_text *t)
{
	append(t, "%s", f->n[i] == GUEST_CPU_SOFTIRQ ? "softirq" : "interrupt");
}

static void awaited_write(const struct finding *f, unsigned i, struct finding_text *t)
{
	append(t, "%s",
	       f->n[i] == WAIT_NONE ? "something (no stack)"
				    : wait_class_object((enum wait_class)f->n[i]));
}

static void unknown_write(const struct finding *f, unsigned i, struct finding_text *t)
{
	append(t, "%s", unknown_reason_meaning((enum unknown_reason)f->n[i]));
}

static void state_write(const struct finding *f, unsigned i, struct finding_text *t)
{
	append(t, "%s", vcpu_state_name((enum vcpu_state)f->n[i]));
}

/* The host task that kept a vCPU from the guest, if it is known, and what it did. */
static void keeper_write(const struct finding *f, unsigned i, struct finding_text *t)
{
	static const char *const deeds[KEEPER_COUNT] = {
		[KEEPER_HELD_PCPU] = "held its pCPU",
		[KEEPER_STOPPED] = "stopped it",
		[KEEPER_TRACED] = "traced it",
		[KEEPER_ASKED] = "wrote to QEMU's monitor",
		[KEEPER_BIG_LOCK] = "held QEMU's big lock",
		[KEEPER_PAGE] = "provided the page",
	};

	if (!f->task[0].pid)
		return;
	append(t, ": ");
	task_write(f, 0, t);
	append(t, " %s", deeds[f->n[i]]);
}

static void signal_write(const struct finding *f, unsigned i, struct finding_text *t)
{
	static const char *const names[] = {[SIGSTOP] = "SIGSTOP",
					    [SIGTSTP] = "SIGTSTP",
					    [SIGTTIN] = "SIGTTIN",
					    [SIGTTOU] = "SIGTTOU"};
	bool known = f->n[i] < sizeof(names) / sizeof(*names) && names[f->n[i]];

	append(t, "%s", known ? names[f->n[i]] : "a signal");
}

static void verdict_write(const struct finding *f, unsigned i, struct finding_text *t)
{
	append(t, "%s", verdict_name((enum verdict)f->n[i]));
}

/* The words in braces: how a value is written, and its index in the array of its type. */
static const struct value {
	const char *word;
	void (*write)(const struct finding *f, unsigned i, struct finding_text *t);
	unsigned i;
} values[] = {
	{"ns0", duration_write, 0},
	{"ns1", duration_write, 1},
	{"n0", number_write, 0},
	{"n1", number_write, 1},
	{"hex1", hex_write, 1},
	{"s", plural_write, 0},
	{"task0", task_write, 0},
	{"task1", task_write, 1},
	{"holder", holder_write, 0},
	{"sampled", sampled_write, 2},
	{"name", name_write, 0},
	{"code", code_write, 0},
	{"vector", vector_write, 0},
	{"irq", irq_write, 1},
	{"context", context_write, 1},
	{"awaited", awaited_write, 0},
	{"unknown", unknown_write, 0},
	{"state", state_write, 1},
	{"keeper", keeper_write, 2},
	{"signal", signal_write, 0},
	{"verdict", verdict_write, 0},
	{"exact0", exact_write, 0},
	{"exact1", exact_write, 1},
	{"negative", negative_write, 0},
	{"pair_error", pair_error_write, 0},
	{"past_losses", past_losses_write, 1},
};

/* Writes the value of the word at `word`, which ends with a brace. */
static void value_write(const struct finding *f, const char *word, struct finding_text *t)
{
	size_t len = strcspn(word, "}");

	for (size_t i = 0; i < sizeof(values) / sizeof(*values); i++) {
		if (strlen(values[i].word) == len && !strncmp(values[i].word, word, len))
			values[i].write(f, values[i].i, t);
	}
}

/* Returns the wording of a finding; static. */
static const char *wording_of(const struct finding *f)
{
	const char *text = sentences[f->kind].text;

	if (f->kind == FINDING_CAUSE)
		text = verdict_words((enum verdict)f->n[0]).reason;
	return text ? text : "";
}

struct finding_text finding_text(const struct finding *findings, size_t n)
{
	struct finding_text t = {""};

	for (size_t i = 0; i < n && findings[i].kind; i++) {
		const char *at = wording_of(&findings[i]);

		while (*at) {
			int words = (int)strcspn(at, "{");

			append(&t, "%.*s", words, at);
			at += words;
			if (*at) {
				value_write(&findings[i], at + 1, &t);
				at += strcspn(at, "}") + 1;
			}
		}
	}
	return t;
}

struct finding_text because_text(const struct incident *i)
{
	return finding_text(i->because, REPORT_BECAUSE_MAX);
}

struct finding_text denied_text(const struct incident *i)
{
	return finding_text(i->denied, REPORT_DENIED_MAX);
}
