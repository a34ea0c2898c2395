/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a VM is called and which VMM runs it, from where each VMM keeps it: its command line, the
 * path of its API socket, its cgroup. Whoever may start a process chooses all of these: they are
 * claims, to be shown together with the user that makes them, and never to be preferred to what
 * libvirt or a configuration says. Only the user and the PID namespace are the kernel's word.
 */
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
	char program[32]; /* the name of its program's file, else of the process */
	/* Claims; "": none. Of any bytes. */
	char name[IDENTITY_NAME_MAX];
	char uuid[IDENTITY_UUID_BYTES];
	char pod_uid[IDENTITY_UUID_BYTES]; /* of a Kubernetes pod */
	char manager[16]; /* who runs the VMM: "libvirt", "proxmox", "kata", "kubernetes" */
	uint32_t vmid;    /* Proxmox's; 0: none */
	uint32_t uid;     /* the real user, as this namespace sees it; UINT32_MAX: not known */
	bool own_pids;    /* its PID namespace is not ours */
	uint64_t started; /* in the kernel's ticks since boot: with the pid, one process; 0: not
			     known */
};

/* "QEMU", "Firecracker"; of another VMM its program's name. */
const char *vm_identity_vmm(const struct vm_identity *i);
/* Reads it. 0, -ESRCH (no such process). */
int vm_identity_read(const char *proc, pid_t pid, struct vm_identity *out);
/* The name, else one that no claim can be: "qemu-4711", by the program and the pid. */
void vm_identity_name(const struct vm_identity *i, pid_t pid, char *out, size_t out_bytes);

/* The parts, for tests and fuzzing. argv: strings one behind the other, each with its final NUL. */
enum vmm_kind vm_identity_kind(const char *program);
void vm_identity_command_line(const char *argv, size_t bytes, struct vm_identity *out);
/* text: as /proc/PID/cgroup. */
void vm_identity_cgroup(const char *text, struct vm_identity *out);

#endif
