// SPDX-License-Identifier: GPL-2.0-only
/*
 * A guest's own reading of kvmclock against what its host computes for that moment, through what
 * every source of bpf/kvm_clock.h says: watched from the VM's birth (tracepoints only), and by a
 * collector that attaches after each change (passive sources only). Two vCPUs; everything that can
 * move their clocks is done to them in turn.
 *
 * How the prediction is made: the guest hands out (guest TSC, kvmclock). The TSC offset turns the
 * first into the host TSC of the reading, which must lie within what the VMM saw around its entry
 * into the guest; from that host TSC alone the vCPU's map computes kvmclock. The difference to what
 * the guest read is the residual.
 */
#include <errno.h>
#include <inttypes.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#include "bpf/kvm_clock.h"
#include "clock/map.h"
#include "clock/sample.h"
#include "host-collector/record/collector.h"
#include "proto/frame.h"
#include "vmm.h"

enum {
	PAIRS = 60, /* per vCPU and phase */
	PENDING_MAX = 1000,
	MASTER_OFF_NS = 100,
	VM_NUMBER = 7,
	SOURCES = VM_CLOCK_SOURCE_LAST + 1,
	MILLION = 1000000,
};

enum part { TSC, LINE, MASTER, PARTS };

/* A collector: sources, what each of them said, and a map per vCPU. */
struct watch {
	struct kvm_clock *sources;
	pid_t pid;
	enum vm_clock_source line_source; /* which source's pvclock parameters make the maps */
	struct clock_map *maps[VMM_VCPUS];
	struct clock_params params[VMM_VCPUS];
	bool offset_known[VMM_VCPUS];
	size_t n_pending;
	struct message_vm_clock pending[PENDING_MAX];
	struct message_vm_clock last[VMM_VCPUS][SOURCES][PARTS];
	size_t n_values[VMM_VCPUS][SOURCES][PARTS];
};

static bool feeds_map(const struct watch *w, const struct message_vm_clock *m)
{
	if (m->source == VM_CLOCK_VCPU)
		return m->tsc.known; /* the offset in force */
	return m->source == w->line_source;
}

static void on_value(void *context, const struct message_vm_clock *m)
{
	struct watch *w = context;
	enum part part;

	assert_int_equal(m->vm, VM_NUMBER);
	assert_true(m->vcpu < VMM_VCPUS);
	assert_true(m->from_min <= m->from_max);
	assert_int_equal(m->tsc.known + m->pvclock.known + m->master.known, 1);
	part = m->tsc.known ? TSC : m->pvclock.known ? LINE : MASTER;
	w->last[m->vcpu][m->source][part] = *m;
	w->n_values[m->vcpu][m->source][part]++;
	if (!feeds_map(w, m))
		return;
	assert_true(w->n_pending < PENDING_MAX);
	w->pending[w->n_pending++] = *m;
}

static int older(const void *a, const void *b)
{
	const struct message_vm_clock *p = a, *q = b;

	return p->from_min < q->from_min ? -1 : p->from_min > q->from_min;
}

/* What was handed out since the last time goes into the maps, oldest first. */
static void maps_update(struct watch *w)
{
	qsort(w->pending, w->n_pending, sizeof(*w->pending), older);
	for (size_t i = 0; i < w->n_pending; i++) {
		const struct message_vm_clock *m = &w->pending[i];
		struct clock_params *p = &w->params[m->vcpu];

		if (m->source == VM_CLOCK_VCPU) {
			p->scaling = (struct tsc_scaling){.offset = m->tsc.offset,
							  .ratio = m->tsc.ratio,
							  .frac_bits = m->tsc.frac_bits};
			w->offset_known[m->vcpu] = true;
		} else {
			p->has_pvclock = true;
			p->pvclock = (struct pvclock){.tsc_timestamp = m->pvclock.tsc_timestamp,
						      .system_time = m->pvclock.system_time,
						      .mul = m->pvclock.mul,
						      .shift = m->pvclock.shift,
						      .flags = m->pvclock.flags};
		}
		/* The vCPU is in the host from from_min to from_max: both are right. */
		if (w->offset_known[m->vcpu])
			assert_true(clock_map_push(w->maps[m->vcpu], (struct host_tsc){m->from_min},
						   p) >= 0);
	}
	w->n_pending = 0;
}

static void watch_start(struct watch *w, bool passive, pid_t pid)
{
	char why[256] = "";

	memset(w, 0, sizeof(*w));
	w->line_source = passive ? VM_CLOCK_GUEST_PAGE : VM_CLOCK_PVCLOCK_UPDATE;
	w->pid = pid;
	if (kvm_clock_open(CAPTURE_BY_BPF, &w->sources, why, sizeof(why)))
		fail_msg("%s", why);
	for (uint32_t vcpu = 0; vcpu < VMM_VCPUS; vcpu++)
		assert_non_null(w->maps[vcpu] = clock_map_new());
	assert_int_equal(kvm_clock_follow(w->sources, pid, VM_NUMBER), 0);
}

static void watch_stop(struct watch *w)
{
	for (uint32_t vcpu = 0; vcpu < VMM_VCPUS; vcpu++)
		clock_map_free(w->maps[vcpu]);
	kvm_clock_close(w->sources);
}

static size_t writes(const struct watch *w)
{
	size_t n = 0;

	for (uint32_t vcpu = 0; vcpu < VMM_VCPUS; vcpu++)
		n += w->n_values[vcpu][VM_CLOCK_WRITE_TSC_OFFSET][TSC];
	return n;
}

static void snapshot(struct watch *w)
{
	const struct kvm_clock_sink sink = {on_value, w};
	char why[256] = "";

	if (kvm_clock_snapshot(w->sources, w->pid, &sink, why, sizeof(why)) != VMM_VCPUS)
		fail_msg("snapshot: %s", why);
	maps_update(w);
}

static void drain(struct watch *w)
{
	const struct kvm_clock_sink sink = {on_value, w};
	size_t before = writes(w);

	assert_true(kvm_clock_drain(w->sources, &sink) >= 0);
	assert_int_equal(kvm_clock_dropped(w->sources), 0);
	if (writes(w) > before)
		snapshot(w); /* what became of the request */
	maps_update(w);
}

/* Guest kvmclock minus what `w` predicts, ns. */
static int64_t residual(const struct watch *w, uint32_t vcpu, const struct vmm_pair *pair)
{
	const struct guest_tsc read = {pair->guest_tsc};
	struct kvmclock_ns predicted;
	struct host_tsc host;
	uint64_t span;

	assert_true(clock_map_from_guest_tsc(w->maps[vcpu], read, &host, &span));
	assert_in_range(host.ticks, pair->host_before, pair->host_after);
	assert_true(clock_map_kvmclock(w->maps[vcpu], host, &predicted));
	return (int64_t)(pair->kvmclock_ns - predicted.ns);
}

struct summary {
	size_t n;
	uint64_t worst_ns, bracket_ticks; /* the narrowest */
};

static void measure(struct vmm *v, struct watch *w, struct summary *s)
{
	struct vmm_pair pairs[VMM_VCPUS][PAIRS];

	*s = (struct summary){.bracket_ticks = UINT64_MAX};
	for (size_t i = 0; i < PAIRS; i++) {
		for (uint32_t vcpu = 0; vcpu < VMM_VCPUS; vcpu++)
			assert_int_equal(vmm_read_clock(v, vcpu, &pairs[vcpu][i]), 0);
		if (i % 20 == 19)
			drain(w);
	}
	drain(w);
	for (size_t i = 0; i < PAIRS; i++)
		for (uint32_t vcpu = 0; vcpu < VMM_VCPUS; vcpu++) {
			const struct vmm_pair *pair = &pairs[vcpu][i];
			uint64_t off = (uint64_t)llabs(residual(w, vcpu, pair));
			uint64_t bracket = pair->host_after - pair->host_before;

			s->n++;
			s->worst_ns = off > s->worst_ns ? off : s->worst_ns;
			s->bracket_ticks = bracket < s->bracket_ticks ? bracket : s->bracket_ticks;
		}
}

/* ---- what is done to the VM ---- */

static int nothing(struct vmm *v)
{
	(void)v;
	return 0;
}

static int clock_forward(struct vmm *v)
{
	return vmm_set_clock(v, 1234567890);
}

static int clock_back(struct vmm *v)
{
	return vmm_set_clock(v, -345678901);
}

static int offset_of_one(struct vmm *v)
{
	uint64_t offset;
	int error = vmm_offset(v, 0, &offset);

	return error ? error : vmm_set_offset(v, 1, offset + 5 * MILLION);
}

/* KVM compares with the last written one, so both have to be written. */
static int offsets_set(struct vmm *v, int64_t change)
{
	uint64_t offset;
	int error = vmm_offset(v, 0, &offset);

	offset += (uint64_t)change;
	for (uint32_t vcpu = VMM_VCPUS; vcpu-- && !error;)
		error = vmm_set_offset(v, vcpu, offset);
	return error;
}

static int offsets_equal_again(struct vmm *v)
{
	return offsets_set(v, 0);
}

static int offsets_of_both(struct vmm *v)
{
	return offsets_set(v, -700 * (int64_t)MILLION);
}

static int guest_writes_tsc(struct vmm *v)
{
	return vmm_guest_adds_to_tsc(v, 0, 3 * MILLION);
}

static int scale(struct vmm *v)
{
	return vmm_scale(v, 800);
}

static const struct phase {
	const char *name;
	int (*act)(struct vmm *v);
	bool master; /* afterwards */
	bool line;   /* each vCPU gets another one */
} phases[] = {
	{"fresh", nothing, true, false},
	{"KVM_SET_CLOCK +1.23 s", clock_forward, true, true},
	{"KVM_SET_CLOCK -0.35 s", clock_back, true, true},
	{"KVM_KVMCLOCK_CTRL", vmm_tell_paused, true, false},
	{"offset of vCPU 1", offset_of_one, false, true},
	{"KVM_SET_CLOCK, master off", clock_forward, false, true},
	{"KVM_KVMCLOCK_CTRL, master off", vmm_tell_paused, false, true},
	{"offsets equal again", offsets_equal_again, true, true},
	{"offsets of both", offsets_of_both, true, true},
	{"guest writes its TSC", guest_writes_tsc, true, false},
	{"TSC scaled to 0.8", scale, true, true},
};
enum { N_PHASES = sizeof(phases) / sizeof(*phases) };

struct offsets {
	uint64_t of[VMM_VCPUS];
};

static struct offsets offsets_in_force(struct vmm *v)
{
	struct offsets o;

	for (uint32_t vcpu = 0; vcpu < VMM_VCPUS; vcpu++)
		assert_int_equal(vmm_offset(v, vcpu, &o.of[vcpu]), 0);
	return o;
}

/* A change that was made is there, dated within [began, ended]; what was not made is not. */
static void check_change(const struct phase *phase, const struct watch *w, const struct watch *then,
			 uint32_t vcpu, enum vm_clock_source source, enum part part, bool expected,
			 uint64_t began, uint64_t ended)
{
	size_t n = w->n_values[vcpu][source][part] - then->n_values[vcpu][source][part];
	const struct message_vm_clock *last = &w->last[vcpu][source][part];

	if (!n != !expected)
		fail_msg("%s: vCPU %u: %zu changes by source %d, expected %s", phase->name, vcpu, n,
			 source, expected ? "some" : "none");
	if (n) {
		assert_true(last->from_max >= began && last->from_min <= ended);
		assert_true(last->from_max - last->from_min < ended - began);
	}
}

static void check_epochs(const struct phase *phase, const struct watch *w, const struct watch *then,
			 const struct offsets *before, const struct offsets *after, uint64_t began,
			 uint64_t ended)
{
	for (uint32_t vcpu = 0; vcpu < VMM_VCPUS; vcpu++) {
		check_change(phase, w, then, vcpu, VM_CLOCK_PVCLOCK_UPDATE, LINE, phase->line,
			     began, ended);
		if (before->of[vcpu] == after->of[vcpu])
			continue;
		check_change(phase, w, then, vcpu, VM_CLOCK_VCPU, TSC, true, began, ended);
		/* Dated by the tracepoint, not by when it was looked at. */
		assert_int_equal(w->last[vcpu][VM_CLOCK_VCPU][TSC].from_min,
				 w->last[vcpu][VM_CLOCK_WRITE_TSC_OFFSET][TSC].from_min);
		assert_int_equal(w->last[vcpu][VM_CLOCK_VCPU][TSC].from_max,
				 w->last[vcpu][VM_CLOCK_WRITE_TSC_OFFSET][TSC].from_max);
	}
}

/* How often a written offset did, and did not, take effect. */
struct tally {
	size_t applied, refused;
};

/* All sources agree, now that nothing moves, with each other and with KVM's own word. */
static void check_agreement(struct vmm *v, const struct watch *w, struct tally *tally)
{
	for (uint32_t vcpu = 0; vcpu < VMM_VCPUS; vcpu++) {
		const struct message_vm_clock(*last)[PARTS] = w->last[vcpu];
		struct message_vm_clock_pvclock traced =
							last[VM_CLOCK_PVCLOCK_UPDATE][LINE].pvclock,
						page = last[VM_CLOCK_GUEST_PAGE][LINE].pvclock;
		struct message_vm_clock_pvclock kept;
		uint64_t offset = 0;
		bool master;

		assert_int_equal(vmm_offset(v, vcpu, &offset), 0);
		assert_int_equal(last[VM_CLOCK_VCPU][TSC].tsc.offset, offset);
		assert_int_equal(last[VM_CLOCK_DEBUGFS][TSC].tsc.offset, offset);
		if (last[VM_CLOCK_WRITE_TSC_OFFSET][TSC].tsc.offset != offset)
			tally->refused++;
		assert_true(last[VM_CLOCK_VCPU][TSC].tsc.scaling_known);
		assert_true(last[VM_CLOCK_DEBUGFS][TSC].tsc.scaling_known);
		assert_int_equal(last[VM_CLOCK_VCPU][TSC].tsc.frac_bits,
				 last[VM_CLOCK_DEBUGFS][TSC].tsc.frac_bits);
		assert_int_equal(last[VM_CLOCK_VCPU][TSC].tsc.ratio,
				 last[VM_CLOCK_DEBUGFS][TSC].tsc.ratio);
		/* Kept when the values were new: repetitions change versions and flags. */
		kept = last[VM_CLOCK_VCPU][LINE].pvclock;
		traced.version = page.version = kept.version = 0;
		traced.flags &= PVCLOCK_TSC_STABLE;
		page.flags &= PVCLOCK_TSC_STABLE;
		assert_true(page.known);
		assert_memory_equal(&page, &traced, sizeof(page));
		kept.flags &= PVCLOCK_TSC_STABLE;
		if (kept.known) /* kernels that keep what they published */
			assert_memory_equal(&page, &kept, sizeof(page));
		assert_int_equal(vmm_master_clock(v, &master), 0);
		assert_int_equal(w->last[0][VM_CLOCK_VCPU][MASTER].master.used, master);
		assert_int_equal(page.flags & PVCLOCK_TSC_STABLE ? 1 : 0, master);
	}
}

static void check_summary(const struct phase *phase, const char *how, const struct summary *s)
{
	printf("%-30s %-8s master %-3s %3zu pairs, worst residual %" PRIu64
	       " ns, entry bracket >= %" PRIu64 " ticks\n",
	       phase->name, how, phase->master ? "on" : "off", s->n, s->worst_ns, s->bracket_ticks);
	if (s->worst_ns > (phase->master ? 0 : MASTER_OFF_NS))
		fail_msg("%s, %s: residual %" PRIu64 " ns", phase->name, how, s->worst_ns);
}

/*
 * So that the rest of the test sees no update: KVM sends the other vCPUs' parameters again 100 ms
 * after it changed one's, and without the master clock at every migration of a vCPU's thread.
 */
static void settle(struct vmm *v, struct watch *early)
{
	struct vmm_pair pair;
	cpu_set_t all, one;

	CPU_ZERO(&one);
	assert_int_equal(sched_getaffinity(v->pid, sizeof(all), &all), 0);
	for (int cpu = 0; cpu < CPU_SETSIZE && !CPU_COUNT(&one); cpu++)
		if (CPU_ISSET(cpu, &all))
			CPU_SET(cpu, &one);
	assert_int_equal(sched_setaffinity(v->pid, sizeof(one), &one), 0);
	/* The migration may be the cause of one more round. */
	for (int round = 0; round < 3; round++) {
		for (uint32_t vcpu = 0; vcpu < VMM_VCPUS; vcpu++)
			assert_int_equal(vmm_read_clock(v, vcpu, &pair), 0);
		drain(early);
		usleep(150 * 1000);
	}
	for (uint32_t vcpu = 0; vcpu < VMM_VCPUS; vcpu++)
		assert_int_equal(vmm_read_clock(v, vcpu, &pair), 0);
	drain(early);
}

static void unpin(struct vmm *v)
{
	cpu_set_t all;

	assert_int_equal(sched_getaffinity(0, sizeof(all), &all), 0);
	assert_int_equal(sched_setaffinity(v->pid, sizeof(all), &all), 0);
}

static void run_phase(struct vmm *v, struct watch *early, const struct phase *phase,
		      struct tally *tally)
{
	struct watch late, before = *early;
	struct offsets were = offsets_in_force(v), are;
	struct summary s;
	uint64_t began;
	bool master;

	began = clock_tsc_read();
	if (phase->act(v) == -EOPNOTSUPP) {
		printf("%-30s left out: this KVM cannot scale the TSC\n", phase->name);
		return;
	}
	measure(v, early, &s);
	are = offsets_in_force(v);
	check_epochs(phase, early, &before, &were, &are, began, clock_tsc_read());
	assert_int_equal(vmm_master_clock(v, &master), 0);
	assert_int_equal(master, phase->master);
	check_summary(phase, "watched", &s);
	snapshot(early);
	check_agreement(v, early, tally);
	tally->applied += memcmp(&were, &are, sizeof(are)) != 0;

	settle(v, early);
	watch_start(&late, true, v->pid);
	snapshot(&late);
	measure(v, &late, &s);
	for (uint32_t vcpu = 0; vcpu < VMM_VCPUS; vcpu++) {
		assert_int_equal(late.n_values[vcpu][VM_CLOCK_PVCLOCK_UPDATE][LINE], 0);
		assert_int_equal(late.n_values[vcpu][VM_CLOCK_WRITE_TSC_OFFSET][TSC], 0);
	}
	check_summary(phase, "late", &s);
	unpin(v);
	watch_stop(&late);
}

static void test_predicted_is_what_the_guest_reads(void **state)
{
	struct vmm *v = *state;
	struct watch early;
	struct tally tally = {0};

	watch_start(&early, false, v->pid);
	assert_int_equal(vmm_create(v), 0);
	printf("sources left out: %s\n",
	       *kvm_clock_left_out(early.sources) ? kvm_clock_left_out(early.sources) : "none");
	/* The second vCPU's arrival moves the first one's parameters, at its next entry. */
	settle(v, &early);
	for (size_t i = 0; i < N_PHASES; i++)
		run_phase(v, &early, &phases[i], &tally);
	assert_false(tally.applied && tally.refused);
	if (tally.refused)
		printf("this KVM takes TSC offsets and does not apply them: no offset epochs "
		       "here, and every source but kvm_write_tsc_offset said so\n");
	assert_true(early.last[0][VM_CLOCK_MASTER_CLOCK][MASTER].master.known);
	watch_stop(&early);
}

static void test_what_is_no_vm_is_said_to_be_none(void **state)
{
	struct watch w;
	const struct kvm_clock_sink sink = {on_value, &w};
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
	const struct kvm_clock_sink sink = {on_value, &w};
	struct vmm *v = *state;
	struct vmm_pair pair;

	watch_start(&w, true, v->pid);
	assert_int_equal(vmm_create(v), 0);
	for (size_t i = 0; i < CHANGES; i++) {
		assert_int_equal(vmm_set_clock(v, MILLION), 0);
		assert_int_equal(vmm_read_clock(v, 0, &pair), 0);
	}
	assert_true(kvm_clock_drain(w.sources, &sink) > 0);
	assert_true(kvm_clock_dropped(w.sources) > 0);
	printf("%d changes at once: %" PRIu64 " lost\n", CHANGES, kvm_clock_dropped(w.sources));
	snapshot(&w);
	assert_int_equal(residual(&w, 0, &pair), 0);
	watch_stop(&w);
}

static void test_two_vms_of_a_process_are_refused(void **state)
{
	struct vmm *v = *state;
	struct watch w;
	const struct kvm_clock_sink sink = {on_value, &w};
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
	drain(&w);
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

static void on_frame(void *context, uint32_t source, uint64_t arrival_tsc, const uint8_t *bytes,
		     size_t len)
{
	struct recorded *r = context;
	struct message_vm_clock m;
	struct frame_view frame;
	const uint8_t *payload;
	size_t payload_len;

	(void)source, (void)arrival_tsc;
	assert_int_equal(frame_parse(bytes, len, &frame), 0);
	if (frame.header.kind != FRAME_VM_CLOCK)
		return;
	assert_int_equal(frame_unpack(r->unpacker, &frame, &payload, &payload_len), 0);
	assert_int_equal(message_vm_clock_unpack(payload, payload_len, &m), 0);
	m.vm = VM_NUMBER; /* the collector's own number is another */
	r->frames++;
	on_value(&r->watch, &m);
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

/* A collector that attaches to a running VM records what explains every later reading. */
static void test_recorded_parameters_explain_what_the_guest_read(void **state)
{
	static struct recorded r;
	struct vmm *v = *state;
	const struct collector_options options = {.pid = v->pid};
	const struct collector_sink sink = {on_frame, on_line, on_end, &r};
	struct vmm_pair pairs[3][VMM_VCPUS];
	struct collector *c;
	uv_loop_t loop;
	char why[256] = "";

	assert_int_equal(vmm_create(v), 0);
	assert_int_equal(uv_loop_init(&loop), 0);
	uv_timer_init(&loop, &r.patience);
	assert_non_null(r.unpacker = frame_unpacker_new());
	for (uint32_t vcpu = 0; vcpu < VMM_VCPUS; vcpu++)
		assert_non_null(r.watch.maps[vcpu] = clock_map_new());
	r.watch.line_source = VM_CLOCK_GUEST_PAGE;
	if (collector_open(&loop, &options, &sink, &c, why, sizeof(why)))
		fail_msg("%s", why);
	maps_update(&r.watch);
	r.watch.line_source = VM_CLOCK_PVCLOCK_UPDATE;
	for (size_t i = 0; i < 3; i++) {
		if (i)
			assert_int_equal(i == 1 ? clock_forward(v) : offset_of_one(v), 0);
		for (uint32_t vcpu = 0; vcpu < VMM_VCPUS; vcpu++)
			assert_int_equal(vmm_read_clock(v, vcpu, &pairs[i][vcpu]), 0);
		loop_for(&loop, &r, 150);
		maps_update(&r.watch);
	}
	for (size_t i = 0; i < 3; i++)
		for (uint32_t vcpu = 0; vcpu < VMM_VCPUS; vcpu++)
			assert_int_equal(residual(&r.watch, vcpu, &pairs[i][vcpu]), 0);
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
	for (uint32_t vcpu = 0; vcpu < VMM_VCPUS; vcpu++)
		clock_map_free(r.watch.maps[vcpu]);
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
	static const enum capture_way ways[2] = {CAPTURE_BY_BPF, CAPTURE_BY_PERF};
	static int (*const changes_made[])(struct vmm *) = {clock_forward, offset_of_one,
							    clock_back, offsets_equal_again};
	static struct changes seen[2], snapshots[2];
	struct kvm_clock *sources[2];
	struct vmm *v = *state;
	struct vmm_pair pair;
	char why[256] = "";

	assert_int_equal(vmm_create(v), 0);
	for (int i = 0; i < 2; i++) {
		if (kvm_clock_open(ways[i], &sources[i], why, sizeof(why)))
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
		kvm_clock_unfollow(sources[k], v->pid);
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

int main(void)
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
