/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * User stacks from the registers and the piece of stack that a probe copied, by .eh_frame:
 * Debian's QEMU and libc keep no frame pointers. Works on the copy alone, whatever the thread has
 * done since; the ELF files come from the process's mappings, so it must still live.
 *
 * Cost: the first stack of a process reads its ELF files (5 ms for QEMU), later ones 15-120 us.
 */
#ifndef RECORD_UNWIND_H
#define RECORD_UNWIND_H

#include <stddef.h>
#include <sys/types.h>

#include "bpf/capture.h"
#include "proto/message.h"

struct unwinder;

struct unwinder *unwinder_new(void); /* NULL on ENOMEM */
void unwinder_free(struct unwinder *u);
/* How many processes it knows at a time (8 at first, at most 72); some of the others go. */
void unwinder_keep(struct unwinder *u, size_t n);
/* Reads a process's ELF files now, so that its first stack, in the middle of a stall, does not have
 * to. 0, -ESRCH, -errno. */
int unwinder_prepare(struct unwinder *u, pid_t tgid);
/*
 * Fills at most `max` frames, leaf first. An address in no known function keeps its module and
 * the offset in it. At code that lies in no file (made at run time: module "[anon]", offset 0) the
 * walk ends. Returns the number of frames or -ESRCH (the process is gone), -errno.
 */
long unwinder_run(struct unwinder *u, pid_t tgid, const struct capture_user_stack *stack,
		  struct message_stack_frame *frames, size_t max);

#endif
