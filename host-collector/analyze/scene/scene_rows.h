/* SPDX-License-Identifier: GPL-2.0-only */
/* Keeps the histories of all rows that a timeline may show. */
#ifndef SCENE_SCENE_ROWS_H
#define SCENE_SCENE_ROWS_H

#include "host-collector/analyze/scene/scene.h"
#include "host-collector/util/lru.h"

enum { SCENE_TRACKS_MAX = 384, SCENE_KNOWN_BITS = 8 };

/* The current task of a pCPU. */
struct pcpu_now {
	bool known;
	int32_t pid;
	struct host_ns since;
};

struct scene_rows {
	struct model *model;
	struct lru index;
	struct track *tracks; /* by slot of `index`; further ones replace the least recently used */
	uint32_t known[1 << SCENE_KNOWN_BITS]; /* slots of `index`, by a hash of the key */
	struct pcpu_now pcpus[VS_CPUS_MAX];
	int error; /* -ENOMEM if something is missing */
};

/* Subscribes to the model, on a worker thread if it can create one. `r` must be all zero.
 * Returns 0 or -ENOMEM; call scene_rows_fini() in both cases. */
int scene_rows_init(struct scene_rows *r, struct model *m);
void scene_rows_fini(struct scene_rows *r);
/* Returns whether the pCPU's tasks were captured. Call this and scene_rows_gather() only after
 * model_worker_await(). */
bool scene_rows_has_pcpu(const struct scene_rows *r, uint32_t pcpu);
/* Adds a row with its spans within the scene's time. If the row is that of a vCPU, sets pcpus[p]
 * for each pCPU that the vCPU used. */
void scene_rows_gather(struct scene_rows *r, struct scene *scene, enum scene_row_kind kind,
		       uint32_t number, bool *pcpus);

#endif
