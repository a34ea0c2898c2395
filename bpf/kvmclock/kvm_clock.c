// SPDX-License-Identifier: GPL-2.0-only
/* Reads changes from KVM's tracepoints. Converts a stamp in CLOCK_MONOTONIC to host TSC by
 * interpolation between two clock samples: that of the previous drain, and one that is taken after
 * the last event was read. So the time of every event is between them. */
#include "bpf/kvmclock/kvm_clock.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <bpf/bpf.h>

#include "bpf/kvmclock/kvm_clock_internal.h"
#include "bpf/kvmclock/kvm_clock_perf.h"
#include "bpf/kvmclock/kvm_protection.h"
#include "clock/pvclock.h"
#include "clock/sample.h"
#include "kvm_clock_prog.skel.h"

enum {
	LINKS = 4,
	FOLLOWED_MAX = 1024, /* as many as the programs' map holds */
	/* More than the ring holds. */
	CHANGES_MAX = 64 * 1024 / sizeof(struct vs_kvm_clock_event),
};

struct followed {
	pid_t pid;
	uint32_t vm;
	enum vm_protection protection;
};

struct kvm_clock {
	struct kvm_clock_prog *programs; /* NULL: by perf */
	struct kvm_clock_perf *perf;     /* NULL: by the programs */
	struct bpf_link *links[LINKS];
	struct ring_buffer *ring;
	struct capture_clock clock;
	bool has_iterator;
	char left_out[160];
	size_t n_followed;
	struct followed followed[FOLLOWED_MAX];
	size_t n_changes, n_said, said_room;
	struct vs_kvm_clock_event changes[CHANGES_MAX];
	struct kvm_clock_said *said;
};

static void left_out_add(void *context, const char *name)
{
	struct kvm_clock *k = context;
	size_t used = strlen(k->left_out);

	snprintf(k->left_out + used, sizeof(k->left_out) - used, "%s%s", used ? ", " : "", name);
}

const char *kvm_clock_left_out(const struct kvm_clock *k)
{
	return k->left_out;
}

uint64_t kvm_clock_dropped(const struct kvm_clock *k)
{
	return k->perf ? kvm_clock_perf_dropped(k->perf)
		       : __atomic_load_n(&k->programs->bss->dropped, __ATOMIC_RELAXED);
}

struct bpf_program *kvm_clock_iterator(struct kvm_clock *k)
{
	return k->has_iterator ? k->programs->progs.vcpu_files : NULL;
}

static int change_arrived(void *context, void *data, size_t bytes)
{
	struct kvm_clock *k = context;

	if (bytes >= sizeof(*k->changes) && k->n_changes < CHANGES_MAX)
		k->changes[k->n_changes++] = *(struct vs_kvm_clock_event *)data;
	return 0;
}

static void change_keep(void *context, const struct vs_kvm_clock_event *change)
{
	change_arrived(context, (void *)(uintptr_t)change, sizeof(*change));
}

static int change_older(const void *a, const void *b)
{
	const struct vs_kvm_clock_event *x = a, *y = b;

	return (x->time > y->time) - (x->time < y->time);
}

/* Loads the programs with the iterator if this kernel accepts it, else without. */
static int programs_load(struct kvm_clock *k)
{
	int error = 0;

	for (int with_iterator = 1; with_iterator >= 0; with_iterator--) {
		k->programs = kvm_clock_prog__open();
		if (!k->programs)
			return -errno;
		bpf_program__set_autoload(k->programs->progs.vcpu_files, with_iterator);
		k->programs->rodata->has_svm = kvm_protection_has_svm("/proc/cpuinfo");
		error = kvm_clock_prog__load(k->programs);
		if (!error) {
			k->has_iterator = with_iterator;
			break;
		}
		kvm_clock_prog__destroy(k->programs);
		k->programs = NULL;
	}
	if (!k->has_iterator)
		left_out_add(k, "struct kvm_vcpu");
	return error;
}

static size_t programs_attach(struct kvm_clock *k)
{
	struct bpf_program *const programs[LINKS] = {
		k->programs->progs.pvclock_update,
		k->programs->progs.write_tsc_offset,
		k->programs->progs.update_master_clock,
		k->programs->progs.track_tsc,
	};
	size_t n = 0;

	for (size_t i = 0; i < LINKS; i++) {
		k->links[i] = bpf_program__attach(programs[i]);
		n += k->links[i] != NULL;
		if (!k->links[i])
			left_out_add(k, strchr(bpf_program__section_name(programs[i]), '/') + 1);
	}
	return n;
}

static int programs_open(struct kvm_clock *k, char *why, size_t why_bytes)
{
	int error = programs_load(k);

	if (error == -EPERM) {
		snprintf(why, why_bytes,
			 "BPF is not permitted: run as root (CAP_BPF and CAP_PERFMON)");
		return error;
	}
	if (error) {
		snprintf(why, why_bytes, "cannot load the BPF programs for KVM's clocks: %s",
			 strerror(-error));
		return error;
	}
	if (!programs_attach(k)) {
		snprintf(why, why_bytes,
			 "no KVM tracepoints in this kernel: is the kvm module loaded?");
		return -EOPNOTSUPP;
	}
	k->ring = ring_buffer__new(bpf_map__fd(k->programs->maps.changes), change_arrived, k, NULL);
	if (k->ring)
		return 0;
	error = -errno;
	snprintf(why, why_bytes, "cannot read KVM's clock changes: %s", strerror(-error));
	return error;
}

static void programs_close(struct kvm_clock *k)
{
	ring_buffer__free(k->ring);
	for (size_t i = 0; i < LINKS; i++)
		bpf_link__destroy(k->links[i]);
	kvm_clock_prog__destroy(k->programs);
	k->programs = NULL;
	k->ring = NULL;
	memset(k->links, 0, sizeof(k->links));
}

static int sources_open(struct kvm_clock *k, enum backend_choice backend, char *why,
			size_t why_bytes)
{
	const bool by_perf = backend == CAPTURE_BY_PERF;
	char second_why[160];
	int error = by_perf ? -EOPNOTSUPP : programs_open(k, why, why_bytes);

	if (!error || backend == CAPTURE_BY_BPF)
		return error;
	programs_close(k);
	k->has_iterator = false;
	k->left_out[0] = '\0';
	left_out_add(k, "struct kvm_vcpu");
	/* If neither works, the better one gives the reason. */
	if (by_perf)
		return kvm_clock_perf_open(&k->perf, left_out_add, k, why, why_bytes);
	return kvm_clock_perf_open(&k->perf, left_out_add, k, second_why, sizeof(second_why))
		       ? error
		       : 0;
}

int kvm_clock_open(enum backend_choice backend, struct kvm_clock **out, char *why, size_t why_bytes)
{
	const libbpf_print_fn_t print = libbpf_set_print(NULL);
	struct kvm_clock *k = calloc(1, sizeof(*k));
	struct clock_sample sample;
	int error = -ENOMEM;

	if (!k) {
		snprintf(why, why_bytes, "out of memory");
		goto out;
	}
	error = sources_open(k, backend, why, why_bytes);
	if (error)
		goto out;
	error = clock_sample_take(&sample);
	if (error) {
		snprintf(why, why_bytes, "cannot read this machine's clocks: %s", strerror(-error));
		goto out;
	}
	capture_clock_init(&k->clock);
	capture_clock_push(&k->clock, &sample);
	*out = k;
out:
	if (error)
		kvm_clock_close(k);
	libbpf_set_print(print);
	return error;
}

void kvm_clock_close(struct kvm_clock *k)
{
	if (!k)
		return;
	programs_close(k);
	kvm_clock_perf_close(k->perf);
	free(k->said);
	free(k);
}

static size_t followed_at(const struct kvm_clock *k, pid_t pid)
{
	size_t i = 0;

	while (i < k->n_followed && k->followed[i].pid != pid)
		i++;
	return i;
}

static struct followed *followed_find(struct kvm_clock *k, pid_t pid)
{
	const size_t at = followed_at(k, pid);

	return at < k->n_followed ? &k->followed[at] : NULL;
}

int kvm_clock_follow(struct kvm_clock *k, pid_t pid, uint32_t vm)
{
	struct followed *f = followed_find(k, pid);
	int error = 0;

	if (!f && k->n_followed == FOLLOWED_MAX)
		return -E2BIG;
	if (k->programs)
		error = bpf_map_update_elem(bpf_map__fd(k->programs->maps.followed), &pid, &vm,
					    BPF_ANY);
	if (error)
		return error;
	if (!f)
		f = &k->followed[k->n_followed++];
	*f = (struct followed){pid, vm, f->protection};
	return 0;
}

void kvm_clock_protect(struct kvm_clock *k, pid_t pid, enum vm_protection protection)
{
	struct followed *f = followed_find(k, pid);

	if (f)
		f->protection = protection;
}

enum vm_protection kvm_clock_protection(const struct kvm_clock *k, pid_t pid)
{
	const size_t at = followed_at(k, pid);

	return at < k->n_followed ? k->followed[at].protection : VM_PROTECTION_NONE;
}

int kvm_clock_vm(struct kvm_clock *k, pid_t pid, uint32_t *vm)
{
	const struct followed *f = followed_find(k, pid);

	if (f)
		*vm = f->vm;
	return f ? 0 : -ENOENT;
}

bool kvm_clock_pvclock(const struct vs_pvclock_page *page, struct message_vm_clock_pvclock *out)
{
	const struct pvclock p = {
		.tsc_timestamp = page->tsc_timestamp,
		.system_time = page->system_time,
		.mul = page->tsc_to_system_mul,
		.shift = page->tsc_shift,
	};

	if (!pvclock_valid(&p))
		return false;
	*out = (struct message_vm_clock_pvclock){
		.known = true,
		.shift = p.shift,
		.flags = page->flags,
		.mul = p.mul,
		.version = page->version,
		.tsc_timestamp = p.tsc_timestamp,
		.system_time = p.system_time,
	};
	return true;
}

/* ---- what was said before ---- */

struct kvm_clock_said *kvm_clock_said_find(struct kvm_clock *k, const struct message_vm_clock *key)
{
	for (size_t i = 0; i < k->n_said; i++) {
		const struct message_vm_clock *v = &k->said[i].value;

		if (v->vm == key->vm && v->vcpu == key->vcpu && v->source == key->source &&
		    v->tsc.known == key->tsc.known && v->pvclock.known == key->pvclock.known &&
		    v->master.known == key->master.known)
			return &k->said[i];
	}
	return NULL;
}

/* Versions count writes, and all flags but the master clock's are events, not values. */
static bool same_values(const struct message_vm_clock *a, const struct message_vm_clock *b)
{
	const struct message_vm_clock_pvclock *p = &a->pvclock, *q = &b->pvclock;

	return a->tsc.scaling_known == b->tsc.scaling_known &&
	       a->tsc.frac_bits == b->tsc.frac_bits && a->tsc.offset == b->tsc.offset &&
	       a->tsc.ratio == b->tsc.ratio && p->shift == q->shift && p->mul == q->mul &&
	       p->tsc_timestamp == q->tsc_timestamp && p->system_time == q->system_time &&
	       !((p->flags ^ q->flags) & PVCLOCK_TSC_STABLE) && a->master.used == b->master.used &&
	       a->master.offsets_matched == b->master.offsets_matched;
}

static struct kvm_clock_said *said_add(struct kvm_clock *k)
{
	size_t room = k->said_room ? 2 * k->said_room : 64;
	struct kvm_clock_said *larger;

	if (k->n_said == k->said_room) {
		if (room > KVM_CLOCK_VALUES_MAX)
			return NULL;
		larger = realloc(k->said, room * sizeof(*larger));
		if (!larger)
			return NULL;
		k->said = larger;
		k->said_room = room;
	}
	return &k->said[k->n_said++];
}

int kvm_clock_say(struct kvm_clock *k, const struct message_vm_clock *value, uint64_t read_tsc,
		  const struct kvm_clock_sink *sink)
{
	struct kvm_clock_said *said = kvm_clock_said_find(k, value);

	if (said && same_values(&said->value, value)) {
		said->read_tsc = read_tsc;
		return 0;
	}
	if (!said)
		said = said_add(k);
	if (!said)
		return -ENOMEM;
	*said = (struct kvm_clock_said){*value, read_tsc};
	sink->value(sink->context, value);
	return 1;
}

/* ---- changes ---- */

static int change_say(struct kvm_clock *k, const struct vs_kvm_clock_event *e,
		      const struct kvm_clock_sink *sink)
{
	struct message_vm_clock m = {.vcpu = e->vcpu};
	uint64_t err, tsc;

	if (kvm_clock_vm(k, e->tgid, &m.vm))
		return 0; /* followed no longer */
	tsc = capture_clock_to_tsc(&k->clock, e->time, &err);
	m.from_min = err < tsc ? tsc - err : 0;
	m.from_max = err < UINT64_MAX - tsc ? tsc + err : UINT64_MAX;
	switch (e->type) {
	case VS_KVM_CLOCK_PVCLOCK:
		m.source = VM_CLOCK_PVCLOCK_UPDATE;
		if (!kvm_clock_pvclock(&e->pvclock, &m.pvclock))
			return 0;
		break;
	case VS_KVM_CLOCK_OFFSET:
		m.source = VM_CLOCK_WRITE_TSC_OFFSET;
		m.tsc.known = true;
		m.tsc.offset = e->value;
		break;
	default:
		m.source = VM_CLOCK_MASTER_CLOCK;
		m.master.known = true;
		m.master.used = e->value & 1;
		m.master.offsets_matched = e->value & 2;
		break;
	}
	return kvm_clock_say(k, &m, 0, sink);
}

long kvm_clock_drain(struct kvm_clock *k, const struct kvm_clock_sink *sink)
{
	struct clock_sample sample;
	long handed_out = 0;
	int error;

	k->n_changes = 0;
	if (k->perf) {
		kvm_clock_perf_read(k->perf, change_keep, k);
		qsort(k->changes, k->n_changes, sizeof(*k->changes), change_older);
	} else {
		error = ring_buffer__consume(k->ring);
		if (error < 0)
			return error;
	}
	error = clock_sample_take(&sample);
	if (error)
		return error;
	capture_clock_push(&k->clock, &sample);
	for (size_t i = 0; i < k->n_changes; i++) {
		error = change_say(k, &k->changes[i], sink);
		if (error < 0)
			return error;
		handed_out += error;
	}
	return handed_out;
}
