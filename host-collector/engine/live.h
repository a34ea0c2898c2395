/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Incidents as they happen: frames in, lines and incidents out; no I/O and no clock of its own.
 *
 * Two models run. The merged one waits for the guest and gives the same verdicts as `report` when
 * a stall is over. The early one sees the host's events at once: from it come the lines on stalls
 * that still go on, so a guest that fell silent hides nothing; that it is silent is said too.
 *
 * A guest's half ends when its channel closes, or when its agent is silent: after 3 s if the host
 * sees the guest idle on all its vCPUs meanwhile, else after 30 s. From then on the merged model
 * goes on with the host's half alone, as for a VM without an agent, until the agent is heard again.
 */
#ifndef ENGINE_LIVE_H
#define ENGINE_LIVE_H

#include "host-collector/analyze/stall/report.h"
#include "host-collector/engine/pipeline.h"

struct live;

struct live_options {
	int64_t than_ns;
	/* A finished incident, alone in its report. Borrowed. */
	void (*incident)(void *context, const struct report *report);
	/* A stall that has lasted for than_ns and goes on: once, and each time that its length has
	 * doubled since. By the same rules as the verdict when it is over, from what is known. */
	void (*ongoing)(void *context, const struct incident *incident, const char *vm_name);
	/* An agent that fell silent or came back. Not escaped. */
	void (*line)(void *context, const char *line);
	void *context;
};

struct live *live_new(const struct live_options *options); /* NULL on ENOMEM */
void live_free(struct live *l);
/* The merged model, for further observers: to be added before the first frame. */
struct model *live_model(struct live *l);
/* Borrowed. */
const struct pipeline *live_pipeline(const struct live *l);
/* All return 0 or -ENOMEM. */
int live_frame(struct live *l, uint32_t source, uint64_t arrival_tsc,
	       const struct frame_view *frame);
/* Time passes: call it every 100 ms or so. */
int live_tick(struct live *l, uint64_t now_tsc);
/* The end: what still goes on becomes incidents marked ongoing. */
int live_finish(struct live *l);

/* After live_finish: a report without its incidents, which have been handed out; NULL on ENOMEM.
 * Borrowed. */
const struct report *live_report(const struct live *l);

/* The timeline's time of an arrival; false: not known yet. */
bool live_host_ns(const struct live *l, uint64_t tsc, struct host_ns *out);
/* How many stalls of this VM have been told and go on. */
size_t live_ongoing(const struct live *l, uint32_t vm);
/* The VM's source, as the pipeline knows it. False if nothing came of it. */
bool live_source(const struct live *l, uint32_t source, struct pipeline_source *out);

struct live_summary {
	uint64_t incidents;
	uint64_t events; /* merged */
	uint64_t lost;   /* events that never arrived, from any source */
	uint64_t late;   /* events that arrived after their time had been merged */
};
/* Since it was opened. */
void live_summarise(const struct live *l, struct live_summary *out);

#endif
