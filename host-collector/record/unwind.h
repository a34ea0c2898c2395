/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * User stacks from the registers and the piece of stack that a probe copied, by .eh_frame:
 * Debian's QEMU and libc keep no frame pointers. Works on the copy alone, whatever the thread has
 * done since; the ELF files come from the process's mappings, so it must still live.
 *
 * The files belong to whoever runs the process: this runs in the confined namer
 * (bpf/isolation/naming.h). Cost: the first stack of a process reads its ELF files (5 ms for QEMU),
 * later ones 15-120 us.
 */
#ifndef RECORD_UNWIND_H
#define RECORD_UNWIND_H

#include "bpf/capture/capture.h"
#include "bpf/isolation/namer.h"
#include "bpf/isolation/naming.h"

/*
 * What the namer of a collector does. An address in no known function keeps its module and the
 * offset in it. At code that lies in no file (made at run time: module "[anon]", offset 0) the walk
 * ends.
 */
extern const struct naming_body unwind_body;

/* The question to the namer (namer_ask) for a stack of this process, borrowed from `stack`. */
struct namer_question unwind_question(pid_t tgid, const struct capture_user_stack *stack);

#endif
