/* SPDX-License-Identifier: GPL-2.0-only */
/* What `top` shows of the daemon's VMs: its answer to `top`, as rows. */
#ifndef CLI_TOP_DAEMON_H
#define CLI_TOP_DAEMON_H

#include "host-collector/tables/activity.h"

struct top_vm {
	char name[128];
	uint64_t open; /* stalls that go on */
};

struct top_answer {
	double seconds; /* that the rows cover, of the VM that was looked at longest */
	size_t n_rows, n_vms;
	struct activity_row *rows; /* row.vm: index into vms */
	struct top_vm *vms;
};

/* Asks the daemon at `control`. rows and vms: the caller's, of `max_rows` and `max_vms`; what does
 * not fit is left out. 0, or -errno with one line in `why`. */
int top_daemon_ask(const char *control, struct top_answer *out, size_t max_rows, size_t max_vms,
		   char *why, size_t why_bytes);

#endif
