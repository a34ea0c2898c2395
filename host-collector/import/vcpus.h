/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Finds which threads of a foreign recording are vCPUs, and of which VM: from the user (TID=INDEX),
 * else from the name that QEMU gives the thread (CPU 0/KVM), else from KVM's events.
 */
#ifndef IMPORT_VCPUS_H
#define IMPORT_VCPUS_H

#include <stddef.h>
#include <stdint.h>

#include "host-collector/import/gather.h"
#include "proto/message.h"

struct vcpus {
	struct message_vm_info *vms; /* numbered from 1 in their order */
	size_t n;
	size_t left_out; /* vCPU threads beyond the limits of a recording */
};

/*
 * Fills in `v`. stated: "TID=INDEX,TID=INDEX": all vCPUs, of one VM; or NULL. name: name of the
 * first VM; NULL: "vm1". Threads of different processes, or two threads with the same index, belong
 * to different VMs. Returns 0, -ENOMEM, or -EINVAL if `stated` is malformed; call vcpus_fini() in
 * each case.
 */
int vcpus_find(struct vcpus *v, const struct gather *host, const char *stated, const char *name);
void vcpus_fini(struct vcpus *v);

#endif
