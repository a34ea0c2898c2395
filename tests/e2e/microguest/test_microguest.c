// SPDX-License-Identifier: GPL-2.0-only
/* Compares a guest's own reading of kvmclock with the value that the host computes for the same
 * moment. The engine that converts recordings computes it (clock_watch.h), from every source of
 * bpf/kvmclock/kvm_clock.h, and after every change of the clocks (clock_changes.h). Also tests it
 * through a collector, the command `clock`, and perf. */
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

#include "clock_changes.h"
#include "clock_watch.h"
#include "host-collector/record/collector.h"
#include "host-collector/record/unwind.h"
#include "bpf/isolation/opener.h"
#include "proto/frame.h"

enum { MILLION = 1000000 };

static void test_predicted_is_what_the_guest_reads(void **state)
{
	clock_changes_check(*state);
}

static void test_what_is_no_vm_is_said_to_be_none(void **state)
{
	struct watch w;
	const struct kvm_clock_sink sink = {watch_value, &w};
	char why[256] = "";

	(void)state;
	watch_start(&w, true, getpid());
	assert_int_equal(kvm_clock_snapshot(w.sources, getpid(), &sink, why, sizeof(why)), -ENOENT);
	assert_non_null(strstr(why, "no KVM vCPUs"));
	why[0] = '\0';
	assert_int_equal(kvm_clock_snapshot(w.sources, 1, &sink, why, sizeof(why)), -ENOENT);
	assert_true(why[0]);
	watch_stop(&w);
}

/* More changes than the ring holds: the loss is counted, and a snapshot makes up for it. */
static void test_after_losses_a_snapshot_knows(void **state)
{
	enum { CHANGES = 1500 };
	struct watch w;
	const struct kvm_clock_sink sink = {watch_value, &w};
	struct vmm *v = *state;
	struct vmm_pair pair;
	int64_t residual_ns;

	watch_start(&w, true, v->pid);
	assert_int_equal(vmm_create(v), 0);
	for (size_t i = 0; i < CHANGES; i++) {
		assert_int_equal(vmm_set_clock(v, MILLION), 0);
		assert_int_equal(vmm_read_clock(v, 0, &pair), 0);
	}
	assert_true(kvm_clock_drain(w.sources, &sink) > 0);
	assert_true(kvm_clock_dropped(w.sources) > 0);
	printf("%d changes at once: %" PRIu64 " lost\n", CHANGES, kvm_clock_dropped(w.sources));
	watch_snapshot(&w);
	watch_observe(&w, &pair);
	assert_true(watch_residual(&w, 0, &pair, &residual_ns));
	assert_int_equal(residual_ns, 0);
	watch_stop(&w);
}

static void test_two_vms_of_a_process_are_refused(void **state)
{
	struct vmm *v = *state;
	struct watch w;
	const struct kvm_clock_sink sink = {watch_value, &w};
	char why[256] = "";

	watch_start(&w, true, v->pid);
	assert_int_equal(vmm_create(v), 0);
	assert_int_equal(vmm_create(v), 0);
	assert_int_equal(kvm_clock_snapshot(w.sources, v->pid, &sink, why, sizeof(why)), -ENOTUNIQ);
	assert_non_null(strstr(why, "several VMs"));
	watch_stop(&w);
}

static void test_others_vms_are_not_ours(void **state)
{
	struct vmm *v = *state;
	struct watch w;

	watch_start(&w, false, getpid());
	assert_int_equal(vmm_create(v), 0);
	assert_int_equal(vmm_set_clock(v, MILLION), 0);
	watch_drain(&w);
	for (uint32_t vcpu = 0; vcpu < VMM_VCPUS; vcpu++)
		for (size_t source = 0; source < SOURCES; source++)
			for (size_t part = 0; part < PARTS; part++)
				assert_int_equal(w.n_values[vcpu][source][part], 0);
	watch_stop(&w);
}

/* `vcpuscope clock --pid`: its "now" lies between two readings of the guest's own. */
static void test_the_command_says_what_the_guest_reads(void **state)
{
	struct vmm *v = *state;
	struct vmm_pair before[VMM_VCPUS], after[VMM_VCPUS];
	const char *program = access(VCPUSCOPE, X_OK) ? "vcpuscope" : VCPUSCOPE;
	char command[512], line[512];
	size_t n_now = 0;
	bool agree = false;
	FILE *output;

	assert_int_equal(vmm_create(v), 0);
	assert_int_equal(offset_of_one(v), 0);
	for (uint32_t vcpu = 0; vcpu < VMM_VCPUS; vcpu++)
		assert_int_equal(vmm_read_clock(v, vcpu, &before[vcpu]), 0);
	snprintf(command, sizeof(command), "%s clock --pid %d", program, v->pid);
	assert_non_null(output = popen(command, "r"));
	while (fgets(line, sizeof(line), output)) {
		uint64_t host, guest, ns;
		uint32_t vcpu;

		printf("  %s", line);
		agree |= !strncmp(line, "sources agree", 13);
		if (sscanf(line,
			   "vcpu %u now host_tsc %" SCNu64 " guest_tsc %" SCNu64
			   " kvmclock_ns %" SCNu64,
			   &vcpu, &host, &guest, &ns) != 4)
			continue;
		assert_int_equal(vcpu, n_now++);
		assert_int_equal(vmm_read_clock(v, vcpu, &after[vcpu]), 0);
		assert_in_range(host, before[vcpu].host_after, after[vcpu].host_before);
		assert_in_range(guest, before[vcpu].guest_tsc, after[vcpu].guest_tsc);
		assert_in_range(ns, before[vcpu].kvmclock_ns, after[vcpu].kvmclock_ns);
	}
	assert_int_equal(pclose(output), 0);
	assert_int_equal(n_now, VMM_VCPUS);
	assert_true(agree);
}

/* ---- through the collector ---- */

struct recorded {
	struct watch watch;
	struct frame_unpacker *unpacker;
	uv_timer_t patience;
	size_t frames;
};

static void on_frame(void *context, uint32_t source, uint64_t arrival_tsc, struct frame_item *item)
{
	struct recorded *r = context;
	struct message_vm_clock m;
	struct frame_view frame;
	const uint8_t *payload;
	size_t payload_len;

	(void)source, (void)arrival_tsc;
	if (item->kind != FRAME_VM_CLOCK)
		return;
	assert_int_equal(frame_item_frame(item, &frame), 0);
	assert_int_equal(frame_unpack(r->unpacker, &frame, &payload, &payload_len), 0);
	assert_int_equal(message_vm_clock_unpack(payload, payload_len, &m), 0);
	m.vm = VM_NUMBER; /* the collector's own number is another */
	r->frames++;
	watch_value(&r->watch, &m);
}

static void on_line(void *context, const char *line)
{
	(void)context;
	printf("collector: %s\n", line);
}

static void on_end(void *context, const char *why)
{
	(void)context;
	fail_msg("%s", why);
}

static void on_patience(uv_timer_t *timer)
{
	uv_stop(timer->loop);
}

static void loop_for(uv_loop_t *loop, struct recorded *r, uint64_t ms)
{
	uv_timer_start(&r->patience, on_patience, ms, 0);
	uv_run(loop, UV_RUN_DEFAULT);
}

/*
 * Reads every vCPU's clocks several times. The engine may give no answer for a reading at a change:
 * the first after the VMM changed something, and the first after KVM sent its parameters again 100
 * ms later. Every answer is exact.
 */
static void readings_check(struct recorded *r, uv_loop_t *loop, struct vmm *v)
{
	static const uint64_t then_wait_ms[] = {150, 20, 20, 50};
	enum { READINGS = sizeof(then_wait_ms) / sizeof(then_wait_ms[0]) };
	struct vmm_pair pairs[READINGS][VMM_VCPUS];
	size_t answers[VMM_VCPUS] = {0};

	for (size_t i = 0; i < READINGS; i++) {
		for (uint32_t vcpu = 0; vcpu < VMM_VCPUS; vcpu++)
			assert_int_equal(vmm_read_clock(v, vcpu, &pairs[i][vcpu]), 0);
		loop_for(loop, r, then_wait_ms[i]);
	}
	for (size_t i = 0; i < READINGS; i++)
		for (uint32_t vcpu = 0; vcpu < VMM_VCPUS; vcpu++)
			watch_observe(&r->watch, &pairs[i][vcpu]);
	for (size_t i = 0; i < READINGS; i++)
		for (uint32_t vcpu = 0; vcpu < VMM_VCPUS; vcpu++) {
			int64_t residual_ns = 0;

			answers[vcpu] +=
				watch_residual(&r->watch, vcpu, &pairs[i][vcpu], &residual_ns);
			assert_int_equal(residual_ns, 0);
		}
	for (uint32_t vcpu = 0; vcpu < VMM_VCPUS; vcpu++) {
		printf("collector: vCPU %u: %zu of %d readings answered\n", vcpu, answers[vcpu],
		       READINGS);
		assert_true(answers[vcpu] >= READINGS / 2);
	}
}

/* A collector that attaches to a running VM records what explains every later reading. */
static void test_recorded_parameters_explain_what_the_guest_read(void **state)
{
	static struct recorded r;
	struct vmm *v = *state;
	const struct collector_options options = {.pid = v->pid};
	const struct collector_sink sink = {on_frame, on_line, on_end, &r};
	struct collector *c;
	uv_loop_t loop;
	char why[256] = "";

	assert_int_equal(vmm_create(v), 0);
	assert_int_equal(vmm_pin(v), 0);
	assert_int_equal(uv_loop_init(&loop), 0);
	uv_timer_init(&loop, &r.patience);
	assert_non_null(r.unpacker = frame_unpacker_new());
	assert_non_null(r.watch.clock = vm_clock_new());
	if (collector_open(&loop, &options, &sink, &c, why, sizeof(why)))
		fail_msg("%s", why);
	for (size_t i = 0; i < 3; i++) {
		if (i)
			assert_int_equal(i == 1 ? clock_forward(v) : offset_of_one(v), 0);
		readings_check(&r, &loop, v);
	}
	printf("collector: %zu VM_CLOCK frames, residual 0 ns\n", r.frames);
	for (uint32_t vcpu = 0; vcpu < VMM_VCPUS; vcpu++)
		for (int source = VM_CLOCK_PVCLOCK_UPDATE; source <= (int)VM_CLOCK_SOURCE_LAST;
		     source++)
			if (source != VM_CLOCK_MASTER_CLOCK)
				assert_true(r.watch.n_values[vcpu][source][TSC] +
					    r.watch.n_values[vcpu][source][LINE] +
					    (vcpu == 0 && source == VM_CLOCK_WRITE_TSC_OFFSET));
	collector_close(c);
	uv_close((uv_handle_t *)&r.patience, NULL);
	uv_run(&loop, UV_RUN_DEFAULT);
	assert_int_equal(uv_loop_close(&loop), 0);
	frame_unpacker_free(r.unpacker);
	vm_clock_free(r.watch.clock);
}

/* ---- the same through perf ---- */

enum { CHANGES_MAX = 512, APART_TICKS = 20 * MILLION };

struct changes {
	size_t n;
	struct message_vm_clock values[CHANGES_MAX];
};

static void on_change(void *context, const struct message_vm_clock *m)
{
	struct changes *c = context;

	assert_true(c->n < CHANGES_MAX);
	c->values[c->n++] = *m;
}

static int change_order(const void *a, const void *b)
{
	const struct message_vm_clock *x = a, *y = b;

	if (x->source != y->source)
		return x->source < y->source ? -1 : 1;
	if (x->vcpu != y->vcpu)
		return x->vcpu < y->vcpu ? -1 : 1;
	return (x->from_max > y->from_max) - (x->from_max < y->from_max);
}

static void change_compare(const struct message_vm_clock *a, const struct message_vm_clock *b)
{
	assert_int_equal(a->source, b->source);
	assert_int_equal(a->vcpu, b->vcpu);
	assert_int_equal(a->tsc.known, b->tsc.known);
	assert_int_equal(a->tsc.offset, b->tsc.offset);
	assert_int_equal(a->master.known, b->master.known);
	assert_int_equal(a->master.used, b->master.used);
	assert_int_equal(a->master.offsets_matched, b->master.offsets_matched);
	assert_memory_equal(&a->pvclock, &b->pvclock, sizeof(a->pvclock));
	/* Each stamps it by itself, and an emulated host may be held up between the two. */
	assert_true(a->from_min <= b->from_max + APART_TICKS &&
		    b->from_min <= a->from_max + APART_TICKS);
}

static void test_perf_says_the_same(void **state)
{
	static const enum backend_choice backends[2] = {CAPTURE_BY_BPF, CAPTURE_BY_PERF};
	static int (*const changes_made[])(struct vmm *) = {clock_forward, offset_of_one,
							    clock_back, offsets_equal_again};
	static struct changes seen[2], snapshots[2];
	struct kvm_clock *sources[2];
	struct vmm *v = *state;
	struct vmm_pair pair;
	char why[256] = "";

	assert_int_equal(vmm_create(v), 0);
	for (int i = 0; i < 2; i++) {
		if (kvm_clock_open(backends[i], &sources[i], why, sizeof(why)))
			fail_msg("%s", why);
		assert_int_equal(kvm_clock_follow(sources[i], v->pid, VM_NUMBER), 0);
	}
	for (size_t i = 0; i < sizeof(changes_made) / sizeof(changes_made[0]); i++) {
		assert_int_equal(changes_made[i](v), 0);
		for (uint32_t vcpu = 0; vcpu < VMM_VCPUS; vcpu++)
			assert_int_equal(vmm_read_clock(v, vcpu, &pair), 0);
		for (int k = 0; k < 2; k++)
			assert_true(kvm_clock_drain(sources[k], &(struct kvm_clock_sink){
									on_change, &seen[k]}) >= 0);
	}
	for (int k = 0; k < 2; k++) {
		const struct kvm_clock_sink sink = {on_change, &snapshots[k]};

		assert_int_equal(kvm_clock_dropped(sources[k]), 0);
		/* Perf's has what debugfs says. */
		if (kvm_clock_snapshot(sources[k], v->pid, &sink, why, sizeof(why)) < 0)
			print_message("%s: %s\n", k ? "perf" : "BPF", why);
		assert_true(snapshots[0].n > 0);
		kvm_clock_close(sources[k]);
		qsort(seen[k].values, seen[k].n, sizeof(seen[k].values[0]), change_order);
	}
	printf("perf: %zu changes, %zu by BPF; passive sources %zu and %zu\n", seen[1].n, seen[0].n,
	       snapshots[1].n, snapshots[0].n);
	assert_true(seen[0].n >= 4);
	assert_int_equal(seen[0].n, seen[1].n);
	for (size_t i = 0; i < seen[0].n; i++)
		change_compare(&seen[0].values[i], &seen[1].values[i]);
}

static int vmm_setup(void **state)
{
	struct vmm *v = malloc(sizeof(*v));

	*state = v;
	return v ? vmm_start(v) : -1;
}

static int vmm_teardown(void **state)
{
	vmm_stop(*state);
	free(*state);
	return 0;
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_predicted_is_what_the_guest_reads, vmm_setup,
						vmm_teardown),
		cmocka_unit_test_setup_teardown(test_after_losses_a_snapshot_knows, vmm_setup,
						vmm_teardown),
		cmocka_unit_test_setup_teardown(test_two_vms_of_a_process_are_refused, vmm_setup,
						vmm_teardown),
		cmocka_unit_test_setup_teardown(test_others_vms_are_not_ours, vmm_setup,
						vmm_teardown),
		cmocka_unit_test_setup_teardown(
			test_recorded_parameters_explain_what_the_guest_read, vmm_setup,
			vmm_teardown),
		cmocka_unit_test_setup_teardown(test_the_command_says_what_the_guest_reads,
						vmm_setup, vmm_teardown),
		cmocka_unit_test_setup_teardown(test_perf_says_the_same, vmm_setup, vmm_teardown),
		cmocka_unit_test(test_what_is_no_vm_is_said_to_be_none),
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
	setvbuf(stdout, NULL, _IOLBF, 0);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
