/* SPDX-License-Identifier: GPL-2.0-only */
/* Replaces metrics_server.c in a build without libmicrohttpd: refuses an address for metrics. */
#include "host-collector/daemon/metrics_server.h"

#include <errno.h>

int metrics_server_open(uv_loop_t *loop, const char *address, metrics_page_maker make,
			void *context, struct metrics_server **out, char *why, size_t why_bytes)
{
	(void)loop;
	(void)make;
	(void)context;
	*out = NULL;
	snprintf(
		why, why_bytes,
		"metrics = %s: this build has no libmicrohttpd and serves no metrics; remove the key",
		address);
	return -ENOTSUP;
}

void metrics_server_close(struct metrics_server *s)
{
	(void)s;
}

void metrics_server_tick(struct metrics_server *s)
{
	(void)s;
}
