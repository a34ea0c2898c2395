/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Writes the recording that bench_page reads: a busy VM (busy_scene.h) with a given rate of events.
 * Once in each minute, a hog holds the pCPU of a vCPU and so causes a stall of 300 ms.
 */
#include <stdio.h>
#include <stdlib.h>

#include "proto/recording.h"
#include "tests/bench/busy_scene.h"

enum { CHUNK = 500000, VCPU0 = SYNTH_QEMU_PID + 1, HOG = 4000 };
#define STALL_NS       300000000ll
#define STALL_EVERY_NS 60000000000ll

static void stall(struct synth *s, int64_t t)
{
	synth_at(s, t);
	synth_host_event(s, 0, synth_name(HOG, HOG, "cpu-hog"));
	synth_host_event(s, 0, synth_switch(VCPU0, VS_TASK_RUNNING, HOG));
	synth_at(s, t + STALL_NS);
	synth_host_event(s, 0, synth_switch(HOG, VS_TASK_RUNNING, VCPU0));
}

int main(int argc, char **argv)
{
	struct synth_options options = {.guest_tsc_offset = 123456789};
	struct timeline_event *events = busy_scene_new(CHUNK);
	double seconds = argc == 4 ? atof(argv[2]) : 0, rate = argc == 4 ? atof(argv[3]) : 0;
	int64_t begin = 1000000, next_stall = STALL_EVERY_NS / 2, at = 0;
	double period, made = 0;
	struct synth *s;

	if (!events || seconds <= 0 || rate <= 0) {
		fprintf(stderr, "usage: bench_page_scene OUT.vcs SECONDS EVENTS_PER_SECOND\n");
		return 2;
	}
	period = CHUNK / rate * 1e9 / (double)(events[CHUNK - 1].t.ns + 1);
	options.path = argv[1];
	s = synth_new(&options);
	while (at < (int64_t)(seconds * 1e9)) {
		for (size_t i = 0; i < CHUNK; i++) {
			const struct timeline_event *e = &events[i];

			at = begin + (int64_t)((double)e->t.ns * period);
			synth_at(s, at);
			if (e->source == VS_SOURCE_HOST)
				synth_host_event(s, e->event.cpu, e->event);
			else
				synth_guest_event(s, e->event.cpu, e->event);
		}
		made += CHUNK;
		begin = at + 1000;
		if (at < next_stall)
			continue;
		next_stall += STALL_EVERY_NS;
		stall(s, begin);
		begin += STALL_NS + 1000;
	}
	synth_free(s);
	free(events);
	printf("%.0f events, %.1f s\n", made, (double)at / 1e9);
	return 0;
}
