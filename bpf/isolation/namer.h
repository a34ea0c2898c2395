/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Names for stacks of other processes, asked for and got without waiting. To name a stack, files
 * must be parsed that belong to whoever runs the process; that happens in a process without rights
 * (naming.h), behind one that opens the files (opener.h). The caller's process opens and parses
 * none.
 *
 * A namer that dies, hangs (1 s of CPU for one stack, or 3 s blocked), or uses up its memory is
 * replaced, at once or after 0.1 s, doubling up to 30 s while they die young; the file that it died
 * of is not read again (bad_files.h). Stacks meanwhile keep module and offset, or the address.
 */
#ifndef ISOLATION_NAMER_H
#define ISOLATION_NAMER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "bpf/isolation/naming_wire.h"

struct namer;

/* frames: checked, valid during the call. An outcome other than NAMING_DONE, with n = 0: nothing is
 * known; the caller has the addresses. */
typedef void (*namer_taker)(void *context, uint64_t tag, enum naming_outcome outcome,
			    const struct message_stack_frame *frames, size_t n);

struct namer_question {
	pid_t pid;
	const uint64_t *addresses; /* get at least module and offset */
	size_t n_addresses;        /* at most NAMING_ADDRESSES_MAX */
	const void *data[2];       /* for the namer's body, one after the other */
	size_t data_bytes[2];      /* together at most NAMING_DATA_MAX */
};

/* Starts nothing before the first question. NULL on ENOMEM. */
struct namer *namer_new(void);
/* Ends its processes. Open questions are not answered. NULL is allowed. */
void namer_free(struct namer *n);
/* The answer comes to `take` with `tag`, in a later namer_poll(). 0; -EAGAIN: too many are open,
 * try again after the next poll; other -errno: none can be asked now. */
int namer_ask(struct namer *n, const struct namer_question *question, namer_taker take,
	      void *context, uint64_t tag);
/* The questions of this context and tag (UINT64_MAX: all tags) get no answer. */
void namer_forget(struct namer *n, const void *context, uint64_t tag);
/* Hands over the answers that have come; notices an opener that hangs. Does not
 * wait. Call it every 50 ms or so while questions are open. */
void namer_poll(struct namer *n);
/* Readable when an answer has come; -1: none runs. */
int namer_descriptor(const struct namer *n);
/* CPU time of its processes, as of the last answer. */
uint64_t namer_cpu_ns(const struct namer *n);
/* For tests: the opener's process; 0: none runs. */
pid_t namer_opener(const struct namer *n);

#endif
