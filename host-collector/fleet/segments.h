/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Names and lists the files of the outbox: segments of JSON lines, and recordings that are
 * evidence.
 *
 *   incidents-HOST_ID-BOOT_ID-SEQ.jsonl
 *   figures-HOST_ID-BOOT_ID-SEQ.jsonl
 *   evidence-HOST_ID-INCIDENT_ID-SEQ.vcs
 *
 * SEQ has 16 hexadecimal digits. It grows from file to file, whatever their kind.
 */
#ifndef FLEET_SEGMENTS_H
#define FLEET_SEGMENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SEGMENT_ID_BYTES = 33, SEGMENT_NAME_MAX = 112 }; /* with the final NUL */

enum segment_kind { SEGMENT_INCIDENTS, SEGMENT_FIGURES, SEGMENT_EVIDENCE, SEGMENT_KINDS };

/* Folders in the outbox: acknowledgements of the shipper, and segments that were delivered. */
#define OUTBOX_DONE "done"
#define OUTBOX_SENT "sent"
/* Ends of the names of a file that is being written, and of one that is being given up. */
#define SEGMENT_PART ".part"
#define SEGMENT_LOST ".lost"

struct segment {
	enum segment_kind kind;
	uint64_t seq;
	uint64_t bytes;
	int64_t modified_s; /* CLOCK_REALTIME */
	char name[SEGMENT_NAME_MAX];
};

/* Parses a name, which may end with `more` (SEGMENT_PART, SEGMENT_LOST, ""). Fills kind, seq and
 * name (without `more`). Returns false if the name has another form. */
bool segment_parse(const char *name, const char *more, struct segment *out);
/* Writes a name. first, second: the two ids, of 32 hexadecimal digits. */
void segment_name(enum segment_kind kind, const char *first, const char *second, uint64_t seq,
		  char out[SEGMENT_NAME_MAX]);
/* Lists the regular files of a folder that have such names, in the order of SEQ. The caller frees
 * *out with free(). Returns their number, or -errno. */
long segments_list(const char *folder, const char *more, struct segment **out);

#endif
