/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/record/stack_names.h"

#include <stdlib.h>

enum { WAKERS_KEPT = 7 }; /* besides the process of each VM */

struct stack_names *stack_names_new(void)
{
	struct stack_names *n = calloc(1, sizeof(*n));

	if (!n)
		return NULL;
	n->unwinder = unwinder_new();
	if (!n->unwinder) {
		free(n);
		return NULL;
	}
	return n;
}

void stack_names_free(struct stack_names *n)
{
	if (!n)
		return;
	kallsyms_free(n->kallsyms);
	unwinder_free(n->unwinder);
	free(n);
}

void stack_names_join(struct stack_names *n)
{
	kallsyms_refresh(&n->kallsyms);
	unwinder_keep(n->unwinder, ++n->users + WAKERS_KEPT);
}

void stack_names_leave(struct stack_names *n)
{
	unwinder_keep(n->unwinder, --n->users + WAKERS_KEPT);
}
