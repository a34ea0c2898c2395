// SPDX-License-Identifier: GPL-2.0-only
#include "host-collector/export/folded_export.h"

#include <stdlib.h>

#include "host-collector/analyze/flame/flame.h"
#include "host-collector/view/folded_text.h"

struct folded_export {
	const struct model *model;
	struct flame *tasks, *vcpus; /* which of them is known at the end only */
	FILE *out;
};

static struct flame *wall_new(struct model *m, const struct narrow *narrow,
			      enum flame_subject subject)
{
	return flame_new(m, &(const struct flame_options){.kind = FLAME_WALL,
							  .subject = subject,
							  .vm = narrow->vm,
							  .vcpu = (int32_t)narrow->vcpu,
							  .task = narrow->task,
							  .pid = narrow->pid,
							  .time = narrow,
							  .threads = true});
}

struct folded_export *folded_export_new(struct model *m, const struct narrow *narrow, FILE *out)
{
	struct folded_export *x = calloc(1, sizeof(*x));

	if (!x)
		return NULL;
	x->model = m;
	x->out = out;
	x->tasks = wall_new(m, narrow, FLAME_OF_TASKS);
	x->vcpus = wall_new(m, narrow, FLAME_OF_VCPUS);
	if (x->tasks && x->vcpus)
		return x;
	folded_export_free(x);
	return NULL;
}

void folded_export_free(struct folded_export *x)
{
	if (!x)
		return;
	flame_free(x->tasks);
	flame_free(x->vcpus);
	free(x);
}

static bool has_guest(const struct model *m)
{
	uint32_t vms[MODEL_VMS_MAX];
	size_t n = model_vms(m, vms, MODEL_VMS_MAX);

	for (size_t i = 0; i < n && i < MODEL_VMS_MAX; i++) {
		if (model_data_of(m, vms[i]).guest_events)
			return true;
	}
	return false;
}

int folded_export_finish(struct folded_export *x)
{
	struct flame *f = has_guest(x->model) ? x->tasks : x->vcpus;
	int err = flame_finish(f);

	return err ? err : folded_text_write(flame_stacks(f), x->out);
}
