/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The live part of `record`, `watch`, `top` and `daemon`. It follows one VM on the host,
 * communicates with its agent, and passes every frame of both, in order of arrival, to one sink.
 * Instead of a VM, or beside it, it records the chosen events of other tasks. It runs on the
 * caller's libuv loop, on which it does work every 20 ms, at the same moments as all other
 * collectors of the loop. If the capture is shared and the VM has few events, its collector works
 * only every 100 ms. Its caller then calls capture_shared_pump() every 20 ms, so that stamps are
 * converted as exactly as with work every 20 ms. For a VM that does nothing for 10 s, a collector
 * writes one heartbeat per second instead of ten. Not thread-safe.
 *
 * It continues if there is no agent, if an agent or threads come and go, and if QEMU closes its
 * monitor. It ends when the VMM exits or, if there is no VM, when the tasks have ended. It reports
 * its end once.
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
#include "host-collector/record/watched_tasks.h"

/* The number of the VM that a collector follows, unless its options contain another one. Frames of
 * its guest have this source. */
enum { COLLECTOR_VM = 1 };

struct collector;

struct collector_options {
	pid_t pid;            /* process id of the VMM; 0: find it by QMP */
	const char *qmp_path; /* path of the QMP socket; NULL: find the VM by pid */
	uint32_t number;      /* of the VM; 0: COLLECTOR_VM */
	/* NULL: the collector has a host stream of its own. Otherwise it writes to the host stream
	 * of this collector, which captures for both: only the options of the VM and of its channel
	 * have an effect. Its sink receives the frames of its guest only. The other collector must
	 * be stopped and closed after it, and runs on if its own VM ends. */
	struct collector *beside;
	/* An open VM with number `number`, which the collector owns from now on, also on error.
	 * NULL: open it. */
	struct vm *vm;
	const char *channel; /* address of the channel (link/address.h); NULL: host side only */
	struct link_security security; /* keys and permissions of the channel */
	/* true: if the channel cannot be set up (no such host, no key), report this and try again;
	 * false: return an error. If true, the strings of channel and security are borrowed until
	 * collector_close(). */
	bool channel_can_wait;
	bool vsock_handed;          /* vsock: the caller passes connections to collector_adopt() */
	uint64_t wait_threshold_ns; /* ns; longer waits are recorded with stacks; 0: 20 ms */
	uint32_t sample_hz;         /* stack samples of the VM's threads per second; 0: none */
	const struct capture_look *look; /* see host_stream.h, also for look_when */
	const char *look_when;
	enum capture_level level;
	/* Backend of the host's capture; 0: BPF, or perf if BPF fails. */
	enum backend_choice backend;
	/* A capture that several collectors share (see host_stream.h); NULL: its own capture. */
	struct capture_shared *shared;
	struct stack_names *names;          /* shared in the same way */
	struct task_origins *origins;       /* shared in the same way */
	struct frame_maker *maker;          /* shared in the same way */
	uint64_t tsc_hz;                    /* see host_stream.h */
	const struct chosen_events *events; /* chosen by the user; borrowed; NULL: none */
	/* Tasks whose hits of `events` are recorded, too; borrowed until collector_close(); NULL:
	 * none. If neither a VM nor `pid` nor `qmp_path` is given, there is no VM. */
	const struct watched_tasks *tasks;
	const struct message_config *request; /* requested of the agent; NULL: nothing; copied */
	const struct decoder_budget *budget;  /* limits of the guest's channel; NULL: the default */
};

struct collector_sink {
	/* Receives a checked frame. source: VS_SOURCE_HOST or the VM. arrival_tsc: host TSC.
	 * Borrowed for the call. */
	void (*frame)(void *context, uint32_t source, uint64_t arrival_tsc,
		      struct frame_item *frame);
	/* Receives a line for the user: agents and threads that come and go, problems. */
	void (*say)(void *context, const char *line);
	/* Reports once that the VM is gone, or the tasks if there is no VM. Does not stop the
	 * collector: the caller calls collector_stop(). */
	void (*ended)(void *context, const char *why);
	void *context;
};

/* Starts a collector. Borrows the strings of the options until it returns; see also
 * channel_can_wait. The sink may receive frames before it returns. Returns 0, or -errno with one
 * line in `why`: -EINVAL (address of the channel), -EOPNOTSUPP (no VM, and none of the events can
 * be captured), the errors of vm_open() and host_stream_open(), or other -errno. */
int collector_open(uv_loop_t *loop, const struct collector_options *options,
		   const struct collector_sink *sink, struct collector **out, char *why,
		   size_t why_bytes);
/* Adds a connection to a channel that adopts or is handed connections (link/address.h). The
 * collector owns `fd` from now on, in all cases. */
void collector_adopt(struct collector *c, int fd);
/* Drains once more and stops; the sink receives nothing after that. Statistics remain available. A
 * second call does nothing. */
void collector_stop(struct collector *c);
/* Switches the level at which KVM and the block layer are captured. Returns 0 or -errno;
 * -EOPNOTSUPP: the level needs BPF. */
int collector_level(struct collector *c, enum capture_level level);
/* Stops the collector if it runs. The next turn of the loop frees it, so close the loop only after
 * that. NULL is allowed. */
void collector_close(struct collector *c);

/* An agent sends ten heartbeats per second. After this time without a frame it is reported as
 * silent. */
enum { COLLECTOR_SILENT_MS = 1000 };

struct collector_status {
	/* Borrowed until the next iteration of the loop. NULL: there is no VM. */
	const struct message_vm_info *vm;
	size_t n_vcpus;
	bool ended;          /* `ended` of the sink was called */
	bool paused;         /* QMP reports that the VM is paused */
	const char *backend; /* "BPF" or "perf"; borrowed from the collector */
	struct host_stream_stats host;
	bool has_channel;
	struct guest_link_stats link; /* `trouble`: also why there is no channel */
	uint64_t agent_silent_ms;     /* ms since the agent's last frame; 0: no frame yet */
	/* Events as the agent counts them, since its first heartbeat. */
	uint64_t guest_emitted, guest_dropped;
	bool clock_known;     /* there are enough round trips to convert guest times */
	bool clock_exact;     /* KVM's clock parameters convert guest times exactly */
	bool clock_contested; /* the round trips contradict KVM's parameters: nothing is proven */
	uint64_t clock_error_ns; /* if clock_known: the bound; UINT64_MAX if contested */
};
/* Returns the VMM's process; 0 if there is no VM. */
pid_t collector_pid(const struct collector *c);
/* Returns the VMM's version, or "" (vm_version()). Borrowed. */
const char *collector_vmm_version(const struct collector *c);
/* Returns the number of events that the host's capture emitted for this VM. */
uint64_t collector_host_events(const struct collector *c);
/* Fills the current status. Counters start at collector_open(). Costs some us. */
void collector_status_get(const struct collector *c, struct collector_status *out);

#endif
