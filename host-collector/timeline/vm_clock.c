/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/timeline/vm_clock.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
	EPOCHS_MAX = 64, /* the oldest give way: a guest can cause new ones */
	LINES_MAX = 1024,
	PAGES_MAX = 64,
	SOURCES = VM_CLOCK_SOURCE_LAST + 1,
};

/* What one source last said of a vCPU's TSC. */
struct said {
	bool known, scaling_known;
	struct tsc_scaling tsc;
	uint64_t from_min, from_max;
};

struct vcpu {
	uint32_t id;
	struct said said[SOURCES];
};

struct state {
	bool known;
	struct tsc_scaling tsc;
	uint64_t from_min, from_max;
};

struct vm_clock {
	struct vcpu *vcpus;
	size_t n_vcpus, n_epochs, n_lines, n_pages;
	struct vm_clock_epoch epochs[EPOCHS_MAX];
	struct vm_clock_line lines[LINES_MAX];
	struct pvclock pages[PAGES_MAX];
};

struct vm_clock *vm_clock_new(void)
{
	return calloc(1, sizeof(struct vm_clock));
}

void vm_clock_free(struct vm_clock *c)
{
	if (!c)
		return;
	free(c->vcpus);
	free(c);
}

static struct vcpu *vcpu_get(struct vm_clock *c, uint32_t id)
{
	struct vcpu *grown;

	for (size_t i = 0; i < c->n_vcpus; i++) {
		if (c->vcpus[i].id == id)
			return &c->vcpus[i];
	}
	if (c->n_vcpus == VS_CPUS_MAX)
		return NULL;
	grown = realloc(c->vcpus, (c->n_vcpus + 1) * sizeof(*grown));
	if (!grown)
		return NULL;
	c->vcpus = grown;
	grown[c->n_vcpus] = (struct vcpu){.id = id};
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
static struct state vcpu_state(const struct vcpu *v)
{
	struct state s = {.from_max = UINT64_MAX};
	uint64_t latest = 0;
	bool scaling_known = false, seen = false, any = false;

	for (int i = 0; i < SOURCES; i++) {
		const struct said *said = &v->said[i];

		if (!said->known)
			continue;
		if ((any && said->tsc.offset != s.tsc.offset) ||
		    (scaling_known && said->scaling_known && !same_scale(&said->tsc, &s.tsc)))
			return (struct state){0};
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

/* One line for the whole guest: since the last vCPU has had it. */
static struct state vm_state(const struct vm_clock *c)
{
	struct state vm = {0};

	for (size_t i = 0; i < c->n_vcpus; i++) {
		struct state s = vcpu_state(&c->vcpus[i]);

		if (!s.known || (i && !same_tsc(&s.tsc, &vm.tsc)))
			return (struct state){0};
		vm.known = true;
		vm.tsc = s.tsc;
		vm.from_min = s.from_min > vm.from_min ? s.from_min : vm.from_min;
		vm.from_max = s.from_max > vm.from_max ? s.from_max : vm.from_max;
	}
	return vm;
}

static void epoch_begin(struct vm_clock *c, const struct state *s)
{
	struct vm_clock_epoch *last = c->n_epochs ? &c->epochs[c->n_epochs - 1] : NULL;

	if (!last && !s->known)
		return;
	if (last && last->known == s->known && (!s->known || same_tsc(&last->tsc, &s->tsc)))
		return;
	/* The disagreement was but the time that the news took from source to source. */
	if (last && !last->known && s->from_min <= last->from_max) {
		c->n_epochs--;
		epoch_begin(c, s);
		return;
	}
	if (last && last->contradicted && s->from_min <= last->contradicted_at)
		last->contradicted = 0;
	if (c->n_epochs == EPOCHS_MAX) {
		c->n_epochs--;
		memmove(c->epochs, c->epochs + 1, c->n_epochs * sizeof(*c->epochs));
	}
	c->epochs[c->n_epochs++] = (struct vm_clock_epoch){
		.from_min = s->from_min,
		.from_max = s->from_max,
		.known = s->known,
		.tsc = s->tsc,
	};
}

static int tsc_learn(struct vm_clock *c, const struct message_vm_clock *m)
{
	struct vcpu *v = vcpu_get(c, m->vcpu);
	struct state s;

	if (!v)
		return c->n_vcpus == VS_CPUS_MAX ? 0 : -ENOMEM;
	v->said[m->source] = (struct said){
		.known = true,
		.scaling_known = m->tsc.scaling_known,
		.tsc = {m->tsc.ratio, m->tsc.frac_bits, m->tsc.offset},
		.from_min = m->from_min,
		.from_max = m->from_max,
	};
	s = vm_state(c);
	if (!s.known) {
		s.from_min = m->from_min;
		s.from_max = m->from_max;
	}
	epoch_begin(c, &s);
	return 0;
}

/* ---- kvmclock ---- */

static void line_learn(struct vm_clock *c, const struct message_vm_clock *m)
{
	const struct pvclock p = {
		.tsc_timestamp = m->pvclock.tsc_timestamp,
		.system_time = m->pvclock.system_time,
		.mul = m->pvclock.mul,
		.shift = m->pvclock.shift,
		.flags = m->pvclock.flags,
	};
	struct vm_clock_line *line;

	for (size_t i = c->n_lines; i-- > 0;) {
		line = &c->lines[i];
		if (line->vcpu != m->vcpu || !pvclock_same_line(&line->pvclock, &p))
			continue;
		line->sources |= 1u << m->source;
		if (m->from_min > line->from_min && m->from_min <= line->from_max)
			line->from_min = m->from_min;
		if (m->from_max < line->from_max && m->from_max >= line->from_min)
			line->from_max = m->from_max;
		return;
	}
	if (c->n_lines == LINES_MAX) {
		c->n_lines--;
		memmove(c->lines, c->lines + 1, c->n_lines * sizeof(*c->lines));
	}
	line = &c->lines[c->n_lines++];
	*line = (struct vm_clock_line){
		.vcpu = m->vcpu,
		.from_min = m->from_min,
		.from_max = m->from_max,
		.pvclock = p,
		.sources = 1u << m->source,
	};
	for (size_t i = 0; i < c->n_pages; i++)
		line->guest_agrees |= pvclock_same_line(&c->pages[i], &p);
}

void vm_clock_guest_page(struct vm_clock *c, const struct pvclock *page)
{
	for (size_t i = 0; i < c->n_pages; i++) {
		if (pvclock_same_line(&c->pages[i], page))
			return;
	}
	if (c->n_pages == PAGES_MAX) {
		c->n_pages--;
		memmove(c->pages, c->pages + 1, c->n_pages * sizeof(*c->pages));
	}
	c->pages[c->n_pages++] = *page;
	for (size_t i = 0; i < c->n_lines; i++)
		c->lines[i].guest_agrees |= pvclock_same_line(&c->lines[i].pvclock, page);
}

bool vm_clock_kvmclock(const struct vm_clock *c, uint32_t vcpu, struct host_tsc host,
		       struct guest_tsc guest, struct kvmclock_ns *out)
{
	const struct vm_clock_line *in_force = NULL, *first = NULL;

	for (size_t i = 0; i < c->n_lines; i++) {
		const struct vm_clock_line *line = &c->lines[i];

		if (line->vcpu != vcpu)
			continue;
		if (!first || line->from_max < first->from_max)
			first = line;
		if (line->from_max <= host.ticks &&
		    (!in_force || line->from_max >= in_force->from_max))
			in_force = line;
	}
	for (size_t i = 0; i < c->n_lines && in_force; i++) {
		const struct vm_clock_line *line = &c->lines[i];

		if (line->vcpu == vcpu && line->from_min <= host.ticks &&
		    host.ticks < line->from_max)
			return false;
	}
	if (!in_force)
		in_force = first;
	if (!in_force)
		return false;
	*out = pvclock_from_tsc(&in_force->pvclock, guest);
	return true;
}

static int by_time(const void *a, const void *b)
{
	const struct vm_clock_line *x = a, *y = b;

	return (x->from_max > y->from_max) - (x->from_max < y->from_max);
}

/* The lines of the first vCPU, in order of when they came into force. NULL on ENOMEM. */
static struct vm_clock_line *lines_sorted(const struct vm_clock *c, size_t *n)
{
	struct vm_clock_line *lines = malloc(LINES_MAX * sizeof(*lines));
	uint32_t vcpu = UINT32_MAX;

	*n = 0;
	for (size_t i = 0; i < c->n_lines; i++)
		vcpu = c->lines[i].vcpu < vcpu ? c->lines[i].vcpu : vcpu;
	for (size_t i = 0; lines && i < c->n_lines; i++) {
		if (c->lines[i].vcpu == vcpu)
			lines[(*n)++] = c->lines[i];
	}
	if (lines)
		qsort(lines, *n, sizeof(*lines), by_time);
	return lines;
}

static bool pause_between(const struct vm_clock_line *before, const struct vm_clock_line *after,
			  struct vm_clock_pause *out)
{
	static const uint64_t least_ns = 1000000;
	const struct guest_tsc resumed = {after->pvclock.tsc_timestamp};
	const struct kvmclock_ns value = {after->pvclock.system_time};
	struct guest_tsc stopped;
	uint64_t span;

	/* A TSC that went back is another boot's. */
	if (resumed.ticks <= before->pvclock.tsc_timestamp ||
	    value.ns < before->pvclock.system_time ||
	    pvclock_from_tsc(&before->pvclock, resumed).ns < value.ns + least_ns ||
	    !pvclock_to_tsc(&before->pvclock, value, &stopped, &span) ||
	    stopped.ticks >= resumed.ticks)
		return false;
	*out = (struct vm_clock_pause){stopped.ticks, resumed.ticks, {after->from_max}};
	return true;
}

size_t vm_clock_pauses(const struct vm_clock *c, struct vm_clock_pause out[VM_CLOCK_PAUSES_MAX])
{
	size_t n_lines, n = 0;
	struct vm_clock_line *lines = lines_sorted(c, &n_lines);

	for (size_t i = 1; lines && i < n_lines; i++) {
		struct vm_clock_pause pause;

		if (!pause_between(&lines[i - 1], &lines[i], &pause))
			continue;
		if (n == VM_CLOCK_PAUSES_MAX)
			memmove(out, out + 1, --n * sizeof(*out));
		out[n++] = pause;
	}
	free(lines);
	return n;
}

int vm_clock_learn(struct vm_clock *c, const struct message_vm_clock *m)
{
	if (m->pvclock.known)
		line_learn(c, m);
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

/* Where epoch `i` puts a guest TSC. False if that is not in the epoch, or not in the window. */
static bool epoch_to_host(const struct vm_clock *c, size_t i, const struct vm_clock_window *window,
			  struct guest_tsc guest, struct host_tsc *at, uint64_t *span)
{
	const struct vm_clock_epoch *e = &c->epochs[i];
	uint64_t from = epoch_begin_min(c, i), to = epoch_end_max(c, i);

	from = window->from > from ? window->from : from;
	to = window->to < to ? window->to : to;
	return e->known && tsc_scaling_to_host(&e->tsc, guest, at, span) &&
	       at->ticks + *span >= from && at->ticks <= to;
}

enum vm_clock_trust vm_clock_to_host(const struct vm_clock *c, const struct vm_clock_window *window,
				     struct guest_tsc guest, struct host_tsc *first, uint64_t *span)
{
	enum vm_clock_trust trust = VM_CLOCK_SILENT;
	struct host_tsc found_at;
	uint64_t found_span;
	bool found = false;

	for (size_t i = c->n_epochs; i-- > 0;) {
		const struct vm_clock_epoch *e = &c->epochs[i];
		struct host_tsc at;
		uint64_t more;

		if (!epoch_to_host(c, i, window, guest, &at, &more))
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

bool vm_clock_contested(const struct vm_clock *c, struct host_tsc host)
{
	for (size_t i = 0; i < c->n_epochs; i++) {
		if (c->epochs[i].contradicted && epoch_begin_min(c, i) <= host.ticks &&
		    host.ticks <= epoch_end_max(c, i))
			return true;
	}
	return false;
}

bool vm_clock_to_guest(const struct vm_clock *c, struct host_tsc host, struct guest_tsc *guest)
{
	for (size_t i = c->n_epochs; i-- > 0;) {
		const struct vm_clock_epoch *e = &c->epochs[i];

		if (host.ticks < epoch_begin_min(c, i))
			continue;
		if (epoch_trust(e) == VM_CLOCK_SILENT || (i && host.ticks < e->from_max) ||
		    host.ticks > epoch_end_min(c, i))
			return false;
		*guest = tsc_scaling_to_guest(&e->tsc, host);
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
	*out = (struct vm_clock_summary){
		.epochs = c->n_epochs,
		.lines = c->n_lines,
		.vcpus = c->n_vcpus,
		.proven =
			c->n_epochs && epoch_trust(&c->epochs[c->n_epochs - 1]) == VM_CLOCK_PROVEN,
		.pages = c->n_pages,
	};
	for (size_t i = 0; i < c->n_epochs; i++) {
		out->agreed += c->epochs[i].agreed;
		out->contradicted += c->epochs[i].contradicted;
		out->contested |= c->epochs[i].contradicted > 0;
	}
	for (size_t i = 0; i < c->n_vcpus; i++)
		out->vcpus_unsettled += !vcpu_state(&c->vcpus[i]).known;
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
	struct state s;

	if (i >= c->n_vcpus)
		return false;
	s = vcpu_state(&c->vcpus[i]);
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
