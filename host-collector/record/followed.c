/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/record/followed.h"

#include <errno.h>
#include <stdlib.h>

void followed_fini(struct followed *f)
{
	for (size_t i = 0; i < f->n_vms; i++)
		exit_counts_free(f->vms[i].exits);
	free(f->vms);
	free(f->threads);
	*f = (struct followed){0};
}

static struct followed_vm *vm_find(const struct followed *f, uint32_t vm)
{
	for (size_t i = 0; i < f->n_vms; i++) {
		if (f->vms[i].vm == vm)
			return &f->vms[i];
	}
	return NULL;
}

bool followed_has(const struct followed *f, uint32_t vm)
{
	return vm_find(f, vm) != NULL;
}

static int vm_add(struct followed *f, uint32_t vm)
{
	struct followed_vm *vms;

	if (vm_find(f, vm))
		return 0;
	vms = realloc(f->vms, (f->n_vms + 1) * sizeof(*vms));
	if (!vms)
		return -ENOMEM;
	f->vms = vms;
	vms[f->n_vms] = (struct followed_vm){.vm = vm, .exits = exit_counts_new()};
	if (!vms[f->n_vms].exits)
		return -ENOMEM;
	f->n_vms++;
	return 0;
}

static int threads_reserve(struct followed *f, size_t more)
{
	const size_t wanted = f->n_threads + more + 1;
	struct followed_thread *threads;

	if (wanted <= f->threads_room)
		return 0;
	threads = realloc(f->threads, wanted * sizeof(*threads));
	if (!threads)
		return -ENOMEM;
	f->threads = threads;
	f->threads_room = wanted;
	return 0;
}

static bool info_has(const struct message_vm_info *info, int32_t tid)
{
	for (size_t i = 0; i < info->n_threads; i++) {
		if (info->threads[i].tid == tid)
			return true;
	}
	return false;
}

/* Removes the VM's threads. Those that `info` no longer has are no longer followed. */
static void threads_forget(struct followed *f, const struct message_vm_info *info,
			   struct capture *capture)
{
	size_t kept = 0;

	for (size_t i = 0; i < f->n_threads; i++) {
		const struct followed_thread *t = &f->threads[i];

		/* A thread of another VM may have ended, and a new one have its number. */
		if (info_has(info, t->tid))
			continue;
		if (t->vm != info->vm)
			f->threads[kept++] = *t;
		/* One that ended is gone from the map already: no error. */
		else if (capture)
			capture_remove_thread(capture, t->tid);
	}
	f->n_threads = kept;
}

int followed_set(struct followed *f, const struct message_vm_info *info, struct capture *capture)
{
	int first = threads_reserve(f, info->n_threads);

	if (!first)
		first = vm_add(f, info->vm);
	if (first)
		return first;
	threads_forget(f, info, capture);
	for (size_t i = 0; i < info->n_threads; i++) {
		const struct message_vm_thread *t = &info->threads[i];
		int err = 0;

		/* Again for those known: a thread may have become a vCPU. */
		if (capture)
			err = capture_add_thread(capture, t->tid, info->qemu_pid, info->vm,
						 t->is_vcpu);
		if (err && err != -ESRCH && !first)
			first = err;
		f->threads[f->n_threads++] = (struct followed_thread){
			t->tid, t->is_vcpu ? (int32_t)t->vcpu : -1, info->vm};
	}
	return first;
}

void followed_count(struct followed *f, const struct capture_exit *exit)
{
	for (size_t i = 0; i < f->n_threads; i++) {
		const struct followed_thread *t = &f->threads[i];

		if (t->tid != exit->tid)
			continue;
		if (t->vcpu >= 0)
			exit_counts_add(vm_find(f, t->vm)->exits, (uint32_t)t->vcpu, exit);
		return;
	}
}
