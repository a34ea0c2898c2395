/* SPDX-License-Identifier: GPL-2.0-only */
/* The name of a VM and the kind of its VMM, from the VMM's command line, its program and its
 * cgroup. Any process can choose these: they are claims. Show them together with the user, and
 * prefer what libvirt or a configuration says. Only the user and the PID namespace come from the
 * kernel. */
#ifndef VM_IDENTITY_H
#define VM_IDENTITY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum vmm_kind {
	VMM_OTHER,
	VMM_QEMU,
	VMM_CLOUD_HYPERVISOR,
	VMM_FIRECRACKER,
	VMM_CROSVM,
	VMM_KVMTOOL,
	VMM_KATA, /* the shim of Kata Containers is the VMM itself */
};

enum { IDENTITY_NAME_MAX = 64, IDENTITY_UUID_BYTES = 37 }; /* with the final NUL */

struct vm_identity {
	enum vmm_kind kind;
	char program[32]; /* name of the program's file, or else of the process */
	/* Claims; "": none. They may contain any bytes. */
	char name[IDENTITY_NAME_MAX];
	char uuid[IDENTITY_UUID_BYTES];
	char pod_uid[IDENTITY_UUID_BYTES]; /* UID of a Kubernetes pod */
	char manager[16]; /* the manager of the VMM: "libvirt", "proxmox", "kata", "kubernetes" */
	uint32_t vmid;    /* Proxmox's number of the VM; 0: none */
	uint32_t uid;     /* real user id in this user namespace; UINT32_MAX: unknown */
	bool own_pids;    /* its PID namespace differs from the caller's */
	/* Start time in clock ticks since boot; 0: unknown. Identifies the process together with
	 * the pid. */
	uint64_t started;
};

/* Returns the VMM's name, for example "QEMU"; for an unknown VMM the name of its program.
 * Borrowed. */
const char *vm_identity_vmm(const struct vm_identity *i);
/* Reads the identity of a process. Returns 0 or -errno: -ESRCH (no such process), -ENOMEM. */
int vm_identity_read(const char *proc, pid_t pid, struct vm_identity *out);
/* Writes the claimed name or, if there is none, a name made of program and pid: "qemu-4711". */
void vm_identity_name(const struct vm_identity *i, pid_t pid, char *out, size_t out_bytes);

/* Parts of vm_identity_read(); also for tests and fuzzing. argv: strings one after the other, each
 * with its final NUL. */
enum vmm_kind vm_identity_kind(const char *program);
void vm_identity_command_line(const char *argv, size_t bytes, struct vm_identity *out);
/* text: the content of /proc/PID/cgroup. */
void vm_identity_cgroup(const char *text, struct vm_identity *out);

#endif
