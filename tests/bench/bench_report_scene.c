/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Writes the recording that bench_report reads: a guest with two CPUs, each with a ping-pong pair
 * that passes a byte through pipes, timer ticks and softirqs, and the vCPU threads on the host. One
 * event in ten is of the host.
 */
#include <stdio.h>
#include <stdlib.h>

#include "tests/unit/synth.h"

enum { VCPU0 = SYNTH_QEMU_PID + 1, PING = 500, PONG = 600, TICK_NS = 4000000, STEP_NS = 6100 };

/* Varies each step by up to a quarter, because equal steps would compress better than real times.
 */
static int64_t jitter(int64_t ns)
{
	static uint64_t state = 88172645463325252;

	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return ns - (int64_t)(state % (uint64_t)(ns / 4 + 1));
}

static struct vs_event event(enum vs_event_type type, int32_t pid, uint64_t arg0, uint64_t arg1)
{
	return (struct vs_event){.type = (vs_u16)type, .pid = pid, .arg0 = arg0, .arg1 = arg1};
}

/* Emits one half of a round trip: a task wakes its peer and goes to sleep. Returns the number of
 * events. */
static unsigned long handover(struct synth *s, uint16_t cpu, int64_t t, bool ping)
{
	int32_t from = cpu + (ping ? PING : PONG), to = cpu + (ping ? PONG : PING);

	synth_at(s, t);
	synth_guest_event(s, cpu, synth_wakeup(to, from, cpu));
	synth_at(s, t + jitter(900));
	synth_guest_event(s, cpu, synth_switch(from, VS_TASK_INTERRUPTIBLE, to));
	return 2;
}

static unsigned long tick(struct synth *s, uint16_t cpu, int64_t t, int32_t pid)
{
	synth_at(s, t);
	synth_guest_event(s, cpu, event(VS_EVENT_VECTOR_ENTRY, pid, VS_VECTOR_LOCAL_TIMER, 236));
	synth_at(s, t + jitter(1500));
	synth_guest_event(s, cpu, event(VS_EVENT_VECTOR_EXIT, pid, VS_VECTOR_LOCAL_TIMER, 236));
	synth_guest_event(s, cpu, event(VS_EVENT_SOFTIRQ_ENTRY, pid, 1, 0));
	synth_at(s, t + 1500 + jitter(1000));
	synth_guest_event(s, cpu, event(VS_EVENT_SOFTIRQ_EXIT, pid, 1, 0));
	return 4;
}

/* The vCPU halts for a moment, and QEMU wakes it. */
static unsigned long halt(struct synth *s, uint16_t cpu, int64_t t)
{
	int32_t tid = VCPU0 + cpu;

	synth_at(s, t);
	synth_host_event(s, cpu, synth_switch(tid, VS_TASK_INTERRUPTIBLE, 0));
	synth_at(s, t + jitter(700));
	synth_host_event(s, cpu, synth_wakeup(tid, SYNTH_QEMU_PID, cpu));
	synth_at(s, t + 700 + jitter(400));
	synth_host_event(s, cpu, synth_switch(0, 0, tid));
	return 3;
}

int main(int argc, char **argv)
{
	struct synth_options options = {.guest_tsc_offset = 123456789};
	unsigned long want, made = 0;
	int64_t t = 1000000;
	struct synth *s;

	if (argc != 3 || !(want = strtoul(argv[2], NULL, 10))) {
		fprintf(stderr, "usage: bench_report_scene OUT.vcs EVENTS\n");
		return 2;
	}
	options.path = argv[1];
	s = synth_new(&options);
	for (unsigned long i = 0; made < want; i++, t += 2 * STEP_NS) {
		for (uint16_t cpu = 0; cpu < 2; cpu++) {
			int64_t at = t + cpu * STEP_NS;

			made += handover(s, cpu, at - jitter(400), i % 2);
			if (t % TICK_NS < 2 * STEP_NS)
				made += tick(s, cpu, at + 600 + jitter(400),
					     cpu + (i % 2 ? PONG : PING));
			if (i % 12 == 0)
				made += halt(s, cpu, at + 3200 + jitter(800));
		}
	}
	synth_free(s);
	printf("%lu events, %.3f s\n", made, (double)t / 1e9);
	return 0;
}
