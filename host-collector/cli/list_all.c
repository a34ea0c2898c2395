/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/cli/list_all.h"

#include <json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/program/options.h"
#include "host-collector/daemon/config.h"
#include "host-collector/daemon/control.h"
#include "host-collector/util/escape.h"
#include "host-collector/util/json_add.h"
#include "host-collector/util/json_get.h"
#include "host-collector/vm/discover.h"

enum { FOUND_MAX = 1024 };

/* The daemon's VMs, NULL if none answers. */
static int daemon_ask(const char *control, struct json_object **reply)
{
	struct json_object *request = json_object_new_object();
	char why[512];
	int err;

	json_object_object_add(request, "command", json_object_new_string("list"));
	err = control_ask(control ? control : DAEMON_CONTROL_PATH, request, reply, why,
			  sizeof(why));
	json_object_put(request);
	/* One that was named and does not answer is not passed over in silence. */
	if (err && control)
		fprintf(stderr, "vcpuscope list: %s\n", why);
	return err && control ? err : 0;
}

/* The name under which the daemon watches this process, or "". */
static const char *watched_as(struct json_object *daemon, pid_t pid)
{
	for (size_t i = 0; i < json_get_length(daemon, "vms"); i++) {
		struct json_object *vm = json_get_element(daemon, "vms", i);

		if (json_get_int(vm, "qemu_pid") == pid && json_get(vm, "vm"))
			return json_get_text(vm, "vm");
	}
	return "";
}

static void row_show(const struct vm_found *vm, const char *watched)
{
	const struct vm_identity *i = &vm->identity;
	char name[IDENTITY_NAME_MAX + 32], vcpus[16] = "-", uid[16] = "?";

	vm_identity_name(i, vm->pid, name, sizeof(name));
	if (vm->kvm)
		snprintf(vcpus, sizeof(vcpus), "%zu", vm->n_vcpus);
	if (i->uid != UINT32_MAX)
		snprintf(uid, sizeof(uid), "%u", i->uid);
	printf("%7d %7s %-17s %5s %-11s %s\n", vm->pid, uid, escape(vm_identity_vmm(i)).text, vcpus,
	       *i->manager ? i->manager : "-", escape(name).text);
	if (*i->uuid)
		printf("%8sUUID %s\n", "", i->uuid);
	if (i->vmid)
		printf("%8sVMID %u\n", "", i->vmid);
	if (*i->pod_uid)
		printf("%8spod %s\n", "", i->pod_uid);
	if (i->own_pids)
		printf("%8sin a PID namespace of its own\n", "");
	if (!vm->kvm)
		printf("%8semulated: QEMU by its name, without KVM\n", "");
	if (vm->several)
		printf("%8sseveral VMs in one process: they cannot be distinguished\n", "");
	if (*watched)
		printf("%8sthe daemon watches it as %s\n", "", escape(watched).text);
}

static void rows_show(const struct vm_found *vms, size_t n, struct json_object *daemon)
{
	printf("%7s %7s %-17s %5s %-11s %s\n", "PID", "UID", "VMM", "VCPUS", "RUN BY", "NAME");
	for (size_t i = 0; i < n; i++)
		row_show(&vms[i], watched_as(daemon, vms[i].pid));
	if (n)
		puts("\nVMM, RUN BY, NAME, UUID, VMID and pod are claims of the user with that UID.");
	else
		puts("no VM");
}

static struct json_object *row_json(const struct vm_found *vm, const char *watched)
{
	struct json_object *o = json_object_new_object();
	const struct vm_identity *i = &vm->identity;
	char name[IDENTITY_NAME_MAX + 32];

	vm_identity_name(i, vm->pid, name, sizeof(name));
	json_object_object_add(o, "pid", json_object_new_int64(vm->pid));
	if (i->uid != UINT32_MAX)
		json_object_object_add(o, "uid", json_object_new_int64(i->uid));
	json_add_known_text(o, "name", name);
	json_add_known_text(o, "vmm", vm_identity_vmm(i));
	json_add_known_text(o, "program", i->program);
	json_add_known_text(o, "manager", i->manager);
	json_add_known_text(o, "uuid", i->uuid);
	json_add_known_text(o, "pod_uid", i->pod_uid);
	if (i->vmid)
		json_object_object_add(o, "vmid", json_object_new_int64(i->vmid));
	json_object_object_add(o, "kvm", json_object_new_boolean(vm->kvm));
	json_object_object_add(o, "vcpus", json_object_new_uint64(vm->n_vcpus));
	json_object_object_add(o, "several_vms", json_object_new_boolean(vm->several));
	json_object_object_add(o, "own_pid_namespace", json_object_new_boolean(i->own_pids));
	json_add_known_text(o, "watched_as", watched);
	return o;
}

static void rows_json(const struct vm_found *vms, size_t n, bool by_bpf, struct json_object *daemon)
{
	struct json_object *root = json_object_new_object(), *list = json_object_new_array();

	for (size_t i = 0; i < n; i++)
		json_object_array_add(list, row_json(&vms[i], watched_as(daemon, vms[i].pid)));
	json_object_object_add(root, "schema", json_object_new_string("vcpuscope.vms/1"));
	json_object_object_add(root, "by", json_object_new_string(by_bpf ? "bpf" : "proc"));
	json_object_object_add(root, "vms", list);
	puts(json_object_to_json_string_ext(root, JSON_C_TO_STRING_PLAIN |
							  JSON_C_TO_STRING_NOSLASHESCAPE));
	json_object_put(root);
}

int list_all(const char *control, const char *format)
{
	const struct vm_wanted all = {.emulated = true};
	struct vm_found *vms = calloc(FOUND_MAX, sizeof(*vms));
	struct vm_finder *finder = vm_finder_new(NULL);
	struct json_object *daemon = NULL;
	int code = COMMAND_TROUBLE;
	size_t n;

	if (!vms || !finder) {
		fprintf(stderr, "vcpuscope list: out of memory\n");
		goto out;
	}
	if (daemon_ask(control, &daemon))
		goto out;
	n = vm_finder_look(finder, &all, vms, FOUND_MAX);
	if (!strcmp(format, "json"))
		rows_json(vms, n, vm_finder_by_bpf(finder), daemon);
	else
		rows_show(vms, n, daemon);
	code = COMMAND_OK;
out:
	json_object_put(daemon);
	vm_finder_free(finder);
	free(vms);
	return code;
}
