/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Finds incidents while they happen. Takes frames and calls back with incidents and status lines.
 * Does no I/O and reads no clock.
 *
 * Two models run. The merged model waits for the guest's events. When a stall is over, this model
 * gives the same verdict as `report`. The early model gets the host's events without waiting, so
 * stalls that are still in progress are reported even if the guest is silent. The silence is
 * reported too.
 *
 * The guest side ends when its channel closes, or when its agent has sent nothing for 30 s. 3 s are
 * enough if all vCPUs of the guest were idle on the host during this time. From then on the merged
 * model uses the host side alone, as for a VM without an agent, until the agent sends again.
 */
#ifndef ENGINE_LIVE_H
#define ENGINE_LIVE_H

#include "host-collector/analyze/stall/report.h"
#include "host-collector/engine/pipeline.h"

/* Number of stalls in progress that are reported at once, over all VMs. */
enum { LIVE_ONGOING_MAX = 64 };

struct live;

struct live_options {
	int64_t than_ns;
	/* Optional. Adds observers to the merged model that have seen every span of an incident
	 * when it is reported. Returns 0 or -ENOMEM. */
	int (*opened)(void *context, struct model *merged);
	/* Optional. Adds evidence to a finished incident before it is reported. */
	void (*evidence)(void *context, struct incident *incident);
	/* Reports a finished incident, which is the only one in `report`. Borrowed. */
	void (*incident)(void *context, const struct report *report);
	/* Reports a stall in progress: once it has lasted than_ns, and each time its length has
	 * doubled since. Uses the same rules as the final verdict, with the data known so far. */
	void (*ongoing)(void *context, const struct incident *incident, const char *vm_name);
	/* Reports that an agent became silent or is back. `line` is not escaped. */
	void (*line)(void *context, const char *line);
	void *context;
};

/* Returns NULL on ENOMEM. */
struct live *live_new(const struct live_options *options);
void live_free(struct live *l);
/* Returns the merged model. Observers must be added before the first frame. */
struct model *live_model(struct live *l);
/* Returns the interrupt chains of the merged model. Others can share its joined events
 * (chains_share). Borrowed. */
struct chains *live_chains(const struct live *l);
/* Borrowed. */
const struct pipeline *live_pipeline(const struct live *l);
/* The following three functions return 0 or -ENOMEM. */
int live_frame(struct live *l, uint32_t source, uint64_t arrival_tsc,
	       const struct frame_item *frame);
/* Advances the time to host TSC `now_tsc`. Call it about every 100 ms. */
int live_tick(struct live *l, uint64_t now_tsc);
/* Ends the session. Open stalls become incidents that are marked as ongoing. */
int live_finish(struct live *l);

/* After live_finish(): returns a report without incidents, because the callback has received them.
 * NULL on ENOMEM. Borrowed. */
const struct report *live_report(const struct live *l);

/* Converts an arrival time to the timeline's time. Returns false if the host's clock is not known
 * yet. */
bool live_host_ns(const struct live *l, uint64_t tsc, struct host_ns *out);
/* Returns the number of this VM's stalls that were reported and are in progress. */
size_t live_ongoing(const struct live *l, uint32_t vm);
/* Describes the VM's source. Returns false if nothing arrived from it. */
bool live_source(const struct live *l, uint32_t source, struct pipeline_source *out);

struct live_summary {
	uint64_t incidents;
	uint64_t events; /* events that were merged */
	uint64_t lost;   /* events of all sources that did not arrive */
	uint64_t late;   /* events that arrived after the merge had passed their time */
};
/* Returns the totals since live_new(). */
void live_summarise(const struct live *l, struct live_summary *out);

#endif
