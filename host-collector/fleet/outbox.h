/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The outbox: lines wait here in segments (segments.h) until a shipper has delivered them.
 *
 * A segment is written under a name with ".part", and gets its final name when it is on the disk.
 * From then on it never changes. A new outbox completes the segments that an earlier process left
 * under such a name, so a killed process loses no line. The shipper acknowledges a segment with a
 * file of the same name in the folder "done"; the segment then moves to "sent", where it is kept
 * for some time for `vcpuscope incidents`.
 *
 * All files together stay within a budget, also those that the disk refuses to complete. Files are
 * removed in this order: sent segments, figures, evidence, incidents. Of each, the oldest is
 * removed first; but of figures and incidents, the files that the disk refuses are removed before
 * the others. The lines of a removed file that was not sent count as lost, as does a line that
 * cannot be written. The counts are in the file "account", whose blocks exist from the start, so
 * they can be written even if the disk is full. A line of the next segment reports them.
 *
 * Not thread-safe. A thread of its own waits for the disk.
 */
#ifndef FLEET_OUTBOX_H
#define FLEET_OUTBOX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "host-collector/fleet/segments.h"

struct outbox;

enum { OUTBOX_LINE_MAX = 64 * 1024, OUTBOX_PATH_MAX = 512 };

/* Lines and recordings that are lost. */
struct outbox_loss {
	uint64_t n[SEGMENT_KINDS]; /* by kind: lines of incidents, lines of figures, recordings */
	bool full;                 /* the disk was full or refused them; otherwise: removed for the
				      budget */
	uint64_t number;           /* number of this report of losses; unique on this host */
};

struct outbox_options {
	const char *folder;            /* the outbox; created, also its parent; copied */
	const char *host_id, *boot_id; /* 32 hexadecimal digits each; copied */
	uint64_t budget_bytes;
	uint64_t keep_s; /* time for which a sent segment is kept, seconds */
	bool shipped;    /* a shipper is expected: what it did not get counts as lost */
	gid_t group; /* group of the shipper; (gid_t)-1: the group of the files stays as it is */
	/* Writes the line that reports a loss, without '\n'. Returns its length; 0: no memory. */
	size_t (*loss_line)(void *context, const struct outbox_loss *loss, char *out, size_t bytes);
	void (*say)(void *context, const char *line);
	void *context;
};

/* Opens the outbox and completes what an earlier process left. If that fails, it says so in one
 * line, and outbox_tick() tries again after 1 s, later after 60 s at most. Until then lines are
 * counted as lost, in memory only. Returns NULL if there is no memory. */
struct outbox *outbox_open(const struct outbox_options *options);
/* Completes all segments and waits for the disk. NULL is allowed. */
void outbox_close(struct outbox *o);
/* Changes what a reload of the configuration may change. */
void outbox_configure(struct outbox *o, uint64_t budget_bytes, bool shipped);

/* Adds a line of at most OUTBOX_LINE_MAX bytes (without '\n') of this kind. It is then in a file,
 * and survives the end of the process. Returns 0 or -errno; a line that cannot be written is
 * counted as lost. */
int outbox_add(struct outbox *o, enum segment_kind kind, const char *line, size_t len);
/* Adds a recording as evidence of an incident: links the file, which must be on the same file
 * system and stays where it is. Call it before the line that names the recording. Returns 0 or
 * -errno. */
int outbox_evidence(struct outbox *o, const char *path, const char *incident_id);
/* Completes old segments, takes acknowledgements, keeps the budget, reports losses. Call it every
 * 100 ms; now_ms: a monotonic time. */
void outbox_tick(struct outbox *o, uint64_t now_ms);

struct outbox_stats {
	uint64_t written[SEGMENT_KINDS]; /* since the outbox was created; see struct outbox_loss */
	uint64_t lost[SEGMENT_KINDS];
	uint64_t delivered; /* segments and recordings that were acknowledged */
	uint64_t waiting;   /* the same, not yet acknowledged; as of the last look */
	uint64_t bytes;     /* of all files; as of the last look, and of the lines since */
	uint64_t refused;   /* segments that the disk refuses to complete; tried again */
	int refused_error;  /* why it refused the last of them, -errno; 0: it refused none */
	int error;          /* of the last write, or of segments that the disk refuses to complete,
			       -errno; 0: none */
};
void outbox_stats_get(const struct outbox *o, struct outbox_stats *out);

#endif
