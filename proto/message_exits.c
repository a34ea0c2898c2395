/* SPDX-License-Identifier: GPL-2.0-only */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "proto/message_wire.h"

/* A cell as the wire has it, with room for its buckets. */
struct packed_cell {
	WIRE(ExitCell) wire;
	uint64_t pairs[2 * VS_EXIT_BUCKETS];
};

static void cell_fill(struct packed_cell *p, const struct message_exit_cell *cell)
{
	p->wire = (WIRE(ExitCell))VCPUSCOPE__WIRE__EXIT_CELL__INIT;
	p->wire.vcpu = cell->vcpu;
	p->wire.isa = cell->isa;
	p->wire.reason = cell->reason;
	p->wire.count = cell->count;
	p->wire.kernel_ns = cell->kernel_ns;
	p->wire.vmm_ns = cell->vmm_ns;
	p->wire.max_ns = cell->max_ns;
	p->wire.bucket = p->pairs;
	for (uint32_t i = 0; i < VS_EXIT_BUCKETS; i++) {
		if (!cell->buckets[i])
			continue;
		p->pairs[p->wire.n_bucket++] = i;
		p->pairs[p->wire.n_bucket++] = cell->buckets[i];
	}
}

int message_exit_summary_pack(const struct message_exit_summary *m, struct byte_buffer *out)
{
	WIRE(ExitSummary) w = VCPUSCOPE__WIRE__EXIT_SUMMARY__INIT;
	struct packed_cell *packed;
	WIRE(ExitCell) * *cells;
	int err = -ENOMEM;

	if (m->n_cells > VS_EXIT_CELLS_MAX)
		return -E2BIG;
	packed = calloc(m->n_cells + 1, sizeof(*packed));
	cells = calloc(m->n_cells + 1, sizeof(WIRE(ExitCell) *));
	if (!packed || !cells)
		goto out;
	for (size_t i = 0; i < m->n_cells; i++) {
		cell_fill(&packed[i], &m->cells[i]);
		cells[i] = &packed[i].wire;
	}
	w.vm = m->vm;
	w.host_tsc = m->host_tsc;
	w.n_cells = m->n_cells;
	w.cells = cells;
	err = wire_pack(&w.base, out);
out:
	free(packed);
	free(cells);
	return err;
}

static int cell_read(const WIRE(ExitCell) * w, struct message_exit_cell *cell)
{
	if (w->isa < 1 || w->isa > 2 || w->vcpu >= VS_THREADS_MAX || w->n_bucket % 2)
		return -EBADMSG;
	cell->vcpu = w->vcpu;
	cell->isa = w->isa;
	cell->reason = w->reason;
	cell->count = w->count;
	cell->kernel_ns = w->kernel_ns;
	cell->vmm_ns = w->vmm_ns;
	cell->max_ns = w->max_ns;
	for (size_t i = 0; i < w->n_bucket; i += 2) {
		if (w->bucket[i] >= VS_EXIT_BUCKETS)
			return -EBADMSG;
		cell->buckets[w->bucket[i]] = w->bucket[i + 1];
	}
	return 0;
}

int message_exit_summary_unpack(const uint8_t *payload, size_t len, struct message_exit_summary *m)
{
	struct arena a;
	WIRE(ExitSummary) * w;
	int err = wire_unpack(&a, &vcpuscope__wire__exit_summary__descriptor, payload, len, &w);

	*m = (struct message_exit_summary){0};
	if (!err && w->n_cells > VS_EXIT_CELLS_MAX)
		err = -E2BIG;
	if (err)
		goto out;
	m->vm = w->vm;
	m->host_tsc = w->host_tsc;
	m->cells = calloc(w->n_cells + 1, sizeof(*m->cells));
	if (!m->cells)
		err = -ENOMEM;
	for (size_t i = 0; i < w->n_cells && !err; i++)
		err = cell_read(w->cells[i], &m->cells[m->n_cells++]);
	if (err) {
		free(m->cells);
		*m = (struct message_exit_summary){0};
	}
out:
	arena_fini(&a);
	return err;
}
