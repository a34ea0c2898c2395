/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The namer process. It has no rights (confine.h). It receives stacks, and descriptors of the files
 * that their processes have mapped, and finds the names. The body decides how: on the host it
 * unwinds with .eh_frame, in the agent it looks up addresses. A malformed file may kill the namer
 * at any time.
 *
 * The functions end the process if the opener is gone.
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
	uint64_t start_time; /* identifies the process together with pid */
	size_t n_addresses, data_bytes;
	const uint64_t *addresses;
	const uint8_t *data; /* aligned to 8 bytes */
};

struct naming_body {
	/* Allocates the body's state, before the process is confined. Returns NULL on ENOMEM. */
	void *(*begin)(void);
	/* Fills at most `max` frames, leaf first, and returns their number. For a stack without
	 * addresses and data it prepares the next stack of the process. */
	size_t (*name)(void *state, struct naming *n, const struct naming_stack *stack,
		       struct message_stack_frame *frames, size_t max);
	/* A namer that has allocated this much is replaced by a new process. 1.5 times as much is
	 * the hard limit. */
	size_t memory_bytes;
};

/* Returns the executable files of the stack's process; borrowed until the next call. *list: on
 * entry the number of the list that the caller knows, 0 for none; on return the number of the
 * returned list. The opener reads the mappings again if the caller knows the current list and it is
 * at least one second old. */
const struct naming_module *naming_modules(struct naming *n, uint32_t *list, size_t *count);
/* Returns a descriptor of the file of modules[index], which the caller closes, or -errno. Also
 * calls naming_at(). */
int naming_open(struct naming *n, size_t index, struct file_id *id);
/* Does the same for the file of debug symbols with this build-id. */
int naming_open_debug(struct naming *n, const uint8_t *build_id, size_t bytes, struct file_id *id);
/* Records that the process reads modules[index] from now on. If the process dies, the opener blames
 * this file. */
void naming_at(struct naming *n, size_t index);

/* Runs the namer process: confines it and serves the opener at descriptor `socket` until the opener
 * closes it. Returns an enum naming_exit, the exit code of the process. */
int naming_serve(const struct naming_body *body, int socket, struct naming_place *place,
		 pid_t opener);

enum naming_exit {
	NAMING_OVER = 0,
	NAMING_FULL = 3,       /* its memory is used up; a new process must replace it */
	NAMING_UNCONFINED = 4, /* the process could not be confined */
};

#endif
