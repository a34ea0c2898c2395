/* SPDX-License-Identifier: GPL-2.0-only */
/* What a record says about the VM (docs/fleet.md). */
#ifndef FLEET_VM_FACTS_H
#define FLEET_VM_FACTS_H

#include <stdint.h>
#include <sys/types.h>

#include "host-collector/vm/identity.h"

enum { FLEET_CGROUP_BYTES = 256 };

/* Texts may contain any bytes; "": unknown. */
struct vm_facts {
	char name[64], uuid[IDENTITY_UUID_BYTES];
	char vmm[32], vmm_version[64], machine_type[64];
	char cgroup[FLEET_CGROUP_BYTES];
	char manager[32], owner[128], pod_uid[IDENTITY_UUID_BYTES];
	char guest_kernel[65], agent_version[32], clock_method[16];
	uint64_t clock_error_ns; /* UINT64_MAX: unbounded or unknown */
};

/* Fills in what the VMM's process shows. proc: "/proc". Leaves `out` unchanged if there is no such
 * process. */
void vm_facts_process(const char *proc, pid_t pid, struct vm_facts *out);
/* Writes the systemd unit (service, scope) that a cgroup belongs to, or "". */
void cgroup_unit(const char *cgroup, char *out, size_t out_bytes);
/* Returns the process that a thread belongs to, or 0. */
pid_t thread_process(const char *proc, pid_t tid);

#endif
