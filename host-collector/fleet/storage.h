/* SPDX-License-Identifier: GPL-2.0-only */
/* Describes the storage of a block device of the host: the driver, the pool, the mounted file
 * system. */
#ifndef FLEET_STORAGE_H
#define FLEET_STORAGE_H

#include <stdint.h>

/* "": unknown. Texts may contain any bytes. */
struct storage {
	char driver[32];  /* "lvm", "rbd", "iscsi", "nvme", "block" ... */
	char server[128]; /* of a network disk or file system */
	char pool[128];   /* a volume group, a pool of Ceph */
	char source[256]; /* name of the device, or source of the mount */
	char mount[256];
	char device[16]; /* MAJOR:MINOR */
};

/* Finds the storage of device number `device`, in the form of the kernel's tracepoints (major << 20
 * | minor). root: "" for this machine; a folder for tests. */
void storage_find(const char *root, uint32_t device, struct storage *out);

#endif
