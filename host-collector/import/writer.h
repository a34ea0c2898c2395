/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What was gathered, as a recording like any other: hello, VMs, batches and heartbeats in the order
 * of time. Its unit of time is the nanosecond of the imported clock: a host TSC of 1 GHz that is
 * CLOCK_MONOTONIC_RAW. A guest's times are the host's already, and say so (STREAM_CLOCK_HOST_TSC).
 */
#ifndef IMPORT_WRITER_H
#define IMPORT_WRITER_H

#include <stdint.h>

#include "host-collector/import/gather.h"
#include "host-collector/import/vcpus.h"

struct import_plan {
	const char *path;
	const char *origin; /* for the note: from what */
	const struct gather *host;
	const struct gather *guest; /* of the first VM; NULL: none */
	uint64_t guest_err_ns;      /* bound on how wrong its times are, beside its stamps' unit */
	const struct vcpus *vcpus;
};

/* Both were finished. 0 or -errno of the file; what was written so far stays. */
int import_write(const struct import_plan *plan);

#endif
