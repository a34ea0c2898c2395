/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/view/culprit_text.h"

#include <stdio.h>

const char *culprit_role_text(const struct report_culprit *c)
{
	static const char *const roles[CULPRIT_ROLE_COUNT] = {
		[CULPRIT_SENT_STOP_SIGNAL] = "sent the stop signal",
		[CULPRIT_WROTE_TO_MONITOR] = "wrote to QEMU's monitor",
		[CULPRIT_TRACED] = "traced the vCPU thread",
		[CULPRIT_HELD_PCPU] = "held the pCPU",
		[CULPRIT_HELD_BIG_LOCK] = "held QEMU's big lock",
		[CULPRIT_PROVIDED_PAGE] = "provided the page",
		[CULPRIT_HELD_PEER_PCPU] = "held the other vCPU's pCPU",
		[CULPRIT_STOPPED_PEER] = "stopped the other vCPU",
		[CULPRIT_TRACED_PEER] = "traced the other vCPU",
		[CULPRIT_KEPT_CPU] = "kept the CPU",
		[CULPRIT_INTERRUPTED] = "was interrupted",
		[CULPRIT_KEPT_PEER_CPU] = "kept the other CPU",
		[CULPRIT_INTERRUPTED_ON_PEER] = "was interrupted on the other CPU",
	};

	return roles[c->role];
}

struct culprit_text culprit_what_text(const struct report_culprit *c)
{
	struct culprit_text t = {""};

	if (c->role == CULPRIT_KEPT_PEER_CPU || c->role == CULPRIT_INTERRUPTED_ON_PEER)
		snprintf(t.text, sizeof(t.text), "on CPU %u", c->cpu);
	else if (c->role != CULPRIT_HELD_PCPU)
		return t;
	else if (*c->vm.name)
		thread_vm_text(&c->vm, t.text, sizeof(t.text));
	else if (!c->n_tasks)
		snprintf(t.text, sizeof(t.text), "all other tasks");
	else if (c->n_tasks > 1)
		snprintf(t.text, sizeof(t.text), "%u tasks of such names", c->n_tasks);
	else if (c->process.pid)
		snprintf(t.text, sizeof(t.text), "of process %d (%s)", c->process.pid,
			 c->process.comm);
	return t;
}

void culprit_name(const struct report_culprit *c, char *out, size_t out_bytes)
{
	if (c->pid)
		snprintf(out, out_bytes, "%s (%d)", *c->comm ? c->comm : "task", c->pid);
	else
		snprintf(out, out_bytes, "%s", culprit_what_text(c).text);
}
