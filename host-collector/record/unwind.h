/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Unwinds user stacks from a copy of the registers and of the top of the stack, with .eh_frame,
 * because Debian's QEMU and libc keep no frame pointers. It uses only the copy, so it does not
 * matter what the thread did since. The ELF files come from the mappings of the process, so the
 * process must still exist.
 *
 * The files belong to other users, so this runs in the confined namer (bpf/isolation/naming.h).
 * Cost: the first stack of a process reads its ELF files (5 ms for QEMU), later ones take 15-120
 * us.
 */
#ifndef RECORD_UNWIND_H
#define RECORD_UNWIND_H

#include "bpf/capture/capture.h"
#include "bpf/isolation/namer.h"
#include "bpf/isolation/naming.h"

/* The body of the collector's namer. An address in no known function gets its module and the offset
 * in it. Unwinding stops at code that belongs to no file, for example code made at run time (module
 * "[anon]", offset 0). */
extern const struct naming_body unwind_body;

/* Returns the request to the namer (namer_ask()) for a stack of this process. Borrows from
 * `stack`. */
struct namer_question unwind_question(pid_t tgid, const struct capture_user_stack *stack);

#endif
