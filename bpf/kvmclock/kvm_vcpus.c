/* SPDX-License-Identifier: GPL-2.0-only */
#include "bpf/kvmclock/kvm_vcpus.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>
#include <bpf/libbpf.h>

#include "bpf/kvmclock/task_files.h"
#include "kvm_vcpus_prog.skel.h"

struct kvm_vcpus {
	struct kvm_vcpus_prog *program;
};

struct reading {
	void (*seen)(void *context, const struct vs_vcpu_file *file);
	void *context;
	long n;
};

int kvm_vcpus_open(struct kvm_vcpus **out)
{
	const libbpf_print_fn_t print = libbpf_set_print(NULL);
	struct kvm_vcpus *k = calloc(1, sizeof(*k));
	int error = k ? -EOPNOTSUPP : -ENOMEM;

	/* KVM may be loaded later: a program that was loaded before would never see its types. */
	if (k && !access("/sys/module/kvm", F_OK)) {
		k->program = kvm_vcpus_prog__open_and_load();
		error = k->program ? 0 : -errno;
	}
	libbpf_set_print(print);
	if (error) {
		free(k);
		/* Whatever the verifier did not like: this kernel has not what we need. */
		return error == -EPERM || error == -ENOMEM ? error : -EOPNOTSUPP;
	}
	*out = k;
	return 0;
}

void kvm_vcpus_close(struct kvm_vcpus *k)
{
	if (!k)
		return;
	kvm_vcpus_prog__destroy(k->program);
	free(k);
}

static int record_take(void *context, const void *data)
{
	struct reading *r = context;

	r->seen(r->context, data);
	r->n++;
	return 0;
}

long kvm_vcpus_read(struct kvm_vcpus *k, pid_t pid,
		    void (*seen)(void *context, const struct vs_vcpu_file *file), void *context)
{
	const libbpf_print_fn_t print = libbpf_set_print(NULL);
	struct reading r = {seen, context, 0};
	int error;

	k->program->bss->only = pid;
	error = task_files_read(k->program->progs.vcpu_files, pid, sizeof(struct vs_vcpu_file),
				record_take, &r);
	libbpf_set_print(print);
	return error ? error : r.n;
}
