/* SPDX-License-Identifier: GPL-2.0-only */
/* Finds the known name that is nearest to an unknown name that a user typed. */
#ifndef PROGRAM_SUGGEST_H
#define PROGRAM_SUGGEST_H

#include <stddef.h>

struct suggest {
	const char *typed; /* not NUL-terminated */
	size_t len;
	const char *best; /* NULL: no candidate is near */
	unsigned cost;    /* of `best` */
};

/* Begins a search for typed[0..len-1]. */
void suggest_begin(struct suggest *s, const char *typed, size_t len);
/* Makes `name` the best candidate if it begins with the typed text. Also does so if it differs from
 * that text in at most a third of the letters, and in fewer letters than the best candidate so far.
 * Keeps the pointer. */
void suggest_try(struct suggest *s, const char *name);

#endif
