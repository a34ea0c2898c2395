/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a view shows of a recording: the rows of one VM, vCPU or task, and a window of time. A
 * filter by VM, vCPU or task selects rows and never changes the value of a row. The window cuts:
 * spans are counted as far as they lie inside it (model/window.h).
 */
#ifndef MODEL_NARROW_H
#define MODEL_NARROW_H

#include "host-collector/model/model.h"

struct narrow {
	const char *vm;   /* name or number; NULL: all. Borrowed. */
	int64_t vcpu;     /* index; -1: all */
	const char *task; /* name or pid of a task of guest or host; NULL: all. Borrowed. */
	int32_t pid;      /* of a task; 0: all */
	bool cut;         /* only the time from `from` to `until` */
	struct host_ns from, until;
};

/* Shows everything. */
#define NARROW_NOTHING ((struct narrow){.vcpu = -1})

/* Returns whether rows are selected by VM, vCPU or task. A NULL pointer shows everything, here and
 * below. */
bool narrow_rows(const struct narrow *n);
bool narrow_has_vm(const struct narrow *n, const struct model *m, uint32_t vm);
/* The VM and the vCPU, or the guest CPU that this vCPU runs. */
bool narrow_has_vcpu(const struct narrow *n, const struct model *m, uint32_t vm, uint32_t vcpu);
bool narrow_has_guest_cpu(const struct narrow *n, const struct model *m, uint32_t vm, uint16_t cpu);
/* Returns whether the task is selected by its name and pid. */
bool narrow_has_task(const struct narrow *n, const char *comm, int32_t pid);
/* Cuts a span to the window. Returns false if nothing of it is left; an empty span is kept if it
 * lies inside. */
bool narrow_clip(const struct narrow *n, struct host_ns *begin, struct host_ns *end);
bool narrow_has_time(const struct narrow *n, struct host_ns t);
/* Returns the length of the part of [begin, end) that lies in the window. */
int64_t narrow_ns(const struct narrow *n, struct host_ns begin, struct host_ns end);
/* Returns begin and end of the time that is shown: the window, or all time of the model. */
struct host_ns narrow_begin(const struct narrow *n, const struct model *m);
struct host_ns narrow_end(const struct narrow *n, const struct model *m);
/* Writes the selected rows as text for people, "VM web1, vCPU 0, task fio"; "" if all. The text is
 * not escaped. */
void narrow_describe(const struct narrow *n, char *out, size_t out_bytes);
/* Checks, after model_finish(), that the VM and the vCPU exist. Returns 0, or -ENOENT with one line
 * in `why` that names those that do. */
int narrow_check(const struct narrow *n, const struct model *m, char *why, size_t why_bytes);

#endif
