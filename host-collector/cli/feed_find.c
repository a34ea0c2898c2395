/* SPDX-License-Identifier: GPL-2.0-only */
/* Finds the source of a VM's frames: the daemon, or a collector for one process. */
#include <errno.h>
#include <json.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "host-collector/cli/feed.h"
#include "host-collector/daemon/control.h"
#include "host-collector/util/json_get.h"
#include "host-collector/vm/discover.h"

enum { FOUND_MAX = 1024 };

const char *feed_arguments_check(const struct feed_arguments *a)
{
	if (!a->vm == !(a->pid || a->qmp))
		return "the VM is missing: give --vm NAME, --pid N or --qmp PATH (`vcpuscope list --all` shows VMs)";
	if (a->pid > INT32_MAX)
		return "--pid: expected a process ID";
	return "";
}

static bool same_file(const char *a, const char *b)
{
	char real_a[PATH_MAX], real_b[PATH_MAX];

	return !strcmp(a, b) ||
	       (realpath(a, real_a) && realpath(b, real_b) && !strcmp(real_a, real_b));
}

static bool is_meant(const struct feed_arguments *a, struct json_object *vm)
{
	if (a->vm)
		return !strcmp(a->vm, json_get_text(vm, "vm"));
	if (!a->pid)
		return same_file(a->qmp, json_get_text(vm, "qmp"));
	return json_get_uint(vm, "qemu_pid") == a->pid;
}

/* The daemon's VM that is meant: 1, 0 if none is, -errno with `why` if it can give nothing. */
static int daemon_find(const struct feed_arguments *a, struct json_object *reply,
		       struct feed_place *out, char *why, size_t why_bytes)
{
	for (size_t i = 0; i < json_get_length(reply, "vms"); i++) {
		struct json_object *vm = json_get_element(reply, "vms", i);

		if (!is_meant(a, vm))
			continue;
		snprintf(out->vm, sizeof(out->vm), "%s", json_get_text(vm, "vm"));
		snprintf(out->level, sizeof(out->level), "%s", json_get_text(vm, "level"));
		out->by_daemon = true;
		if (!strcmp(json_get_text(vm, "state"), "running"))
			return 1;
		snprintf(why, why_bytes, "VM %s: the daemon is waiting for it: %.200s", out->vm,
			 json_get_text(vm, "why"));
		return -EAGAIN;
	}
	return 0;
}

/* The one VM of that name: names are claims, so two of the same are none. */
static int name_find(const char *name, bool daemon_runs, struct feed_place *out, char *why,
		     size_t why_bytes)
{
	const struct vm_wanted all = {.emulated = true};
	struct vm_found *vms = calloc(FOUND_MAX, sizeof(*vms));
	struct vm_finder *finder = vm_finder_new(NULL);
	size_t n = vms && finder ? vm_finder_look(finder, &all, vms, FOUND_MAX) : 0, found = 0;

	for (size_t i = 0; i < n; i++) {
		char its[IDENTITY_NAME_MAX + 32];

		vm_identity_name(&vms[i].identity, vms[i].pid, its, sizeof(its));
		if (strcmp(its, name))
			continue;
		out->pid = vms[i].pid;
		found++;
	}
	vm_finder_free(finder);
	free(vms);
	if (found == 1)
		return 0;
	snprintf(why, why_bytes, "VM %.60s: %zu VMs here have this name%s; %s", name, found,
		 daemon_runs ? ", and the daemon watches no such VM" : "",
		 found ? "give --pid N" : "`vcpuscope list --all` shows them");
	return -ENOENT;
}

int feed_find(const struct feed_arguments *a, struct feed_place *out, char *why, size_t why_bytes)
{
	const char *control = a->control ? a->control : DAEMON_CONTROL_PATH;
	struct json_object *request = json_object_new_object(), *reply = NULL;
	int err;

	*out = (struct feed_place){.pid = (pid_t)a->pid, .qmp = a->qmp};
	snprintf(out->control, sizeof(out->control), "%s", control);
	json_object_object_add(request, "command", json_object_new_string("list"));
	err = control_ask(control, request, &reply, why, why_bytes);
	json_object_put(request);
	/* One that was named and does not answer is not passed over in silence. */
	if (err && a->control)
		return err;
	if (!err) {
		err = daemon_find(a, reply, out, why, why_bytes);
		json_object_put(reply);
		if (err)
			return err < 0 ? err : 0;
		return a->vm ? name_find(a->vm, true, out, why, why_bytes) : 0;
	}
	return a->vm ? name_find(a->vm, false, out, why, why_bytes) : 0;
}
