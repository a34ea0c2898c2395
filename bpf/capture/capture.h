/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A capture records events of this kernel as struct vs_event in one ring buffer per CPU. The caller
 * drains the rings on a timer; no event wakes a process. The interface is the same for the guest's
 * capture (all tasks of this kernel) and the host's (the threads of some VMs), and for both
 * backends: BPF, and perf for kernels without BPF or BTF.
 *
 * Nothing is pinned in bpffs: the capture ends when its last file descriptor is closed, also after
 * a kill -9.
 */
#ifndef CAPTURE_CAPTURE_H
#define CAPTURE_CAPTURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "bpf/capture/tracepoint_source.h"
#include "proto/event.h"
#include "proto/exit_bucket.h"
#include "proto/message_config.h"

struct capture;
struct clock_sample;

enum capture_kind {
	CAPTURE_GUEST = 1, /* all events of the scheduler, interrupts, softirqs and vectors */
	CAPTURE_HOST = 2,  /* events of the scheduler, signals and KVM of added threads */
};

enum backend_choice {
	CAPTURE_BY_ANY = 0, /* BPF, or perf if BPF fails; capture_notice() says why */
	CAPTURE_BY_BPF = 1,
	CAPTURE_BY_PERF = 2, /* supports no CAPTURE_SUMMARY */
};

struct capture_options {
	enum capture_kind kind;
	enum backend_choice backend;
	/* Size of the rings of all CPUs together; 0: 4 MiB (guest) or 8 MiB (host). With perf, 0
	 * means 4 MiB per CPU, at most 64 MiB, and the same again for KVM's events. */
	size_t ring_bytes;
	uint64_t wait_threshold_ns; /* host: shortest wait with stacks; 0: 20 ms */
	uint64_t exit_threshold_ns; /* level summary: shortest exit that becomes events; 0: 1 ms */
	bool stacks;                /* host: capture stacks */
	/* host: reads the layout of tracepoints. After the first vCPU is added, KVM's events, block
	 * requests and major faults are captured as well, as far as their tracepoints exist then.
	 * NULL: these are not captured. */
	tracepoint_reader tracepoints;
	/* BPF: number of stack samples per second and CPU; 0: no samples. Guest: every task is
	 * sampled; each sample, and each switch to sleep, gives a TASK_STACK event, and
	 * capture_guest_stacks() delivers the stack. Host: the followed threads are sampled; the
	 * sink receives the stacks, with the sample period as wait_ns. */
	uint32_t sample_hz;
	uint32_t sample_hz_max; /* guest: highest sample_hz that capture_guest_set() accepts */
	pid_t sample_except;    /* guest: process whose stacks are not taken; 0: none */
	bool raw_tracepoints; /* BPF: use only the raw-tracepoint build, which is slower. Otherwise
				 capture_open() tries it if the kernel refuses the BTF build. */
};

/* A user stack before unwinding, at the time when the thread left its CPU or woke another. */
struct capture_user_stack {
	/* registers of x86-64 in DWARF's order: rax rdx rcx rbx rsi rdi rbp rsp r8..r15, rip */
	uint64_t regs[17];
	size_t copied_bytes; /* number of bytes copied, from rsp upwards, at most 16 KiB */
	const uint8_t *copied;
};

struct capture_stack {
	uint64_t time;    /* CLOCK_MONOTONIC ns of the switch-out, wake-up or sample */
	uint64_t wait_ns; /* length of the wait (waker: until the wake-up); hit: its number */
	pid_t tid, tgid;  /* thread whose stack it is */
	pid_t explains;   /* waker: the task woken; hit, look: 0; otherwise the same as tid */
	uint32_t event;   /* hit: id of the chosen event */
	uint16_t cpu;
	enum vs_stack_role role;
	bool sampled; /* roles waiter and short: also represents the thread's shorter waits */
	char comm[16];
	size_t n_kernel;
	const uint64_t *kernel; /* addresses, leaf first */
	bool has_user;
	struct capture_user_stack user;
	/* The number by which the reader knows this stack (capture_shared_stacks_known()). Then the
	 * addresses and the copied bytes are left out. 0: unknown. */
	uint32_t known;
};

struct capture_sink {
	/* Receives events of one CPU, borrowed for the call. They are in the order of time. Their
	 * sequence numbers increase; a gap is a loss. Times are CLOCK_MONOTONIC ns. */
	void (*events)(void *context, uint16_t cpu, const struct vs_event *events, size_t n);
	void (*stack)(void *context, const struct capture_stack *stack); /* may be NULL */
	void *context;
};

struct capture_cpu_stats {
	/* Totals since the capture began: events that were emitted, and those of them that were
	 * lost in the kernel. An event that is emitted but neither dropped nor delivered is still
	 * in the ring, or incomplete. */
	uint64_t emitted, dropped;
};

/* Converts a name ("auto", "bpf", "perf") to the number of the backend. Returns 0 or -EINVAL. */
int backend_choice_parse(const char *name, enum backend_choice *out);

void capture_close(struct capture *c);
/* Delivers all complete events to the sink, CPU by CPU. Returns the number of events or -errno. */
long capture_drain(struct capture *c, const struct capture_sink *sink);
/* Takes a clock sample. The next drain delivers all events that are older than the sample by more
 * than capture_lag_ns(), except an incomplete event and those behind it in the ring of its CPU.
 * Returns 0 or -errno. */
int capture_clock_sample(struct capture *c, struct clock_sample *out);
/* Fills `out` with at most `max` clock samples that were taken after TSC `after_tsc`, in order: the
 * shared capture takes them for all its users. Returns how many; 0 for other captures. */
size_t capture_clock_samples(const struct capture *c, uint64_t after_tsc, struct clock_sample *out,
			     size_t max);
/* Returns the longest time, in ns, by which the capture may deliver an event after younger events
 * of other CPUs. An event that arrives even later is dropped and counted. */
uint64_t capture_lag_ns(const struct capture *c);
/* Returns one line for the user about how events are captured, for example why perf is used; "" if
 * there is nothing to report. Valid as long as the capture. */
const char *capture_notice(const struct capture *c);
/* Guest: makes the next drain deliver a TASK_NAME of every task, as the first drain does. Call it
 * for a reader that joins later. Returns 0, -ENOTSUP (host) or -errno. */
int capture_name_tasks(struct capture *c);
/* Returns the name of the backend: "BPF" or "perf". */
const char *capture_backend_name(const struct capture *c);
/* Returns true if the backend supports CAPTURE_SUMMARY. */
bool capture_summarises(const struct capture *c);
size_t capture_n_cpus(const struct capture *c);
/* Returns how many events the ring of each CPU holds. 0: that depends on the events (perf). */
size_t capture_ring_events(const struct capture *c);
int capture_cpu_stats(const struct capture *c, size_t cpu, struct capture_cpu_stats *out);

/* A stack to which TASK_STACK events refer. */
struct capture_guest_stack {
	pid_t tgid; /* process; 0: a kernel stack */
	uint32_t id;
	enum vs_stack_role role; /* role of the event that first had this stack */
	size_t n;
	const uint64_t *frames; /* addresses, leaf first; borrowed for the call */
};
typedef void (*capture_guest_stack_taker)(void *context, const struct capture_guest_stack *stack);
/* Guest with sample_hz: delivers at most `max` stacks that were not delivered before. Call it after
 * a drain. Returns their number, -ENOTSUP or -errno. */
long capture_guest_stacks(struct capture *c, capture_guest_stack_taker take, void *context,
			  size_t max);
/* Makes capture_guest_stacks() deliver every stack again, for a reader that joins later. */
void capture_guest_stacks_forget(struct capture *c);

/* Guest: returns which fields of a Config the capture can change while it runs, as bits 1 << enum
 * config_field. */
uint32_t capture_guest_fields(const struct capture *c);
/* Applies classes, tasks and sample_hz of `config`. If the task filter changed, call
 * capture_name_tasks() afterwards. Returns 0; -ENOTSUP: the backend cannot change them; -EINVAL:
 * not a guest capture, or too many tasks; -EPERM: sample_hz is above the maximum; other -errno:
 * samples failed. After -EPERM the old sample_hz holds, after a failure there are no samples; the
 * other fields are in force in both cases. */
int capture_guest_set(struct capture *c, const struct message_config *config);
/* Returns the number of stacks taken so far. The agent adds VS_GUEST_STACK_COST_NS of CPU time per
 * stack to its own. */
uint64_t capture_guest_stacks_taken(const struct capture *c);
enum { VS_GUEST_STACK_COST_NS = 2000 };

/* Returns the names of the tracepoints that this kernel does not have or that could not be
 * attached, "" if none. Valid as long as the capture. */
const char *capture_left_out(const struct capture *c);

/* Host: follows a thread of process `tgid`. `vm` is the caller's number of the VM. The capture
 * follows threads that the process creates later without a call; a call for one of them marks it as
 * a vCPU thread. Returns 0, -ESRCH: no such thread, -ENOSPC: too many threads, -ENOTSUP: not a host
 * capture, or -errno. */
int capture_add_thread(struct capture *c, pid_t tid, pid_t tgid, uint32_t vm, bool is_vcpu);
/* Host: stops following a thread. When the last added thread of a process is removed, the capture
 * stops following the process's other threads, too. Returns 0, -ENOENT: not followed (the thread
 * may have ended), -ENOTSUP. */
int capture_remove_thread(struct capture *c, pid_t tid);

/* Host: lowers wait_threshold_ns to `ns`; a higher value has no effect. Returns 0, -ENOTSUP: not a
 * host capture. */
int capture_wait_threshold(struct capture *c, uint64_t ns);

/* Which events of KVM and the block layer are captured for a VM. Other events do not depend on the
 * level. */
enum capture_level {
	CAPTURE_DETAIL = 0, /* all events */
	/* Of KVM, only VM-exits during which the vCPU leaves its pCPU, or which take at least
	 * exit_threshold_ns. The kernel counts the others by reason (capture_exits()). */
	CAPTURE_SUMMARY = 1,
};

/* Sets the level of a VM, also before its threads are added. The initial level is CAPTURE_DETAIL.
 * Events of tasks that belong to no VM are captured until the first call of this function. After
 * it, they are captured only while a VM for which it was called is at CAPTURE_DETAIL. Returns 0,
 * -EINVAL: vm >= 4096, -ENOTSUP: not a host capture, or the backend does not support the level. */
int capture_level_set(struct capture *c, uint32_t vm, enum capture_level level);

/* The counted exits of a vCPU thread for one reason: totals since the capture began. */
struct capture_exit {
	uint32_t vm;
	pid_t tid;
	uint32_t isa, reason;
	uint64_t count;
	uint64_t kernel_ns, vmm_ns;
	uint64_t max_ns;         /* longest exit */
	const uint64_t *buckets; /* histogram, VS_EXIT_BUCKETS counts (proto/exit_bucket.h) */
};
typedef void (*capture_exit_taker)(void *context, const struct capture_exit *exit);
/* Delivers the counted exits of VMs at CAPTURE_SUMMARY. Those of a thread that is no longer
 * followed are delivered once more, then removed. Returns 0, -ENOTSUP: not a host capture, or
 * -errno. */
int capture_exits(struct capture *c, capture_exit_taker take, void *context);

struct capture_host_stats {
	size_t tracepoints; /* number of attached tracepoints; 0: none yet, or none exists */
	size_t threads;     /* number of followed threads, added or created by a followed process */
	long threads_waiting; /* number of followed threads that are runnable and wait for a CPU */
	uint64_t threads_unfollowed; /* number of new threads above the limit, not followed */
	uint64_t stacks_dropped;
	uint64_t exits_uncounted; /* number of exits not counted, because the table was full */
};
/* Fills `out`; with zeros for a guest capture. */
void capture_host_stats_get(const struct capture *c, struct capture_host_stats *out);

/*
 * Returns the number of events that were lost without a sequence number; the totals of the CPUs do
 * not include them. BPF: the kernel skipped a program because it was already running on that CPU.
 * perf on a host: wake-ups that perf must have omitted, because a thread that slept runs again.
 * perf in a guest: 0, because nothing shows such losses.
 */
uint64_t capture_missed(const struct capture *c);

/* Returns the run time and the number of runs of the BPF programs, for benchmarks and doctor. The
 * kernel counts them only while kernel.bpf_stats_enabled is set. Returns 0, -ENOTSUP (perf) or
 * -errno. */
int capture_cost(const struct capture *c, uint64_t *run_time_ns, uint64_t *run_count);

#endif
