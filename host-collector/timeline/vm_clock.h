/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Converts one VM's guest TSC and kvmclock with the hypervisor's own parameters: exact where the
 * parameters are confirmed.
 *
 * An epoch is the TSC offset of each known vCPU and one scaling for all of them. It exists while
 * all sources of parameters agree for each vCPU. At least one source must have read the parameters
 * in force (struct kvm_vcpu, debugfs), because a traced write shows only what was requested. An
 * epoch is proven when a round trip of the VM's channel confirms it: the guest TSC in the agent's
 * answer lies between the values that the epoch gives for the host TSC before and after the round
 * trip.
 *
 * In most VMs all vCPUs have the same offset. If the offsets differ (a VMM that restores each
 * vCPU's TSC separately), each vCPU has its own map. This map converts the stamps whose sender read
 * all clock samples on that vCPU. Its bound is the largest difference between the vCPUs' kvmclocks,
 * because these clocks made the stamps. Any other stamp is converted to an interval that contains
 * the true time, whichever vCPUs were read. The interval is twice as wide as the largest difference
 * between the TSCs, because CLOCK_MONOTONIC may come from one vCPU's TSC and the sample from
 * another's (docs/clocks.md).
 *
 * If the guest is protected from the host, KVM's parameters need not be those that the guest uses,
 * and the host cannot see whether they are: the firmware or the processor may set the TSC. Then
 * nothing is exact, and round trips convert.
 *
 * A round trip that contradicts an epoch makes it contested. The parameters come from the host, the
 * stamps of a round trip come from the guest. Either the guest lies or the parameters are out of
 * date; the program cannot distinguish the two. Times are then still converted with the parameters,
 * but their error is unbounded. A contradiction does not count if a later epoch turns out to have
 * begun before it.
 */
#ifndef TIMELINE_VM_CLOCK_H
#define TIMELINE_VM_CLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "clock/echo.h"
#include "clock/pvclock.h"
#include "clock/tsc_scaling.h"
#include "clock/types.h"
#include "proto/message.h"

struct vm_clock;

struct vm_clock *vm_clock_new(void); /* NULL on ENOMEM */
void vm_clock_free(struct vm_clock *c);

/* Adds parameters, in order of arrival, as message.c validated them. Returns 0 or -ENOMEM. */
int vm_clock_learn(struct vm_clock *c, const struct message_vm_clock *m);
/* Notes how the VM is protected from its host, according to KVM. */
void vm_clock_protect(struct vm_clock *c, uint32_t protection);
/* Returns the VM's enum vm_protection, or a number of a newer version. */
uint32_t vm_clock_protection(const struct vm_clock *c);
/* Adds a round trip. The guest's stream clock must be the guest TSC. */
void vm_clock_observe(struct vm_clock *c, const struct echo_observation *o);
/* Adds the content of the pvclock page that the guest itself read. */
void vm_clock_guest_page(struct vm_clock *c, const struct pvclock *page);

/* An interval of host TSC that limits a conversion: the window of a boot (guest_clock.h). */
struct vm_clock_window {
	uint64_t from, to;
};

enum vm_clock_trust {
	VM_CLOCK_SILENT,    /* the host TSC is unknown */
	VM_CLOCK_CONTESTED, /* known, but a round trip contradicts the epoch */
	VM_CLOCK_PROVEN,
};

/* A vCPU of which nothing is known. */
#define VM_CLOCK_ANY_VCPU UINT32_MAX
/* Converts guest TSC to host TSC, which is in [*first, *first + *span]. `vcpu` (KVM's vcpu_id) is
 * the vCPU whose TSC `guest` is, or VM_CLOCK_ANY_VCPU. Returns VM_CLOCK_SILENT and leaves both
 * unchanged unless exactly one epoch within the window is possible and a round trip has confirmed
 * or contradicted it. The time before the first epoch is treated as part of it. */
enum vm_clock_trust vm_clock_to_host(const struct vm_clock *c, const struct vm_clock_window *window,
				     uint32_t vcpu, struct guest_tsc guest, struct host_tsc *first,
				     uint64_t *span);
/* Returns the greatest distance between the TSCs of two vCPUs in any kept epoch, guest ticks. */
uint64_t vm_clock_apart(const struct vm_clock *c);
/* Returns true if an epoch that may have been in force at `host` is contested. */
bool vm_clock_contested(const struct vm_clock *c, struct host_tsc host);
/* Converts host TSC to guest TSC, in proven and contested epochs. A stamp of that moment lies in
 * [*first, *first + *span], whichever vCPU it is from. Returns false if the epoch at `host` is not
 * certain. */
bool vm_clock_to_guest(const struct vm_clock *c, struct host_tsc host, struct guest_tsc *first,
		       uint64_t *span);
/* Computes the exact value of kvmclock that the vCPU reads at `host`, when its TSC reads `guest`.
 * `host` selects the line in force. Returns false if none is known, or if it may have changed at
 * about this time. */
bool vm_clock_kvmclock(const struct vm_clock *c, uint32_t vcpu, struct host_tsc host,
		       struct guest_tsc guest, struct kvmclock_ns *out);

/* The guest TSC at which kvmclock stopped and at which it continued. */
struct vm_clock_pause {
	uint64_t stopped, resumed;
	/* A time at which the new line was in force. It shows to which boot the TSC values belong.
	 */
	struct host_tsc seen;
};
enum { VM_CLOCK_PAUSES_MAX = 64 };
/*
 * Returns the pauses of the VM, found in the kvmclock lines of the first vCPU: a line begins
 * (tsc_timestamp) where the clock continued, with the value (system_time) that the previous line
 * reaches where the clock stopped. Pauses shorter than 1 ms are ignored. The result is sorted by
 * time and holds the newest VM_CLOCK_PAUSES_MAX. Returns their number.
 */
size_t vm_clock_pauses(const struct vm_clock *c, struct vm_clock_pause out[VM_CLOCK_PAUSES_MAX]);

struct vm_clock_offset {
	uint32_t vcpu;
	uint64_t offset;
};
struct vm_clock_epoch {
	uint64_t from_min, from_max; /* the epoch began between these; from_min 0: no lower bound */
	bool known;                  /* false: sources disagree, or the vCPUs' scaling differs */
	struct tsc_scaling tsc;      /* of the vCPU whose TSC is ahead of all others */
	uint64_t apart;              /* guest ticks by which the last vCPU is behind it; mostly 0 */
	/* The vCPUs' offsets, if they are apart. Borrowed from the clock, until its next value. */
	const struct vm_clock_offset *offsets;
	size_t n_offsets;
	uint64_t agreed, contradicted; /* numbers of round trips */
	uint64_t contradicted_at;      /* host TSC of the first contradiction */
};
/* The TSC of one vCPU, by the newest parameters of all its sources. */
struct vm_clock_vcpu {
	uint32_t id; /* KVM's vcpu_id */
	bool known;  /* false: sources disagree, or none has read the parameters in force */
	struct tsc_scaling tsc;
};
/* One kvmclock line of one vCPU. */
struct vm_clock_line {
	uint32_t vcpu;
	uint64_t from_min, from_max;
	struct pvclock pvclock;
	uint32_t sources; /* bits 1 << enum vm_clock_source: the sources that showed it */
	/* The guest's own page held the same values, except for the flags. */
	bool guest_agrees;
	/* How far the kvmclocks of the vCPUs, by their newest lines, were apart when this line was
	 * learned, ns; UINT64_MAX: unknown. */
	uint64_t apart_ns;
};
struct vm_clock_summary {
	size_t epochs, lines, vcpus;
	size_t vcpus_unsettled; /* vCPUs whose sources disagree now */
	/* proven: the newest epoch is; contested: a kept epoch is. Both are false if the guest is
	 * protected. */
	bool proven, contested;
	uint64_t apart; /* of the newest epoch: guest ticks between its vCPUs' TSCs */
	uint64_t agreed, contradicted;
	/* Different values of the guest's own page, and those of them that no source showed. */
	size_t pages, pages_differ;
	/* Proven, and all values of the guest's own page were shown by a source: method "pvclock".
	 */
	bool kvmclock;
};
/* Returns the number of epochs that are kept. */
size_t vm_clock_epochs(const struct vm_clock *c);
void vm_clock_summarise(const struct vm_clock *c, struct vm_clock_summary *out);
/* Return the i-th kept epoch, vCPU or line. Epochs are sorted, oldest first. Return false after the
 * last. */
bool vm_clock_epoch_get(const struct vm_clock *c, size_t i, struct vm_clock_epoch *out);
bool vm_clock_vcpu_get(const struct vm_clock *c, size_t i, struct vm_clock_vcpu *out);
bool vm_clock_line_get(const struct vm_clock *c, size_t i, struct vm_clock_line *out);

#endif
