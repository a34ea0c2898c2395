/* SPDX-License-Identifier: GPL-2.0-only */
/* Keeps symbolized stacks by id, for STACK and TASK_STACK events. Removes the least recently added
 * stack when there are STACKS_MAX, or when all exceed STACKS_BYTES_MAX. */
#ifndef MODEL_STACKS_H
#define MODEL_STACKS_H

#include <stdbool.h>
#include <stdint.h>

#include "host-collector/model/wait_class.h"
#include "host-collector/util/lru.h"
#include "proto/message.h"

enum { STACKS_MAX = 4096, STACKS_BYTES_MAX = 32 << 20 };

struct stack_frame {
	const char *symbol, *module; /* inside the allocation of the stack */
	uint64_t offset;
	bool kernel;
};

struct stack {
	uint32_t id;
	int32_t pid;
	size_t bytes; /* size of this allocation */
	/* What a thread with this stack waits for if its VM runs without KVM [0], with KVM [1].
	 * Read it with stacks_wait_class(). */
	bool classified;
	enum wait_class wait_class[2];
	size_t n_frames;
	struct stack_frame frames[]; /* leaf first; the strings follow */
};

struct stacks {
	struct lru index;
	struct stack **items;
	size_t bytes; /* total size of the stacks, at most STACKS_BYTES_MAX */
};

int stacks_init(struct stacks *s); /* returns 0 or -ENOMEM */
void stacks_fini(struct stacks *s);
/* Adds a copy of a stack and replaces an older stack with this key. The key is the stack's id,
 * combined with a process id where each process has its own ids. Returns 0, -EINVAL (id 0, too many
 * frames) or -ENOMEM. */
int stacks_put(struct stacks *s, uint64_t key, const struct message_stack *m);
/* Returns the stack, or NULL if it is unknown or removed. Borrowed until the next put. */
const struct stack *stacks_get(const struct stacks *s, uint64_t key);
/* Returns what a thread with this stack waits for, found when it is asked for first; WAIT_NONE if
 * the stack is unknown. kvm: its VM runs with KVM. */
enum wait_class stacks_wait_class(struct stacks *s, uint64_t key, bool kvm);
/* Returns a copy that is released with one free(), or NULL on ENOMEM. */
struct stack *stack_dup(const struct stack *s);

#endif
