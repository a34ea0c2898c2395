/* SPDX-License-Identifier: GPL-2.0-only */
/* Tells a report builder what a pipeline knows of its sources: clocks, losses, wall time. */
#ifndef ENGINE_ACCOUNT_H
#define ENGINE_ACCOUNT_H

#include "host-collector/analyze/stall/builder.h"
#include "host-collector/engine/pipeline.h"

/* damaged_bytes: passed over before frames were found. 0 or -ENOMEM. */
int account_give(const struct pipeline *p, const struct model *m, uint64_t damaged_bytes,
		 struct report_builder *b);
/* report_options.dmesg; context: a struct pipeline *const *, so that it may be made later. */
bool account_dmesg(void *context, uint32_t vm, struct host_ns t, struct dmesg_time *out);

#endif
