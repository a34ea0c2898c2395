/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/model/stacks.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int stacks_init(struct stacks *s)
{
	int err = lru_init(&s->index, STACKS_MAX);

	s->items = err ? NULL : calloc(STACKS_MAX, sizeof(struct stack *));
	if (!s->items) {
		stacks_fini(s);
		return -ENOMEM;
	}
	return 0;
}

void stacks_fini(struct stacks *s)
{
	for (uint32_t i = 0; s->items && i < STACKS_MAX; i++)
		free(s->items[i]);
	free(s->items);
	s->items = NULL;
	lru_fini(&s->index);
}

/* Copies a text to *at and moves *at behind it. */
static const char *text_add(char **at, const char *text, size_t max)
{
	char *begin = *at;
	size_t len = strnlen(text, max);

	memcpy(begin, text, len);
	begin[len] = 0;
	*at = begin + len + 1;
	return begin;
}

static struct stack *stack_alloc(size_t n_frames, size_t text_bytes)
{
	size_t bytes = sizeof(struct stack) + n_frames * sizeof(struct stack_frame) + text_bytes;
	struct stack *stack = malloc(bytes);

	if (stack)
		stack->bytes = bytes;
	return stack;
}

static void item_free(struct stacks *s, uint32_t slot)
{
	if (s->items[slot])
		s->bytes -= s->items[slot]->bytes;
	free(s->items[slot]);
	s->items[slot] = NULL;
}

/* Once for each stack: it costs microseconds, and a thread may wait with the same stack a hundred
 * times a second. Of most stacks nobody asks: they show who woke a thread. */
static void stack_classify(struct stack *stack)
{
	const char *symbols[VS_STACK_FRAMES_MAX];

	stack->classified = true;
	for (size_t i = 0; i < stack->n_frames; i++)
		symbols[i] = stack->frames[i].symbol;
	for (int kvm = 0; kvm < 2; kvm++)
		stack->wait_class[kvm] = wait_class_of(symbols, stack->n_frames, kvm);
}

int stacks_put(struct stacks *s, uint64_t key, const struct message_stack *m)
{
	size_t text_bytes = 0;
	struct stack *stack;
	uint32_t slot;
	bool fresh;
	char *at;

	if (m->id == 0 || m->n_frames > VS_STACK_FRAMES_MAX)
		return -EINVAL;
	for (size_t i = 0; i < m->n_frames; i++)
		text_bytes += strnlen(m->frames[i].symbol, VS_TEXT_MAX - 1) +
			      strnlen(m->frames[i].module, VS_TEXT_MAX - 1) + 2;
	stack = stack_alloc(m->n_frames, text_bytes);
	if (!stack)
		return -ENOMEM;
	stack->id = m->id;
	stack->pid = m->pid;
	stack->n_frames = m->n_frames;
	stack->classified = false;
	at = (char *)&stack->frames[m->n_frames];
	for (size_t i = 0; i < m->n_frames; i++) {
		const struct message_stack_frame *from = &m->frames[i];

		stack->frames[i] = (struct stack_frame){
			.symbol = text_add(&at, from->symbol, VS_TEXT_MAX - 1),
			.module = text_add(&at, from->module, VS_TEXT_MAX - 1),
			.offset = from->offset,
			.kernel = from->kernel,
		};
	}
	slot = lru_put(&s->index, key, &fresh);
	item_free(s, slot);
	s->items[slot] = stack;
	s->bytes += stack->bytes;
	while (s->bytes > STACKS_BYTES_MAX && lru_oldest(&s->index) != slot) {
		uint32_t oldest = lru_oldest(&s->index);

		item_free(s, oldest);
		lru_remove(&s->index, oldest);
	}
	return 0;
}

const struct stack *stacks_get(const struct stacks *s, uint64_t key)
{
	uint32_t slot = key ? lru_find(&s->index, key) : LRU_NONE;

	return slot == LRU_NONE ? NULL : s->items[slot];
}

enum wait_class stacks_wait_class(struct stacks *s, uint64_t key, bool kvm)
{
	const uint32_t slot = key ? lru_find(&s->index, key) : LRU_NONE;
	struct stack *stack = slot == LRU_NONE ? NULL : s->items[slot];

	if (!stack)
		return WAIT_NONE;
	if (!stack->classified)
		stack_classify(stack);
	return stack->wait_class[kvm];
}

struct stack *stack_dup(const struct stack *s)
{
	size_t text_bytes = 0;
	struct stack *copy;
	char *at;

	for (size_t i = 0; i < s->n_frames; i++)
		text_bytes += strlen(s->frames[i].symbol) + strlen(s->frames[i].module) + 2;
	copy = stack_alloc(s->n_frames, text_bytes);
	if (!copy)
		return NULL;
	*copy = *s;
	at = (char *)&copy->frames[s->n_frames];
	for (size_t i = 0; i < s->n_frames; i++) {
		copy->frames[i] = s->frames[i];
		copy->frames[i].symbol = text_add(&at, s->frames[i].symbol, VS_TEXT_MAX);
		copy->frames[i].module = text_add(&at, s->frames[i].module, VS_TEXT_MAX);
	}
	return copy;
}
