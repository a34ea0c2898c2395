/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Parses the text of EVENT, with which a user names events:
 *
 *   [host:|guest:|vmm:]SYSTEM:NAME[/FILTER/ATTRIBUTE/...]
 *   kprobe:FUNCTION kretprobe:FUNCTION uprobe:SYMBOL@PATH usdt:PROVIDER:NAME@PATH
 *
 * Several events are separated by commas, attributes by '/' or commas. A separator within quotes or
 * parentheses does not separate; a path with one stands in quotes. SYSTEM and NAME of a tracepoint
 * may be patterns ("kvm:*"). This parser checks only the form. event_schema.h finds the event and
 * checks FILTER and the expressions of attributes.
 */
#ifndef QUERY_EVENT_SPEC_H
#define QUERY_EVENT_SPEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/query/expr.h"

enum event_spec_kind { EVENT_TRACEPOINT, EVENT_KPROBE, EVENT_KRETPROBE, EVENT_UPROBE, EVENT_USDT };

/* Where an event happens: in the host's kernel, in a guest's, or on the host in the threads of a
 * VM's process (VMM). */
enum event_spec_side { SIDE_ANY, SIDE_HOST, SIDE_GUEST, SIDE_VMM };

enum {
	EVENT_SPEC_NAME_BYTES = 64,
	EVENT_SPEC_PATH_BYTES = 256,
	EVENT_SPEC_TEXT_BYTES = 256, /* of a filter or of the value of an attribute */
	EVENT_SPECS_MAX = 64,
};

/* The text of an expression, and its place in the text of the events, for errors. */
struct event_spec_text {
	char text[EVENT_SPEC_TEXT_BYTES]; /* "": absent */
	size_t at;
};

struct event_spec {
	enum event_spec_kind kind;
	enum event_spec_side side;
	size_t at; /* place in the text */
	/* The tracepoint's system, or the provider of a USDT probe; else "". */
	char system[EVENT_SPEC_NAME_BYTES];
	char name[EVENT_SPEC_NAME_BYTES]; /* of the tracepoint, function, symbol or probe */
	char path[EVENT_SPEC_PATH_BYTES]; /* of uprobe and usdt; else "" */
	struct event_spec_text filter;
	struct event_spec_text key;    /* events of a pair have this in common */
	struct event_spec_text role;   /* bit 0: may begin a pair; bit 1: may end one */
	struct event_spec_text alias;  /* the name that is shown instead of its own */
	struct event_spec_text fields; /* names of the fields that are shown, separated by spaces */
	bool untraced;                 /* shown beside pairs, part of none */
	bool trigger;                  /* starts the output of what was collected */
	bool stack;                    /* shown with its stack */
};

/* Parses a list of events and appends them to specs[*n..max-1]. Returns 0, or -EINVAL (*error says
 * what is wrong) or -E2BIG (more than `max`, also in *error). */
int event_specs_parse(const char *text, struct event_spec *specs, size_t max, size_t *n,
		      struct expr_error *error);

#endif
