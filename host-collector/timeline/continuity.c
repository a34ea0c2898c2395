/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/timeline/continuity.h"

#include <stdlib.h>
#include <string.h>

#include "proto/event_fields.h"

enum { STRAGGLERS_MAX = 4096 }; /* how far behind a record may come that was counted as lost */

void continuity_fini(struct continuity *c)
{
	free(c->cpus);
	c->cpus = NULL;
	c->n_cpus = 0;
}

struct continuity_cpu *continuity_cpu(struct continuity *c, uint16_t cpu)
{
	if (cpu >= c->n_cpus) {
		struct continuity_cpu *grown = realloc(c->cpus, (cpu + 1u) * sizeof(*grown));

		if (!grown)
			return NULL;
		memset(grown + c->n_cpus, 0, (cpu + 1u - c->n_cpus) * sizeof(*grown));
		for (size_t i = c->n_cpus; i <= cpu; i++)
			grown[i].floor_ns = INT64_MIN;
		c->cpus = grown;
		c->n_cpus = cpu + 1u;
	}
	return &c->cpus[cpu];
}

int64_t continuity_lost(const struct continuity *c)
{
	return (int64_t)(c->emitted - c->delivered - c->dropped_kernel - c->dropped_user);
}

/* The sender's totals, as far as they grew while we listened: what it did before is not ours. */
static void totals_add(struct continuity *c, struct continuity_cpu *cpu, const struct batch *b,
		       uint64_t covered, uint64_t marked_lost)
{
	uint64_t emitted = covered, kernel = marked_lost, user = 0;

	if (cpu->started && b->emitted >= cpu->emitted &&
	    b->dropped_kernel >= cpu->dropped_kernel && b->dropped_user >= cpu->dropped_user) {
		emitted = b->emitted - cpu->emitted;
		kernel = b->dropped_kernel - cpu->dropped_kernel;
		user = b->dropped_user - cpu->dropped_user;
	}
	c->emitted += emitted;
	c->dropped_kernel += kernel;
	c->dropped_user += user;
	cpu->emitted = b->emitted;
	cpu->dropped_kernel = b->dropped_kernel;
	cpu->dropped_user = b->dropped_user;
}

bool continuity_hello(struct continuity *c, uint64_t session_id, const char *boot_id)
{
	return boots_hello(&c->boots, session_id, boot_id);
}

/* A sender that restarted counts from the beginning again, and its events are new. One that only
 * reconnected may repeat events that are already known. */
static bool began_anew(const struct continuity_cpu *cpu, const struct batch *b, uint64_t session_id,
		       uint32_t boot)
{
	if (!cpu->started || cpu->session_id == session_id)
		return false;
	return boot != cpu->boot || ((int32_t)(b->events[0].seq - cpu->next_seq) < 0 &&
				     b->events[0].time > cpu->floor_stream);
}

/* What the sequence numbers of a batch show. */
struct numbers {
	/* Relative to a base: the numbers at and after it that the batch accounts for, the highest
	 * of them plus one, and how far back the batch reaches. */
	int64_t covered, top, back;
	uint64_t events, marked_lost; /* events that arrived; that LOST events count */
};

/* Returns true if nothing is missing between the first and the last event, as in most batches. */
static bool is_unbroken(const struct batch *b)
{
	uint32_t differs = 0, losses = 0;

	for (size_t i = 0; i < b->n_events; i++) {
		differs |= b->events[i].seq - (b->events[0].seq + (uint32_t)i);
		losses |= b->events[i].type == VS_EVENT_LOST;
	}
	return !differs && !losses;
}

static struct numbers numbers_of(const struct batch *b, uint32_t base)
{
	struct numbers n = {0};

	if (!b->n_events)
		return n;
	n.back = (int32_t)(b->events[0].seq - base);
	if (n.back <= INT32_MAX - (int64_t)b->n_events && is_unbroken(b)) {
		n.events = b->n_events;
		n.top = n.back + (int64_t)n.events > 0 ? n.back + (int64_t)n.events : 0;
		n.covered = n.back > 0 ? (int64_t)n.events : n.top;
		n.back = n.back < 0 ? n.back : 0;
		return n;
	}
	n.back = 0;
	for (size_t i = 0; i < b->n_events; i++) {
		const struct vs_event *e = &b->events[i];
		int64_t at = (int32_t)(e->seq - base), count = 1;

		if (e->type == VS_EVENT_LOST) {
			/* a marker that claims more than 2^31 is a lie */
			count = ev_lost_count(e) <= INT32_MAX ? (int64_t)ev_lost_count(e) : 0;
			n.marked_lost += (uint64_t)count;
		} else {
			n.events++;
		}
		if (at < n.back)
			n.back = at;
		if (at < 0)
			continue;
		n.covered += count;
		if (at + count > n.top)
			n.top = at + count;
	}
	return n;
}

enum continuity_verdict continuity_check(struct continuity *c, struct continuity_cpu *cpu,
					 const struct batch *b, uint64_t session_id,
					 uint64_t *missing)
{
	/* Without a HELLO: the one that the CPU was in. */
	const uint32_t boot = boots_of(&c->boots, session_id, cpu->boot);
	const bool anew = b->n_events && began_anew(cpu, b, session_id, boot);
	uint32_t base = cpu->started && !anew ? cpu->next_seq : b->n_events ? b->events[0].seq : 0;
	const struct numbers n = numbers_of(b, base);
	enum continuity_verdict verdict = CONTINUITY_WHOLE;

	*missing = 0;
	cpu->anew = anew;
	if (anew)
		cpu->started = false;
	if (anew && b->events[0].time < cpu->floor_stream)
		cpu->floor_stream = 0; /* its clock began anew, too */
	if (!b->n_events)
		return CONTINUITY_WHOLE;
	if (cpu->started && !n.top && n.back < 0) {
		if (n.back < -STRAGGLERS_MAX || cpu->session_id != session_id)
			return CONTINUITY_REPEATS;
	} else if (cpu->started && n.top > n.covered) {
		*missing = (uint64_t)(n.top - n.covered);
		verdict = CONTINUITY_GAP;
	}
	totals_add(c, cpu, b, n.events + n.marked_lost, n.marked_lost);
	c->delivered += n.events;
	cpu->next_seq = base + (uint32_t)n.top;
	cpu->started = true;
	cpu->session_id = session_id;
	cpu->boot = boot;
	return anew ? CONTINUITY_GAP : verdict; /* what was between the two is not known */
}
