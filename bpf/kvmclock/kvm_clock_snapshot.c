// SPDX-License-Identifier: GPL-2.0-only
/* Takes the snapshot from struct kvm_vcpu, debugfs, and the guest's pvclock page. Reading them
 * makes neither KVM nor the guest do anything. */
#include "bpf/kvmclock/kvm_clock.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "bpf/kvmclock/kvm_clock_internal.h"
#include "bpf/kvmclock/kvm_protection.h"
#include "bpf/kvmclock/task_files.h"
#include "clock/sample.h"
#include "clock/tsc_scaling.h"
#include "proto/proc_file.h"

enum {
	PAGE = 4096,
	PAGE_TRIES = 16, /* KVM writes for well under a microsecond */
};

static const char debugfs_kvm[] = "/sys/kernel/debug/kvm";

struct snapshot {
	struct kvm_clock *k;
	const struct kvm_clock_sink *sink;
	pid_t pid;
	uint32_t vm;
	size_t n_debugfs; /* vCPUs there */
	size_t n_vcpus;   /* by the iterator */
	enum vm_protection protection;
	struct vs_kvm_vcpu *vcpus;
};

/* Returns since when it holds. A traced write of this offset since the last scan gives the time
 * to the microsecond; otherwise it was written at some time after that scan. */
static void value_date(const struct snapshot *s, struct message_vm_clock *m)
{
	const struct message_vm_clock write = {.vm = m->vm,
					       .vcpu = m->vcpu,
					       .source = VM_CLOCK_WRITE_TSC_OFFSET,
					       .tsc.known = true};
	const struct kvm_clock_said *said = kvm_clock_said_find(s->k, m);
	const struct kvm_clock_said *written = kvm_clock_said_find(s->k, &write);
	m->from_min = said ? said->read_tsc : 0;
	m->from_max = clock_tsc_read();
	if (m->tsc.known && written && written->value.tsc.offset == m->tsc.offset &&
	    (!said || said->value.tsc.offset != m->tsc.offset) &&
	    written->value.from_max > m->from_min) {
		m->from_min = written->value.from_min;
		m->from_max = written->value.from_max;
	}
}

/* `m` holds what was read between `began` and now. */
static int value_say(struct snapshot *s, struct message_vm_clock *m, uint64_t began)
{
	m->vm = s->vm;
	value_date(s, m);
	return kvm_clock_say(s->k, m, began, s->sink);
}

/* ---- struct kvm_vcpu ---- */

/* Keeps each vCPU once, however many descriptors it has. */
static int vcpu_keep(struct snapshot *s, const struct vs_kvm_vcpu *vcpu)
{
	struct vs_kvm_vcpu *more;

	if (vcpu->tgid != s->pid)
		return 0;
	for (size_t i = 0; i < s->n_vcpus; i++) {
		if (s->vcpus[i].kvm != vcpu->kvm)
			return -ENOTUNIQ;
		if (s->vcpus[i].vcpu == vcpu->vcpu)
			return 0;
	}
	if (s->n_vcpus == VS_CPUS_MAX)
		return -E2BIG;
	more = realloc(s->vcpus, (s->n_vcpus + 1) * sizeof(*more));
	if (!more)
		return -ENOMEM;
	s->vcpus = more;
	s->vcpus[s->n_vcpus++] = *vcpu;
	return 0;
}

static int vcpu_take(void *context, const void *data)
{
	return vcpu_keep(context, data);
}

/*
 * KVM stores the ratio of an unscaled guest as 1 << frac_bits, and as 1 if the CPU cannot scale.
 * For other guests the size of the ratio distinguishes VMX (48 bits) from SVM (32 bits): only a
 * guest that runs 256 times slower or faster than its host would be mistaken.
 */
static void ratio_fill(uint64_t ratio, struct message_vm_clock_tsc *tsc)
{
	if (!ratio)
		return;
	tsc->scaling_known = true;
	if (!(ratio & (ratio - 1)))
		return;
	tsc->ratio = ratio;
	tsc->frac_bits = ratio >> 40 ? TSC_FRAC_BITS_VMX : TSC_FRAC_BITS_SVM;
}

static int vcpu_say(struct snapshot *s, const struct vs_kvm_vcpu *v, uint64_t began)
{
	struct message_vm_clock tsc = {.vcpu = v->vcpu, .source = VM_CLOCK_VCPU};
	struct message_vm_clock line = tsc, master = {.source = VM_CLOCK_VCPU};
	int error;

	tsc.tsc.known = true;
	tsc.tsc.offset = v->offset;
	ratio_fill(v->ratio, &tsc.tsc);
	error = value_say(s, &tsc, began);
	if (error >= 0 && v->page_uhva && kvm_clock_pvclock(&v->pvclock, &line.pvclock))
		error = value_say(s, &line, began);
	master.master.known = true;
	master.master.used = v->master_used;
	master.master.offsets_matched = v->offsets_matched;
	if (error >= 0)
		error = value_say(s, &master, began);
	return error < 0 ? error : 0;
}

static int vcpus_snapshot(struct snapshot *s)
{
	struct bpf_program *program = kvm_clock_iterator(s->k);
	uint64_t began = clock_tsc_read();
	int error;

	if (!program)
		return 0;
	error = task_files_read(program, s->pid, sizeof(struct vs_kvm_vcpu), vcpu_take, s);
	/* A vCPU's state is hidden only from its first run on, so the others may show no protection
	 * yet. */
	for (size_t i = 0; i < s->n_vcpus && s->protection == VM_PROTECTION_NONE; i++)
		s->protection = kvm_protection_of(&s->vcpus[i]);
	if (s->n_vcpus)
		kvm_clock_protect(s->k, s->pid, s->protection);
	for (size_t i = 0; i < s->n_vcpus && !error; i++)
		error = vcpu_say(s, &s->vcpus[i], began);
	return error;
}

/* ---- the guest's page ---- */

/* As the guest reads it: an even version, and the same one afterwards. */
static int page_read(pid_t pid, uint64_t address, struct vs_pvclock_page *page)
{
	struct vs_pvclock_page again;
	const struct iovec remote = {(void *)(uintptr_t)address, sizeof(*page)};
	const struct iovec first = {page, sizeof(*page)}, second = {&again, sizeof(again)};

	for (int i = 0; i < PAGE_TRIES; i++) {
		if (process_vm_readv(pid, &first, 1, &remote, 1, 0) != sizeof(*page) ||
		    process_vm_readv(pid, &second, 1, &remote, 1, 0) != sizeof(again))
			return errno ? -errno : -EIO;
		if (!(page->version & 1) && !memcmp(page, &again, sizeof(again)))
			return 0;
	}
	return -EAGAIN;
}

static int pages_snapshot(struct snapshot *s)
{
	if (s->protection != VM_PROTECTION_NONE)
		return 0;
	for (size_t i = 0; i < s->n_vcpus; i++) {
		const struct vs_kvm_vcpu *v = &s->vcpus[i];
		struct message_vm_clock m = {.vcpu = v->vcpu, .source = VM_CLOCK_GUEST_PAGE};
		uint64_t began = clock_tsc_read();
		struct vs_pvclock_page page;
		int error;

		if (!v->page_uhva)
			continue;
		/* The guest may do with its page what it likes: an unreadable one is no failure. */
		if (page_read(s->pid,
			      (v->page_uhva & ~(uint64_t)(PAGE - 1)) | (v->page_gpa & (PAGE - 1)),
			      &page) ||
		    !kvm_clock_pvclock(&page, &m.pvclock))
			continue;
		error = value_say(s, &m, began);
		if (error < 0)
			return error;
	}
	return 0;
}

/* ---- debugfs ---- */

static int number_read(const char *folder, const char *name, char *text, size_t bytes)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	return proc_file_line(path, text, bytes);
}

static int debugfs_vcpu(struct snapshot *s, const char *folder, uint32_t vcpu)
{
	struct message_vm_clock m = {.vcpu = vcpu, .source = VM_CLOCK_DEBUGFS};
	uint64_t began = clock_tsc_read(), ratio;
	char text[32];
	long frac_bits;

	if (number_read(folder, "tsc-offset", text, sizeof(text)))
		return 0;
	m.tsc.known = true;
	m.tsc.offset = (uint64_t)strtoll(text, NULL, 10);
	m.tsc.scaling_known = true; /* the files are there where the CPU can scale */
	if (!number_read(folder, "tsc-scaling-ratio", text, sizeof(text))) {
		ratio = strtoull(text, NULL, 10);
		if (number_read(folder, "tsc-scaling-ratio-frac-bits", text, sizeof(text)))
			return 0;
		frac_bits = strtol(text, NULL, 10);
		if (frac_bits <= 0 || frac_bits > 63 || !ratio)
			return 0;
		if (ratio != (uint64_t)1 << frac_bits) {
			m.tsc.ratio = ratio;
			m.tsc.frac_bits = (uint32_t)frac_bits;
		}
	}
	s->n_debugfs++;
	return value_say(s, &m, began);
}

/* "PID-FD", where PID is of the thread that created the VM. */
static bool is_our_vm(const char *name, pid_t pid)
{
	char task[64], *end;
	long creator = strtol(name, &end, 10);

	if (end == name || *end != '-' || creator <= 0)
		return false;
	snprintf(task, sizeof(task), "/proc/%d/task/%ld", pid, creator);
	return !access(task, F_OK);
}

static int debugfs_vm(struct snapshot *s, const char *name)
{
	char folder[PATH_MAX / 4], path[PATH_MAX / 2];
	struct dirent *entry;
	unsigned int vcpu;
	DIR *dir;
	int error = 0, end;

	snprintf(folder, sizeof(folder), "%s/%s", debugfs_kvm, name);
	dir = opendir(folder);
	if (!dir)
		return 0;
	while (error >= 0 && (entry = readdir(dir))) {
		end = 0;
		if (sscanf(entry->d_name, "vcpu%u%n", &vcpu, &end) != 1 || entry->d_name[end])
			continue;
		snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
		error = debugfs_vcpu(s, path, vcpu);
	}
	closedir(dir);
	return error < 0 ? error : 0;
}

static int debugfs_snapshot(struct snapshot *s)
{
	char found[NAME_MAX + 1] = "";
	struct dirent *entry;
	DIR *dir = opendir(debugfs_kvm);
	bool several = false;

	if (!dir)
		return 0;
	while ((entry = readdir(dir))) {
		if (!is_our_vm(entry->d_name, s->pid))
			continue;
		several |= found[0] != '\0';
		snprintf(found, sizeof(found), "%s", entry->d_name);
	}
	closedir(dir);
	if (several)
		return -ENOTUNIQ;
	return found[0] ? debugfs_vm(s, found) : 0;
}

/* ---- together ---- */

long kvm_clock_snapshot(struct kvm_clock *k, pid_t pid, const struct kvm_clock_sink *sink,
			char *why, size_t why_bytes)
{
	const libbpf_print_fn_t print = libbpf_set_print(NULL);
	struct snapshot s = {.k = k, .sink = sink, .pid = pid};
	long n = kvm_clock_vm(k, pid, &s.vm);

	if (!n)
		n = vcpus_snapshot(&s);
	if (!n)
		n = debugfs_snapshot(&s);
	if (!n)
		n = pages_snapshot(&s);
	if (!n)
		n = (long)(s.n_vcpus ? s.n_vcpus : s.n_debugfs);
	if (!n)
		n = -ENOENT;
	if (n == -ENOENT)
		snprintf(why, why_bytes, "process %d has no KVM vCPUs that could be seen", pid);
	else if (n == -ENOTUNIQ)
		snprintf(why, why_bytes,
			 "process %d runs several VMs: their vCPUs' clocks cannot be distinguished",
			 pid);
	else if (n < 0)
		snprintf(why, why_bytes, "clocks of process %d cannot be read: %s", pid,
			 strerror((int)-n));
	free(s.vcpus);
	libbpf_set_print(print);
	return n;
}
