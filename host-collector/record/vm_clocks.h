/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * One VM's clock parameters, from KVM into the host's stream: what there is at the start, then
 * every change (bpf/kvmclock/kvm_clock.h). Passive throughout. When nothing changes: about 13 us a drain,
 * and 50 us every ten seconds.
 */
#ifndef RECORD_VM_CLOCKS_H
#define RECORD_VM_CLOCKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "clock/echo.h"
#include "host-collector/record/host_stream.h"

struct vm_clocks;

/* Follows process `pid` as VM `vm` and writes its parameters to `host`, which must outlive this. 0,
 * or with one line in `why` what kvm_clock_open and kvm_clock_snapshot say. On success `why` is
 * empty or says which sources this kernel lacks. */
int vm_clocks_open(struct host_stream *host, enum capture_way way, pid_t pid, uint32_t vm,
		   struct vm_clocks **out, char *why, size_t why_bytes);
/* The guest's answers contradict the hypervisor's parameters: nothing of its times is proven. */
bool vm_clocks_contested(const struct vm_clocks *c);
/* Changes beyond 500 a second are counted here, not written; the snapshots that follow are. */
uint64_t vm_clocks_left_out(const struct vm_clocks *c);
/* A round trip over the guest's channel, its stream being guest TSC. */
void vm_clocks_observe(struct vm_clocks *c, const struct echo_observation *o);
/* Do the parameters in force convert guest times, exactly, as timeline/vm_clock.h proves it? */
bool vm_clocks_exact(const struct vm_clocks *c);
void vm_clocks_close(struct vm_clocks *c);
/* Writes what changed; call it every few ten ms. now_ms: any steady clock. 0 or -errno. */
int vm_clocks_drain(struct vm_clocks *c, uint64_t now_ms);

#endif
