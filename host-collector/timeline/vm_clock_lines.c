/* SPDX-License-Identifier: GPL-2.0-only */
/* The kvmclock lines of a VM's vCPUs, and the pauses that they show. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "host-collector/timeline/vm_clock_internal.h"

/* How far the vCPUs' kvmclocks are apart at `host`. UINT64_MAX: a line or a TSC is unknown. */
static uint64_t lines_apart_ns(const struct vm_clock *c, struct host_tsc host)
{
	uint64_t first = 0, least = 0, most = 0;

	for (size_t i = 0; i < c->n_vcpus; i++) {
		const struct vm_clock_state s = vm_clock_vcpu_state(&c->vcpus[i]);
		uint64_t ns;

		if (!c->vcpus[i].line_known || !s.known)
			return UINT64_MAX;
		ns = pvclock_from_tsc(&c->vcpus[i].line, tsc_scaling_to_guest(&s.tsc, host)).ns;
		if (!i)
			first = least = most = ns;
		least = (int64_t)(ns - first) < (int64_t)(least - first) ? ns : least;
		most = (int64_t)(ns - first) > (int64_t)(most - first) ? ns : most;
	}
	/* Each reading is rounded down. */
	return c->n_vcpus ? most - least + 2 : UINT64_MAX;
}

void vm_clock_lines_settle(struct vm_clock *c)
{
	struct vm_clock_line *newest = c->n_lines ? &c->lines[c->n_lines - 1] : NULL;

	if (newest && newest->apart_ns == UINT64_MAX)
		newest->apart_ns = lines_apart_ns(c, (struct host_tsc){newest->from_max});
}

/* From this line on the line of every vCPU is known. NULL: never. */
static const struct vm_clock_line *complete_first(const struct vm_clock *c)
{
	const struct vm_clock_line *first = NULL;

	for (size_t i = 0; i < c->n_lines; i++) {
		if (c->lines[i].apart_ns != UINT64_MAX &&
		    (!first || c->lines[i].from_max < first->from_max))
			first = &c->lines[i];
	}
	return first;
}

bool vm_clock_lines_apart(const struct vm_clock *c, struct host_tsc from, struct host_tsc to,
			  uint64_t *ticks)
{
	const struct vm_clock_line *first = complete_first(c), *in_force = first;
	uint64_t apart_ns;
	double tick_ns;

	if (!first)
		return false;
	for (size_t i = 0; i < c->n_lines; i++) {
		const struct vm_clock_line *line = &c->lines[i];

		if (line >= first && line->from_max <= from.ticks &&
		    line->from_max >= in_force->from_max)
			in_force = line;
	}
	apart_ns = in_force->apart_ns;
	for (size_t i = 0; i < c->n_lines; i++) {
		const struct vm_clock_line *line = &c->lines[i];

		if (line->from_max > from.ticks && line->from_min <= to.ticks && line >= first &&
		    line->apart_ns > apart_ns)
			apart_ns = line->apart_ns;
	}
	if (apart_ns == UINT64_MAX)
		return false;
	tick_ns = ldexp(in_force->pvclock.mul, in_force->pvclock.shift - 32);
	*ticks = (uint64_t)fmin(ceil((double)apart_ns / tick_ns), 0x1p60);
	return true;
}

void vm_clock_line_learn(struct vm_clock *c, const struct message_vm_clock *m)
{
	const struct pvclock p = {
		.tsc_timestamp = m->pvclock.tsc_timestamp,
		.system_time = m->pvclock.system_time,
		.mul = m->pvclock.mul,
		.shift = m->pvclock.shift,
		.flags = m->pvclock.flags,
	};
	struct vm_clock_known_vcpu *v = vm_clock_vcpu_find(c, m->vcpu);
	struct vm_clock_line *line;

	if (v) {
		v->line_known = true;
		v->line = p;
	}
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
		.apart_ns = lines_apart_ns(c, (struct host_tsc){m->from_max}),
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
