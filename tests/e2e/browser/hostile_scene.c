/* SPDX-License-Identifier: GPL-2.0-only */
/* Writes a recording of stalls whose culprits and victims, on the host and in the guest, have
 * names that contain markup. */
#include <stdio.h>
#include <stdlib.h>

#include "tests/unit/synth.h"

#define MS 1000000ll
enum { VCPU0 = SYNTH_QEMU_PID + 1, HOG = 4000, TASK = 70 };

/* 15 bytes at most, as the kernel keeps them. */
static const char *const names[] = {
	"</script><b>",
	"<img onerror=",
	"\"'`&amp;&lt;",
	"a\nb\tc\r\x1b[31m",
	"\xff\xfe\xc0\x80"
	"bad",
	"\xe2\x80\xae"
	"gpj.exe",
	"]]><!-- -->",
	"${alert(1)}",
	"\\u003cscript>",
	"javascript:x()",
};

/* What the other vCPUs do meanwhile: a turn of each after the other. */
static void others(struct synth *s, int64_t t, uint16_t cpus, const char *name)
{
	for (uint16_t cpu = 1; cpu < cpus; cpu++) {
		const int32_t task = 1000 + cpu, thread = VCPU0 + cpu;

		synth_at(s, t + cpu * 50 * 1000);
		synth_guest_event(s, cpu, synth_name(task, task, name));
		synth_host_event(s, cpu, synth_switch(0, 0, thread));
		synth_guest_event(s, cpu, synth_switch(0, 0, task));
	}
	for (uint16_t cpu = 1; cpu < cpus; cpu++) {
		synth_at(s, t + MS + cpu * 700 * 1000);
		synth_guest_event(s, cpu, synth_switch(1000 + cpu, VS_TASK_INTERRUPTIBLE, 0));
		synth_host_event(s, cpu, synth_switch(VCPU0 + cpu, VS_TASK_INTERRUPTIBLE, 0));
	}
}

/* 300 ms in which the guest's task has no pCPU, for a hog of the same name. */
static void stall(struct synth *s, int64_t t, int32_t hog, int32_t task, uint16_t cpus,
		  const char *name)
{
	synth_at(s, t);
	synth_host_event(s, 0, synth_name(hog, hog, name));
	synth_guest_event(s, 0, synth_name(task, task, name));
	synth_host_event(s, 0, synth_switch(0, 0, VCPU0));
	synth_guest_event(s, 0, synth_switch(0, 0, task));
	others(s, t, cpus, name);
	synth_at(s, t + 20 * MS);
	synth_guest_event(s, 0, synth_wakeup(task + 100, task, 0));
	synth_at(s, t + 50 * MS);
	synth_host_event(s, 0, synth_switch(VCPU0, VS_TASK_RUNNING, hog));
	synth_at(s, t + 350 * MS);
	synth_host_event(s, 0, synth_switch(hog, VS_TASK_INTERRUPTIBLE, VCPU0));
	synth_at(s, t + 360 * MS);
	synth_guest_event(s, 0, synth_switch(task, VS_TASK_INTERRUPTIBLE, task + 100));
	synth_at(s, t + 400 * MS);
	synth_guest_event(s, 0, synth_switch(task + 100, VS_TASK_INTERRUPTIBLE, 0));
	synth_host_event(s, 0, synth_switch(VCPU0, VS_TASK_INTERRUPTIBLE, 0));
}

int main(int argc, char **argv)
{
	struct synth_options options = {.guest_tsc_offset = 123456789};
	uint16_t cpus = argc == 3 ? (uint16_t)atoi(argv[2]) : 0;
	struct synth *s;

	if (!cpus) {
		fprintf(stderr, "usage: hostile_scene OUT.vcs VCPUS\n");
		return 2;
	}
	options.path = argv[1];
	options.host_cpus = options.guest_cpus = cpus;
	s = synth_new(&options);
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		stall(s, (500 + 600 * (int64_t)i) * MS, HOG + (int32_t)i, TASK + (int32_t)i, cpus,
		      names[i]);
	synth_free(s);
	return 0;
}
