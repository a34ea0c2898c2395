/* SPDX-License-Identifier: GPL-2.0-only */
/* Keeps the VMs whose threads a capture follows, and the kernel's counts of their VM-exits. */
#ifndef RECORD_FOLLOWED_H
#define RECORD_FOLLOWED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bpf/capture/capture.h"
#include "host-collector/record/exit_counts.h"
#include "proto/message.h"

struct followed_thread {
	int32_t tid;
	int32_t vcpu; /* its index; -1: no vCPU */
	uint32_t vm;
};

struct followed_vm {
	uint32_t vm;
	struct exit_counts *exits;
};

/* All zero: none. A thread belongs to one VM. */
struct followed {
	struct followed_vm *vms;
	struct followed_thread *threads;
	size_t n_vms, n_threads, threads_room;
};

void followed_fini(struct followed *f);
/* Returns whether threads of the VM were followed before. */
bool followed_has(const struct followed *f, uint32_t vm);
/* Makes the threads of `info` the threads of its VM; the threads of other VMs stay. capture: adds
 * and removes threads there; NULL: only keeps the list. Returns 0, -ENOMEM without any change, or
 * the first -errno of a thread. A thread that has ended is no error. */
int followed_set(struct followed *f, const struct message_vm_info *info, struct capture *capture);
/* Adds the kernel's count of a vCPU thread's exits to those of its VM; ignores other threads. */
void followed_count(struct followed *f, const struct capture_exit *exit);

#endif
