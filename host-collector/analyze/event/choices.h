/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The events that a user chose with -e, resolved. There is one choice for each event and side, with
 * its expressions parsed. Each -e is a group. A pair leads from one group to the next.
 */
#ifndef EVENT_CHOICES_H
#define EVENT_CHOICES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/query/event_schema.h"

enum {
	EVENT_CHOICES_MAX = 128,
	EVENT_GROUPS_MAX = 16,
	EVENT_CHOICE_NAME_BYTES = 160,
};

enum event_role { EVENT_BEGINS = 1, EVENT_ENDS = 2 };

struct event_choice {
	const struct event_schema *schema;
	enum event_side side;
	bool vmm; /* only in threads of a VM's process */
	unsigned group;
	char name[EVENT_CHOICE_NAME_BYTES]; /* its alias, or "guest:irq:irq_handler_entry" */
	struct expr filter, key, role;      /* n 0: absent */
	struct expr value;                  /* what is summed or distributed; n 0: absent */
	uint32_t fields;                    /* bit n: field n is shown */
	bool untraced, trigger, stack;
};

struct event_choices {
	struct event_schemas *schemas;
	bool schemas_are_shared;
	size_t n;
	struct event_choice *items;
	unsigned n_groups;
	/* first[side][type]: 1 + index of the first choice of the side (host, guest) and event
	 * type; 0: none. next[i]: the same for the choice after choice i. */
	uint8_t first[2][VS_EVENT_TYPE_LIMIT];
	uint8_t next[EVENT_CHOICES_MAX];
};

/* Prepares a list without choices. Returns 0 or -ENOMEM. */
int event_choices_init(struct event_choices *c);
/* Does the same with `schemas` as the known events. `schemas` is borrowed and must not change until
 * event_choices_fini(). */
int event_choices_share(struct event_choices *c, struct event_schemas *schemas);
void event_choices_fini(struct event_choices *c);
/* Adds the events of one -e as a group. Returns 0, -ENOMEM, or -EINVAL with *error. */
int event_choices_add(struct event_choices *c, const char *text, struct expr_error *error);
/* Parses the expression `text` and makes it the key of each choice that has no key of its own.
 * Returns 0, or -EINVAL with *error. */
int event_choices_key(struct event_choices *c, const char *text, struct expr_error *error);
/* Parses the expression `text` and makes it the value of each choice. Returns 0, or -EINVAL with
 * *error. */
int event_choices_value(struct event_choices *c, const char *text, struct expr_error *error);
/* Returns true if events of both sides are chosen. Untraced events do not count. */
bool event_choices_cross(const struct event_choices *c);
/* Returns true if all events are of the host and no expression asks for a guest's task. */
bool event_choices_of_host(const struct event_choices *c);
/* Returns true if also no expression asks for a vCPU's state, and each event names its task. */
bool event_choices_alone(const struct event_choices *c);

#endif
