/* SPDX-License-Identifier: GPL-2.0-only */
/* The guest's side of a collector: its channel, and what comes through it. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "clock/echo.h"
#include "host-collector/record/collector_internal.h"
#include "host-collector/record/vm_clocks.h"
#include "host-collector/vm/vm.h"
#include "proto/message.h"

enum {
	CHANNEL_AGAIN_MS = 2000,
	CHANNEL_LATER = 50, /* times what the last try took */
};

static void link_frame(void *context, struct frame_item *frame, uint64_t arrival_tsc)
{
	struct collector *c = context;

	c->heard_ms = c->active_ms = uv_now(c->loop);
	if (c->beside)
		c->beside->active_ms = c->active_ms;
	c->sink.frame(c->sink.context, c->number, arrival_tsc, frame);
}

static void link_observation(void *context, const struct message_echo_observation *observation)
{
	struct collector *c = context;
	struct message_echo_observation mine = *observation;
	struct echo_observation echo = {
		.sent = {mine.host_sent},
		.guest_received = mine.guest_received,
		.guest_sent = mine.guest_sent,
		.received = {mine.host_received},
	};

	mine.vm = c->number;
	host_stream_observation(c->host, &mine);
	if (c->echo)
		echo_sync_add(c->echo, &echo);
	if (c->clocks && c->guest_tsc)
		vm_clocks_observe(c->clocks, &echo);
}

static void link_hello(void *context, const struct message_hello *hello)
{
	struct collector *c = context;
	struct echo_options options = {.host_hz = host_stream_hello(c->host)->clock_hz,
				       .stream_hz = hello->clock_hz,
				       .short_memory = true};

	c->guest_tsc = hello->clock == STREAM_CLOCK_GUEST_TSC;
	echo_sync_free(c->echo);
	c->echo = echo_sync_new(&options);
}

static void link_heartbeat(void *context, const struct message_heartbeat *heartbeat)
{
	struct collector *c = context;
	const struct message_heartbeat *before = &c->guest;

	/* What it counted before we came is not ours; an agent that restarted begins at 0. */
	if (before->emitted && heartbeat->emitted >= before->emitted) {
		c->guest_emitted += heartbeat->emitted - before->emitted;
		c->guest_dropped += heartbeat->dropped_kernel - before->dropped_kernel +
				    heartbeat->dropped_user - before->dropped_user +
				    heartbeat->missed - before->missed;
	}
	c->guest = *heartbeat;
}

int collector_channel_address(struct collector *c)
{
	char *why = c->channel.why;
	const size_t why_bytes = sizeof(c->channel.why);
	int err = link_address_parse(c->channel.address, &c->address, why, why_bytes);

	if (!err)
		err = link_address_secure(&c->address, &c->channel.security, why, why_bytes);
	c->address.vmm_pid = c->vm ? vm_info(c->vm)->qemu_pid : 0;
	c->address.handed = c->channel.handed && c->address.sockaddr.ss_family == AF_VSOCK;
	return err;
}

/* Returns 0, or -errno with the reason in channel.why. */
static int channel_link(struct collector *c)
{
	const struct link_events events = {.frame = link_frame,
					   .observation = link_observation,
					   .hello = link_hello,
					   .heartbeat = link_heartbeat,
					   .note = collector_note,
					   .context = c};
	int err = guest_link_open(c->loop, &c->address, host_stream_hello(c->host),
				  c->channel.has_budget ? &c->channel.budget : NULL, &events,
				  &c->link);

	if (err)
		snprintf(c->channel.why, sizeof(c->channel.why), "channel %.200s: %s",
			 c->address.text, strerror(-err));
	else if (c->channel.has_request)
		guest_link_ask(c->link, &c->channel.request);
	return err;
}

void collector_channel_try(struct collector *c)
{
	const uint64_t begin_ms = uv_hrtime() / 1000000;
	int err = collector_channel_address(c);

	if (!err)
		err = channel_link(c);
	uv_update_time(c->loop);
	c->channel.next_ms = uv_now(c->loop) + CHANNEL_AGAIN_MS +
			     CHANNEL_LATER * (uv_hrtime() / 1000000 - begin_ms);
	if (!err)
		c->channel.why[0] = '\0';
	else if (strcmp(c->channel.why, c->channel.said) != 0)
		collector_note(c, NOTE_CHANNEL_DOWN, c->channel.why);
	memcpy(c->channel.said, c->channel.why, sizeof(c->channel.said));
}

void collector_channel_plan(struct collector *c, const struct collector_options *options)
{
	c->has_channel = true;
	c->channel.address = options->channel;
	c->channel.security = options->security;
	c->channel.handed = options->vsock_handed;
	c->channel.has_budget = options->budget != NULL;
	if (options->budget)
		c->channel.budget = *options->budget;
	c->channel.has_request = options->request != NULL;
	if (options->request)
		c->channel.request = *options->request;
}

void collector_channel_close(struct collector *c)
{
	if (!c->link)
		return;
	guest_link_stats_get(c->link, &c->last_link);
	guest_link_close(c->link);
	c->link = NULL;
}
