/* SPDX-License-Identifier: GPL-2.0-only */
/* Writes the clock parameters of one VM to the host's stream: the current ones at the start, then
 * every change (bpf/kvmclock/kvm_clock.h). It does not disturb KVM or the guest. Cost without
 * changes: about 13 us per drain, and 50 us every ten seconds. */
#ifndef RECORD_VM_CLOCKS_H
#define RECORD_VM_CLOCKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "clock/echo.h"
#include "host-collector/record/host_stream.h"

struct vm_clocks;

/* Follows process `pid` as VM `vm` and writes its parameters to `host`, which must outlive the
 * object. Returns 0, or the errors of kvm_clock_open() and kvm_clock_snapshot() with one line in
 * `why`. On success `why` is empty or names the sources that this kernel lacks. */
int vm_clocks_open(struct host_stream *host, enum backend_choice backend, pid_t pid, uint32_t vm,
		   struct vm_clocks **out, char *why, size_t why_bytes);
/* Returns how the VM is protected from this host, as KVM showed it in vm_clocks_open(). */
enum vm_protection vm_clocks_protection(const struct vm_clocks *c);
/* Returns whether the round trips contradict the hypervisor's parameters, so that no guest time is
 * proven. */
bool vm_clocks_contested(const struct vm_clocks *c);
/* Returns the number of changes that were lost, or not written because there were more than 500 per
 * second. Snapshots that follow are written. */
uint64_t vm_clocks_left_out(const struct vm_clocks *c);
/* Adds a round trip over the guest's channel. The guest's stream must carry guest TSC. */
void vm_clocks_observe(struct vm_clocks *c, const struct echo_observation *o);
/* Returns whether the current parameters convert guest times exactly, as timeline/vm_clock.h
 * proves. */
bool vm_clocks_exact(const struct vm_clocks *c);
void vm_clocks_close(struct vm_clocks *c);
/* Writes the changes since the last call. Call it every few tens of ms. now_ms: any monotonic
 * clock. Returns 0 or -errno. */
int vm_clocks_drain(struct vm_clocks *c, uint64_t now_ms);

#endif
