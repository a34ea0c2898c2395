/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/util/intervals.h"

#include <string.h>

void intervals_add(struct intervals *s, int64_t begin, int64_t end, struct interval within)
{
	size_t from, to;

	begin = begin > within.begin ? begin : within.begin;
	end = end < within.end ? end : within.end;
	if (begin >= end)
		return;
	for (from = 0; from < s->n && s->at[from].end < begin; from++)
		;
	for (to = from; to < s->n && s->at[to].begin <= end; to++) {
		begin = begin < s->at[to].begin ? begin : s->at[to].begin;
		end = end > s->at[to].end ? end : s->at[to].end;
	}
	if (from == to && s->n == INTERVALS_MAX) {
		if (from == s->n)
			return;
		s->n--; /* the last makes room */
	}
	memmove(&s->at[from + 1], &s->at[to], (s->n - to) * sizeof(s->at[0]));
	s->n = s->n - (to - from) + 1;
	s->at[from] = (struct interval){begin, end};
}

void intervals_common(const struct intervals *a, const struct intervals *b, struct intervals *out)
{
	size_t i = 0, k = 0;

	out->n = 0;
	while (i < a->n && k < b->n && out->n < INTERVALS_MAX) {
		const struct interval *x = &a->at[i], *y = &b->at[k];
		int64_t begin = x->begin > y->begin ? x->begin : y->begin;
		int64_t end = x->end < y->end ? x->end : y->end;

		if (begin < end)
			out->at[out->n++] = (struct interval){begin, end};
		if (x->end < y->end)
			i++;
		else
			k++;
	}
}

void intervals_without(const struct intervals *a, const struct intervals *b, struct intervals *out)
{
	out->n = 0;
	for (size_t i = 0, k = 0; i < a->n; i++) {
		int64_t begin = a->at[i].begin, end = a->at[i].end;

		while (k < b->n && b->at[k].end <= begin)
			k++;
		for (size_t j = k; j < b->n && b->at[j].begin < end && out->n < INTERVALS_MAX;
		     j++) {
			if (begin < b->at[j].begin)
				out->at[out->n++] = (struct interval){begin, b->at[j].begin};
			begin = b->at[j].end;
		}
		if (begin < end && out->n < INTERVALS_MAX)
			out->at[out->n++] = (struct interval){begin, end};
	}
}

int64_t intervals_length(const struct intervals *s)
{
	int64_t ns = 0;

	for (size_t i = 0; i < s->n; i++)
		ns += s->at[i].end - s->at[i].begin;
	return ns;
}

int64_t intervals_longest(const struct intervals *s)
{
	int64_t longest = 0;

	for (size_t i = 0; i < s->n; i++) {
		int64_t ns = s->at[i].end - s->at[i].begin;

		longest = ns > longest ? ns : longest;
	}
	return longest;
}
