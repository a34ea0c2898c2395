/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/daemon/kvm_feed.h"

#include <ctype.h>
#include <errno.h>
#include <json.h>
#include <pwd.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host-collector/daemon/daemon.h"
#include "host-collector/util/json_string.h"
#include "host-collector/vm/discover.h"

enum {
	LOOK_MS = 3000,
	FOUND_MAX = 1024,
	UIDS_MAX = 64,
};

enum candidate_state {
	CANDIDATE_SEEN, /* once, or it waits: for a slot, or until nobody else watches it */
	CANDIDATE_FED,
	CANDIDATE_REFUSED, /* for good */
};

struct candidate {
	struct vm_found found;
	enum candidate_state state;
	bool present, told;
	char vm[DAEMON_NAME_MAX]; /* fed: its name in the daemon */
};

struct kvm_feed {
	uv_loop_t *loop;
	struct kvm_feed_options options;
	uv_work_t work;
	bool looking, closing;
	uint64_t looked_ms;
	size_t n;
	struct candidate *candidates; /* FOUND_MAX */
	/* The worker's while it looks. */
	struct vm_finder *finder;
	char users[DAEMON_PATH_MAX];
	size_t n_found;
	struct vm_found *found; /* FOUND_MAX */
};

static void __attribute__((format(printf, 3, 4)))
say(const struct kvm_feed *f, const char *vm, const char *format, ...)
{
	char text[512];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	f->options.say(f->options.context, vm, text);
}

/* ---- the worker ---- */

/* The users of a list, as numbers; those that this machine does not have are left out. */
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

/* ---- candidates ---- */

static void candidate_drop(struct kvm_feed *f, size_t i)
{
	struct candidate *c = &f->candidates[i];

	if (c->state == CANDIDATE_FED)
		vm_daemon_detach(f->options.daemon, c->vm);
	*c = f->candidates[--f->n];
}

static bool same_process(const struct vm_found *a, const struct vm_found *b)
{
	return a->pid == b->pid && a->identity.started == b->identity.started;
}

/* Keeps those that were found, and drops the others. */
static void candidates_follow(struct kvm_feed *f)
{
	for (size_t i = 0; i < f->n; i++)
		f->candidates[i].present = false;
	for (size_t i = 0; i < f->n_found; i++) {
		size_t at = 0;

		while (at < f->n && !same_process(&f->candidates[at].found, &f->found[i]))
			at++;
		if (at == f->n && f->n == FOUND_MAX)
			continue;
		if (at == f->n)
			f->candidates[f->n++] = (struct candidate){.found = f->found[i]};
		else
			f->candidates[at].present = true;
	}
	for (size_t i = f->n; i-- > 0;) {
		size_t at = 0;

		while (at < f->n_found && !same_process(&f->candidates[i].found, &f->found[at]))
			at++;
		if (at == f->n_found)
			candidate_drop(f, i);
	}
}

static bool is_watched(const struct kvm_feed *f, pid_t pid)
{
	const struct vm_daemon *d = f->options.daemon;

	for (size_t i = 0; i < vm_daemon_n_vms(d); i++) {
		const struct watched_vm *vm = vm_daemon_vm(d, i);

		if (watched_vm_config(vm)->pid == (uint64_t)pid || watched_vm_pid(vm) == pid)
			return true;
	}
	return false;
}

/* "X-4711": only the process of that number is called so. */
static bool name_is_ours(const char *name)
{
	const char *dash = strrchr(name, '-');

	return dash && dash[1] && strspn(dash + 1, "0123456789") == strlen(dash + 1);
}

/* The name under which it is watched: what it claims, if nobody else has it. */
static void name_choose(const struct kvm_feed *f, struct candidate *c, struct vm_config *config)
{
	struct vm_identity nameless = c->found.identity;
	char why[256];

	nameless.name[0] = 0;
	snprintf(config->name, sizeof(config->name), "%s", c->found.identity.name);
	if (config->name[0] && !vm_config_check(config, why, sizeof(why)) &&
	    !name_is_ours(config->name)) {
		if (!vm_daemon_find(f->options.daemon, config->name))
			return;
		if (!c->told)
			say(f, "",
			    "%s %d of uid %u calls itself %s, as another VM is called: refused, it "
			    "is watched by its number",
			    vm_identity_vmm(&nameless), c->found.pid, nameless.uid, config->name);
		c->told = true;
	}
	vm_identity_name(&nameless, c->found.pid, config->name, sizeof(config->name));
	if (!vm_config_check(config, why, sizeof(why)))
		return;
	snprintf(config->name, sizeof(config->name), "vm-%d", c->found.pid);
}

static size_t fed_of(const struct kvm_feed *f, uint32_t uid)
{
	size_t n = 0;

	for (size_t i = 0; i < f->n; i++)
		n += f->candidates[i].state == CANDIDATE_FED &&
		     f->candidates[i].found.identity.uid == uid;
	return n;
}

static void candidate_feed(struct kvm_feed *f, struct candidate *c)
{
	const struct vm_identity *i = &c->found.identity;
	const uint64_t slots = vm_daemon_config(f->options.daemon)->discover_per_user;
	struct vm_config config;
	char why[512];

	if (c->found.several) {
		say(f, "", "%s %d runs several VMs, which cannot be told apart: not watched",
		    vm_identity_vmm(i), c->found.pid);
		c->state = CANDIDATE_REFUSED;
		return;
	}
	if (fed_of(f, i->uid) >= slots) {
		if (!c->told)
			say(f, "",
			    "%s %d: uid %u has %llu VMs already (discover_per_user): not watched",
			    vm_identity_vmm(i), c->found.pid, i->uid, (unsigned long long)slots);
		c->told = true;
		return;
	}
	vm_config_default(&config);
	config.pid = (uint64_t)c->found.pid;
	/* QEMU's channel may dial in, as a domain's of libvirt. */
	if (i->kind == VMM_QEMU)
		snprintf(config.channel, sizeof(config.channel), "daemon:");
	name_choose(f, c, &config);
	if (vm_daemon_attach(f->options.daemon, &config, VM_BY_KVM, why, sizeof(why))) {
		if (!c->told)
			say(f, "", "%s %d is not watched: %s", vm_identity_vmm(i), c->found.pid,
			    why);
		c->told = true;
		return;
	}
	c->state = CANDIDATE_FED;
	c->told = false;
	snprintf(c->vm, sizeof(c->vm), "%s", config.name);
	say(f, c->vm, "found by KVM: %s %d of uid %u, %zu vCPUs", vm_identity_vmm(i), c->found.pid,
	    i->uid, c->found.n_vcpus);
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
	candidates_follow(f);
	for (size_t i = 0; i < f->n; i++) {
		struct candidate *c = &f->candidates[i];

		/* A VM that was detached by hand stays detached. */
		if (c->state == CANDIDATE_FED && !vm_daemon_find(f->options.daemon, c->vm))
			c->state = CANDIDATE_REFUSED;
		/* Seen in two scans: if it is a domain of libvirt, libvirt has reported it by now.
		 */
		if (c->state == CANDIDATE_SEEN && c->present && !is_watched(f, c->found.pid))
			candidate_feed(f, c);
	}
}

/* ---- life ---- */

struct kvm_feed *kvm_feed_new(uv_loop_t *loop, const struct kvm_feed_options *options)
{
	struct kvm_feed *f = calloc(1, sizeof(*f));

	if (!f)
		return NULL;
	f->loop = loop;
	f->options = *options;
	f->work.data = f;
	f->finder = vm_finder_new(NULL);
	f->candidates = calloc(FOUND_MAX, sizeof(*f->candidates));
	f->found = calloc(FOUND_MAX, sizeof(*f->found));
	if (f->finder && f->candidates && f->found)
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
		uv_cancel((uv_req_t *)&f->work); /* if it has not begun; then on_over comes, too */
		return;
	}
	vm_finder_free(f->finder);
	free(f->candidates);
	free(f->found);
	free(f);
}

void kvm_feed_tick(struct kvm_feed *f)
{
	const struct daemon_config *config;

	if (!f || f->looking)
		return;
	config = vm_daemon_config(f->options.daemon);
	if (!daemon_config_discovers(config, "kvm")) {
		while (f->n)
			candidate_drop(f, f->n - 1);
		return;
	}
	if (f->looked_ms && uv_now(f->loop) - f->looked_ms < LOOK_MS)
		return;
	f->looked_ms = uv_now(f->loop);
	snprintf(f->users, sizeof(f->users), "%s", config->discover_users);
	f->looking = !uv_queue_work(f->loop, &f->work, on_thread, on_over);
}

static struct candidate *fed_find(const struct kvm_feed *f, const char *vm)
{
	for (size_t i = 0; f && i < f->n; i++) {
		if (f->candidates[i].state == CANDIDATE_FED && !strcmp(f->candidates[i].vm, vm))
			return &f->candidates[i];
	}
	return NULL;
}

void kvm_feed_yield(struct kvm_feed *f, const char *vm)
{
	struct candidate *c = fed_find(f, vm);

	if (c)
		c->state = CANDIDATE_SEEN;
}

static void text_add(struct json_object *to, const char *name, const char *value)
{
	if (*value)
		json_object_object_add(to, name, json_string_new(value));
}

void kvm_feed_describe(const struct kvm_feed *f, const char *vm, struct json_object *out)
{
	const struct candidate *c = fed_find(f, vm);
	const struct vm_identity *i = c ? &c->found.identity : NULL;

	if (!c)
		return;
	text_add(out, "vmm", vm_identity_vmm(i));
	json_object_object_add(out, "uid", json_object_new_int64(i->uid));
	text_add(out, "claimed_name", i->name);
	text_add(out, "claimed_uuid", i->uuid);
	text_add(out, "claimed_pod_uid", i->pod_uid);
	text_add(out, "claimed_manager", i->manager);
	if (i->vmid)
		json_object_object_add(out, "claimed_vmid", json_object_new_int64(i->vmid));
}
