// SPDX-License-Identifier: GPL-2.0-only
/*
 * Interrupts of a guest of our own, raised in every way that KVM's in-kernel controllers know, as
 * the collector records them, against what the VMM raised and what the guest's handlers stamped:
 * every one is there, where it was raised, and nothing else is.
 */
#include <errno.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "clock/sample.h"
#include "host-collector/cli/replay.h"
#include "irq_machine.h"
#include "irq_recording.h"
#include "proto/codec.h"
#include "proto/recording.h"

enum {
	INTERRUPTS = 1000,
	INTERRUPTS_FULL = 5000,
	SEED = 1,
	TURN_MS = 20,
	PLAY_MS = 60000,
	HOST_EVENTS_MAX = 1 << 20,
	ROOM = 4096, /* of a recording's path */
};

struct host_event {
	struct vs_event event;
	uint64_t err; /* of its time, ticks */
};

struct scene {
	struct irq_vmm vmm;
	char path[ROOM];
	struct host_stream_stats stats;
	size_t n_host;
	struct host_event *host; /* by time */
	/* The truth, in the order in which each vCPU's vectors came. */
	size_t n_raised;
	struct irq_raised *raised;
};

/* ---- setting the scene ---- */

static const struct irq_guest_entry *run_of(const struct scene *s, const struct irq_raised *r)
{
	return &irq_vmm_cpu(&s->vmm, r->vcpu)->log[r->log];
}

static uint64_t host_tsc(const struct scene *s, uint32_t vcpu, uint64_t guest)
{
	return guest - s->vmm.truth->tsc_offset[vcpu];
}

static int by_time(const void *a, const void *b)
{
	const struct vs_event *x = &((const struct host_event *)a)->event;
	const struct vs_event *y = &((const struct host_event *)b)->event;

	if (x->time != y->time)
		return x->time < y->time ? -1 : 1;
	if (x->cpu != y->cpu)
		return x->cpu < y->cpu ? -1 : 1;
	return (int32_t)(x->seq - y->seq);
}

static int by_run(const void *a, const void *b)
{
	const struct irq_raised *x = a, *y = b;

	if (x->vcpu != y->vcpu)
		return x->vcpu < y->vcpu ? -1 : 1;
	if (x->log != y->log)
		return x->log < y->log ? -1 : 1;
	return x->merged - y->merged;
}

static void batch_take(struct scene *s, struct batch_decoder *decoder, const uint8_t *payload,
		       size_t len)
{
	struct batch b;

	assert_int_equal(batch_decode(decoder, payload, len, &b), 0);
	for (size_t i = 0; i < b.n_events; i++) {
		assert_true(s->n_host < HOST_EVENTS_MAX);
		assert_int_not_equal(b.events[i].type, VS_EVENT_LOST);
		s->host[s->n_host++] = (struct host_event){b.events[i], b.time_err};
	}
}

static void host_read(struct scene *s)
{
	struct batch_decoder *decoder = batch_decoder_new();
	struct frame_unpacker *unpacker = frame_unpacker_new();
	struct recording_reader *reader;
	struct recording_entry entry;
	const uint8_t *payload;
	size_t len;

	s->host = calloc(HOST_EVENTS_MAX, sizeof(*s->host));
	assert_true(decoder && unpacker && s->host);
	assert_int_equal(recording_reader_open(s->path, &reader), 0);
	while (recording_reader_next(reader, &entry) > 0) {
		if (entry.source != VS_SOURCE_HOST || entry.frame.header.kind != FRAME_BATCH)
			continue;
		assert_int_equal(frame_unpack(unpacker, &entry.frame, &payload, &len), 0);
		batch_take(s, decoder, payload, len);
	}
	assert_true(recording_reader_info(reader)->closed);
	recording_reader_close(reader);
	frame_unpacker_free(unpacker);
	batch_decoder_free(decoder);
	qsort(s->host, s->n_host, sizeof(*s->host), by_time);
}

static void truth_take(struct scene *s)
{
	const struct irq_truth *t = s->vmm.truth;

	s->n_raised = t->n_raised;
	s->raised = malloc(s->n_raised * sizeof(*s->raised));
	assert_non_null(s->raised);
	memcpy(s->raised, t->raised, s->n_raised * sizeof(*s->raised));
	/* What the guest raised itself: no earlier than its command began to run. */
	for (size_t i = 0; i < s->n_raised; i++) {
		struct irq_raised *r = &s->raised[i];

		if (r->kind == IRQ_KIND_IPI || r->kind == IRQ_KIND_TIMER)
			r->before = host_tsc(s, t->raised[r->sender].vcpu,
					     run_of(s, &t->raised[r->sender])->entry);
	}
	qsort(s->raised, s->n_raised, sizeof(*s->raised), by_run);
}

static void record(struct scene *s, uint32_t count)
{
	struct irq_recording *recording;
	char why[256] = "";
	int error;

	error = irq_vmm_start(&s->vmm);
	if (error)
		fail_msg("%s (%s)", s->vmm.truth ? s->vmm.truth->error : "", strerror(-error));
	if (irq_recording_open(s->path, &s->vmm, &recording, why, sizeof(why)))
		fail_msg("%s", why);
	assert_int_equal(irq_vmm_play(&s->vmm, count, SEED), 0);
	for (int ms = 0; (error = irq_vmm_wait(&s->vmm, TURN_MS)) == -ETIME; ms += TURN_MS) {
		assert_true(ms < PLAY_MS);
		assert_int_equal(irq_recording_turn(recording), 0);
	}
	if (error)
		fail_msg("%s (%s)", s->vmm.truth->error, strerror(-error));
	assert_int_equal(irq_recording_close(recording, &s->vmm, &s->stats), 0);
}

static int scene_new(void **state)
{
	static struct scene s;
	const char *full = getenv("VCPUSCOPE_TEST_FULL");

	snprintf(s.path, sizeof(s.path), "%s", "interrupts.vcs");
	record(&s, full && strcmp(full, "1") == 0 ? INTERRUPTS_FULL : INTERRUPTS);
	host_read(&s);
	truth_take(&s);
	*state = &s;
	return 0;
}

static int scene_free(void **state)
{
	struct scene *s = *state;

	irq_vmm_stop(&s->vmm);
	free(s->host);
	free(s->raised);
	return 0;
}

/* ---- the host's half ---- */

static void test_nothing_was_lost(void **state)
{
	const struct scene *s = *state;
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
		assert_true(of_kind[kind] >= INTERRUPTS / 20);
	}
}

static bool is_source(uint16_t type)
{
	return type == VS_EVENT_KVM_MSI || type == VS_EVENT_KVM_SET_IRQ || type == VS_EVENT_KVM_IPI;
}

/* What the same thread raised last before event `at`; NULL: nothing. */
static const struct vs_event *source_before(const struct scene *s, size_t at)
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
	const struct scene *s = *state;
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
			    host_tsc(s, vcpu, run_of(s, &s->raised[k])->entry));
	}
	free(taken);
	assert_int_equal(found, s->n_raised);
	assert_int_equal(accepts, s->n_raised);
}

/* ---- the guest's half, through the pipeline ---- */

struct replayed {
	const struct scene *scene;
	struct pipeline *pipeline;
	uint64_t error_ns; /* what a report says of the guest's clock */
	uint64_t worst_ns; /* how far off its stamps are */
	size_t interrupts;
	uint64_t next[IRQ_VMM_VCPUS]; /* run of its log */
};

static void check_near(struct replayed *x, uint32_t vcpu, uint64_t guest, struct host_ns told)
{
	struct host_ns truth;
	uint64_t off;

	assert_true(pipeline_host_ns(x->pipeline, host_tsc(x->scene, vcpu, guest), &truth));
	off = (uint64_t)llabs(told.ns - truth.ns);
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nothing_was_lost),
		cmocka_unit_test(test_each_is_accepted_once_from_its_source),
		cmocka_unit_test(test_the_guests_half_is_where_the_guest_stamped_it),
	};

	if (access("/dev/kvm", R_OK | W_OK)) {
		printf("/dev/kvm: %s; no guest can be run\n", strerror(errno));
		return 77;
	}
	if (geteuid()) {
		printf("needs root, for BPF and debugfs\n");
		return 77;
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	return cmocka_run_group_tests(tests, scene_new, scene_free);
}
