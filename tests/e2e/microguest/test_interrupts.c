// SPDX-License-Identifier: GPL-2.0-only
/* Compares the interrupts in a recording of the collector with those that the VMM raised and
 * with the stamps of the guest's handlers. The micro-guest gets interrupts in every way that KVM's
 * in-kernel controllers support. The recording must have exactly these interrupts, with their
 * sources. */
#include <errno.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>
#include <cmocka.h>

#include "host-collector/engine/replay.h"
#include "host-collector/record/unwind.h"
#include "bpf/isolation/opener.h"
#include "irq_machine.h"
#include "irq_chains.h"
#include "irq_scene.h"

static int scene_new(void **state)
{
	static struct irq_scene s;
	const char *full = getenv("VCPUSCOPE_TEST_FULL");
	bool all = full && strcmp(full, "1") == 0;

	*state = &s; /* freed also where the making fails */
	irq_scene_make(&s, "interrupts.vcs",
		       all ? IRQ_SCENE_INTERRUPTS_FULL : IRQ_SCENE_INTERRUPTS);
	return 0;
}

static int scene_free(void **state)
{
	irq_scene_free(*state);
	return 0;
}

/* ---- the host's half ---- */

static void test_nothing_was_lost(void **state)
{
	const struct irq_scene *s = *state;
	uint64_t of_kind[IRQ_KIND_COUNT] = {0}, merged = 0, again = 0, halted = 0;

	assert_int_equal(s->stats.events.dropped_kernel, 0);
	assert_int_equal(s->stats.events.dropped_user, 0);
	for (size_t i = 0; i < s->n_raised; i++) {
		of_kind[s->raised[i].kind]++;
		merged += s->raised[i].merged;
		again += s->raised[i].again;
		halted += s->raised[i].mode == IRQ_GUEST_HALT;
	}
	printf("%zu interrupts, %" PRIu64 " of them at a halted vCPU, %" PRIu64
	       " merged into the one before, %" PRIu64
	       " of a line that was still up; %zu events of the host\n",
	       s->n_raised, halted, merged, again, s->n_host);
	for (int kind = 0; kind < IRQ_KIND_COUNT; kind++) {
		printf("  %-20s %" PRIu64 "\n", irq_kind_name(kind), of_kind[kind]);
		assert_true(of_kind[kind] >= IRQ_SCENE_INTERRUPTS / 20);
	}
}

static bool is_source(uint16_t type)
{
	return type == VS_EVENT_KVM_MSI || type == VS_EVENT_KVM_SET_IRQ || type == VS_EVENT_KVM_IPI;
}

/* What the same thread raised last before event `at`; NULL: nothing. */
static const struct vs_event *source_before(const struct irq_scene *s, size_t at)
{
	const struct vs_event *accept = &s->host[at].event;

	while (at-- > 0) {
		const struct vs_event *e = &s->host[at].event;

		if (e->pid == accept->pid && e->cpu == accept->cpu && is_source(e->type))
			return e;
	}
	return NULL;
}

static bool gsi_fits(const struct irq_raised *r, uint64_t arg0)
{
	static const uint32_t gsis[IRQ_KIND_COUNT][2] = {
		[IRQ_KIND_EDGE] = {IRQ_GSI_EDGE, IRQ_GSI_EDGE_SHARED},
		[IRQ_KIND_LEVEL] = {IRQ_GSI_LEVEL, IRQ_GSI_LEVEL},
		[IRQ_KIND_IRQFD_PIN] = {IRQ_GSI_IRQFD_PIN, IRQ_GSI_IRQFD_PIN},
	};
	bool shared = r->vector == IRQ_VECTOR_SHARED;

	return arg0 == ((uint64_t)gsis[r->kind][shared] + r->vcpu + (1ull << 32));
}

static bool source_fits(const struct irq_raised *r, const struct vs_event *e)
{
	switch (r->kind) {
	case IRQ_KIND_MSI:
	case IRQ_KIND_IRQFD_MSI:
		return e && e->type == VS_EVENT_KVM_MSI && (e->arg1 & 0xff) == r->vector &&
		       (e->arg0 >> 12 & 0xff) == r->vcpu;
	case IRQ_KIND_IPI:
		return e && e->type == VS_EVENT_KVM_IPI && (e->arg0 & 0xff) == r->vector &&
		       e->arg1 == r->vcpu;
	case IRQ_KIND_TIMER:
		return true; /* has no event of its own */
	default:
		return r->again || (e && e->type == VS_EVENT_KVM_SET_IRQ && gsi_fits(r, e->arg0));
	}
}

/* Every one was accepted where and when it was raised, and nothing else was. */
static void test_each_is_accepted_once_from_its_source(void **state)
{
	const struct irq_scene *s = *state;
	size_t found = 0, accepts = 0;
	bool *taken = calloc(s->n_raised, sizeof(*taken));

	assert_non_null(taken);
	for (size_t i = 0; i < s->n_host; i++) {
		const struct vs_event *e = &s->host[i].event;
		uint32_t vector = (uint32_t)e->arg0, vcpu = (uint32_t)(e->arg0 >> 32);
		size_t k = 0;

		if (e->type != VS_EVENT_KVM_ACCEPT_IRQ)
			continue;
		accepts++;
		/* The oldest of this vector and vCPU that is not accepted yet. */
		while (k < s->n_raised &&
		       (taken[k] || s->raised[k].vcpu != vcpu || s->raised[k].vector != vector))
			k++;
		if (k == s->n_raised)
			fail_msg("vector %#x of vCPU %u accepted, which nobody raised", vector,
				 vcpu);
		taken[k] = true;
		found++;
		if (!source_fits(&s->raised[k], source_before(s, i)))
			fail_msg("vector %#x of vCPU %u (%s): another source", vector, vcpu,
				 irq_kind_name(s->raised[k].kind));
		assert_true(e->time + s->host[i].err >= s->raised[k].before);
		assert_true(e->time - s->host[i].err <=
			    irq_scene_host_tsc(s, vcpu, irq_scene_run(s, &s->raised[k])->entry));
	}
	free(taken);
	assert_int_equal(found, s->n_raised);
	assert_int_equal(accepts, s->n_raised);
}

/* ---- the guest's half, through the pipeline ---- */

struct replayed {
	const struct irq_scene *scene;
	struct pipeline *pipeline;
	uint64_t error_ns; /* what a report says of the guest's clock */
	uint64_t worst_ns; /* how far off its stamps are */
	size_t interrupts;
	uint64_t next[IRQ_VMM_VCPUS]; /* run of its log */
};

static void check_near(struct replayed *x, uint32_t vcpu, uint64_t guest, struct host_ns reported)
{
	struct host_ns truth;
	uint64_t off;

	assert_true(
		pipeline_host_ns(x->pipeline, irq_scene_host_tsc(x->scene, vcpu, guest), &truth));
	off = (uint64_t)llabs(reported.ns - truth.ns);
	if (off > x->worst_ns)
		x->worst_ns = off;
}

static void on_interrupt(void *context, const struct guest_interrupt *i)
{
	struct replayed *x = context;
	const struct irq_guest_cpu *cpu = irq_vmm_cpu(&x->scene->vmm, i->cpu);
	uint64_t run = x->next[i->cpu]++;

	assert_true(i->whole);
	assert_true(run < cpu->n_log);
	check_near(x, i->cpu, cpu->log[run].entry, i->begin);
	check_near(x, i->cpu, cpu->log[run].exit, i->end);
	x->interrupts++;
}

static void test_the_guests_half_is_where_the_guest_stamped_it(void **state)
{
	struct replayed x = {.scene = *state};
	struct model *model = model_new();
	const struct pipeline_options options = {.model = model};
	const struct model_observer observer = {.guest_interrupt = on_interrupt, .context = &x};
	struct pipeline_source guest = {0};
	struct recording_info info;
	char why[256] = "";

	assert_non_null(model);
	assert_int_equal(model_observe(model, &observer), 0);
	assert_non_null(x.pipeline = pipeline_new(&options));
	if (replay_run(x.pipeline, x.scene->path, &info, why, sizeof(why)))
		fail_msg("%s", why);
	for (size_t i = 0; !pipeline_source_get(x.pipeline, i, &guest); i++) {
		if (guest.source == IRQ_RECORDING_VM)
			break;
	}
	printf("guest's clock by %s, +-%" PRIu64 " ns; its handlers off by %" PRIu64
	       " ns at most; %" PRIu64 " causal pairs, %" PRIu64 " violated\n",
	       guest.clock_method, guest.clock_error_ns, x.worst_ns, guest.causality_pairs,
	       guest.causality_violations);
	assert_int_equal(x.interrupts, irq_vmm_cpu(&x.scene->vmm, 0)->n_log +
					       irq_vmm_cpu(&x.scene->vmm, 1)->n_log);
	assert_true(x.worst_ns <= guest.clock_error_ns);
	assert_string_equal(guest.clock_method, "tsc");
	assert_int_equal(guest.causality_violations, 0);
	assert_int_equal(guest.missing, 0);
	assert_int_equal(guest.late, 0);
	pipeline_free(x.pipeline);
	model_free(model);
}

static void test_chains_are_what_was_raised(void **state)
{
	irq_chains_check(*state);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nothing_was_lost),
		cmocka_unit_test(test_each_is_accepted_once_from_its_source),
		cmocka_unit_test(test_the_guests_half_is_where_the_guest_stamped_it),
		cmocka_unit_test(test_chains_are_what_was_raised),
	};

	if (opener_is_meant(argc, argv))
		_exit(opener_main(&unwind_body));
	if (access("/dev/kvm", R_OK | W_OK)) {
		printf("/dev/kvm: %s; no guest can be run\n", strerror(errno));
		return 77;
	}
	if (geteuid()) {
		printf("needs root, for BPF and debugfs\n");
		return 77;
	}
	/* Thousands of turns of the VMM and its vCPUs, and captures that must be drained in time:
	 * ahead of what else runs here. */
	setpriority(PRIO_PROCESS, 0, -20);
	setvbuf(stdout, NULL, _IOLBF, 0);
	return cmocka_run_group_tests(tests, scene_new, scene_free);
}
