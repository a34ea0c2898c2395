/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/daemon/kvm_feed.h"

#include <ctype.h>
#include <errno.h>
#include <json.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host-collector/util/json_add.h"
#include "host-collector/link/address.h"
#include "host-collector/vm/discover.h"
#include "host-collector/vm/vsock_path.h"

enum {
	LOOK_MS = 3000,
	FOUND_MAX = 1024,
	UIDS_MAX = 64,
};

struct process {
	struct candidate candidate;
	struct vm_found found;
	bool present; /* seen in two scans */
	bool refused; /* never attach it */
};

struct kvm_feed {
	uv_loop_t *loop;
	struct vm_source source;
	uv_work_t work;
	bool looking, closing;
	uint64_t looked_ms;
	size_t n;
	struct process *processes; /* FOUND_MAX */
	/* Only the worker uses these while it looks. */
	struct vm_finder *finder;
	char users[DAEMON_PATH_MAX];
	size_t n_found;
	struct vm_found *found; /* FOUND_MAX */
};

/* ---- the worker ---- */

/* Converts a list of users to numbers. Leaves out users that this machine does not have. */
static size_t uids_read(char *users, uint32_t *uids, size_t max)
{
	char *rest = users, *word;
	size_t n = 0;

	while (n < max && (word = strtok_r(rest, ", \t", &rest))) {
		char buffer[4096], *end;
		struct passwd entry, *found = NULL;
		const unsigned long number = strtoul(word, &end, 10);

		if (isdigit((unsigned char)*word) && !*end && number < UINT32_MAX)
			uids[n++] = (uint32_t)number;
		else if (!getpwnam_r(word, &entry, buffer, sizeof(buffer), &found) && found)
			uids[n++] = found->pw_uid;
	}
	return n;
}

static void on_thread(uv_work_t *work)
{
	struct kvm_feed *f = work->data;
	uint32_t uids[UIDS_MAX];
	const struct vm_wanted wanted = {.uids = uids,
					 .n_uids = uids_read(f->users, uids, UIDS_MAX)};

	f->n_found = vm_finder_look(f->finder, &wanted, f->found, FOUND_MAX);
}

/* ---- what was found ---- */

static void process_drop(struct kvm_feed *f, size_t i)
{
	candidate_detach(&f->source, &f->processes[i].candidate);
	f->processes[i] = f->processes[--f->n];
}

static bool same_process(const struct vm_found *a, const struct vm_found *b)
{
	return a->pid == b->pid && a->identity.started == b->identity.started;
}

/* Updates the list of processes: adds new ones and removes those that were not found again. */
static void processes_follow(struct kvm_feed *f)
{
	for (size_t i = 0; i < f->n; i++)
		f->processes[i].present = false;
	for (size_t i = 0; i < f->n_found; i++) {
		size_t at = 0;

		while (at < f->n && !same_process(&f->processes[at].found, &f->found[i]))
			at++;
		if (at == f->n && f->n == FOUND_MAX)
			continue;
		if (at == f->n)
			f->processes[f->n++] = (struct process){.found = f->found[i]};
		else
			f->processes[at].present = true;
	}
	for (size_t i = f->n; i-- > 0;) {
		size_t at = 0;

		while (at < f->n_found && !same_process(&f->processes[i].found, &f->found[at]))
			at++;
		if (at == f->n_found)
			process_drop(f, i);
	}
}

static bool is_watched(const struct kvm_feed *f, pid_t pid)
{
	const struct vm_daemon *d = f->source.daemon;

	for (size_t i = 0; i < vm_daemon_n_vms(d); i++) {
		const struct watched_vm *vm = vm_daemon_vm(d, i);

		if (watched_vm_config(vm)->pid == (uint64_t)pid || watched_vm_pid(vm) == pid)
			return true;
	}
	return false;
}

/* Returns true for names like "X-4711", which are given only to the process with that number. */
static bool name_is_ours(const char *name)
{
	const char *dash = strrchr(name, '-');

	return dash && dash[1] && strspn(dash + 1, "0123456789") == strlen(dash + 1);
}

/* Chooses the VM's name: the one that it claims, unless another VM has it. */
static void name_choose(const struct kvm_feed *f, struct process *p, struct vm_config *config)
{
	struct vm_identity nameless = p->found.identity;
	char number[DAEMON_NAME_MAX];

	nameless.name[0] = 0;
	if (candidate_name(config, p->found.identity.name) && !name_is_ours(config->name)) {
		if (!vm_daemon_find(f->source.daemon, config->name))
			return;
		candidate_report(
			&f->source, &p->candidate,
			"%s %d of uid %u calls itself %s, as another VM is called: refused, "
			"it is watched by its number",
			vm_identity_vmm(&nameless), p->found.pid, nameless.uid, config->name);
	}
	vm_identity_name(&nameless, p->found.pid, number, sizeof(number));
	if (!candidate_name(config, number))
		snprintf(config->name, sizeof(config->name), "vm-%d", p->found.pid);
}

static size_t attached_of(const struct kvm_feed *f, uint32_t uid)
{
	size_t n = 0;

	for (size_t i = 0; i < f->n; i++)
		n += f->processes[i].candidate.attached &&
		     f->processes[i].found.identity.uid == uid;
	return n;
}

/* Chooses the channel to the agent of a VM that was found by its descriptors. */
static void channel_choose(const struct vm_found *found, struct vm_config *config)
{
	char path[DAEMON_PATH_MAX / 2];

	/* QEMU's channel may dial in, as a domain's of libvirt. */
	if (found->identity.kind == VMM_QEMU)
		snprintf(config->channel, sizeof(config->channel), "daemon:");
	if ((found->identity.kind == VMM_FIRECRACKER ||
	     found->identity.kind == VMM_CLOUD_HYPERVISOR) &&
	    !vsock_path_find("/proc", found->pid, path, sizeof(path)))
		snprintf(config->channel, sizeof(config->channel), "hybrid:%s:%d", path,
			 AGENT_VSOCK_PORT);
}

static void process_attach(struct kvm_feed *f, struct process *p)
{
	const struct vm_identity *i = &p->found.identity;
	const uint64_t slots = vm_daemon_config(f->source.daemon)->discover_per_user;
	struct vm_config config;
	char what[64];

	snprintf(what, sizeof(what), "%s %d", vm_identity_vmm(i), p->found.pid);
	if (p->found.several) {
		vm_source_say(&f->source, "",
			      "%s runs several VMs, which cannot be distinguished: not watched",
			      what);
		p->refused = true;
		return;
	}
	if (attached_of(f, i->uid) >= slots) {
		candidate_report(&f->source, &p->candidate,
				 "%s: uid %u has %llu VMs already (discover_per_user): not watched",
				 what, i->uid, (unsigned long long)slots);
		return;
	}
	vm_config_default(&config);
	config.pid = (uint64_t)p->found.pid;
	channel_choose(&p->found, &config);
	name_choose(f, p, &config);
	if (candidate_attach(&f->source, &p->candidate, &config, VM_BY_KVM, what))
		vm_source_say(&f->source, p->candidate.vm, "found by KVM: %s of uid %u, %zu vCPUs",
			      what, i->uid, p->found.n_vcpus);
}

static void on_over(uv_work_t *work, int status)
{
	struct kvm_feed *f = work->data;

	f->looking = false;
	if (f->closing) {
		kvm_feed_close(f);
		return;
	}
	if (status)
		return;
	processes_follow(f);
	for (size_t i = 0; i < f->n; i++) {
		struct process *p = &f->processes[i];

		/* A VM that was detached by hand stays detached. */
		if (p->candidate.attached && !vm_daemon_find(f->source.daemon, p->candidate.vm)) {
			p->candidate.attached = false;
			p->refused = true;
		}
		/* Seen in two scans: if it is a domain of libvirt, libvirt has reported it by now.
		 * Otherwise it waits for a slot, or until nobody else watches it. */
		if (!p->candidate.attached && !p->refused && p->present &&
		    !is_watched(f, p->found.pid))
			process_attach(f, p);
	}
}

/* ---- life ---- */

struct kvm_feed *kvm_feed_new(uv_loop_t *loop, const struct vm_source *source)
{
	struct kvm_feed *f = calloc(1, sizeof(*f));

	if (!f)
		return NULL;
	f->loop = loop;
	f->source = *source;
	f->work.data = f;
	f->finder = vm_finder_new(NULL);
	f->processes = calloc(FOUND_MAX, sizeof(*f->processes));
	f->found = calloc(FOUND_MAX, sizeof(*f->found));
	if (f->finder && f->processes && f->found)
		return f;
	kvm_feed_close(f);
	return NULL;
}

void kvm_feed_close(struct kvm_feed *f)
{
	if (!f)
		return;
	f->closing = true;
	if (f->looking) {
		uv_cancel((uv_req_t *)&f->work); /* works if it has not begun; on_over() is called
						    in any case */
		return;
	}
	vm_finder_free(f->finder);
	free(f->processes);
	free(f->found);
	free(f);
}

void kvm_feed_tick(struct kvm_feed *f)
{
	const struct daemon_config *config;

	if (!f || f->looking)
		return;
	config = vm_daemon_config(f->source.daemon);
	if (!daemon_config_discovers(config, "kvm")) {
		while (f->n)
			process_drop(f, f->n - 1);
		return;
	}
	if (f->looked_ms && uv_now(f->loop) - f->looked_ms < LOOK_MS)
		return;
	f->looked_ms = uv_now(f->loop);
	snprintf(f->users, sizeof(f->users), "%s", config->discover_users);
	f->looking = !uv_queue_work(f->loop, &f->work, on_thread, on_over);
}

static struct process *attached_find(const struct kvm_feed *f, const char *vm)
{
	for (size_t i = 0; f && i < f->n; i++) {
		if (f->processes[i].candidate.attached && !strcmp(f->processes[i].candidate.vm, vm))
			return &f->processes[i];
	}
	return NULL;
}

void kvm_feed_yield(struct kvm_feed *f, const char *vm)
{
	struct process *p = attached_find(f, vm);

	if (p)
		p->candidate.attached = false;
}

void kvm_feed_describe(const struct kvm_feed *f, const char *vm, struct json_object *out)
{
	const struct process *p = attached_find(f, vm);
	const struct vm_identity *i = p ? &p->found.identity : NULL;

	if (!p)
		return;
	json_add_known_text(out, "vmm", vm_identity_vmm(i));
	json_object_object_add(out, "uid", json_object_new_int64(i->uid));
	json_add_known_text(out, "claimed_name", i->name);
	json_add_known_text(out, "claimed_uuid", i->uuid);
	json_add_known_text(out, "claimed_pod_uid", i->pod_uid);
	json_add_known_text(out, "claimed_manager", i->manager);
	if (i->vmid)
		json_object_object_add(out, "claimed_vmid", json_object_new_int64(i->vmid));
}
