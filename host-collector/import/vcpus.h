/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Finds which threads of a foreign recording are vCPUs, and of which VM: from the user (TID=INDEX),
 * else from the guests that the host's trace.dat lists, else from the name that QEMU gives the
 * thread (CPU 0/KVM), else from KVM's events.
 */
#ifndef IMPORT_VCPUS_H
#define IMPORT_VCPUS_H

#include <stddef.h>
#include <stdint.h>

#include "host-collector/import/dat_options.h"
#include "host-collector/import/gather.h"
#include "proto/message.h"

struct vcpus {
	struct message_vm_info *vms; /* numbered from 1 in their order */
	size_t n;
	size_t listed;   /* the first ones of them are guests of the host's trace.dat */
	size_t left_out; /* vCPU threads beyond the limits of a recording */
};

struct vcpus_known {
	const char *stated;             /* "TID=INDEX,TID=INDEX": all vCPUs, of one VM; or NULL */
	const char *name;               /* name of the first VM; NULL: as listed, else "vm1" */
	const struct dat_guest *guests; /* guests of the host's trace.dat; each becomes a VM */
	size_t n_guests;
	const struct dat_guest *first; /* the one of these that becomes the first VM; or NULL */
};

/*
 * Fills in `v`. Threads that no list names are of different VMs if they are of different processes
 * or have the same index. Returns 0, -ENOMEM, or -EINVAL if `known->stated` is malformed; call
 * vcpus_fini() in each case.
 */
int vcpus_find(struct vcpus *v, const struct gather *host, const struct vcpus_known *known);
void vcpus_fini(struct vcpus *v);

#endif
