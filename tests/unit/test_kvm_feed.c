// SPDX-License-Identifier: GPL-2.0-only
/* Tests that VMs found by KVM's descriptors are attached, named, limited and reported as
 * kvm_feed.h says. The search, the daemon and the time are simulated. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <uv.h>

#include "host-collector/daemon/kvm_feed.h"
#include "host-collector/vm/discover.h"

enum { MAX = 8 };

/* ---- the machine and the daemon ---- */

struct vm_finder {
	int unused;
};

struct watched_vm {
	struct vm_config config;
	enum vm_origin origin;
};

struct vm_daemon {
	struct daemon_config config;
	struct watched_vm vms[MAX];
	size_t n;
};

static struct vm_finder finder;
static struct vm_found found[MAX];
static size_t n_found;
static uint64_t now_ms;

uint64_t uv_now(const uv_loop_t *loop)
{
	(void)loop;
	return now_ms;
}

struct vm_finder *vm_finder_new(const char *proc)
{
	(void)proc;
	return &finder;
}

void vm_finder_free(struct vm_finder *f)
{
	(void)f;
}

size_t vm_finder_look(struct vm_finder *f, const struct vm_wanted *wanted, struct vm_found *out,
		      size_t max)
{
	(void)f;
	assert_true(n_found <= max);
	assert_int_equal(wanted->n_uids, 1);
	assert_int_equal(wanted->uids[0], 1000);
	memcpy(out, found, n_found * sizeof(*found));
	return n_found;
}

const struct daemon_config *vm_daemon_config(const struct vm_daemon *d)
{
	return &d->config;
}

size_t vm_daemon_n_vms(const struct vm_daemon *d)
{
	return d->n;
}

struct watched_vm *vm_daemon_vm(const struct vm_daemon *d, size_t index)
{
	return (struct watched_vm *)&d->vms[index];
}

struct watched_vm *vm_daemon_find(const struct vm_daemon *d, const char *name)
{
	for (size_t i = 0; i < d->n; i++)
		if (!strcmp(d->vms[i].config.name, name))
			return (struct watched_vm *)&d->vms[i];
	return NULL;
}

const struct vm_config *watched_vm_config(const struct watched_vm *vm)
{
	return &vm->config;
}

pid_t watched_vm_pid(const struct watched_vm *vm)
{
	return (pid_t)vm->config.pid;
}

int vm_daemon_attach(struct vm_daemon *d, const struct vm_config *config, enum vm_origin origin,
		     char *why, size_t why_bytes)
{
	if (d->n == MAX) {
		snprintf(why, why_bytes, "full");
		return -ENOSPC;
	}
	d->vms[d->n++] = (struct watched_vm){*config, origin};
	return 0;
}

int vm_daemon_detach(struct vm_daemon *d, const char *name)
{
	struct watched_vm *vm = vm_daemon_find(d, name);

	if (!vm)
		return -ENOENT;
	*vm = d->vms[--d->n];
	return 0;
}

/* ---- the rig ---- */

struct rig {
	uv_loop_t loop;
	struct vm_daemon daemon;
	struct kvm_feed *feed;
	char said[MAX * 4][256];
	size_t n_said;
};

static void on_say(void *context, const char *vm, const char *line)
{
	struct rig *r = context;

	assert_true(r->n_said < MAX * 4);
	snprintf(r->said[r->n_said++], sizeof(r->said[0]), "%s|%s", vm, line);
}

static int rig_setup(void **state)
{
	struct rig *r = calloc(1, sizeof(*r));
	const struct vm_source source = {.daemon = &r->daemon, .say = on_say, .context = r};

	snprintf(r->daemon.config.discover, sizeof(r->daemon.config.discover), "kvm");
	snprintf(r->daemon.config.discover_users, sizeof(r->daemon.config.discover_users), "1000");
	r->daemon.config.discover_per_user = 2;
	now_ms = 1000;
	n_found = 0;
	uv_loop_init(&r->loop);
	r->feed = kvm_feed_new(&r->loop, &source);
	*state = r;
	return r->feed ? 0 : -1;
}

static int rig_teardown(void **state)
{
	struct rig *r = *state;

	kvm_feed_close(r->feed);
	assert_int_equal(uv_loop_close(&r->loop), 0);
	free(r);
	return 0;
}

static struct vm_found *found_add(pid_t pid, const char *name)
{
	struct vm_found *f = &found[n_found++];

	*f = (struct vm_found){.pid = pid, .kvm = true, .n_vcpus = 2};
	f->identity.kind = VMM_QEMU;
	f->identity.uid = 1000;
	f->identity.started = (uint64_t)pid * 10;
	snprintf(f->identity.program, sizeof(f->identity.program), "qemu-system-x86_64");
	snprintf(f->identity.name, sizeof(f->identity.name), "%s", name);
	return f;
}

static void look(struct rig *r)
{
	now_ms += 3000;
	kvm_feed_tick(r->feed);
	uv_run(&r->loop, UV_RUN_DEFAULT);
}

static void assert_said(const struct rig *r, size_t n, const char *last)
{
	assert_int_equal(r->n_said, n);
	if (n)
		assert_string_equal(r->said[n - 1], last);
}

/* ---- tests ---- */

static void test_a_vm_is_attached_when_found_twice_and_detached_when_gone(void **state)
{
	struct rig *r = *state;

	found_add(4711, "web");
	look(r);
	assert_int_equal(r->daemon.n, 0);
	look(r);
	assert_int_equal(r->daemon.n, 1);
	assert_string_equal(r->daemon.vms[0].config.name, "web");
	assert_string_equal(r->daemon.vms[0].config.channel, "daemon:");
	assert_int_equal(r->daemon.vms[0].config.pid, 4711);
	assert_int_equal(r->daemon.vms[0].origin, VM_BY_KVM);
	assert_said(r, 1, "web|found by KVM: QEMU 4711 of uid 1000, 2 vCPUs");
	look(r);
	assert_int_equal(r->daemon.n, 1);
	/* Another process of the same number. */
	found[0].identity.started++;
	look(r);
	assert_int_equal(r->daemon.n, 0);
	look(r);
	assert_int_equal(r->daemon.n, 1);
	n_found = 0;
	look(r);
	assert_int_equal(r->daemon.n, 0);
	assert_int_equal(r->n_said, 2);
}

static void test_a_name_that_another_vm_has_is_not_used(void **state)
{
	struct rig *r = *state;

	r->daemon.vms[r->daemon.n++] = (struct watched_vm){.config = {.name = "web", .pid = 1}};
	found_add(4711, "web");
	found_add(4712, "no name: {");
	look(r);
	look(r);
	assert_int_equal(r->daemon.n, 3);
	assert_string_equal(r->daemon.vms[1].config.name, "qemu-4711");
	assert_string_equal(r->daemon.vms[2].config.name, "qemu-4712");
	assert_int_equal(r->n_said, 3);
	assert_string_equal(r->said[0], "|QEMU 4711 of uid 1000 calls itself web, as another VM is "
					"called: refused, it is watched by its number");
}

static void test_reasons_are_reported_once(void **state)
{
	struct rig *r = *state;

	found_add(1, "a");
	found_add(2, "b");
	found_add(3, "c");
	found_add(4, "d")->several = true;
	look(r);
	for (int i = 0; i < 3; i++)
		look(r);
	assert_int_equal(r->daemon.n, 2);
	assert_int_equal(r->n_said, 4);
	assert_string_equal(r->said[2], "|QEMU 3: uid 1000 has 2 VMs already (discover_per_user): "
					"not watched");
	assert_string_equal(r->said[3], "|QEMU 4 runs several VMs, which cannot be distinguished: "
					"not watched");
	/* A slot becomes free, but the daemon is full: another reason, and later it is attached. */
	found[0] = found[--n_found];
	while (r->daemon.n < MAX + 1 && r->daemon.n)
		if (vm_daemon_attach(&r->daemon, &(struct vm_config){.name = "x"}, VM_BY_CTL,
				     (char[8]){0}, 8))
			break;
	look(r);
	assert_int_equal(r->daemon.n, MAX);
	assert_string_equal(r->daemon.vms[MAX - 1].config.name, "c");
	assert_said(r, 5, "c|found by KVM: QEMU 3 of uid 1000, 2 vCPUs");
}

static void test_a_full_daemon_is_reported_until_there_is_room(void **state)
{
	struct rig *r = *state;

	while (r->daemon.n < MAX)
		r->daemon.vms[r->daemon.n++] = (struct watched_vm){.config = {.name = "x"}};
	found_add(5, "e");
	for (int i = 0; i < 3; i++)
		look(r);
	assert_said(r, 1, "|QEMU 5 is not watched: full");
	r->daemon.n--;
	look(r);
	assert_said(r, 2, "e|found by KVM: QEMU 5 of uid 1000, 2 vCPUs");
}

static void test_what_was_detached_by_hand_stays_so_and_what_yields_comes_back(void **state)
{
	struct rig *r = *state;

	found_add(5, "e");
	found_add(6, "f");
	look(r);
	look(r);
	assert_int_equal(r->daemon.n, 2);
	assert_int_equal(vm_daemon_detach(&r->daemon, "e"), 0);
	/* libvirt attaches the process of f. */
	kvm_feed_yield(r->feed, "f");
	r->daemon.vms[0].origin = VM_BY_LIBVIRT;
	look(r);
	look(r);
	assert_int_equal(r->daemon.n, 1);
	assert_int_equal(r->daemon.vms[0].origin, VM_BY_LIBVIRT);
	r->daemon.n = 0;
	look(r);
	assert_int_equal(r->daemon.n, 1);
	assert_string_equal(r->daemon.vms[0].config.name, "f");
	assert_int_equal(r->daemon.vms[0].origin, VM_BY_KVM);
	/* The search is switched off. */
	snprintf(r->daemon.config.discover, sizeof(r->daemon.config.discover), "libvirt");
	look(r);
	assert_int_equal(r->daemon.n, 0);
}

#define RIG(test) cmocka_unit_test_setup_teardown(test, rig_setup, rig_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		RIG(test_a_vm_is_attached_when_found_twice_and_detached_when_gone),
		RIG(test_a_name_that_another_vm_has_is_not_used),
		RIG(test_reasons_are_reported_once),
		RIG(test_a_full_daemon_is_reported_until_there_is_room),
		RIG(test_what_was_detached_by_hand_stays_so_and_what_yields_comes_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
