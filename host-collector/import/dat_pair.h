/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Decides whether the trace.dat of a guest was recorded together with that of its host
 * (`trace-cmd record -A`), and how exact the sync in the guest's file is.
 */
#ifndef IMPORT_DAT_PAIR_H
#define IMPORT_DAT_PAIR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "host-collector/import/dat_options.h"

/* What the user has stated with other options. */
struct dat_pair_options {
	bool vcpus_stated; /* the guest's vCPU threads */
	uint64_t tick_hz;  /* ticks per second of the host's clock; 0: unknown */
};

struct dat_pair {
	bool synced;   /* the guest's times in the file are times of the host's clock */
	bool measured; /* synced by round trips; else from KVM's TSC offset */
	/* synced, but the host's input has no trace id, so it may be of another recording */
	bool unchecked;
	uint64_t err_ns;               /* bound of the error, ns, if synced */
	const struct dat_guest *guest; /* the guest in the host's list; NULL: not there */
};

/*
 * Compares the files' options. host: NULL if the host's input is no trace.dat. *out.guest points
 * into `host`. Returns 0, or -EINVAL with one line in `why` if the files contradict each other or
 * the sync cannot be used.
 */
int dat_pair_find(struct dat_pair *out, const struct dat_options *host,
		  const struct dat_options *guest, const struct dat_pair_options *options,
		  char *why, size_t why_bytes);

#endif
