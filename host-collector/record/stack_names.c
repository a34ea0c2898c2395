/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/record/stack_names.h"

#include <stdlib.h>

struct stack_names *stack_names_new(void)
{
	struct stack_names *n = calloc(1, sizeof(*n));

	if (!n)
		return NULL;
	n->namer = namer_new();
	if (!n->namer) {
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
	namer_free(n->namer);
	free(n);
}

void stack_names_join(struct stack_names *n)
{
	kallsyms_refresh(&n->kallsyms);
	n->users++;
}

void stack_names_leave(struct stack_names *n)
{
	n->users--;
}
