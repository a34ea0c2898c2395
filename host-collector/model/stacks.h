/* SPDX-License-Identifier: GPL-2.0-only */
/* Symbolised stacks by id, as STACK and TASK_STACK events name them: the most recent ones,
 * compactly. */
#ifndef MODEL_STACKS_H
#define MODEL_STACKS_H

#include <stdbool.h>
#include <stdint.h>

#include "host-collector/util/lru.h"
#include "proto/message.h"

enum { STACKS_MAX = 4096, STACKS_BYTES_MAX = 32 << 20 };

struct stack_frame {
	const char *symbol, *module; /* inside the same allocation */
	uint64_t offset;
	bool kernel;
};

struct stack {
	uint32_t id;
	int32_t pid;
	size_t bytes; /* of this allocation */
	size_t n_frames;
	struct stack_frame frames[]; /* leaf first; the strings follow */
};

struct stacks {
	struct lru index;
	struct stack **items;
	size_t bytes; /* of them all, at most STACKS_BYTES_MAX */
};

int stacks_init(struct stacks *s); /* 0 or -ENOMEM */
void stacks_fini(struct stacks *s);
/* Copies; what the key named before is replaced. The key is the id, unless ids are those of several
 * processes. 0, -EINVAL (id 0, too many frames), -ENOMEM. */
int stacks_put(struct stacks *s, uint64_t key, const struct message_stack *m);
/* NULL if unknown or forgotten. Borrowed until the next put. */
const struct stack *stacks_get(const struct stacks *s, uint64_t key);
/* A copy that one free() releases. NULL on ENOMEM. */
struct stack *stack_dup(const struct stack *s);

#endif
