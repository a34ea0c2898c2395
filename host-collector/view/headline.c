/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/view/headline.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "host-collector/analyze/stall/coverage.h"
#include "host-collector/util/duration.h"
#include "host-collector/util/escape.h"
#include "host-collector/view/finding_text.h"

enum { VCPUS_NAMED = 8, GAPS_SHOWN = 4 };

static void __attribute__((format(printf, 2, 3))) add(struct headline *h, const char *format, ...)
{
	va_list args;

	if (h->n_lines == HEADLINE_LINES_MAX)
		return;
	va_start(args, format);
	vsnprintf(h->lines[h->n_lines++], HEADLINE_LINE_BYTES, format, args);
	va_end(args);
}

static void __attribute__((format(printf, 3, 4)))
append(char *text, size_t text_bytes, const char *format, ...)
{
	size_t used = strlen(text);
	va_list args;

	va_start(args, format);
	vsnprintf(text + used, text_bytes - used, format, args);
	va_end(args);
}

static struct escaped vm_name(const struct report *r, uint32_t vm)
{
	return escape(report_vm_name(r, vm));
}

/* ---- the first sentence ---- */

static void count_write(const struct report *r, struct headline *h)
{
	const struct incident *worst = NULL;
	size_t n = 0, reported = 0;
	struct duration_text span =
		duration_text(r->windowed ? r->until.ns - r->from.ns : r->end.ns - r->begin.ns);

	for (size_t i = 0; i < r->n_incidents; i++) {
		const struct incident *x = &r->incidents[i];

		n += !x->healthy;
		if (!x->healthy &&
		    (!worst || x->end.ns - x->begin.ns > worst->end.ns - worst->begin.ns))
			worst = x;
	}
	for (size_t i = 0; i < r->n_vcpus; i++)
		reported += r->vcpus[i].coverage.answer != ANSWER_CANNOT_TELL;
	snprintf(h->rest, sizeof(h->rest), ".");
	if (worst) {
		snprintf(h->count, sizeof(h->count), "%zu stall%s in %s", n, n == 1 ? "" : "s",
			 span.text);
		snprintf(h->rest, sizeof(h->rest), ", the longest %s on guest CPU %u of VM %s: %s",
			 duration_text(worst->end.ns - worst->begin.ns).text, worst->guest_cpu,
			 vm_name(r, worst->vm).text, escape(because_text(worst).text).text);
	} else if (!reported) {
		snprintf(h->count, sizeof(h->count),
			 "Cannot tell whether there was a stall of %s or more in %s",
			 duration_text(r->threshold_ns).text, span.text);
		snprintf(h->rest, sizeof(h->rest), ": too little was observed.");
	} else {
		snprintf(h->count, sizeof(h->count), "No stall");
		snprintf(h->rest, sizeof(h->rest), " of %s or more in %s%s.",
			 duration_text(r->threshold_ns).text, span.text,
			 reported < r->n_vcpus ? ", as far as it was observed" : "");
	}
}

/* ---- how much was observed ---- */

struct extremes {
	size_t n;
	double least, most; /* percent */
	uint32_t least_vcpu;
};

static struct extremes extremes_of(const struct report *r, uint32_t vm, bool host)
{
	struct extremes e = {0};

	for (size_t i = 0; i < r->n_vcpus; i++) {
		const struct report_vcpu *v = &r->vcpus[i];
		double percent = coverage_percent(host ? v->coverage.observed_ns
						       : v->coverage.guest_observed_ns,
						  v->coverage.span_ns);

		if (v->vm != vm)
			continue;
		if (!e.n || percent < e.least) {
			e.least = percent;
			e.least_vcpu = v->vcpu;
		}
		if (!e.n || percent > e.most)
			e.most = percent;
		e.n++;
	}
	return e;
}

/* "98.7 %" or "12.3 (vCPU 3) to 100.0 %". */
static void extremes_append(const struct extremes *e, char *out, size_t out_bytes)
{
	if (e->n == 1 || e->least == e->most)
		append(out, out_bytes, "%.1f %%", e->least);
	else
		append(out, out_bytes, "%.1f (vCPU %u) to %.1f %%", e->least, e->least_vcpu,
		       e->most);
}

void headline_observed(const struct report *r, uint32_t vm, char *out, size_t out_bytes)
{
	struct extremes host = extremes_of(r, vm, true), guest = extremes_of(r, vm, false);
	struct report_coverage of;

	snprintf(out, out_bytes, "VM %s: ", vm_name(r, vm).text);
	if (!coverage_of_vm(r, vm, &of)) {
		append(out, out_bytes, "nothing of its vCPUs on the host");
		return;
	}
	extremes_append(&host, out, out_bytes);
	append(out, out_bytes, " of %s time on the host, ",
	       host.n == 1 ? "its vCPU's" : "each vCPU's");
	if (of.guest)
		extremes_append(&guest, out, out_bytes);
	append(out, out_bytes, of.guest ? " in the guest" : "nothing of the guest");
}

/* ---- vCPUs for which the report cannot tell ---- */

/* "vCPU 1", "vCPUs 1, 3, 4 and 2 more"; false: none has this answer. */
static bool vcpus_list(const struct report *r, uint32_t vm, bool stalled, char *out,
		       size_t out_bytes)
{
	size_t n = 0;
	char list[160] = "";

	for (size_t i = 0; i < r->n_vcpus; i++) {
		const struct report_vcpu *v = &r->vcpus[i];

		if (v->vm != vm || v->coverage.enough ||
		    stalled != (v->coverage.answer == ANSWER_STALLS))
			continue;
		if (n++ < VCPUS_NAMED)
			append(list, sizeof(list), "%s%u", n > 1 ? ", " : "", v->vcpu);
	}
	snprintf(out, out_bytes, "vCPU%s %s", n == 1 ? "" : "s", list);
	if (n > VCPUS_NAMED)
		append(out, out_bytes, " and %zu more", n - VCPUS_NAMED);
	return n > 0;
}

static void doubts_add(struct headline *h, const struct report *r, uint32_t vm)
{
	char which[256];

	if (vcpus_list(r, vm, false, which, sizeof(which)))
		add(h, "Cannot tell of %s of VM %s: less than %u %% of the time was observed.",
		    which, vm_name(r, vm).text, r->needed_percent);
	if (vcpus_list(r, vm, true, which, sizeof(which)))
		add(h,
		    "There may be more stalls on %s of VM %s: less than %u %% of the time was "
		    "observed.",
		    which, vm_name(r, vm).text, r->needed_percent);
}

/* ---- why not all was ---- */

/* Those that took a thousandth of the time or more. Returns how many. */
static size_t reasons_append(const int64_t *ns, int64_t span_ns, char *out, size_t out_bytes)
{
	size_t n = 0;

	for (int why = 0; why < UNKNOWN_REASON_COUNT; why++) {
		if (why == UNKNOWN_NOT_CAPTURED || ns[why] < span_ns / 1000 || !ns[why])
			continue;
		append(out, out_bytes, "%s%s (%s)", n++ ? ", " : "", duration_text(ns[why]).text,
		       unknown_reason_meaning((enum unknown_reason)why));
	}
	return n;
}

/* Of all vCPUs of the VM together. */
static void reasons_add(struct headline *h, const struct report *r, uint32_t vm)
{
	struct report_coverage of;
	char text[HEADLINE_LINE_BYTES];

	if (!coverage_of_vm(r, vm, &of))
		return;
	text[0] = '\0';
	if (reasons_append(of.unknown_ns, of.span_ns, text, sizeof(text)))
		add(h, "Not observed of VM %s on the host: %s.", vm_name(r, vm).text, text);
	text[0] = '\0';
	if (of.guest && reasons_append(of.guest_unknown_ns, of.span_ns, text, sizeof(text)))
		add(h, "Not observed of VM %s in the guest: %s.", vm_name(r, vm).text, text);
	if (!of.guest)
		add(h,
		    "The guest of VM %s was not recorded: only stalls that the host causes can be "
		    "seen.",
		    vm_name(r, vm).text);
}

static bool gap_counts(const struct report *r, const struct report_gap *g)
{
	struct report_coverage of;

	return g->host || (coverage_of_vm(r, g->vm, &of) && of.guest);
}

/* The longest ones: each may hide a stall. */
static void gaps_add(struct headline *h, const struct report *r)
{
	size_t n = 0, shown = 0;

	for (size_t i = 0; i < r->n_gaps; i++) {
		const struct report_gap *g = &r->gaps[i];
		size_t longer = 0;
		int64_t begin_ns;

		if (!gap_counts(r, g))
			continue;
		n++;
		for (size_t k = 0; k < r->n_gaps; k++)
			longer += gap_counts(r, &r->gaps[k]) &&
				  (r->gaps[k].end.ns - r->gaps[k].begin.ns >
					   g->end.ns - g->begin.ns ||
				   (k < i && r->gaps[k].end.ns - r->gaps[k].begin.ns ==
						     g->end.ns - g->begin.ns));
		if (longer >= GAPS_SHOWN)
			continue;
		shown++;
		begin_ns = g->begin.ns - r->begin.ns;
		add(h, "%s missing for %s from +%.6f s on, of vCPU %u of VM %s: %s.",
		    g->host ? "Host events" : "Guest events",
		    duration_text(g->end.ns - g->begin.ns).text,
		    begin_ns > 0 ? (double)begin_ns / 1e9 : 0.0, g->vcpu, vm_name(r, g->vm).text,
		    unknown_reason_meaning(g->why));
	}
	if (n + r->dropped_gaps > shown)
		add(h, "%llu more gaps of %s or more.",
		    (unsigned long long)(n + r->dropped_gaps - shown),
		    duration_text(r->threshold_ns).text);
}

/* What is not the whole recording. */
static void narrowed_add(struct headline *h, const struct report *r)
{
	if (r->windowed)
		add(h, "Only the time from +%.6f s to +%.6f s of %s.",
		    (double)(r->from.ns - r->begin.ns) / 1e9,
		    (double)(r->until.ns - r->begin.ns) / 1e9,
		    duration_text(r->end.ns - r->begin.ns).text);
	if (*r->only)
		add(h, "Only %s; %zu other stall%s not listed.", escape(r->only).text,
		    r->n_unlisted, r->n_unlisted == 1 ? " is" : "s are");
}

void headline_make(const struct report *r, struct headline *h)
{
	char text[HEADLINE_LINE_BYTES];

	memset(h, 0, sizeof(*h));
	count_write(r, h);
	narrowed_add(h, r);
	if (!r->n_clocks && !*r->only)
		add(h, "The recording holds no VM.");
	for (size_t i = 0; i < r->n_clocks; i++)
		doubts_add(h, r, r->clocks[i].vm);
	for (size_t i = 0; i < r->n_clocks; i++) {
		headline_observed(r, r->clocks[i].vm, text, sizeof(text));
		add(h, "Observed of %s.", text);
		reasons_add(h, r, r->clocks[i].vm);
	}
	gaps_add(h, r);
}
