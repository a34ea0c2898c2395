/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/cli/clock_show.h"

#include <errno.h>
#include <inttypes.h>
#include <json.h>
#include <stdio.h>
#include <string.h>

#include "clock/eval.h"
#include "proto/program/options.h"
#include "host-collector/engine/replay.h"
#include "host-collector/util/escape.h"
#include "host-collector/util/wrap.h"
#include "host-collector/util/json_add.h"

/* One VM's clocks, gathered for either form. */
struct vm_account {
	struct pipeline_source source;
	struct clock_book_summary book;
	const struct vm_clock *hypervisor; /* NULL: it said nothing */
	struct vm_clock_summary exact;
	struct presence_count presence;
};

static const char *const source_names[VM_CLOCK_SOURCE_LAST + 1] = {
	[VM_CLOCK_PVCLOCK_UPDATE] = "kvm_pvclock_update",
	[VM_CLOCK_WRITE_TSC_OFFSET] = "kvm_write_tsc_offset",
	[VM_CLOCK_MASTER_CLOCK] = "kvm_update_master_clock",
	[VM_CLOCK_VCPU] = "kvm_vcpu",
	[VM_CLOCK_DEBUGFS] = "debugfs",
	[VM_CLOCK_GUEST_PAGE] = "guest_page",
};

static struct vm_account account_of(const struct pipeline *p, const struct model *m,
				    const struct pipeline_source *s)
{
	struct vm_account a = {.source = *s, .presence = model_presence(m, s->source)};

	clock_book_summarise(pipeline_clocks(p), s->source, &a.book);
	a.hypervisor = clock_book_vm(pipeline_clocks(p), s->source);
	if (a.hypervisor)
		vm_clock_summarise(a.hypervisor, &a.exact);
	return a;
}

static const char *epoch_verdict(const struct vm_clock_epoch *e)
{
	if (!e->known)
		return "unsettled";
	if (e->contradicted)
		return "contested";
	return e->agreed ? "proven" : "unconfirmed";
}

/* ---- text ---- */

static void echo_text(const struct vm_account *a, FILE *to)
{
	const struct clock_book_summary *b = &a->book;

	if (!b->observations) {
		fprintf(to, "  echo        no round trip\n");
		return;
	}
	fprintf(to,
		"  echo        %" PRIu64 " round trips, the best %" PRIu64 " ns, %" PRIu64
		" epoch%s; in the newest the best took %" PRIu64
		" ns and the end is known +-%" PRIu64 " ns; %.9f to %.9f guest ticks per host tick",
		b->observations, b->best_round_trip_ns, b->echo_epochs,
		b->echo_epochs == 1 ? "" : "s", b->epoch_best_round_trip_ns, b->echo_err_ns,
		b->ratio_min, b->ratio_max);
	if (b->unsteady)
		fprintf(to, " on average: the guest's clock is unsteady");
	if (b->compared)
		fprintf(to, "; the exact map lies %" PRId64 " ns from its middle",
			b->exact_from_echo_ns);
	fputc('\n', to);
}

static void epochs_text(const struct vm_account *a, FILE *to)
{
	const struct vm_clock_summary *x = &a->exact;
	struct vm_clock_epoch e;

	if (!a->hypervisor || !x->epochs) {
		fprintf(to, "  hypervisor  showed no TSC offset\n");
		return;
	}
	fprintf(to,
		"  hypervisor  %zu epoch%s, %zu vCPU%s, %" PRIu64 " round trips agree, %" PRIu64
		" contradict",
		x->epochs, x->epochs == 1 ? "" : "s", x->vcpus, x->vcpus == 1 ? "" : "s", x->agreed,
		x->contradicted);
	if (x->vcpus_unsettled)
		fprintf(to, ", sources disagree about %zu", x->vcpus_unsettled);
	fputc('\n', to);
	for (size_t i = 0; vm_clock_epoch_get(a->hypervisor, i, &e); i++) {
		fprintf(to, "    from host TSC %" PRIu64 "..%" PRIu64 ": ", e.from_min, e.from_max);
		if (e.known)
			fprintf(to, "offset %" PRId64 ", ", (int64_t)e.tsc.offset);
		if (e.apart)
			fprintf(to, "the vCPUs' TSCs up to %" PRIu64 " ticks behind it, ", e.apart);
		if (e.known && e.tsc.frac_bits)
			fprintf(to, "scaling %" PRIu64 "/%" PRIu32 ", ", e.tsc.ratio,
				e.tsc.frac_bits);
		fprintf(to, "%s\n", epoch_verdict(&e));
	}
}

static void kvmclock_text(const struct vm_account *a, FILE *to)
{
	const struct vm_clock_summary *x = &a->exact;
	struct vm_clock_line line;

	fprintf(to, "  kvmclock    ");
	if (!a->hypervisor || (!x->pages && !x->lines)) {
		fprintf(to, "neither guest nor hypervisor showed one\n");
		return;
	}
	if (!x->pages)
		fprintf(to, "the guest showed no page of its own; ");
	else
		fprintf(to,
			"%zu of %zu values of the guest's own page are the hypervisor's, bit for bit; ",
			x->pages - x->pages_differ, x->pages);
	fprintf(to, "%zu line%s\n", x->lines, x->lines == 1 ? "" : "s");
	for (size_t i = 0; vm_clock_line_get(a->hypervisor, i, &line); i++) {
		const struct pvclock *p = &line.pvclock;

		fprintf(to,
			"    vCPU %" PRIu32 " from host TSC %" PRIu64 "..%" PRIu64
			": tsc_timestamp=%" PRIu64 ",system_time=%" PRIu64 ",mul=%" PRIu32
			",shift=%d,flags=%d",
			line.vcpu, line.from_min, line.from_max, p->tsc_timestamp, p->system_time,
			p->mul, p->shift, p->flags);
		for (int s = 0; s <= VM_CLOCK_SOURCE_LAST; s++) {
			if (line.sources & 1u << s && source_names[s])
				fprintf(to, " %s", source_names[s]);
		}
		fprintf(to, "%s\n", line.guest_agrees ? " guest" : "");
	}
}

static void vm_text(const struct vm_account *a, FILE *to)
{
	const struct pipeline_source *s = &a->source;

	fprintf(to, "VM %s: guest times by %s", escape(s->name).text, s->clock_method);
	if (s->clock_error_ns == UINT64_MAX || !strcmp(s->clock_method, "none"))
		fprintf(to, ", unbounded");
	else
		fprintf(to, ", +-%" PRIu64 " ns for half of them, +-%" PRIu64 " ns at worst",
			s->clock_error_median_ns, s->clock_error_ns);
	fprintf(to, "; %" PRIu64 " of %" PRIu64 " causal pairs violated\n",
		s->causality_violations + a->presence.violations,
		s->causality_pairs + a->presence.pairs);
	if (a->presence.violations)
		fprintf(to,
			"  presence    %" PRIu64 " of %" PRIu64
			" guest events lie where their vCPU was "
			"not in the guest, by %" PRId64 " ns at worst\n",
			a->presence.violations, a->presence.pairs, a->presence.worst_ns);
	if (s->protection != VM_PROTECTION_NONE)
		fprintf(to,
			"  protected   %s, as KVM says: the guest's page is not read, and the "
			"hypervisor's parameters are shown but not used\n",
			vm_protection_title(s->protection));
	echo_text(a, to);
	epochs_text(a, to);
	kvmclock_text(a, to);
}

/* ---- JSON ---- */

/* Adds a bound; null if it is unbounded. */
static void add_bound(json_object *to, const char *name, uint64_t value)
{
	json_add(to, name, value == UINT64_MAX ? NULL : json_object_new_uint64(value));
}

static json_object *echo_epochs_json(const struct clock_book *book, uint32_t source)
{
	json_object *all = json_object_new_array();
	struct echo_epoch e;

	for (size_t i = 0; clock_book_echo_epoch(book, source, i, &e); i++) {
		json_object *epoch = json_object_new_object();

		json_add_uint(epoch, "guest_from", e.first_guest);
		json_add_uint(epoch, "guest_to", e.last_guest);
		json_add_uint(epoch, "host_from", e.first_host.ticks);
		json_add_uint(epoch, "host_to", e.last_host.ticks);
		json_add(epoch, "ratio_min", json_object_new_double(e.ratio_min));
		json_add(epoch, "ratio_max", json_object_new_double(e.ratio_max));
		json_object_array_add(all, epoch);
	}
	return all;
}

static json_object *echo_json(const struct clock_book *book, uint32_t source,
			      const struct clock_book_summary *b)
{
	json_object *echo = json_object_new_object();

	json_add_uint(echo, "round_trips", b->observations);
	json_add_uint(echo, "epochs", b->echo_epochs);
	json_add_uint(echo, "best_round_trip_ns", b->best_round_trip_ns);
	add_bound(echo, "error_ns", b->echo_err_ns);
	json_add_uint(echo, "epoch_best_round_trip_ns", b->epoch_best_round_trip_ns);
	json_add(echo, "ratio_min", json_object_new_double(b->ratio_min));
	json_add(echo, "ratio_max", json_object_new_double(b->ratio_max));
	json_add(echo, "unsteady", json_object_new_boolean(b->unsteady));
	json_add_uint(echo, "best_guest_tsc", b->best_guest);
	json_add(echo, "epoch_list", echo_epochs_json(book, source));
	if (b->compared)
		json_add(echo, "exact_from_middle_ns",
			 json_object_new_int64(b->exact_from_echo_ns));
	return echo;
}

static json_object *offsets_json(const struct vm_clock_epoch *e)
{
	json_object *all = json_object_new_array();

	for (size_t i = 0; i < e->n_offsets; i++) {
		json_object *one = json_object_new_object();

		json_add_uint(one, "vcpu", e->offsets[i].vcpu);
		json_add(one, "tsc_offset", json_object_new_int64((int64_t)e->offsets[i].offset));
		json_object_array_add(all, one);
	}
	return all;
}

static json_object *epochs_json(const struct vm_account *a)
{
	json_object *all = json_object_new_array();
	struct vm_clock_epoch e;

	for (size_t i = 0; a->hypervisor && vm_clock_epoch_get(a->hypervisor, i, &e); i++) {
		json_object *epoch = json_object_new_object();

		json_add_uint(epoch, "from_min", e.from_min);
		json_add_uint(epoch, "from_max", e.from_max);
		json_add(epoch, "verdict", json_object_new_string(epoch_verdict(&e)));
		if (e.known) {
			json_add(epoch, "tsc_offset", json_object_new_int64((int64_t)e.tsc.offset));
			json_add_uint(epoch, "apart_ticks", e.apart);
			json_add_uint(epoch, "ratio", e.tsc.frac_bits ? e.tsc.ratio : 1);
			json_add_uint(epoch, "frac_bits", e.tsc.frac_bits);
		}
		if (e.n_offsets)
			json_add(epoch, "vcpus", offsets_json(&e));
		json_add_uint(epoch, "agreed", e.agreed);
		json_add_uint(epoch, "contradicted", e.contradicted);
		json_object_array_add(all, epoch);
	}
	return all;
}

static json_object *lines_json(const struct vm_account *a)
{
	json_object *all = json_object_new_array();
	struct vm_clock_line line;

	for (size_t i = 0; a->hypervisor && vm_clock_line_get(a->hypervisor, i, &line); i++) {
		json_object *one = json_object_new_object(), *sources = json_object_new_array();

		json_add_uint(one, "vcpu", line.vcpu);
		json_add_uint(one, "from_min", line.from_min);
		json_add_uint(one, "from_max", line.from_max);
		json_add_uint(one, "tsc_timestamp", line.pvclock.tsc_timestamp);
		json_add_uint(one, "system_time", line.pvclock.system_time);
		json_add_uint(one, "mul", line.pvclock.mul);
		json_add(one, "shift", json_object_new_int(line.pvclock.shift));
		json_add_uint(one, "flags", line.pvclock.flags);
		for (int s = 0; s <= VM_CLOCK_SOURCE_LAST; s++) {
			if (line.sources & 1u << s && source_names[s])
				json_object_array_add(sources,
						      json_object_new_string(source_names[s]));
		}
		json_add(one, "sources", sources);
		json_add(one, "guest_agrees", json_object_new_boolean(line.guest_agrees));
		json_object_array_add(all, one);
	}
	return all;
}

static json_object *vm_json(const struct pipeline *p, const struct vm_account *a)
{
	json_object *vm = json_object_new_object();
	const struct pipeline_source *s = &a->source;

	json_add(vm, "vm", json_object_new_string(s->name));
	json_add(vm, "method", json_object_new_string(s->clock_method));
	if (s->protection != VM_PROTECTION_NONE)
		json_add(vm, "protection",
			 json_object_new_string(vm_protection_name(s->protection)));
	add_bound(vm, "error_ns",
		  strcmp(s->clock_method, "none") && !s->clock_untrusted ? s->clock_error_ns
									 : UINT64_MAX);
	if (s->beside_pauses) {
		json_add_uint(vm, "beside_pauses", s->beside_pauses);
		add_bound(vm, "beside_pauses_error_ns", s->beside_pauses_error_ns);
	}
	add_bound(vm, "error_median_ns",
		  strcmp(s->clock_method, "none") ? s->clock_error_median_ns : UINT64_MAX);
	json_add_uint(vm, "causality_pairs", s->causality_pairs + a->presence.pairs);
	json_add_uint(vm, "causality_violations", s->causality_violations + a->presence.violations);
	json_add_uint(vm, "presence_pairs", a->presence.pairs);
	json_add_uint(vm, "presence_violations", a->presence.violations);
	json_add_uint(vm, "presence_worst_ns", (uint64_t)a->presence.worst_ns);
	json_add(vm, "echo", echo_json(pipeline_clocks(p), s->source, &a->book));
	json_add(vm, "tsc_epochs", epochs_json(a));
	json_add_uint(vm, "vcpus", a->exact.vcpus);
	json_add_uint(vm, "vcpus_unsettled", a->exact.vcpus_unsettled);
	json_add(vm, "kvmclock_lines", lines_json(a));
	json_add_uint(vm, "guest_page_values", a->exact.pages);
	json_add_uint(vm, "guest_page_values_differ", a->exact.pages_differ);
	return vm;
}

/* ---- both ---- */

static int accounts_write(const struct pipeline *p, const struct model *m, bool as_json)
{
	json_object *root = as_json ? json_object_new_object() : NULL;
	json_object *vms = as_json ? json_object_new_array() : NULL;
	FILE *page = as_json ? NULL : wrap_open(stdout);
	struct pipeline_source s;
	bool any = false;

	for (size_t i = 0; !pipeline_source_get(p, i, &s); i++) {
		struct vm_account a;

		if (s.source == VS_SOURCE_HOST)
			continue;
		any = true;
		a = account_of(p, m, &s);
		if (as_json)
			json_object_array_add(vms, vm_json(p, &a));
		else
			vm_text(&a, page ? page : stdout);
	}
	if (page)
		fclose(page);
	if (!as_json && !any)
		puts("The recording holds no VM.");
	if (as_json) {
		json_add(root, "vms", vms);
		puts(json_object_to_json_string_ext(root, JSON_C_TO_STRING_PRETTY));
		json_object_put(root);
	}
	return fflush(stdout) ? COMMAND_TROUBLE : COMMAND_OK;
}

/* One line per guest TSC of `in`; "-" where something is not known. */
static int times_convert(const struct pipeline *p, uint32_t source, FILE *in)
{
	const struct clock_book *book = pipeline_clocks(p);
	char line[64];

	puts("guest_tsc host_tsc err_ticks host_raw_ns err_ns dmesg_ns dmesg_err_ns");
	while (fgets(line, sizeof(line), in)) {
		uint64_t guest, err, dmesg_ns, dmesg_err;
		struct host_tsc tsc;
		struct host_time t;

		line[strcspn(line, "\n")] = 0;
		if (clock_eval_parse_u64(line, &guest)) {
			fprintf(stderr,
				"vcpuscope clock: '%s' is not a guest TSC; expected one number per line\n",
				escape(line).text);
			return COMMAND_USAGE;
		}
		printf("%" PRIu64, guest);
		if (clock_book_to_tsc(book, source, guest, &tsc, &err))
			printf(" %" PRIu64 " %" PRIu64, tsc.ticks, err);
		else
			fputs(" - -", stdout);
		if (clock_book_any_to_ns(book, source, guest, &t))
			printf(" %" PRId64 " %" PRIu64, t.t.ns, t.err_ns);
		else
			fputs(" - -", stdout);
		if (clock_book_dmesg_at(book, source, guest, &dmesg_ns, &dmesg_err))
			printf(" %" PRIu64 " %" PRIu64 "\n", dmesg_ns, dmesg_err);
		else
			puts(" - -");
	}
	return fflush(stdout) ? COMMAND_TROUBLE : COMMAND_OK;
}

static int first_vm_convert(const struct pipeline *p, const char *path)
{
	FILE *in = strcmp(path, "-") ? fopen(path, "re") : stdin;
	struct pipeline_source s;
	size_t i = 0;
	int result;

	if (!in) {
		fprintf(stderr, "vcpuscope clock: %s: %s\n", path, strerror(errno));
		return COMMAND_USAGE;
	}
	while (!pipeline_source_get(p, i, &s) && s.source == VS_SOURCE_HOST)
		i++;
	if (pipeline_source_get(p, i, &s)) {
		fprintf(stderr, "vcpuscope clock: the recording has no guest\n");
		result = COMMAND_TROUBLE;
	} else {
		result = times_convert(p, s.source, in);
	}
	if (in != stdin)
		fclose(in);
	return result;
}

int clock_show(const char *recording, const char *convert, bool as_json)
{
	struct pipeline_options options = {.model = model_new()};
	struct pipeline *p = options.model ? pipeline_new(&options) : NULL;
	struct recording_info info;
	char why[512] = "out of memory";
	int result = COMMAND_TROUBLE;

	if (p && !replay_run(p, recording, &info, why, sizeof(why)))
		result = convert ? first_vm_convert(p, convert)
				 : accounts_write(p, options.model, as_json);
	else
		fprintf(stderr, "vcpuscope clock: %s\n", why);
	pipeline_free(p);
	model_free(options.model);
	return result;
}
