/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The storage behind a VM's disks, as the command line of its VMM describes it: -blockdev and
 * -drive of QEMU. The kernel's block layer does not see the disks that QEMU reaches over the
 * network itself (Ceph, iSCSI, NFS, NBD), or that are files of a network file system. Disks that
 * are plugged in later are not in the command line.
 */
#ifndef FLEET_VM_DISKS_H
#define FLEET_VM_DISKS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "host-collector/fleet/storage.h"

enum { VM_DISKS_MAX = 32 };

/* Fills at most VM_DISKS_MAX disks that are reached over a network; `device` is "". Local disks are
 * left out. root: "" for this machine; a folder for tests. Returns their number. */
size_t vm_disks_read(const char *root, pid_t pid, struct storage out[VM_DISKS_MAX]);
/* Fills the storage that all these disks share: driver, server and pool, and the source if there is
 * only one disk. Returns false if they share none. */
bool vm_disks_common(const struct storage *disks, size_t n, struct storage *out);

#endif
