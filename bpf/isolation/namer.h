/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Requests names for stacks of other processes, without waiting. The files that must be parsed
 * belong to other users. A process without rights, the namer, parses them (naming.h); another
 * process, the opener, opens them for it (opener.h). The calling process opens and parses none of
 * them. Not thread-safe.
 *
 * A namer that dies, takes too long (1 s of CPU time for one stack, or 3 s blocked) or uses up its
 * memory is replaced: at once if its memory was used up, else after 0.1 s. This delay doubles, up
 * to 30 s, while each new namer dies soon. The file that killed it is not read again (bad_files.h).
 * Meanwhile stacks get module and offset only, or the address.
 */
#ifndef ISOLATION_NAMER_H
#define ISOLATION_NAMER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "bpf/isolation/naming_wire.h"

struct namer;

/* Receives an answer. frames: checked, borrowed for the call. If the outcome is not NAMING_DONE and
 * n is 0, no name is known; the caller still has the addresses. */
typedef void (*namer_taker)(void *context, uint64_t tag, enum naming_outcome outcome,
			    const struct message_stack_frame *frames, size_t n);

struct namer_question {
	pid_t pid;
	const uint64_t *addresses; /* each gets at least module and offset */
	size_t n_addresses;        /* at most NAMING_ADDRESSES_MAX */
	const void *data[2];       /* input of the namer's body, passed as one block */
	size_t data_bytes[2];      /* in sum at most NAMING_DATA_MAX */
};

/* Allocates a namer. The first request starts its processes. Returns NULL on ENOMEM. */
struct namer *namer_new(void);
/* Ends its processes and frees it. Open requests get no answer. NULL is allowed. */
void namer_free(struct namer *n);
/* Requests names. Copies the question. A later namer_poll() calls `take` with the answer and `tag`.
 * Returns 0; -EAGAIN: too many requests are open, try again after the next poll; other -errno: no
 * request is possible now. */
int namer_ask(struct namer *n, const struct namer_question *question, namer_taker take,
	      void *context, uint64_t tag);
/* Discards the answers to the open requests with this context and tag (UINT64_MAX: all tags). */
void namer_forget(struct namer *n, const void *context, uint64_t tag);
/* Delivers the answers that have arrived and detects an opener that hangs. Does not wait. Call it
 * about every 50 ms while requests are open. */
void namer_poll(struct namer *n);
/* Returns a descriptor that becomes readable when an answer arrives, or -1 if no opener runs.
 * Borrowed. */
int namer_descriptor(const struct namer *n);
/* Returns the CPU time of its processes in ns, as of the last answer. */
uint64_t namer_cpu_ns(const struct namer *n);
/* Returns the process id of the opener, 0 if none runs. For tests. */
pid_t namer_opener(const struct namer *n);

#endif
