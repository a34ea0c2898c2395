/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/vm/kvm_files.h"

#include <dirent.h>
#include <errno.h>
#include <linux/kvm.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "proto/proc_file.h"

static const char vm_link[] = "anon_inode:kvm-vm", vcpu_link[] = "anon_inode:kvm-vcpu:";

static void link_take(const char *link, int fd, struct kvm_files *out)
{
	uint32_t vcpu;
	int end = 0;

	if (!strcmp(link, vm_link))
		out->n_vms++;
	if (strncmp(link, vcpu_link, strlen(vcpu_link)) ||
	    sscanf(link + strlen(vcpu_link), "%u%n", &vcpu, &end) != 1 ||
	    link[strlen(vcpu_link) + (size_t)end] || out->n_vcpus == VS_CPUS_MAX)
		return;
	for (size_t i = 0; i < out->n_vcpus; i++) {
		if (out->vcpus[i].vcpu == vcpu)
			return;
	}
	out->vcpus[out->n_vcpus++] = (struct kvm_file){fd, vcpu};
}

int kvm_files_read(const char *proc, pid_t pid, struct kvm_files *out)
{
	char path[512], link[64];
	struct dirent *entry;
	size_t seen = 0;
	DIR *dir;

	out->n_vms = out->n_vcpus = 0;
	snprintf(path, sizeof(path), "%s/%d/fd", proc, pid);
	dir = opendir(path);
	if (!dir)
		return errno == ENOENT ? -ESRCH : -errno;
	while ((entry = readdir(dir)) && seen++ < KVM_FILES_SEEN_MAX) {
		ssize_t len;

		if (entry->d_name[0] == '.')
			continue;
		len = readlinkat(dirfd(dir), entry->d_name, link, sizeof(link) - 1);
		if (len <= 0)
			continue;
		link[len] = 0;
		link_take(link, atoi(entry->d_name), out);
	}
	closedir(dir);
	return 0;
}

/* The vCPU whose KVM_RUN the thread sleeps in, or NULL: "16 0xb 0xae80 .." (proc(5), syscall). */
static const struct kvm_file *running(const char *proc, pid_t pid, int32_t tid,
				      const struct kvm_files *files)
{
	char path[512], text[256];
	unsigned long fd, request, stack;
	long number;

	snprintf(path, sizeof(path), "%s/%d/task/%d/syscall", proc, pid, tid);
	if (proc_file_read(path, text, sizeof(text)) <= 0 ||
	    sscanf(text, "%ld 0x%lx 0x%lx %*s %*s %*s %*s 0x%lx", &number, &fd, &request, &stack) !=
		    4 ||
	    number != SYS_ioctl || (request & UINT32_MAX) != KVM_RUN)
		return NULL;
	if (!stack) /* a thread of the kernel's own, with what it inherited */
		return NULL;
	for (size_t i = 0; i < files->n_vcpus; i++) {
		if ((unsigned long)files->vcpus[i].fd == fd)
			return &files->vcpus[i];
	}
	return NULL;
}

static bool vcpu_has_thread(const struct message_vm_info *info, uint32_t vcpu)
{
	for (size_t i = 0; i < info->n_threads; i++) {
		const struct message_vm_thread *t = &info->threads[i];

		if (t->is_vcpu && (t->apic_id_known ? t->apic_id : t->vcpu) == vcpu)
			return true;
	}
	return false;
}

size_t kvm_files_running(const char *proc, const struct kvm_files *files,
			 struct message_vm_info *info)
{
	size_t known = 0;

	for (size_t i = 0; i < info->n_threads; i++) {
		struct message_vm_thread *t = &info->threads[i];
		const struct kvm_file *file =
			t->is_vcpu ? NULL : running(proc, info->qemu_pid, t->tid, files);

		if (!file || vcpu_has_thread(info, file->vcpu))
			continue;
		t->is_vcpu = t->apic_id_known = true;
		t->vcpu = t->apic_id = file->vcpu;
	}
	for (size_t i = 0; i < files->n_vcpus; i++)
		known += vcpu_has_thread(info, files->vcpus[i].vcpu);
	return known;
}
