// SPDX-License-Identifier: GPL-2.0-only
#include "host-collector/simulate/simulate.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host-collector/simulate/vm.h"

static int truth_save(const struct simulate_options *o, const struct world *w)
{
	const struct truth_header header = {
		.scenario = o->scenario->name,
		.about = o->scenario->about,
		.seed = o->seed,
		.raw0 = w->host_clock.raw0,
		.loss = o->loss,
		.kvm_events = w->kvm_events,
		.interrupts = w->interrupts,
		.jobs = o->jobs ? &w->jobs : NULL,
	};
	struct truth_vm vms[WORLD_VMS_MAX];
	FILE *to = fopen(o->truth, "w");
	int err;

	if (!to)
		return -errno;
	for (uint32_t i = 0; i < w->n_vms; i++)
		vms[i] = (struct truth_vm){w->vms[i].name, &w->vms[i].truth};
	err = truth_write(vms, w->n_vms, &header, to);
	if (fclose(to) && !err)
		err = -errno;
	return err;
}

int simulate_run(const struct simulate_options *o, char *why, size_t why_bytes)
{
	const struct world_options options = {.path = o->recording,
					      .seed = o->seed,
					      .loss = o->loss,
					      .load = o->scenario->load,
					      .kvm_events = scenario_needs_kvm(o->scenario),
					      .interrupts = scenario_shows_interrupts(o->scenario),
					      .agent_late = scenario_agent_late(o->scenario),
					      .shows_clock = scenario_shows_clock(o->scenario),
					      .jobs = o->jobs,
					      .pace = o->pace,
					      .n_vms = o->n_vms,
					      .n_vcpus = o->n_vcpus,
					      .protection = o->protection};
	struct world *w = calloc(1, sizeof(*w));
	const char *what = o->recording;
	int err;

	if (!w) {
		snprintf(why, why_bytes, "out of memory");
		return -ENOMEM;
	}
	err = world_init(w, &options);
	if (!err) {
		int64_t end = scenario_plan(o->scenario, w);

		err = world_run(w, end > o->for_ns ? end : o->for_ns);
	}
	if (!err)
		err = world_close(w);
	if (!err) {
		what = o->truth;
		err = truth_save(o, w);
	}
	if (err)
		snprintf(why, why_bytes, "cannot write %s: %s", what, strerror(-err));
	world_fini(w);
	free(w);
	return err;
}
