/* SPDX-License-Identifier: GPL-2.0-only */
/* The collector's state, which its source files share. */
#ifndef RECORD_COLLECTOR_INTERNAL_H
#define RECORD_COLLECTOR_INTERNAL_H

#include "bpf/capture/kernel_log.h"
#include "clock/echo.h"
#include "host-collector/decode/turns.h"
#include "host-collector/record/collector.h"
#include "host-collector/record/vm_clocks.h"
#include "host-collector/vm/cgroup.h"
#include "host-collector/vm/vm.h"
#include "proto/log_limit.h"

struct collector {
	uv_loop_t *loop;
	struct collector_sink sink;
	struct vm *vm;                     /* NULL: none, only `tasks` */
	const struct watched_tasks *tasks; /* NULL: none */
	uint32_t number;                   /* of the VM */
	struct collector *beside;          /* owns and drains `host`; NULL: this collector does */
	struct host_stream *host;
	struct vm_clocks *clocks; /* NULL: not KVM, or not available */
	struct guest_link *link;  /* NULL: none, or stopped */
	struct guest_link_stats last_link;
	bool has_channel;
	struct link_address address;
	/* How the channel is set up, for another try. */
	struct {
		const char *address;
		struct link_security security;
		struct decoder_budget budget;
		struct message_config request;
		bool has_budget, has_request, handed;
		uint64_t next_ms;
		char why[256], said[256];
	} channel;
	bool guest_tsc;                 /* the agent stamps with the guest TSC */
	struct echo_sync *echo;         /* for the status line; NULL before the agent's HELLO */
	struct message_heartbeat guest; /* the last; emitted 0: none yet */
	uint64_t guest_emitted, guest_dropped;
	uint64_t heard_ms; /* uv_now() of the agent's last frame; 0: none yet */
	uv_timer_t timer;
	struct turn_task work;           /* that the timer begins */
	struct cgroups *cgroups;         /* NULL: out of memory */
	struct kernel_log *log;          /* this machine's; NULL: not available */
	uv_poll_t *qmp_poll, *exit_poll; /* freed when libuv has closed them */
	int pidfd;
	uint64_t heartbeat_ms, rescan_ms;
	uint64_t asked_ms;    /* when the host's log and the cgroups were read last */
	uint64_t scanned_ms;  /* when the threads' names were read last, */
	uint64_t changed_ms;  /* and when they had changed */
	bool shared;          /* the host's capture is shared */
	uint64_t host_events; /* up to the last drain */
	uint64_t drained;     /* of these, in that drain */
	bool held;            /* stacks without names limited what the last heartbeat promised */
	uint64_t active_ms;   /* the last event or frame of the agent */
	bool timer_open, stopped, ended, said_drain, said_clocks, said_quotas, said_unwatched;
	struct log_limit vm_lines;           /* from QEMU */
	struct message_kernel_log log_lines; /* large, so not on the stack */
};

/* Writes a note into the host's stream, and reports it to the user. context: the collector. */
void collector_note(void *context, enum note_kind kind, const char *text);

/* Takes the channel from the options. */
void collector_channel_plan(struct collector *c, const struct collector_options *options);
/* Resolves the address and finds the key that belongs to it. Returns 0, or -errno with the reason
 * in channel.why. */
int collector_channel_address(struct collector *c);
/* Sets the channel up, or reports why not. Resolving a name blocks the loop: the longer it took,
 * the later is the next try. */
void collector_channel_try(struct collector *c);
/* Closes the link and keeps its statistics. A second call does nothing. */
void collector_channel_close(struct collector *c);

#endif
