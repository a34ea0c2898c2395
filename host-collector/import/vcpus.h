/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Which threads of a foreign recording are vCPUs, and of which VM: said by the user (TID=INDEX),
 * else by the name that QEMU gives the thread (CPU 0/KVM), else by KVM's own events.
 */
#ifndef IMPORT_VCPUS_H
#define IMPORT_VCPUS_H

#include <stddef.h>
#include <stdint.h>

#include "host-collector/import/gather.h"
#include "proto/message.h"

struct vcpus {
	struct message_vm_info *vms; /* vm is 1.. in their order */
	size_t n;
	size_t left_out; /* vCPU threads beyond what a recording holds */
};

/*
 * stated: "TID=INDEX,TID=INDEX", or NULL; then these are all, of one VM. name: of the first VM,
 * NULL: "vm1". Threads of different processes, or two that claim one index, are of different VMs.
 * 0, -ENOMEM, or -EINVAL if `stated` cannot be read; vcpus_fini in any case.
 */
int vcpus_find(struct vcpus *v, const struct gather *host, const char *stated, const char *name);
void vcpus_fini(struct vcpus *v);

#endif
