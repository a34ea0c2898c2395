/* SPDX-License-Identifier: GPL-2.0-only */
/* Gets the data for `top` from the daemon, as rows. */
#ifndef CLI_TOP_DAEMON_H
#define CLI_TOP_DAEMON_H

#include "host-collector/tables/activity.h"
#include "host-collector/view/top_screen.h"

struct top_vm {
	char name[128];
	uint64_t open;   /* stalls in progress */
	char absent[96]; /* the state of a VM that does not run, and the reason; "": it runs */
	struct top_stall last; /* the last stall; all 0: none, or the daemon is older */
};

struct top_answer {
	double seconds; /* time that the rows cover, the longest of all VMs */
	size_t n_rows, n_vms;
	struct activity_row *rows; /* row.vm is an index into vms */
	struct top_vm *vms;
};

/* Asks the daemon at `control`. The caller provides out->rows and out->vms with max_rows and
 * max_vms members; further rows and VMs are omitted. Returns 0, or -errno with one line in
 * `why`. */
int top_daemon_ask(const char *control, struct top_answer *out, size_t max_rows, size_t max_vms,
		   char *why, size_t why_bytes);

#endif
