/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The namer's side: a process without rights (confine.h) that gets stacks, and descriptors of the
 * files that their processes have mapped, and names them. What it does with the files is the
 * body's: the host unwinds by .eh_frame, the agent looks addresses up. It may die of a file at any
 * time.
 */
#ifndef ISOLATION_NAMING_H
#define ISOLATION_NAMING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "bpf/isolation/naming_wire.h"

struct naming;

struct naming_stack {
	pid_t pid;
	uint64_t start_time; /* with pid: which process */
	size_t n_addresses, data_bytes;
	const uint64_t *addresses;
	const uint8_t *data; /* aligned to 8 bytes */
};

struct naming_body {
	/* Before the process is confined. NULL: out of memory. */
	void *(*begin)(void);
	/* Fills at most `max` frames, leaf first, and returns how many. Of a stack without
	 * addresses and data it makes ready what the process's next stack will need. */
	size_t (*name)(void *state, struct naming *n, const struct naming_stack *stack,
		       struct message_stack_frame *frames, size_t max);
	/* When it has allocated so much, a new process takes over; 1.5 times as much is the limit.
	 */
	size_t memory_bytes;
};

/* The files of code of the stack's process; borrowed until the next call. `list` (in: the one
 * known, 0 none) gets the number of the list that is returned: the same, unless a second has passed
 * and the process was looked at again. */
const struct naming_module *naming_modules(struct naming *n, uint32_t *list, size_t *count);
/* A descriptor of the file of modules[index], now the caller's. -errno: it is not to be had. */
int naming_open(struct naming *n, size_t index, struct file_id *id);
/* Of the file with the symbols that were split off. As above. */
int naming_open_debug(struct naming *n, const uint8_t *build_id, size_t bytes, struct file_id *id);
/* From now on modules[index] is read: if this process dies, that is the file it died of. */
void naming_at(struct naming *n, size_t index);

/* The namer process: confines itself and serves the opener at descriptor `socket` until that is
 * gone. What _exit() gets. */
int naming_serve(const struct naming_body *body, int socket, struct naming_place *place,
		 pid_t opener);

enum naming_exit {
	NAMING_OVER = 0,
	NAMING_FULL = 3, /* its memory is used up: another one is to begin anew */
	NAMING_UNCONFINED = 4,
};

#endif
