/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/vm/vcpu_threads.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "bpf/kvmclock/kvm_vcpus.h"

enum {
	TRIES = 20, /* to see a thread asleep in KVM_RUN */
	TRY_US = 2000,
	/* A vCPU that has not run has no thread. It is asked for in each scan at first. */
	ASKED_OFTEN = 30,
	ASKED_EVERY = 10,
};

void vcpu_threads_init(struct vcpu_threads *v, const char *proc, const char *debugfs, bool by_bpf)
{
	*v = (struct vcpu_threads){.proc = proc, .debugfs = debugfs, .by_bpf = by_bpf};
}

void vcpu_threads_fini(struct vcpu_threads *v)
{
	kvm_vcpus_close(v->kvm);
	v->kvm = NULL;
}

static uint64_t threads_hash(const struct message_vm_info *info)
{
	uint64_t hash = 0xcbf29ce484222325; /* FNV-1a */

	for (size_t i = 0; i < info->n_threads; i++)
		hash = (hash ^ (uint32_t)info->threads[i].tid) * 0x100000001b3;
	return hash;
}

/* ---- KVM's word ---- */

struct asking {
	struct vcpu_threads *v;
	const struct message_vm_info *info;
	uint64_t kvm;
};

static void vcpu_seen(void *context, const struct vs_vcpu_file *file)
{
	struct asking *a = context;
	struct vcpu_threads *v = a->v;

	if (!file->owned)
		return;
	v->several |= a->kvm && file->kvm != a->kvm;
	a->kvm = file->kvm;
	/* The kernel's word may be of a thread that has ended. */
	if (!threads_by_tid(a->info, file->tid) || v->n_rows == VS_CPUS_MAX)
		return;
	for (size_t i = 0; i < v->n_rows; i++) {
		if (v->rows[i].vcpu == file->vcpu)
			return;
	}
	v->rows[v->n_rows++] = (struct vcpu_thread){file->tid, file->vcpu};
}

static void kvm_ask(struct vcpu_threads *v, struct message_vm_info *info)
{
	struct asking a = {v, info, 0};

	v->several = false;
	v->n_rows = threads_debugfs(v->debugfs, info, v->rows, VS_CPUS_MAX, &v->several);
	/* Loading a program takes longer than reading a few files. */
	if (v->n_rows < v->files.n_vcpus && v->by_bpf && !v->kvm && !v->no_bpf)
		v->no_bpf = kvm_vcpus_open(&v->kvm) != 0;
	if (v->n_rows < v->files.n_vcpus && v->kvm) {
		v->n_rows = 0;
		kvm_vcpus_read(v->kvm, info->qemu_pid, vcpu_seen, &a);
	}
	v->all = v->n_rows && v->n_rows == v->files.n_vcpus && !v->several;
	if (v->all)
		vcpu_threads_fini(v);
	v->asked++;
}

/* Is what KVM said last still worth something? */
static bool rows_stand(struct vcpu_threads *v, const struct message_vm_info *info)
{
	const uint64_t threads = threads_hash(info);

	if (threads != v->threads) {
		v->threads = threads;
		v->asked = 0;
		kvm_files_read(v->proc, info->qemu_pid, &v->files);
		/* Workers come and go. */
		v->all &= v->n_rows == v->files.n_vcpus;
		for (size_t i = 0; i < v->n_rows && v->all; i++)
			v->all = threads_by_tid(info, v->rows[i].tid) != NULL;
		return v->all;
	}
	return v->all || (v->asked >= ASKED_OFTEN && v->asked++ % ASKED_EVERY);
}

/* ---- what else there is ---- */

/* How other VMMs call their vCPU threads; such a name counts where KVM says that there is such a
 * vCPU. */
static bool name_is_vcpu(const char *comm, uint32_t *vcpu)
{
	static const char *const names[] = {"fc_vcpu %u%n", "vcpu%u%n", "crosvm_vcpu%u%n",
					    "kvm-vcpu-%u%n"};

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		int end = 0;

		if (sscanf(comm, names[i], vcpu, &end) == 1 && end && !comm[end])
			return true;
	}
#pragma GCC diagnostic pop
	return false;
}

static bool vcpu_is_open(const struct vcpu_threads *v, const struct message_vm_info *info,
			 uint32_t vcpu)
{
	bool exists = false;

	for (size_t i = 0; i < v->files.n_vcpus; i++)
		exists |= v->files.vcpus[i].vcpu == vcpu;
	for (size_t i = 0; i < info->n_threads; i++)
		exists &= !info->threads[i].is_vcpu || info->threads[i].vcpu != vcpu;
	return exists;
}

static void names_apply(const struct vcpu_threads *v, struct message_vm_info *info)
{
	for (size_t i = 0; i < info->n_threads; i++) {
		struct message_vm_thread *t = &info->threads[i];
		uint32_t vcpu;

		if (t->is_vcpu || !name_is_vcpu(t->comm, &vcpu) || !vcpu_is_open(v, info, vcpu))
			continue;
		t->is_vcpu = true;
		t->vcpu = vcpu;
	}
}

void vcpu_threads_apply(struct vcpu_threads *v, struct message_vm_info *info, bool patient)
{
	size_t known;

	if (!rows_stand(v, info))
		kvm_ask(v, info);
	threads_apply_kvm(info, v->rows, v->n_rows, v->all);
	if (v->all || !v->files.n_vcpus)
		return;
	snprintf(info->accelerator, sizeof(info->accelerator), "kvm");
	names_apply(v, info);
	for (int i = 0; i < TRIES; i++) {
		known = kvm_files_running(v->proc, &v->files, info);
		if (known == v->files.n_vcpus || !patient || !v->by_bpf)
			break;
		usleep(TRY_US);
	}
}

bool vcpu_threads_refute(const struct vcpu_threads *v, int32_t tid)
{
	for (size_t i = 0; i < v->n_rows; i++) {
		if (v->rows[i].tid == tid)
			return false;
	}
	return v->all;
}
