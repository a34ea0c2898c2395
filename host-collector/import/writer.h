/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Writes the imported events as a recording: hello, VMs, batches and heartbeats in the order of
 * time. Its unit of time is the nanosecond of the imported clock: a host TSC of 1 GHz that equals
 * CLOCK_MONOTONIC_RAW. A guest's times are host times, and are marked so (STREAM_CLOCK_HOST_TSC).
 */
#ifndef IMPORT_WRITER_H
#define IMPORT_WRITER_H

#include <stdint.h>

#include "host-collector/import/gather.h"
#include "host-collector/import/vcpus.h"

struct import_plan {
	const char *path;
	const char *origin; /* name of the source, for the note */
	const struct gather *host;
	const struct gather *guest; /* of the first VM; NULL: none */
	uint64_t guest_err_ns;      /* bound of its times, ns, without the unit of its stamps */
	const struct vcpus *vcpus;
};

/* Writes the recording; host and guest have passed gather_finish(). Returns 0 or -errno of the
 * file; what was written so far stays. */
int import_write(const struct import_plan *plan);

#endif
