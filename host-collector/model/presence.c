/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/model/presence.h"

#include <stdint.h>
#include <string.h>

void presence_left(struct presence *p, struct host_ns t, uint32_t err_ns)
{
	/* Left twice: how it came back was not seen, so it may have been there meanwhile. */
	p->n = 0;
	p->known = p->away = true;
	p->left_until.ns = t.ns + err_ns;
}

static void pair_add(struct presence_count *count, bool violated, bool counts)
{
	count->pairs++;
	count->violations += violated;
	count->pieces += violated && counts;
	audit_add(&count->recent, violated && counts, PRESENCE_WINDOW);
}

void presence_back(struct presence *p, struct host_ns t, uint32_t err_ns,
		   struct presence_count *count)
{
	int64_t counted_ns = INT64_MIN / 2; /* the last violation that counts */

	for (unsigned i = 0; p->away && i < p->n; i++) {
		int64_t early = t.ns - err_ns - p->waiting[i].until.ns;
		int64_t late = p->waiting[i].from.ns - p->left_until.ns;
		int64_t off = early < late ? early : late;

		bool counts = p->waiting[i].from.ns - counted_ns >= PRESENCE_PIECE_NS;

		pair_add(count, off > 0, counts);
		if (off <= 0)
			continue;
		if (counts)
			counted_ns = p->waiting[i].from.ns;
		if (off > count->worst_ns)
			count->worst_ns = off;
	}
	p->n = 0;
	p->known = true;
	p->away = false;
}

void presence_lost(struct presence *p)
{
	memset(p, 0, sizeof(*p));
}

void presence_event(struct presence *p, struct host_ns t, uint32_t err_ns,
		    struct presence_count *count)
{
	if (!p->known)
		return;
	if (!p->away || t.ns - err_ns <= p->left_until.ns) {
		pair_add(count, false, false);
	} else if (p->n < PRESENCE_WAITING) {
		p->waiting[p->n].from.ns = t.ns - err_ns;
		p->waiting[p->n++].until.ns = t.ns + err_ns;
	}
}
