/* SPDX-License-Identifier: GPL-2.0-only */
#include <stdio.h>
#include <string.h>

#include "host-collector/record/collector_internal.h"

void collector_status_get(const struct collector *c, struct collector_status *out)
{
	struct echo_sync_summary summary = {0};

	memset(out, 0, sizeof(*out));
	if (c->vm) {
		out->vm = vm_info(c->vm);
		out->n_vcpus = vm_n_vcpus(c->vm);
		out->paused = vm_paused(c->vm);
	}
	out->ended = c->ended;
	out->backend = host_stream_backend(c->host);
	host_stream_stats_get(c->host, &out->host);
	out->has_channel = c->has_channel;
	if (c->heard_ms)
		out->agent_silent_ms = uv_now(c->loop) - c->heard_ms;
	out->link = c->last_link;
	if (c->link)
		guest_link_stats_get(c->link, &out->link);
	else if (c->channel.why[0])
		snprintf(out->link.trouble, sizeof(out->link.trouble), "%s", c->channel.why);
	out->guest_emitted = c->guest_emitted;
	out->guest_dropped = c->guest_dropped;
	if (c->echo)
		echo_sync_summarise(c->echo, &summary);
	out->clock_known = summary.observations && summary.err_ticks != UINT64_MAX;
	out->clock_exact =
		out->clock_known && c->clocks && c->guest_tsc && vm_clocks_exact(c->clocks);
	out->clock_contested = c->clocks && c->guest_tsc && vm_clocks_contested(c->clocks);
	if (out->clock_contested)
		out->clock_error_ns = UINT64_MAX;
	else if (out->clock_exact)
		out->clock_error_ns = 1;
	else if (out->clock_known)
		out->clock_error_ns = (uint64_t)((double)summary.err_ticks * 1e9 /
						 (double)host_stream_hello(c->host)->clock_hz);
}
