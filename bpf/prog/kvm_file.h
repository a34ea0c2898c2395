/* SPDX-License-Identifier: GPL-2.0-only */
/* Finds the files that are vCPUs of KVM. For BPF programs that walk the open files of processes. */
#ifndef PROG_KVM_FILE_H
#define PROG_KVM_FILE_H

#include "bpf/prog/kernel.h"

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct super_block {
	unsigned long s_magic;
};

struct qstr {
	const unsigned char *name;
};

struct dentry {
	struct qstr d_name;
	struct super_block *d_sb;
};

struct path {
	struct dentry *dentry;
};

struct file {
	struct path f_path;
	void *private_data;
};

struct bpf_iter__task_file {
	struct bpf_iter_meta *meta;
	struct task_struct *task;
	__u32 fd;
	struct file *file;
};

#pragma clang attribute pop

enum { ANON_INODE_FS = 0x09041934 }; /* linux/magic.h */

/* Returns true if the file is a vCPU. Then its private_data points to a struct kvm_vcpu. */
static __always_inline bool is_vcpu_file(struct file *file)
{
	static const char prefix[] = "kvm-vcpu:";
	struct dentry *dentry = BPF_CORE_READ(file, f_path.dentry);
	char name[sizeof(prefix)] = {};

	/* A program may give any file this name, but not in this file system. */
	if (BPF_CORE_READ(dentry, d_sb, s_magic) != ANON_INODE_FS)
		return false;
	bpf_probe_read_kernel(name, sizeof(prefix) - 1, BPF_CORE_READ(dentry, d_name.name));
	for (int i = 0; i < sizeof(prefix) - 1; i++)
		if (name[i] != prefix[i])
			return false;
	return true;
}

#endif
