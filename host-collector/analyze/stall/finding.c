/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/analyze/stall/finding.h"

#include <stdio.h>

struct finding_task finding_task(const struct model *m, uint32_t source, int32_t pid)
{
	struct finding_task t = {.pid = pid};

	if (pid)
		snprintf(t.comm, sizeof(t.comm), "%s", model_task_name(m, source, pid));
	return t;
}

void finding_add(struct finding *list, size_t max, const struct finding *f)
{
	size_t n = 0;

	while (n < max && list[n].kind)
		n++;
	if (n < max)
		list[n] = *f;
}
