/* SPDX-License-Identifier: GPL-2.0-only */
/* `families` has one row for each metric. All samples of a family must be consecutive, so the
 * page is written family by family. */
#include "host-collector/metrics/metrics_text.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "host-collector/util/escape.h"

/* Bounds of histograms: 1 us to 1 s in steps of four, as powers of two, which are exact. */
enum { BOUND_FIRST = 10, BOUND_LAST = 30, BOUND_STEP = 2 };

/* Bounds of the host's histograms: eight for each power of two, as 64ths of it. A bucket is at most
 * 9.7 % wider than its begin, so a quantile is at most that far off, wherever the values lie in it.
 */
static const unsigned char fine_steps[] = {0, 6, 12, 19, 27, 35, 44, 53};

struct output {
	const struct metrics_page *page;
	FILE *to;
	const char *name; /* of the family */
	bool occurred[VERDICT_COUNT];
};

static double seconds(int64_t ns)
{
	return (double)ns / 1e9;
}

/* Label values: backslash, quote and newline are escaped; the rest of what could do harm is spelled
 * out by escape(), whose backslashes are doubled here like any other. */
static void label_write(const char *name, const char *value, bool first, FILE *to)
{
	struct escaped text = escape(value);

	fprintf(to, "%s%s=\"", first ? "" : ",", name);
	for (const char *c = text.text; *c; c++) {
		if (*c == '\\' || *c == '"')
			fputc('\\', to);
		fputc(*c, to);
	}
	fputc('"', to);
}

/* The begin of a sample up to its value: name, suffix, labels. vm: NULL for the host; key: one more
 * label, or NULL. le: the bound of a bucket, or NULL. */
static void series_write(const struct output *o, const char *suffix, const char *vm,
			 const char *key, const char *value, const char *le)
{
	const char *open = "{";

	fprintf(o->to, "%s%s", o->name, suffix);
	if (vm) {
		fputs(open, o->to);
		label_write("vm", vm, true, o->to);
		open = ",";
	}
	if (key) {
		fputs(open, o->to);
		label_write(key, value, true, o->to);
		open = ",";
	}
	if (le) {
		fprintf(o->to, "%sle=\"%s\"", open, le);
		open = ",";
	}
	fputs(*open == ',' ? "} " : " ", o->to);
}

static void sample_begin(const struct output *o, const char *vm, const char *key, const char *value)
{
	series_write(o, "", vm, key, value, NULL);
}

static void sample_number(const struct output *o, const char *vm, const char *key,
			  const char *value, double number)
{
	sample_begin(o, vm, key, value);
	fprintf(o->to, "%.9g\n", number);
}

static void sample_count(const struct output *o, const char *vm, const char *key, const char *value,
			 uint64_t count)
{
	sample_begin(o, vm, key, value);
	fprintf(o->to, "%" PRIu64 "\n", count);
}

static void bucket_write(const struct output *o, const char *vm, const char *key, const char *value,
			 double bound_ns, uint64_t below)
{
	char le[32];

	snprintf(le, sizeof(le), "%.10g", bound_ns / 1e9);
	series_write(o, "_bucket", vm, key, value, le);
	fprintf(o->to, "%" PRIu64 "\n", below);
}

static void histogram_end_write(const struct output *o, const char *vm, const char *key,
				const char *value, const struct histogram *h)
{
	series_write(o, "_bucket", vm, key, value, "+Inf");
	fprintf(o->to, "%" PRIu64 "\n", h->count);
	series_write(o, "_sum", vm, key, value, NULL);
	fprintf(o->to, "%.9g\n", (double)h->sum_ns / 1e9);
	series_write(o, "_count", vm, key, value, NULL);
	fprintf(o->to, "%" PRIu64 "\n", h->count);
}

static void histogram_write(const struct output *o, const char *vm, const char *key,
			    const char *value, const struct histogram *h)
{
	for (unsigned exponent = BOUND_FIRST; exponent <= BOUND_LAST; exponent += BOUND_STEP)
		bucket_write(o, vm, key, value, (double)(1ull << exponent),
			     histogram_below(h, exponent));
	histogram_end_write(o, vm, key, value, h);
}

static void fine_histogram_write(const struct output *o, const struct histogram *h)
{
	for (unsigned exponent = BOUND_FIRST; exponent < BOUND_LAST; exponent++) {
		const unsigned shift = exponent - HISTOGRAM_STEP_BITS;

		for (size_t s = 0; s < sizeof(fine_steps); s++)
			bucket_write(o, NULL, NULL, NULL,
				     (double)((uint64_t)(HISTOGRAM_STEPS + fine_steps[s]) << shift),
				     histogram_below_step(h, shift, fine_steps[s]));
	}
	bucket_write(o, NULL, NULL, NULL, (double)(1ull << BOUND_LAST),
		     histogram_below(h, BOUND_LAST));
	histogram_end_write(o, NULL, NULL, NULL, h);
}

/* ---- families ---- */

static void vcpus(const struct output *o, const struct metrics_vm *vm)
{
	sample_count(o, vm->name, NULL, NULL, vm->vcpus);
}

static void states(const struct output *o, const struct metrics_vm *vm)
{
	for (int s = 0; s < VCPU_STATE_COUNT; s++)
		sample_number(o, vm->name, "state", vcpu_state_name((enum vcpu_state)s),
			      seconds(vm->state_ns[s]));
}

static void delays(const struct output *o, const struct metrics_vm *vm)
{
	static const char *const causes[] = {
		[RUN_DELAY_WOKEN] = "wakeup", [RUN_DELAY_PREEMPTED] = "preempted"};

	for (int c = 0; c < RUN_DELAY_CAUSES; c++)
		histogram_write(o, vm->name, "cause", causes[c], &vm->delays[c]);
}

static void exits(const struct output *o, const struct metrics_vm *vm)
{
	histogram_write(o, vm->name, NULL, NULL, &vm->exits);
}

static void reasons(const struct output *o, const struct metrics_vm *vm)
{
	for (size_t i = 0; i < vm->n_reasons; i++)
		sample_count(o, vm->name, "reason", vm->reasons[i].name, vm->reasons[i].exits);
}

static void reason_times(const struct output *o, const struct metrics_vm *vm)
{
	for (size_t i = 0; i < vm->n_reasons; i++)
		sample_number(o, vm->name, "reason", vm->reasons[i].name,
			      seconds(vm->reasons[i].handling_ns));
}

static void interrupts(const struct output *o, const struct metrics_vm *vm)
{
	for (int s = 0; s < CHAIN_SOURCE_COUNT; s++)
		histogram_write(o, vm->name, "source", chain_source_name((enum chain_source)s),
				&vm->interrupts[s]);
}

static void interrupts_late(const struct output *o, const struct metrics_vm *vm)
{
	sample_count(o, vm->name, NULL, NULL, vm->interrupts_late);
}

static void interrupts_lost(const struct output *o, const struct metrics_vm *vm)
{
	sample_count(o, vm->name, NULL, NULL, vm->interrupts_lost);
}

static void incidents(const struct output *o, const struct metrics_vm *vm)
{
	for (int v = 0; v < VERDICT_COUNT; v++) {
		if (o->occurred[v])
			sample_count(o, vm->name, "verdict", verdict_name((enum verdict)v),
				     vm->incidents[v]);
	}
}

static void incident_times(const struct output *o, const struct metrics_vm *vm)
{
	for (int v = 0; v < VERDICT_COUNT; v++) {
		if (o->occurred[v])
			sample_number(o, vm->name, "verdict", verdict_name((enum verdict)v),
				      seconds(vm->incident_ns[v]));
	}
}

/* From the beginning: a series that appears with its first incident has no increase. */
static void stalls(const struct output *o, const struct metrics_vm *vm)
{
	uint64_t n = 0;

	for (int v = 0; v < VERDICT_COUNT; v++)
		n += vm->incidents[v];
	sample_count(o, vm->name, NULL, NULL, n);
}

/* ---- of a side ---- */

static void agent_up(const struct output *o, const struct metrics_source *s)
{
	if (!s->host)
		sample_count(o, s->vm, NULL, NULL, s->up);
}

static void side_count(const struct output *o, const struct metrics_source *s, uint64_t count)
{
	fprintf(o->to, "%s{", o->name);
	label_write("side", s->host ? "host" : "guest", true, o->to);
	label_write("vm", s->vm, false, o->to);
	fprintf(o->to, "} %" PRIu64 "\n", count);
}

static void events(const struct output *o, const struct metrics_source *s)
{
	side_count(o, s, s->delivered);
}

static void events_lost(const struct output *o, const struct metrics_source *s)
{
	side_count(o, s, s->lost);
}

static void clock_error(const struct output *o, const struct metrics_source *s)
{
	if (!s->host && s->clock_known)
		sample_number(o, s->vm, NULL, NULL, s->clock_error_s);
}

/* ---- of a pair of events ---- */

static void pair_times(const struct output *o, const struct metrics_vm_pair *p)
{
	histogram_write(o, p->vm, "pair", p->pair->name, p->pair->times);
}

static void pair_over(const struct output *o, const struct metrics_vm_pair *p)
{
	sample_count(o, p->vm, "pair", p->pair->name, p->pair->over);
}

static void pair_uncounted(const struct output *o, const struct metrics_vm_pair *p)
{
	static const char *const kinds[] = {[METRICS_UNPAIRED] = "unpaired",
					    [METRICS_INCOMPLETE] = "incomplete",
					    [METRICS_AMBIGUOUS] = "ambiguous"};

	for (int k = 0; k < METRICS_UNCOUNTED_KINDS; k++) {
		fprintf(o->to, "%s{", o->name);
		label_write("vm", p->vm, true, o->to);
		label_write("pair", p->pair->name, false, o->to);
		label_write("why", kinds[k], false, o->to);
		fprintf(o->to, "} %" PRIu64 "\n", p->pair->uncounted[k]);
	}
}

/* Only if the configuration names pairs. */
static const struct {
	const char *name, *type, *help;
	void (*pair)(const struct output *o, const struct metrics_vm_pair *p);
} pair_families[] = {
	{"vcpuscope_pair_seconds", "histogram", "From one event to another, by [pair NAME].",
	 pair_times},
	{"vcpuscope_pair_over_total", "counter", "Pairs that took as long as `than`, or longer.",
	 pair_over},
	{"vcpuscope_pair_uncounted_total", "counter",
	 "Events without a partner, and pairs that may be none, by why.", pair_uncounted},
};

/* ---- sums of the host ---- */

/* The sum of some histograms. If there is no memory, the family has no samples. */
static void fine_sum_write(const struct output *o, const struct histogram *all, size_t n)
{
	struct histogram sum = {0};
	int err = 0;

	for (size_t i = 0; i < n && !err; i++)
		err = histogram_merge(&sum, &all[i]);
	if (!err)
		fine_histogram_write(o, &sum);
	histogram_fini(&sum);
}

static void host_delays(const struct output *o, const struct metrics_vm *vm)
{
	fine_sum_write(o, vm->delays, RUN_DELAY_CAUSES);
}

static void host_exits(const struct output *o, const struct metrics_vm *vm)
{
	fine_histogram_write(o, &vm->exits);
}

static void host_interrupts(const struct output *o, const struct metrics_vm *vm)
{
	fine_sum_write(o, vm->interrupts, CHAIN_SOURCE_COUNT);
}

static void host_vms(const struct output *o, const struct metrics_vm *vm)
{
	(void)vm;
	sample_count(o, NULL, NULL, NULL, o->page->sum->vms);
}

static void host_agents(const struct output *o, const struct metrics_vm *vm)
{
	(void)vm;
	sample_count(o, NULL, NULL, NULL, o->page->sum->agents);
}

static void host_agents_up(const struct output *o, const struct metrics_vm *vm)
{
	(void)vm;
	sample_count(o, NULL, NULL, NULL, o->page->sum->agents_up);
}

static void host_events(const struct output *o, const struct metrics_vm *vm)
{
	(void)vm;
	sample_count(o, NULL, "side", "guest", o->page->sum->events[0]);
	sample_count(o, NULL, "side", "host", o->page->sum->events[1]);
}

static void host_events_lost(const struct output *o, const struct metrics_vm *vm)
{
	(void)vm;
	sample_count(o, NULL, "side", "guest", o->page->sum->lost[0]);
	sample_count(o, NULL, "side", "host", o->page->sum->lost[1]);
}

/* The operator's labels get a prefix: they must not be one of ours, or one of Prometheus'. */
static void host_info(const struct output *o, const struct metrics_vm *vm)
{
	const struct metrics_host *h = o->page->host;

	(void)vm;
	if (!h)
		return;
	fprintf(o->to, "%s{", o->name);
	label_write("kernel", h->kernel, true, o->to);
	label_write("cpu_model", h->cpu_model, false, o->to);
	label_write("microcode", h->microcode, false, o->to);
	for (size_t i = 0; i < h->n_labels; i++) {
		char key[64];

		snprintf(key, sizeof(key), "label_%s", h->labels[i].key);
		label_write(key, h->labels[i].value, false, o->to);
	}
	fputs("} 1\n", o->to);
}

static const struct {
	const char *name, *type, *help;
	void (*vm)(const struct output *o, const struct metrics_vm *vm);
	void (*source)(const struct output *o, const struct metrics_source *s);
	void (*host)(const struct output *o, const struct metrics_vm *vm); /* of all VMs */
} families[] = {
	{"vcpuscope_vcpus", "gauge", "vCPUs of the VM.", vcpus, NULL, NULL},
	{"vcpuscope_vcpu_seconds_total", "counter",
	 "Time of all vCPUs by state: runnable is run delay (steal).", states, NULL, NULL},
	{"vcpuscope_run_delay_seconds", "histogram",
	 "How long a vCPU waited for a pCPU, by what made it wait.", delays, NULL, NULL},
	{"vcpuscope_exit_handling_seconds", "histogram",
	 "Time of a VM-exit in KVM and the VMM, without sleep and waits.", exits, NULL, NULL},
	{"vcpuscope_exits_total", "counter", "VM-exits by reason.", reasons, NULL, NULL},
	{"vcpuscope_exit_handling_by_reason_seconds_total", "counter",
	 "Time of VM-exits in KVM and the VMM by reason.", reason_times, NULL, NULL},
	{"vcpuscope_interrupt_latency_seconds", "histogram",
	 "From an interrupt's source to the guest's handler.", interrupts, NULL, NULL},
	{"vcpuscope_interrupts_late_total", "counter",
	 "Interrupts that were handled more than 10 ms late.", interrupts_late, NULL, NULL},
	{"vcpuscope_interrupts_lost_total", "counter",
	 "Interrupts that were accepted and not handled although the guest could.", interrupts_lost,
	 NULL, NULL},
	{"vcpuscope_incidents_total", "counter", "Stalls by verdict.", incidents, NULL, NULL},
	{"vcpuscope_incident_seconds_total", "counter", "Length of stalls by verdict.",
	 incident_times, NULL, NULL},
	{"vcpuscope_stalls_total", "counter", "Stalls, whatever their verdict.", stalls, NULL,
	 NULL},
	{"vcpuscope_agent_up", "gauge", "Whether the guest's agent is heard.", NULL, agent_up,
	 NULL},
	{"vcpuscope_events_total", "counter", "Events that arrived, by side.", NULL, events, NULL},
	{"vcpuscope_events_lost_total", "counter", "Events that never arrived, by side.", NULL,
	 events_lost, NULL},
	{"vcpuscope_guest_clock_error_seconds", "gauge",
	 "Bound on the error of the guest's times, median.", NULL, clock_error, NULL},
	{"vcpuscope_host_info", "gauge", "What the host is; always 1.", NULL, NULL, host_info},
	{"vcpuscope_host_vms", "gauge", "VMs that are watched.", NULL, NULL, host_vms},
	{"vcpuscope_host_vcpus", "gauge", "vCPUs of these VMs.", NULL, NULL, vcpus},
	{"vcpuscope_host_agents", "gauge", "VMs whose agent was ever heard.", NULL, NULL,
	 host_agents},
	{"vcpuscope_host_agents_up", "gauge", "VMs whose agent is heard.", NULL, NULL,
	 host_agents_up},
	{"vcpuscope_host_vcpu_seconds_total", "counter", "Time of all vCPUs by state.", NULL, NULL,
	 states},
	{"vcpuscope_host_run_delay_seconds", "histogram", "How long vCPUs waited for a pCPU.", NULL,
	 NULL, host_delays},
	{"vcpuscope_host_exit_handling_seconds", "histogram",
	 "Time of VM-exits in KVM and the VMM, without sleep and waits.", NULL, NULL, host_exits},
	{"vcpuscope_host_exits_total", "counter", "VM-exits by reason.", NULL, NULL, reasons},
	{"vcpuscope_host_exit_handling_by_reason_seconds_total", "counter",
	 "Time of VM-exits in KVM and the VMM by reason.", NULL, NULL, reason_times},
	{"vcpuscope_host_interrupt_latency_seconds", "histogram",
	 "From an interrupt's source to the guest's handler.", NULL, NULL, host_interrupts},
	{"vcpuscope_host_interrupts_late_total", "counter",
	 "Interrupts that were handled more than 10 ms late.", NULL, NULL, interrupts_late},
	{"vcpuscope_host_interrupts_lost_total", "counter",
	 "Interrupts that were accepted and not handled although the guest could.", NULL, NULL,
	 interrupts_lost},
	{"vcpuscope_host_incidents_total", "counter", "Stalls by verdict.", NULL, NULL, incidents},
	{"vcpuscope_host_incident_seconds_total", "counter", "Length of stalls by verdict.", NULL,
	 NULL, incident_times},
	{"vcpuscope_host_stalls_total", "counter", "Stalls, whatever their verdict.", NULL, NULL,
	 stalls},
	{"vcpuscope_host_events_total", "counter", "Events that arrived, by side.", NULL, NULL,
	 host_events},
	{"vcpuscope_host_events_lost_total", "counter", "Events that never arrived, by side.", NULL,
	 NULL, host_events_lost},
};

static void family_begin(struct output *o, const char *name, const char *type, const char *help)
{
	o->name = name;
	fprintf(o->to, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void self_write(struct output *o)
{
	family_begin(o, "vcpuscope_build_info", "gauge", "The collector's version.");
	fprintf(o->to, "vcpuscope_build_info{version=\"" VCPUSCOPE_VERSION "\"} 1\n");
	if (o->page->cpu_s > 0) {
		family_begin(o, "vcpuscope_cpu_seconds_total", "counter",
			     "CPU time of the collector itself.");
		fprintf(o->to, "vcpuscope_cpu_seconds_total %.9g\n", o->page->cpu_s);
	}
	if (o->page->resident_bytes) {
		family_begin(o, "vcpuscope_resident_memory_bytes", "gauge",
			     "Resident memory of the collector itself.");
		fprintf(o->to, "vcpuscope_resident_memory_bytes %" PRIu64 "\n",
			o->page->resident_bytes);
	}
}

static void occurred_fill(struct output *o, const struct metrics_vm *vm)
{
	for (int v = 0; v < VERDICT_COUNT; v++)
		o->occurred[v] |= vm->incidents[v] > 0;
}

int metrics_write(const struct metrics_page *page, FILE *to)
{
	struct output o = {.page = page, .to = to};

	for (size_t i = 0; i < page->n_vms; i++)
		occurred_fill(&o, &page->vms[i]);
	if (page->sum)
		occurred_fill(&o, &page->sum->vm);
	for (size_t f = 0; f < sizeof(families) / sizeof(families[0]); f++) {
		if (families[f].host ? !page->sum : !page->n_vms && !page->n_sources)
			continue;
		family_begin(&o, families[f].name, families[f].type, families[f].help);
		for (size_t i = 0; families[f].vm && i < page->n_vms; i++)
			families[f].vm(&o, &page->vms[i]);
		for (size_t i = 0; families[f].source && i < page->n_sources; i++)
			families[f].source(&o, &page->sources[i]);
		if (families[f].host)
			families[f].host(&o, &page->sum->vm);
	}
	for (size_t f = 0; page->n_pairs && f < sizeof(pair_families) / sizeof(pair_families[0]);
	     f++) {
		family_begin(&o, pair_families[f].name, pair_families[f].type,
			     pair_families[f].help);
		for (size_t i = 0; i < page->n_pairs; i++)
			pair_families[f].pair(&o, &page->pairs[i]);
	}
	self_write(&o);
	return ferror(to) ? -EIO : 0;
}
