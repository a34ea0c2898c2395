/* SPDX-License-Identifier: GPL-2.0-only */
/* Finds the version of a running QEMU in its program, for a QEMU whose monitor is not used. The
 * program is read and not executed: whoever starts a VM chooses it. */
#ifndef VM_VMM_VERSION_H
#define VM_VMM_VERSION_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Two files with equal members are the same file with the same content. */
struct vmm_program {
	uint64_t device, inode, bytes;
	int64_t changed_ns; /* the file's ctime */
};

/*
 * Opens the program that the process runs, also if a package has replaced or removed the file
 * since. proc: "/proc". Returns a descriptor, which the caller closes, or -errno: -EPERM (a user
 * other than root and the caller could have written the file, or it is not a regular file), -EXDEV
 * (this process has not mounted its file system, or a server or another process serves that file
 * system and could block the reader), others.
 */
int vmm_program_open(const char *proc, pid_t pid, struct vmm_program *out);
/*
 * Finds the text of `--version` in a program. Reads up to 256 MiB from the disk: call it on a
 * worker thread. Writes what qmp_version() returns, for example "QEMU 7.2.15 (Debian
 * 1:7.2+dfsg-7)": printable ASCII. Returns 0, or -errno with out "": -ENODATA (it has no such
 * text), others.
 */
int vmm_version_read(int program, char *out, size_t out_bytes);

#endif
