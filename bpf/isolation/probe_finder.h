/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Finds functions and USDT probes in a program or library. Because any user may own the file, each
 * call starts a process without rights (confine.h) that reads it.
 */
#ifndef ISOLATION_PROBE_FINDER_H
#define ISOLATION_PROBE_FINDER_H

#include <stddef.h>
#include <stdint.h>

enum { PROBE_PLACES_MAX = 16, PROBE_ARGUMENTS_BYTES = 128 };

struct probe_place {
	uint64_t offset;  /* in the file */
	uint64_t counter; /* USDT probe: offset of its counter in the file; 0: no counter */
	char arguments[PROBE_ARGUMENTS_BYTES]; /* USDT probe: its arguments, as "-4@%edi
						  8@-8(%rbp)"; else "" */
};

struct probe_places {
	size_t n;
	struct probe_place places[PROBE_PLACES_MAX];
	char near[64]; /* if nothing was found: a similar name, or "" */
};

/* Finds the function `name`, or with a provider the USDT probe, which may be in several places.
 * Returns 0; -ENOENT: the file does not have it (see out->near); -ENOEXEC: it is no ELF file of
 * x86-64; -E2BIG: more than PROBE_PLACES_MAX places; -EACCES and other -errno of opening it; -EIO:
 * the process that reads it died; -ETIMEDOUT: it did not answer within 5 s. */
int probe_find(const char *path, const char *provider, const char *name, struct probe_places *out);

#endif
