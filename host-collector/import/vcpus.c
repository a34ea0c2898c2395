// SPDX-License-Identifier: GPL-2.0-only
#include "host-collector/import/vcpus.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host-collector/model/model.h"

struct candidate {
	int32_t tid, tgid;
	const char *comm;
	bool index_known;
	uint32_t index;
};

static const char no_comm[IMPORT_COMM_BYTES];

/* "CPU 3/KVM", "CPU 3/TCG". */
static bool index_of_comm(const char *comm, uint32_t *index)
{
	char *end;

	if (strncmp(comm, "CPU ", 4) || !isdigit((unsigned char)comm[4]))
		return false;
	*index = (uint32_t)strtoul(comm + 4, &end, 10);
	return *end == '/' && *index < VS_CPUS_MAX;
}

static struct message_vm_info *vm_add(struct vcpus *v, int32_t tgid, const char *name)
{
	struct message_vm_info *grown, *vm;

	if (v->n == MODEL_VMS_MAX)
		return NULL;
	grown = realloc(v->vms, (v->n + 1) * sizeof(*grown));
	if (!grown)
		return NULL;
	v->vms = grown;
	vm = &grown[v->n++];
	memset(vm, 0, sizeof(*vm));
	vm->vm = (uint32_t)v->n;
	vm->qemu_pid = tgid;
	if (name && v->n == 1)
		snprintf(vm->name, sizeof(vm->name), "%s", name);
	else
		snprintf(vm->name, sizeof(vm->name), "vm%zu", v->n);
	snprintf(vm->accelerator, sizeof(vm->accelerator), "kvm");
	return vm;
}

static bool has_index(const struct message_vm_info *vm, uint32_t index)
{
	for (size_t i = 0; i < vm->n_threads; i++) {
		if (vm->threads[i].vcpu == index)
			return true;
	}
	return false;
}

static uint32_t free_index(const struct message_vm_info *vm)
{
	uint32_t index = 0;

	while (has_index(vm, index))
		index++;
	return index;
}

/* The VM that this thread can be of, NULL: none yet. A listed one is complete. */
static struct message_vm_info *vm_of(struct vcpus *v, const struct candidate *c)
{
	for (size_t i = v->listed; i < v->n; i++) {
		if (v->vms[i].qemu_pid == c->tgid &&
		    !(c->index_known && has_index(&v->vms[i], c->index)))
			return &v->vms[i];
	}
	return NULL;
}

static void thread_add(struct vcpus *v, struct message_vm_info *vm, const struct candidate *c)
{
	struct message_vm_thread *t;

	if (!vm || vm->n_threads == VS_THREADS_MAX || vm->n_threads == VS_CPUS_MAX) {
		v->left_out++;
		return;
	}
	t = &vm->threads[vm->n_threads];
	*t = (struct message_vm_thread){
		.tid = c->tid, .is_vcpu = true, .vcpu = c->index_known ? c->index : free_index(vm)};
	memcpy(t->comm, c->comm, sizeof(t->comm));
	if (!c->comm[0])
		snprintf(t->comm, sizeof(t->comm), "vcpu %u", t->vcpu);
	vm->n_threads++;
}

/* 0 or -ENOMEM. */
static int candidate_place(struct vcpus *v, const struct candidate *c, const char *name)
{
	struct message_vm_info *vm = vm_of(v, c);

	if (!vm)
		vm = vm_add(v, c->tgid, name);
	if (!vm && v->n < MODEL_VMS_MAX)
		return -ENOMEM;
	thread_add(v, vm, c);
	return 0;
}

static bool is_placed(const struct vcpus *v, int32_t tid)
{
	for (size_t i = 0; i < v->n; i++) {
		for (size_t k = 0; k < v->vms[i].n_threads; k++) {
			if (v->vms[i].threads[k].tid == tid)
				return true;
		}
	}
	return false;
}

/* A guest that the host's file lists, unless none of its threads is known. 0 or -ENOMEM. */
static int guest_place(struct vcpus *v, const struct gather *host, const struct dat_guest *guest,
		       const char *name)
{
	struct message_vm_info *vm = NULL;

	for (size_t i = 0; i < guest->n; i++) {
		const struct gather_thread *t = gather_thread_find(host, guest->tids[i]);
		const struct candidate c = {.tid = guest->tids[i],
					    .tgid = t ? t->tgid : 0,
					    .comm = t ? t->comm : no_comm,
					    .index_known = true,
					    .index = (uint32_t)i};

		if (!c.tid || is_placed(v, c.tid))
			continue;
		if (!vm)
			vm = vm_add(v, c.tgid, name);
		if (!vm && v->n < MODEL_VMS_MAX)
			return -ENOMEM;
		thread_add(v, vm, &c);
	}
	if (vm && !(name && v->n == 1) && guest->name[0])
		memcpy(vm->name, guest->name, sizeof(vm->name));
	v->listed = v->n;
	return 0;
}

static int guests_place(struct vcpus *v, const struct gather *host, const struct vcpus_known *known)
{
	int err = known->first ? guest_place(v, host, known->first, known->name) : 0;

	for (size_t i = 0; i < known->n_guests && !err; i++) {
		if (&known->guests[i] != known->first)
			err = guest_place(v, host, &known->guests[i], known->name);
	}
	return err;
}

static int candidate_order(const void *a, const void *b)
{
	const struct candidate *x = a, *y = b;

	if (x->index_known != y->index_known)
		return y->index_known - x->index_known;
	return (x->tid > y->tid) - (x->tid < y->tid);
}

static int stated_take(struct vcpus *v, const struct gather *host, const char *stated,
		       const char *name)
{
	const char *at = stated;

	while (*at) {
		struct candidate c = {.index_known = true};
		const struct gather_thread *t;
		unsigned long tid, index;
		char *end;
		int err;

		errno = 0;
		tid = isdigit((unsigned char)*at) ? strtoul(at, &end, 10) : 0;
		if (!tid || errno || tid > INT32_MAX || *end != '=' ||
		    !isdigit((unsigned char)end[1]))
			return -EINVAL;
		index = strtoul(end + 1, &end, 10);
		if (errno || index >= VS_CPUS_MAX || (*end && *end != ',') || (*end && !end[1]))
			return -EINVAL;
		t = gather_thread_find(host, (int32_t)tid);
		c.tid = (int32_t)tid;
		c.comm = t ? t->comm : no_comm;
		c.index = (uint32_t)index;
		if (v->n && has_index(&v->vms[0], c.index))
			return -EINVAL;
		err = candidate_place(v, &c, name);
		if (err)
			return err;
		at = *end ? end + 1 : end;
	}
	return v->n ? 0 : -EINVAL;
}

int vcpus_find(struct vcpus *v, const struct gather *host, const struct vcpus_known *known)
{
	struct candidate *found;
	size_t n = 0;
	int err;

	memset(v, 0, sizeof(*v));
	if (known->stated)
		return stated_take(v, host, known->stated, known->name);
	err = guests_place(v, host, known);
	if (err)
		return err;
	found = calloc(host->n_threads + 1, sizeof(*found));
	if (!found)
		return -ENOMEM;
	for (size_t i = 0; i < host->thread_slots; i++) {
		const struct gather_thread *t = &host->threads[i];
		struct candidate c = {.tid = t->tid, .tgid = t->tgid, .comm = t->comm};

		c.index_known = t->tid && index_of_comm(t->comm, &c.index);
		if (!t->tid || (!c.index_known && !t->kvm) || is_placed(v, t->tid))
			continue;
		if (!c.index_known && t->vcpu_known && t->vcpu < VS_CPUS_MAX) {
			c.index_known = true;
			c.index = t->vcpu;
		}
		found[n++] = c;
	}
	qsort(found, n, sizeof(*found), candidate_order);
	for (size_t i = 0; i < n && !err; i++)
		err = candidate_place(v, &found[i], known->name);
	free(found);
	return err;
}

void vcpus_fini(struct vcpus *v)
{
	free(v->vms);
	v->vms = NULL;
	v->n = 0;
}
