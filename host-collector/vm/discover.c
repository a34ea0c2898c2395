/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/vm/discover.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bpf/kvmclock/kvm_vcpus.h"
#include "host-collector/vm/kvm_files.h"
#include "host-collector/vm/threads.h"
#include "proto/proc_file.h"

enum { EMULATED_MAX = 4096 };

/* A process that holds vCPUs, by the kernel's word. */
struct holder {
	pid_t pid;
	uint64_t kvm;
	bool several;
	size_t n_vcpus;
	uint64_t vcpus[VS_CPUS_MAX / 64]; /* which were counted */
};

struct vm_finder {
	const char *proc;
	bool by_bpf;           /* false: the tree is a test's */
	struct kvm_vcpus *kvm; /* NULL: not yet, or it cannot be */
	struct kvm_files files;
	size_t n_holders, max;
	struct holder *holders;
};

struct vm_finder *vm_finder_new(const char *proc)
{
	struct vm_finder *f = calloc(1, sizeof(*f));

	if (!f)
		return NULL;
	f->proc = proc ? proc : "/proc";
	f->by_bpf = !proc;
	return f;
}

void vm_finder_free(struct vm_finder *f)
{
	if (!f)
		return;
	kvm_vcpus_close(f->kvm);
	free(f->holders);
	free(f);
}

bool vm_finder_by_bpf(const struct vm_finder *f)
{
	return f->kvm != NULL;
}

static struct holder *holder_get(struct vm_finder *f, pid_t pid)
{
	struct holder *more;

	/* A process's files come one behind the other. */
	for (size_t i = f->n_holders; i-- > 0;) {
		if (f->holders[i].pid == pid)
			return &f->holders[i];
	}
	if (f->n_holders == f->max)
		return NULL;
	more = realloc(f->holders, (f->n_holders + 1) * sizeof(*more));
	if (!more)
		return NULL;
	f->holders = more;
	f->holders[f->n_holders] = (struct holder){.pid = pid};
	return &f->holders[f->n_holders++];
}

static void file_seen(void *context, const struct vs_vcpu_file *file)
{
	struct vm_finder *f = context;
	struct holder *h = file->owned ? holder_get(f, file->tgid) : NULL;
	const uint32_t bit = file->vcpu % VS_CPUS_MAX;

	if (!h || h->vcpus[bit / 64] >> bit % 64 & 1)
		return;
	h->vcpus[bit / 64] |= 1ull << bit % 64;
	h->several |= h->kvm && h->kvm != file->kvm;
	h->kvm = file->kvm;
	h->n_vcpus++;
}

static bool user_is_wanted(const struct vm_wanted *w, uint32_t uid)
{
	for (size_t i = 0; i < w->n_uids && w->uids; i++) {
		if (w->uids[i] == uid)
			return true;
	}
	return !w->uids;
}

/* False: gone, or of a user who is not wanted. */
static bool found_fill(const struct vm_finder *f, const struct vm_wanted *w, pid_t pid,
		       struct vm_found *out)
{
	memset(out, 0, sizeof(*out));
	out->pid = pid;
	return !vm_identity_read(f->proc, pid, &out->identity) &&
	       user_is_wanted(w, out->identity.uid);
}

static size_t kernel_look(struct vm_finder *f, const struct vm_wanted *w, struct vm_found *out,
			  size_t max)
{
	size_t n = 0;

	for (size_t i = 0; i < f->n_holders && n < max; i++) {
		const struct holder *h = &f->holders[i];

		if (!found_fill(f, w, h->pid, &out[n]))
			continue;
		out[n].kvm = true;
		out[n].several = h->several;
		out[n++].n_vcpus = h->n_vcpus;
	}
	return n;
}

static size_t proc_look(struct vm_finder *f, const struct vm_wanted *w, struct vm_found *out,
			size_t max)
{
	struct dirent *entry;
	DIR *dir = opendir(f->proc);
	size_t n = 0;

	while (dir && (entry = readdir(dir)) && n < max) {
		const pid_t pid = proc_id_of(entry->d_name);

		/* Its files first: most processes have none of KVM's. */
		if (!pid || kvm_files_read(f->proc, pid, &f->files) || !f->files.n_vcpus ||
		    !found_fill(f, w, pid, &out[n]))
			continue;
		out[n].kvm = true;
		out[n++].n_vcpus = f->files.n_vcpus;
	}
	if (dir)
		closedir(dir);
	return n;
}

static bool is_among(const struct vm_found *found, size_t n, pid_t pid)
{
	for (size_t i = 0; i < n; i++) {
		if (found[i].pid == pid)
			return true;
	}
	return false;
}

static size_t emulated_look(struct vm_finder *f, const struct vm_wanted *w, struct vm_found *out,
			    size_t n, size_t max)
{
	pid_t *pids = calloc(EMULATED_MAX, sizeof(*pids));
	const size_t n_pids = pids ? threads_find_qemu(f->proc, pids, EMULATED_MAX) : 0;

	for (size_t i = 0; i < n_pids && n < max; i++) {
		if (!is_among(out, n, pids[i]) && found_fill(f, w, pids[i], &out[n]))
			n++;
	}
	free(pids);
	return n;
}

static int found_compare(const void *a, const void *b)
{
	const struct vm_found *x = a, *y = b;

	return (x->pid > y->pid) - (x->pid < y->pid);
}

size_t vm_finder_look(struct vm_finder *f, const struct vm_wanted *wanted, struct vm_found *out,
		      size_t max)
{
	size_t n;

	f->n_holders = 0;
	f->max = 4 * max; /* of unwanted users, too */
	if (f->by_bpf && !f->kvm)
		kvm_vcpus_open(&f->kvm);
	if (f->kvm && kvm_vcpus_read(f->kvm, 0, file_seen, f) < 0) {
		kvm_vcpus_close(f->kvm);
		f->kvm = NULL;
	}
	n = f->kvm ? kernel_look(f, wanted, out, max) : proc_look(f, wanted, out, max);
	if (wanted->emulated)
		n = emulated_look(f, wanted, out, n, max);
	qsort(out, n, sizeof(*out), found_compare);
	return n;
}
