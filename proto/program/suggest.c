/* SPDX-License-Identifier: GPL-2.0-only */
#include "proto/program/suggest.h"

#include <string.h>

enum { NAME_MAX_LEN = 32 };

void suggest_begin(struct suggest *s, const char *typed, size_t len)
{
	/* A word of three letters may have one wrong. */
	*s = (struct suggest){.typed = typed, .len = len, .cost = (unsigned)(len / 3 + 1)};
}

static unsigned least(unsigned a, unsigned b)
{
	return a < b ? a : b;
}

/* The number of letters to insert, remove, replace or swap with their neighbour (the optimal string
 * alignment distance). Both texts have at most NAME_MAX_LEN letters. */
static unsigned distance(const char *a, size_t a_len, const char *b, size_t b_len)
{
	unsigned rows[3][NAME_MAX_LEN + 1];

	for (size_t j = 0; j <= b_len; j++)
		rows[0][j] = (unsigned)j;
	for (size_t i = 1; i <= a_len; i++) {
		const unsigned *before = rows[(i + 1) % 3], *above = rows[(i - 1) % 3];
		unsigned *row = rows[i % 3];

		row[0] = (unsigned)i;
		for (size_t j = 1; j <= b_len; j++) {
			row[j] = least(above[j] + 1, row[j - 1] + 1);
			row[j] = least(row[j], above[j - 1] + (a[i - 1] != b[j - 1]));
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
				row[j] = least(row[j], before[j - 2] + 1);
		}
	}
	return rows[a_len % 3][b_len];
}

void suggest_try(struct suggest *s, const char *name)
{
	const size_t len = strlen(name);
	unsigned cost;

	if (!s->len || s->len > NAME_MAX_LEN || len > NAME_MAX_LEN)
		return;
	cost = s->len < len && !strncmp(name, s->typed, s->len)
		       ? 0
		       : distance(s->typed, s->len, name, len);
	if (cost >= s->cost)
		return;
	s->cost = cost;
	s->best = name;
}
