/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/vm/threads.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "proto/proc_file.h"

/* QEMU's thread names (accel/kvm/kvm-accel-ops.c, accel/tcg/tcg-accel-ops-*.c). Without
 * multi-threaded TCG one thread runs all CPUs; it counts as vCPU 0. */
static const struct {
	const char *format; /* with %u: the index; %n: where the name must end */
	const char *accelerator;
	bool numbered;
} vcpu_names[] = {
	{"CPU %u/KVM%n", "kvm", true},
	{"CPU %u/TCG%n", "tcg", true},
	{"ALL CPUs/TCG%n", "tcg", false},
};

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
bool thread_name_is_vcpu(const char *comm, uint32_t *vcpu, const char **accelerator)
{
	for (size_t i = 0; i < sizeof(vcpu_names) / sizeof(vcpu_names[0]); i++) {
		unsigned int index = 0;
		int end = 0;

		if (vcpu_names[i].numbered)
			sscanf(comm, vcpu_names[i].format, &index, &end);
		else
			sscanf(comm, vcpu_names[i].format, &end);
		if (!end || comm[end] || index >= VS_CPUS_MAX)
			continue;
		*vcpu = index;
		*accelerator = vcpu_names[i].accelerator;
		return true;
	}
	return false;
}
#pragma GCC diagnostic pop

static void comm_read(const char *path, char comm[16])
{
	char line[64];

	comm[0] = 0;
	if (proc_file_read(path, line, sizeof(line)) <= 0)
		return;
	line[strcspn(line, "\n")] = 0;
	snprintf(comm, 16, "%.15s", line);
}

void threads_comm(const char *proc, pid_t pid, char comm[16])
{
	char path[512];

	snprintf(path, sizeof(path), "%s/%d/comm", proc, pid);
	comm_read(path, comm);
}

static int thread_compare(const void *a, const void *b)
{
	const struct message_vm_thread *x = a, *y = b;

	return (x->tid > y->tid) - (x->tid < y->tid);
}

int threads_scan(const char *proc, pid_t pid, struct message_vm_info *info)
{
	char path[512];
	struct dirent *entry;
	DIR *dir;

	snprintf(path, sizeof(path), "%s/%d/task", proc, pid);
	dir = opendir(path);
	if (!dir)
		return errno == ENOENT ? -ESRCH : -errno;
	info->qemu_pid = pid;
	info->n_threads = 0;
	info->accelerator[0] = 0;
	while ((entry = readdir(dir)) && info->n_threads < VS_THREADS_MAX) {
		struct message_vm_thread *thread = &info->threads[info->n_threads];
		const char *accelerator;
		int tid = proc_id_of(entry->d_name);

		if (!tid)
			continue;
		memset(thread, 0, sizeof(*thread));
		thread->tid = tid;
		snprintf(path, sizeof(path), "%s/%d/task/%d/comm", proc, pid, tid);
		comm_read(path, thread->comm);
		if (thread_name_is_vcpu(thread->comm, &thread->vcpu, &accelerator)) {
			thread->is_vcpu = true;
			snprintf(info->accelerator, sizeof(info->accelerator), "%s", accelerator);
		}
		info->n_threads++;
	}
	closedir(dir);
	/* A zombie keeps its directory but has no thread that can run. */
	if (!info->n_threads)
		return -ESRCH;
	qsort(info->threads, info->n_threads, sizeof(info->threads[0]), thread_compare);
	return 0;
}

struct message_vm_thread *threads_by_tid(const struct message_vm_info *info, int32_t tid)
{
	for (size_t i = 0; i < info->n_threads; i++) {
		if (info->threads[i].tid == tid)
			return (struct message_vm_thread *)&info->threads[i];
	}
	return NULL;
}

bool threads_stay(const char *proc, const struct message_vm_info *info)
{
	char path[512];
	struct dirent *entry;
	size_t n = 0;
	DIR *dir;

	snprintf(path, sizeof(path), "%s/%d/task", proc, info->qemu_pid);
	dir = opendir(path);
	if (!dir)
		return false;
	while ((entry = readdir(dir))) {
		const int tid = proc_id_of(entry->d_name);

		if (!tid)
			continue;
		/* The kernel lists them in the order in which they began: mostly by their ids. */
		if (n == info->n_threads ||
		    (info->threads[n].tid != tid && !threads_by_tid(info, tid)))
			break;
		n++;
	}
	closedir(dir);
	return !entry && n == info->n_threads;
}

/* One VM's folder: vcpuN/pid files. */
static size_t debugfs_vm(const char *folder, struct message_vm_info *info, struct vcpu_thread *out,
			 size_t max)
{
	struct dirent *entry;
	DIR *dir = opendir(folder);
	size_t n = 0;

	if (!dir)
		return 0;
	while ((entry = readdir(dir)) && n < max) {
		char path[1024], text[32];
		unsigned int id;
		int end = 0, tid;

		if (sscanf(entry->d_name, "vcpu%u%n", &id, &end) != 1 || entry->d_name[end])
			continue;
		snprintf(path, sizeof(path), "%s/%s/pid", folder, entry->d_name);
		if (proc_file_read(path, text, sizeof(text)) <= 0)
			continue;
		text[strcspn(text, "\n")] = 0;
		tid = proc_id_of(text);
		if (threads_by_tid(info, tid))
			out[n++] = (struct vcpu_thread){tid, id};
	}
	closedir(dir);
	return n;
}

/* "PID-FD", where PID is of the thread that created the VM: not always the first. */
static bool folder_is_of(const char *name, struct message_vm_info *info)
{
	char *end;
	long creator = strtol(name, &end, 10);

	return end != name && *end == '-' && creator > 0 && creator <= INT32_MAX &&
	       threads_by_tid(info, (int)creator);
}

size_t threads_debugfs(const char *debugfs, struct message_vm_info *info, struct vcpu_thread *out,
		       size_t max, bool *several)
{
	char path[512];
	struct dirent *entry;
	size_t n = 0, more;
	DIR *dir;

	snprintf(path, sizeof(path), "%s/kvm", debugfs);
	dir = opendir(path);
	if (!dir)
		return 0;
	while ((entry = readdir(dir))) {
		if (!folder_is_of(entry->d_name, info))
			continue;
		snprintf(path, sizeof(path), "%s/kvm/%.200s", debugfs, entry->d_name);
		more = debugfs_vm(path, info, out + n, max - n);
		*several |= n && more;
		n += more;
	}
	closedir(dir);
	return n;
}

void threads_apply_kvm(struct message_vm_info *info, const struct vcpu_thread *rows, size_t n,
		       bool all)
{
	for (size_t i = 0; i < info->n_threads && all; i++)
		info->threads[i].is_vcpu = false;
	for (size_t i = 0; i < n; i++) {
		struct message_vm_thread *thread = threads_by_tid(info, rows[i].tid);
		const char *accelerator;

		if (!thread)
			continue;
		/* Without a name the index is unknown; the APIC id is the index unless the
		 * topology has holes, and the join goes by APIC id anyway. */
		if (!thread->is_vcpu &&
		    !thread_name_is_vcpu(thread->comm, &thread->vcpu, &accelerator))
			thread->vcpu = rows[i].vcpu;
		thread->is_vcpu = true;
		thread->apic_id = rows[i].vcpu;
		thread->apic_id_known = true;
	}
	if (n)
		snprintf(info->accelerator, sizeof(info->accelerator), "kvm");
}

bool threads_ids_global(const char *proc)
{
	/* The inode of the initial namespace is part of the kernel's interface: PROC_PID_INIT_INO,
	 * fs/proc. */
	static const char initial[] = "pid:[4026531836]";
	char path[512], name[64];
	ssize_t len;

	snprintf(path, sizeof(path), "%s/self/ns/pid", proc);
	len = readlink(path, name, sizeof(name));
	return len < 0 ||
	       ((size_t)len == strlen(initial) && !memcmp(name, initial, strlen(initial)));
}

/* The last number of NSpid: the id in the innermost namespace. Kernels before 4.1 have no NSpid. */
static int32_t own_id(const char *proc, pid_t pid, int32_t tid)
{
	char path[512], status[4096], *line, *end;
	int32_t own = tid;

	snprintf(path, sizeof(path), "%s/%d/task/%d/status", proc, pid, tid);
	if (proc_file_read(path, status, sizeof(status)) <= 0)
		return 0;
	line = strstr(status, "\nNSpid:");
	if (!line)
		return own;
	line += strlen("\nNSpid:");
	for (;;) {
		long id = *line == '\t' ? strtol(line, &end, 10) : 0;

		if (id <= 0 || id > INT32_MAX)
			return own;
		own = (int32_t)id;
		line = end;
	}
}

ssize_t threads_ids(const char *proc, pid_t pid, struct thread_ids *out, size_t max)
{
	struct dirent *entry;
	char path[512];
	ssize_t n = 0;
	DIR *dir;

	snprintf(path, sizeof(path), "%s/%d/task", proc, pid);
	dir = opendir(path);
	if (!dir)
		return errno == ENOENT ? -ESRCH : -errno;
	while ((entry = readdir(dir)) && (size_t)n < max) {
		int32_t tid = proc_id_of(entry->d_name), own = tid ? own_id(proc, pid, tid) : 0;

		if (own)
			out[n++] = (struct thread_ids){tid, own};
	}
	closedir(dir);
	return n ? n : -ESRCH;
}

static int pid_compare(const void *a, const void *b)
{
	const pid_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

size_t threads_find_qemu(const char *proc, pid_t *pids, size_t max)
{
	struct dirent *entry;
	DIR *dir = opendir(proc);
	size_t n = 0;

	if (!dir)
		return 0;
	while ((entry = readdir(dir)) && n < max) {
		char comm[16];
		int pid = proc_id_of(entry->d_name);

		if (!pid)
			continue;
		threads_comm(proc, pid, comm);
		if (!strncmp(comm, "qemu-system", 11) || !strncmp(comm, "qemu-kvm", 8) ||
		    !strcmp(comm, "kvm"))
			pids[n++] = pid;
	}
	closedir(dir);
	qsort(pids, n, sizeof(*pids), pid_compare);
	return n;
}
