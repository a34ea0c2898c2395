/* SPDX-License-Identifier: GPL-2.0-only */
/* Symbolised stacks by id, as STACK events name them: the most recent ones, compactly. */
#ifndef MODEL_STACKS_H
#define MODEL_STACKS_H

#include <stdbool.h>
#include <stdint.h>

#include "host-collector/model/lru.h"
#include "proto/message.h"

enum { STACKS_MAX = 4096 };

struct stack_frame {
	const char *symbol, *module; /* inside the same allocation */
	uint64_t offset;
	bool kernel;
};

struct stack {
	uint32_t id;
	int32_t pid;
	size_t n_frames;
	struct stack_frame frames[]; /* leaf first; the strings follow */
};

struct stacks {
	struct lru index;
	struct stack **items;
};

int stacks_init(struct stacks *s); /* 0 or -ENOMEM */
void stacks_fini(struct stacks *s);
/* Copies; an id seen before is replaced. 0, -EINVAL (id 0, too many frames), -ENOMEM. */
int stacks_put(struct stacks *s, const struct message_stack *m);
/* NULL if unknown or forgotten. Borrowed until the next put. */
const struct stack *stacks_get(const struct stacks *s, uint32_t id);
/* A copy that one free() releases. NULL on ENOMEM. */
struct stack *stack_dup(const struct stack *s);

#endif
