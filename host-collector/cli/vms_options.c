/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/cli/vms_options.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "proto/program/value.h"

size_t vms_arguments_count(const struct vms_arguments *a)
{
	const size_t n = a->vms.n > a->pids.n ? a->vms.n : a->pids.n;

	return n || !a->qmp ? n : 1;
}

/* Those of one VM. false: the process ID is no number. */
static bool one_get(const struct vms_arguments *a, size_t index, struct feed_arguments *out)
{
	*out = (struct feed_arguments){.vm = index < a->vms.n ? a->vms.items[index] : NULL,
				       .qmp = a->qmp,
				       .control = a->control};
	return index >= a->pids.n || (!number_parse(a->pids.items[index], &out->pid) && out->pid);
}

const char *vms_arguments_check(const struct vms_arguments *a, bool no_guest)
{
	const size_t n = vms_arguments_count(a), n_checked = n ? n : 1;
	const char *why = "";

	for (size_t i = 0; i < n_checked && !*why; i++) {
		struct feed_arguments one;

		why = one_get(a, i, &one) ? feed_arguments_check(&one)
					  : "--pid: expected a process ID";
	}
	if (*why)
		return why;
	if (n > FEED_VMS_MAX)
		return "more than 64 VMs";
	if (n > 1 && a->qmp)
		return "--qmp selects one VM: give several with --vm NAME or with --pid N";
	if (a->channels.n && no_guest)
		return CHANNEL_OR_NO_GUEST;
	if (a->channels.n > n || (n > 1 && a->channels.n && a->channels.n < n))
		return n > 1 ? "--channel: give one for each VM, in their order; none for a VM "
			       "without an agent"
			     : "--channel: there is one VM, so give one address";
	return "";
}

const char *vms_arguments_channel(const struct vms_arguments *a, size_t index)
{
	if (index >= a->channels.n)
		return NULL;
	/* With one VM, `none` is a path, as it always was. */
	if (vms_arguments_count(a) > 1 && !strcmp(a->channels.items[index], "none"))
		return NULL;
	return a->channels.items[index];
}

int vms_arguments_find(const struct vms_arguments *a, struct feed_place *places, char *why,
		       size_t why_bytes)
{
	const size_t n = vms_arguments_count(a);
	int err = 0;

	for (size_t i = 0; i < n && !err; i++) {
		struct feed_arguments one;

		one_get(a, i, &one);
		err = feed_find(&one, &places[i], why, why_bytes);
		if (!err && n > 1 && places[i].by_daemon) {
			snprintf(
				why, why_bytes,
				"VM %s: the daemon watches it, and several VMs in one recording need a "
				"capture of their own; run `vcpuscope ctl detach` first",
				places[i].vm);
			err = -EINVAL;
		}
		for (size_t k = 0; k < i && !err; k++) {
			if (places[i].pid != places[k].pid)
				continue;
			snprintf(why, why_bytes,
				 "process %d is given twice: each VM can be recorded once",
				 (int)places[i].pid);
			err = -EINVAL;
		}
	}
	return err;
}
