/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The live core of `record` and `watch`: follows one VM on the host, talks to its agent, and hands
 * every frame of both, in order of arrival, to one sink. Runs on the caller's loop; wakes every
 * 20 ms.
 *
 * What it survives: no agent, an agent that comes and goes, threads that come and go, a monitor
 * that closes. What ends it: QEMU's exit, of which it tells the caller once.
 */
#ifndef RECORD_COLLECTOR_H
#define RECORD_COLLECTOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <uv.h>

#include "host-collector/link/link.h"
#include "host-collector/record/host_stream.h"

/* The number of the VM that a collector follows: the source of its guest's frames. */
enum { COLLECTOR_VM = 1 };

struct collector_options {
	pid_t pid;            /* 0: by QMP */
	const char *qmp_path; /* NULL: by pid */
	struct vm *vm; /* found already, as number COLLECTOR_VM; taken over in any case. NULL: not
			  yet */
	const char *channel;           /* link/address.h; NULL: the host only */
	struct link_security security; /* of the channel */
	/* A channel that cannot be set up (no such host, no key) is said and tried again, instead
	 * of an error: the host's half does not depend on it. Then the strings of channel and
	 * security are borrowed until collector_close(). */
	bool channel_can_wait;
	bool vsock_handed;          /* connections of a vsock channel come by collector_adopt() */
	uint64_t wait_threshold_ns; /* waits longer than this bring stacks; 0: 20 ms */
	uint32_t sample_hz; /* how often per second to look where its threads are; 0: never */
	enum capture_level level;
	enum capture_way way; /* how the host's events are captured; 0: whichever works */
	/* One for several collectors, as of host_stream.h; NULL: a capture of its own. */
	struct capture_shared *shared;
	struct stack_names *names;         /* the same */
	struct task_origins *origins;      /* the same */
	uint64_t tsc_hz;                   /* as of host_stream.h */
	const struct message_config *wish; /* what the agent is asked for; NULL: nothing; copied */
	const struct decoder_budget *budget; /* of the guest's channel; NULL: the default */
};

struct collector_sink {
	/* A whole, CRC-checked frame of the host (VS_SOURCE_HOST) or of VM `source`. Borrowed. */
	void (*frame)(void *context, uint32_t source, uint64_t arrival_tsc, const uint8_t *frame,
		      size_t len);
	/* A line that a person at a terminal should see: comings, goings, trouble. */
	void (*say)(void *context, const char *line);
	/* The VM is gone; called once. collector_stop() is the caller's to call. */
	void (*ended)(void *context, const char *why);
	void *context;
};

struct collector;

/* Strings in options are borrowed until collector_open returns. The first frames may reach the
 * sink before that. On error `why` receives one line: -EINVAL (the channel's address), what
 * vm_open and host_stream_open say, -errno. */
int collector_open(uv_loop_t *loop, const struct collector_options *options,
		   const struct collector_sink *sink, struct collector **out, char *why,
		   size_t why_bytes);
/* Of a channel that adopts or is handed connections (link/address.h): takes over `fd`, in any
 * case. */
void collector_adopt(struct collector *c, int fd);
/* A last drain, then nothing reaches the sink any more; statistics stay. Idempotent. */
void collector_stop(struct collector *c);
/* Switches what is captured of KVM and the block layer. 0 or -errno, -EOPNOTSUPP: this level needs
 * BPF. */
int collector_level(struct collector *c, enum capture_level level);
/* Stops if need be. The loop must run once more before it is closed. */
void collector_close(struct collector *c);

/* An agent reports ten times a second, whatever its guest does: after so long its silence is said.
 */
enum { COLLECTOR_SILENT_MS = 1000 };

struct collector_status {
	const struct message_vm_info *vm; /* borrowed until the next turn of the loop */
	size_t n_vcpus;
	bool paused;         /* by QMP's word */
	const char *backend; /* of the host's events: "BPF", "perf"; as long as the collector */
	struct host_stream_stats host;
	bool has_channel;
	struct guest_link_stats link; /* `trouble` also says why there is none */
	uint64_t agent_silent_ms;     /* since its last frame; 0: it never introduced itself */
	/* By the agent's own word, since we first heard it. */
	uint64_t guest_emitted, guest_dropped;
	bool clock_known;        /* enough round trips to map guest times */
	bool clock_exact;        /* by the hypervisor's own parameters */
	bool clock_contested;    /* the guest's answers contradict those: nothing is proven */
	uint64_t clock_error_ns; /* then: the bound, now */
};
/* Now; counts since it was opened. */
void collector_status_get(const struct collector *c, struct collector_status *out);

#endif
