// SPDX-License-Identifier: GPL-2.0-only
#include "host-collector/view/pair_text.h"

#include <inttypes.h>
#include <stdio.h>

const char *pair_over_text(const struct pair_definition *d, const struct pair *pair, char *out,
			   size_t out_bytes)
{
	char key[48], vcpu[24] = "", error[32] = "unknown";

	if (pair->to.vcpu_known)
		snprintf(vcpu, sizeof(vcpu), ", vCPU %" PRIu32, pair->to.vcpu);
	if (pair->error_ns != UINT64_MAX)
		snprintf(error, sizeof(error), "%.3f ms", (double)pair->error_ns / 1e6);
	snprintf(out, out_bytes, "the pair %s took %.3f ms (error %s), key %s%s", d->name,
		 (double)pair->duration_ns / 1e6, error,
		 pair_key_text(&pair->key, key, sizeof(key)), vcpu);
	return out;
}

const char *pair_uncounted_text(const struct pair_definition *d, const struct pair_unknown *why,
				char *out, size_t out_bytes)
{
	if (why->out_of_memory)
		snprintf(out, out_bytes, "pair %s is not counted: out of memory", d->name);
	else
		snprintf(out, out_bytes, "pair %s is not counted: %s: %s", d->name, why->part,
			 why->error.text);
	return out;
}
