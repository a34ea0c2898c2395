/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Writes a part of a recording as a recording of its own, for `vcpuscope bugreport`. The recording
 * is replayed once, for its times and names; then its frames go through the flight recorder's ring
 * (daemon/flight_ring.h), which keeps those of the part and the older ones that a reader needs.
 */
#ifndef CLI_CUT_H
#define CLI_CUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "host-collector/cli/redact.h"
#include "host-collector/model/narrow.h"

enum { CUT_MOST_MIB = 64 }; /* largest size of the frames; older frames are left out */

struct cut_request {
	const char *recording;
	/* The time to keep; without one (narrow->cut is false) the last 30 s. Borrowed. */
	const struct narrow *narrow;
	struct redactor *redactor; /* changes every frame; NULL: frames stay as they are */
};

struct cut_result {
	bool clipped;      /* the start is missing, because the part would exceed CUT_MOST_MIB */
	uint64_t left_out; /* frames that the redactor cannot read */
};

/* Writes the part to a new file at `path`, with mode 0600. Returns 0, or -errno with one line in
 * `why`; a partial file may remain. */
int cut_write(const struct cut_request *request, const char *path, struct cut_result *result,
	      char *why, size_t why_bytes);

#endif
