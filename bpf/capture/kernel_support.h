/* SPDX-License-Identifier: GPL-2.0-only */
/* Finds out what a capture can use on this kernel with the rights of this process, for `vcpuscope
 * doctor` and `vcpuscope-agent --doctor`. It only reads files and attaches nothing. */
#ifndef CAPTURE_KERNEL_SUPPORT_H
#define CAPTURE_KERNEL_SUPPORT_H

#include <stdbool.h>

#include "bpf/capture/capture.h"

enum kernel_support_kind {
	KERNEL_SUPPORT_RIGHTS,   /* the capabilities of this process */
	KERNEL_SUPPORT_BTF,      /* the kernel's type information */
	KERNEL_SUPPORT_TRACEFS,  /* names, numbers and formats of tracepoints */
	KERNEL_SUPPORT_LOCKDOWN, /* no lockdown that forbids BPF to read the kernel's memory */
	KERNEL_SUPPORT_KINDS,
};

struct kernel_support {
	bool works;
	char found[192];
	char without[384]; /* what is lost and what still works; "" if it works */
	char remedy[192];  /* what to do; "" if it works */
};

/*
 * Reads one kind of support for a capture of `side`. `root` is put before each path of the kernel's
 * files: "" on a real machine; a test passes a folder of its own.
 */
void kernel_support_read(const char *root, enum capture_kind side, enum kernel_support_kind kind,
			 struct kernel_support *out);
/* Returns the name of a kind, for a row of output: "btf". */
const char *kernel_support_name(enum kernel_support_kind kind);

#endif
