/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/timeline/vm_clock_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* In ticks. A larger difference of two vCPUs' TSCs (decades at 1 GHz) is refused, so that sums of
 * differences do not overflow. */
static const uint64_t apart_max = 1ull << 60;

struct vm_clock *vm_clock_new(void)
{
	return calloc(1, sizeof(struct vm_clock));
}

void vm_clock_free(struct vm_clock *c)
{
	if (!c)
		return;
	for (size_t i = 0; i < c->n_epochs; i++)
		free((void *)c->epochs[i].offsets);
	free(c->vcpus);
	free(c);
}

struct vm_clock_known_vcpu *vm_clock_vcpu_find(const struct vm_clock *c, uint32_t id)
{
	for (size_t i = 0; i < c->n_vcpus; i++) {
		if (c->vcpus[i].id == id)
			return &c->vcpus[i];
	}
	return NULL;
}

static struct vm_clock_known_vcpu *vcpu_get(struct vm_clock *c, uint32_t id)
{
	struct vm_clock_known_vcpu *found = vm_clock_vcpu_find(c, id), *grown;

	if (found)
		return found;
	if (c->n_vcpus == VS_CPUS_MAX)
		return NULL;
	grown = realloc(c->vcpus, (c->n_vcpus + 1) * sizeof(*grown));
	if (!grown)
		return NULL;
	c->vcpus = grown;
	grown[c->n_vcpus] = (struct vm_clock_known_vcpu){.id = id};
	return &grown[c->n_vcpus++];
}

/* ---- TSC: what is in force, and since when ---- */

static bool same_scale(const struct tsc_scaling *a, const struct tsc_scaling *b)
{
	return a->frac_bits == b->frac_bits && (!a->frac_bits || a->ratio == b->ratio);
}

static bool same_tsc(const struct tsc_scaling *a, const struct tsc_scaling *b)
{
	return a->offset == b->offset && same_scale(a, b);
}

static bool in_force_is_seen_by(int source)
{
	return source == VM_CLOCK_VCPU || source == VM_CLOCK_DEBUGFS;
}

/* All sources that spoke agree, and one saw what is in force and the scaling. */
struct vm_clock_state vm_clock_vcpu_state(const struct vm_clock_known_vcpu *v)
{
	struct vm_clock_state s = {.from_max = UINT64_MAX};
	uint64_t latest = 0;
	bool scaling_known = false, seen = false, any = false;

	for (int i = 0; i < SOURCES; i++) {
		const struct vm_clock_said *said = &v->said[i];

		if (!said->known)
			continue;
		if ((any && said->tsc.offset != s.tsc.offset) ||
		    (scaling_known && said->scaling_known && !same_scale(&said->tsc, &s.tsc)))
			return (struct vm_clock_state){0};
		s.tsc.offset = said->tsc.offset;
		if (said->scaling_known)
			s.tsc = said->tsc;
		any = true;
		scaling_known |= said->scaling_known;
		seen |= in_force_is_seen_by(i);
		s.from_min = said->from_min > s.from_min ? said->from_min : s.from_min;
		s.from_max = said->from_max < s.from_max ? said->from_max : s.from_max;
		latest = said->from_max > latest ? said->from_max : latest;
	}
	s.known = any && seen && scaling_known;
	/* The value left and came back: its newest beginning counts. */
	if (s.from_max < s.from_min)
		s.from_max = latest;
	return s;
}

/* The whole guest: since the last vCPU has had its parameters. */
static struct vm_clock_state vm_state(const struct vm_clock *c)
{
	struct vm_clock_state vm = {0};
	uint64_t ahead;

	for (size_t i = 0; i < c->n_vcpus; i++) {
		struct vm_clock_state s = vm_clock_vcpu_state(&c->vcpus[i]);

		if (!s.known || (i && !same_scale(&s.tsc, &vm.tsc)))
			return (struct vm_clock_state){0};
		ahead = i ? s.tsc.offset - vm.tsc.offset : 0;
		if ((int64_t)ahead >= 0) {
			vm.tsc = s.tsc;
			vm.apart += ahead;
		} else if (-ahead > vm.apart) {
			vm.apart = -ahead;
		}
		if (vm.apart > apart_max || ahead + apart_max > 2 * apart_max)
			return (struct vm_clock_state){0};
		vm.known = true;
		vm.from_min = s.from_min > vm.from_min ? s.from_min : vm.from_min;
		vm.from_max = s.from_max > vm.from_max ? s.from_max : vm.from_max;
	}
	return vm;
}

/* Each vCPU's offset in the present state; NULL on ENOMEM. */
static struct vm_clock_offset *offsets_copy(const struct vm_clock *c)
{
	struct vm_clock_offset *all = calloc(c->n_vcpus, sizeof(*all));

	for (size_t i = 0; all && i < c->n_vcpus; i++)
		all[i] = (struct vm_clock_offset){c->vcpus[i].id,
						  vm_clock_vcpu_state(&c->vcpus[i]).tsc.offset};
	return all;
}

/* The offset of a vCPU in an epoch whose vCPUs are apart. */
static bool offset_get(const struct vm_clock_epoch *e, uint32_t vcpu, uint64_t *offset)
{
	for (size_t i = 0; i < e->n_offsets; i++) {
		if (e->offsets[i].vcpu == vcpu) {
			*offset = e->offsets[i].offset;
			return true;
		}
	}
	return false;
}

static bool is_epoch_of(const struct vm_clock *c, const struct vm_clock_epoch *e,
			const struct vm_clock_state *s)
{
	if (e->known != s->known || !s->known)
		return e->known == s->known;
	if (!same_tsc(&e->tsc, &s->tsc) || e->apart != s->apart ||
	    (s->apart && e->n_offsets != c->n_vcpus))
		return false;
	for (size_t i = 0; s->apart && i < c->n_vcpus; i++) {
		uint64_t offset;

		if (!offset_get(e, c->vcpus[i].id, &offset) ||
		    offset != vm_clock_vcpu_state(&c->vcpus[i]).tsc.offset)
			return false;
	}
	return true;
}

static void epoch_drop(struct vm_clock *c, size_t i)
{
	free((void *)c->epochs[i].offsets);
	c->n_epochs--;
	memmove(c->epochs + i, c->epochs + i + 1, (c->n_epochs - i) * sizeof(*c->epochs));
}

/* 0 or -ENOMEM. */
static int epoch_begin(struct vm_clock *c, const struct vm_clock_state *s)
{
	struct vm_clock_epoch *last = c->n_epochs ? &c->epochs[c->n_epochs - 1] : NULL;
	struct vm_clock_offset *offsets = NULL;

	if ((!last && !s->known) || (last && is_epoch_of(c, last, s)))
		return 0;
	/* The disagreement was but the time that the news took from source to source, or from one
	 * vCPU to the next. */
	if (last && (!last->known || last->apart || s->apart) && s->from_min <= last->from_max) {
		struct vm_clock_state merged = *s;

		if (last->known && last->from_min < merged.from_min)
			merged.from_min = last->from_min;
		epoch_drop(c, c->n_epochs - 1);
		return epoch_begin(c, &merged);
	}
	if (s->known && s->apart) {
		offsets = offsets_copy(c);
		if (!offsets)
			return -ENOMEM;
	}
	if (last && last->contradicted && s->from_min <= last->contradicted_at)
		last->contradicted = 0;
	if (c->n_epochs == EPOCHS_MAX)
		epoch_drop(c, 0);
	c->epochs[c->n_epochs++] = (struct vm_clock_epoch){
		.from_min = s->from_min,
		.from_max = s->from_max,
		.known = s->known,
		.tsc = s->tsc,
		.apart = s->known ? s->apart : 0,
		.offsets = offsets,
		.n_offsets = offsets ? c->n_vcpus : 0,
	};
	return 0;
}

static int tsc_learn(struct vm_clock *c, const struct message_vm_clock *m)
{
	struct vm_clock_known_vcpu *v = vcpu_get(c, m->vcpu);
	struct vm_clock_state s;

	if (!v)
		return c->n_vcpus == VS_CPUS_MAX ? 0 : -ENOMEM;
	v->said[m->source] = (struct vm_clock_said){
		.known = true,
		.scaling_known = m->tsc.scaling_known,
		.tsc = {m->tsc.ratio, m->tsc.frac_bits, m->tsc.offset},
		.from_min = m->from_min,
		.from_max = m->from_max,
	};
	vm_clock_lines_settle(c);
	s = vm_state(c);
	if (!s.known) {
		s.from_min = m->from_min;
		s.from_max = m->from_max;
	}
	return epoch_begin(c, &s);
}

void vm_clock_protect(struct vm_clock *c, uint32_t protection)
{
	c->protection = protection;
}

uint32_t vm_clock_protection(const struct vm_clock *c)
{
	return c->protection;
}

int vm_clock_learn(struct vm_clock *c, const struct message_vm_clock *m)
{
	if (m->pvclock.known)
		vm_clock_line_learn(c, m);
	return m->tsc.known ? tsc_learn(c, m) : 0;
}

/* ---- conversions ---- */

/* The epoch's end at the latest, and what surely still belongs to it. */
static uint64_t epoch_end_max(const struct vm_clock *c, size_t i)
{
	return i + 1 < c->n_epochs ? c->epochs[i + 1].from_max : UINT64_MAX;
}

static uint64_t epoch_end_min(const struct vm_clock *c, size_t i)
{
	return i + 1 < c->n_epochs ? c->epochs[i + 1].from_min : UINT64_MAX;
}

static uint64_t epoch_begin_min(const struct vm_clock *c, size_t i)
{
	return i ? c->epochs[i].from_min : 0;
}

void vm_clock_observe(struct vm_clock *c, const struct echo_observation *o)
{
	struct vm_clock_epoch *e = NULL;
	struct guest_tsc earliest, latest;

	for (size_t i = 0; i < c->n_epochs; i++) {
		if (epoch_begin_min(c, i) > o->received.ticks ||
		    epoch_end_max(c, i) < o->sent.ticks)
			continue;
		if (e)
			return; /* the change happened about now: it can tell nothing */
		e = &c->epochs[i];
	}
	if (!e || !e->known)
		return;
	earliest = tsc_scaling_to_guest(&e->tsc, o->sent);
	latest = tsc_scaling_to_guest(&e->tsc, o->received);
	/* Any vCPU may have answered. */
	earliest.ticks -= e->apart;
	if ((int64_t)(o->guest_received - earliest.ticks) >= 0 &&
	    (int64_t)(latest.ticks - o->guest_sent) >= 0) {
		e->agreed++;
		return;
	}
	if (!e->contradicted++)
		e->contradicted_at = o->received.ticks;
}

static enum vm_clock_trust epoch_trust(const struct vm_clock_epoch *e)
{
	if (!e->known || !(e->agreed + e->contradicted))
		return VM_CLOCK_SILENT;
	return e->contradicted ? VM_CLOCK_CONTESTED : VM_CLOCK_PROVEN;
}

/* From the host TSC of `early` to that of `late`. */
static bool tsc_range_to_host(const struct tsc_scaling *tsc, struct guest_tsc early, uint64_t late,
			      struct host_tsc *at, uint64_t *span)
{
	struct host_tsc end;
	uint64_t more;

	if (!tsc_scaling_to_host(tsc, early, at, span))
		return false;
	if (early.ticks == late)
		return true;
	if (!tsc_scaling_to_host(tsc, (struct guest_tsc){late}, &end, &more) ||
	    end.ticks < at->ticks)
		return false;
	*span = end.ticks + more - at->ticks;
	return true;
}

/*
 * A stamp of a vCPU whose samples were read there is that vCPU's TSC, but for how far kvmclock
 * differs between the event's vCPU and this one. Of any vCPU: M(t), the TSC from which the guest's
 * kernel made CLOCK_MONOTONIC, lies between the last vCPU's and the first one's. The samples that
 * convert it back pair it with a TSC that may be behind it by as much again.
 */
static bool tsc_to_host(const struct vm_clock *c, const struct vm_clock_epoch *e, uint32_t vcpu,
			struct guest_tsc guest, struct host_tsc *at, uint64_t *span)
{
	struct tsc_scaling tsc = e->tsc;
	uint64_t lines = e->apart, behind = 0;

	if (!e->apart)
		return tsc_scaling_to_host(&e->tsc, guest, at, span);
	if (!offset_get(e, vcpu, &tsc.offset))
		behind = 2 * e->apart;
	if (!tsc_range_to_host(&tsc, guest, guest.ticks + behind, at, span))
		return false;
	if (!vm_clock_lines_apart(c, *at, (struct host_tsc){at->ticks + *span}, &lines) &&
	    !behind) {
		tsc = e->tsc;
		behind = 2 * e->apart;
	}
	return tsc_range_to_host(&tsc, (struct guest_tsc){guest.ticks - lines},
				 guest.ticks + behind + lines, at, span);
}

/* Where epoch `i` puts a guest TSC. False if that is not in the epoch, or not in the window. */
static bool epoch_to_host(const struct vm_clock *c, size_t i, const struct vm_clock_window *window,
			  uint32_t vcpu, struct guest_tsc guest, struct host_tsc *at,
			  uint64_t *span)
{
	const struct vm_clock_epoch *e = &c->epochs[i];
	uint64_t from = epoch_begin_min(c, i), to = epoch_end_max(c, i);

	from = window->from > from ? window->from : from;
	to = window->to < to ? window->to : to;
	return e->known && tsc_to_host(c, e, vcpu, guest, at, span) && at->ticks + *span >= from &&
	       at->ticks <= to;
}

enum vm_clock_trust vm_clock_to_host(const struct vm_clock *c, const struct vm_clock_window *window,
				     uint32_t vcpu, struct guest_tsc guest, struct host_tsc *first,
				     uint64_t *span)
{
	enum vm_clock_trust trust = VM_CLOCK_SILENT;
	struct host_tsc found_at;
	uint64_t found_span;
	bool found = false;

	for (size_t i = c->n_epochs; i-- > 0;) {
		const struct vm_clock_epoch *e = &c->epochs[i];
		struct host_tsc at;
		uint64_t more;

		if (!epoch_to_host(c, i, window, vcpu, guest, &at, &more))
			continue;
		if (found)
			return VM_CLOCK_SILENT; /* set back, or just at the change */
		found = true;
		found_at = at;
		found_span = more;
		if ((!i || at.ticks >= e->from_max) && at.ticks + more <= epoch_end_min(c, i))
			trust = epoch_trust(e);
	}
	if (trust == VM_CLOCK_SILENT)
		return trust;
	*first = found_at;
	*span = found_span;
	return trust;
}

uint64_t vm_clock_apart(const struct vm_clock *c)
{
	uint64_t apart = 0;

	for (size_t i = 0; i < c->n_epochs; i++)
		apart = c->epochs[i].apart > apart ? c->epochs[i].apart : apart;
	return apart;
}

bool vm_clock_contested(const struct vm_clock *c, struct host_tsc host)
{
	for (size_t i = 0; i < c->n_epochs; i++) {
		if (c->epochs[i].contradicted && epoch_begin_min(c, i) <= host.ticks &&
		    host.ticks <= epoch_end_max(c, i))
			return true;
	}
	return false;
}

bool vm_clock_to_guest(const struct vm_clock *c, struct host_tsc host, struct guest_tsc *first,
		       uint64_t *span)
{
	uint64_t lines;

	for (size_t i = c->n_epochs; i-- > 0;) {
		const struct vm_clock_epoch *e = &c->epochs[i];

		if (host.ticks < epoch_begin_min(c, i))
			continue;
		if (epoch_trust(e) == VM_CLOCK_SILENT || (i && host.ticks < e->from_max) ||
		    host.ticks > epoch_end_min(c, i))
			return false;
		lines = e->apart;
		if (e->apart)
			vm_clock_lines_apart(c, host, host, &lines);
		first->ticks = tsc_scaling_to_guest(&e->tsc, host).ticks - 2 * e->apart - lines;
		*span = 2 * (e->apart + lines);
		return true;
	}
	return false;
}

/* ---- accounts ---- */

size_t vm_clock_epochs(const struct vm_clock *c)
{
	return c->n_epochs;
}

void vm_clock_summarise(const struct vm_clock *c, struct vm_clock_summary *out)
{
	const bool open = c->protection == VM_PROTECTION_NONE;

	*out = (struct vm_clock_summary){
		.epochs = c->n_epochs,
		.lines = c->n_lines,
		.vcpus = c->n_vcpus,
		.proven = open && c->n_epochs &&
			  epoch_trust(&c->epochs[c->n_epochs - 1]) == VM_CLOCK_PROVEN,
		.pages = c->n_pages,
		.apart = c->n_epochs ? c->epochs[c->n_epochs - 1].apart : 0,
	};
	for (size_t i = 0; i < c->n_epochs; i++) {
		out->agreed += c->epochs[i].agreed;
		out->contradicted += c->epochs[i].contradicted;
		out->contested |= open && c->epochs[i].contradicted > 0;
	}
	for (size_t i = 0; i < c->n_vcpus; i++)
		out->vcpus_unsettled += !vm_clock_vcpu_state(&c->vcpus[i]).known;
	for (size_t i = 0; i < c->n_pages; i++) {
		bool shown = false;

		for (size_t k = 0; k < c->n_lines && !shown; k++)
			shown = pvclock_same_line(&c->lines[k].pvclock, &c->pages[i]);
		out->pages_differ += !shown;
	}
	out->kvmclock = out->proven && out->pages && !out->pages_differ;
}

bool vm_clock_epoch_get(const struct vm_clock *c, size_t i, struct vm_clock_epoch *out)
{
	if (i >= c->n_epochs)
		return false;
	*out = c->epochs[i];
	return true;
}

bool vm_clock_vcpu_get(const struct vm_clock *c, size_t i, struct vm_clock_vcpu *out)
{
	struct vm_clock_state s;

	if (i >= c->n_vcpus)
		return false;
	s = vm_clock_vcpu_state(&c->vcpus[i]);
	*out = (struct vm_clock_vcpu){c->vcpus[i].id, s.known, s.tsc};
	return true;
}

bool vm_clock_line_get(const struct vm_clock *c, size_t i, struct vm_clock_line *out)
{
	if (i >= c->n_lines)
		return false;
	*out = c->lines[i];
	return true;
}
