/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Captures of this kernel's events into vs_event records, in per-CPU ring buffers that are drained
 * on the caller's timer (no wake-up per event). One interface for the guest's capture (everything
 * on this kernel) and the host's (the threads of some VMs), and for both ways to get at the events:
 * BPF programs, or perf where the kernel has no BPF or no BTF.
 *
 * Nothing is pinned: closing the last descriptor, even by kill -9, ends the capture.
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
	CAPTURE_GUEST = 1, /* all scheduler, irq, softirq and vector events of this kernel */
	CAPTURE_HOST = 2,  /* events of the scheduler, signals and KVM of the threads added
			    * to it */
};

enum capture_way {
	CAPTURE_BY_ANY = 0, /* BPF, or if that fails perf, which capture_notice() then says */
	CAPTURE_BY_BPF = 1,
	CAPTURE_BY_PERF = 2, /* without CAPTURE_SUMMARY */
};

struct capture_options {
	enum capture_kind kind;
	enum capture_way way;
	size_t ring_bytes;          /* all CPUs together; 0: 4 MiB guest, 8 MiB host (by perf 4 MiB
				     * a CPU, at most 64 MiB, and as much again for KVM's events) */
	uint64_t wait_threshold_ns; /* host: all waits longer than this bring stacks; 0: 20 ms */
	uint64_t exit_threshold_ns; /* host, summary level: shorter VM-exits become no events; 0: 1
				       ms */
	bool stacks;                /* host: capture stacks */
	/* host: capture KVM, block requests and major faults, too, from the first vCPU on, as far
	 * as their tracepoints exist by then; NULL: do not */
	tracepoint_reader tracepoints;
	/* By BPF: look so often per second at what each CPU runs. guest: at every task, and
	 * wherever one goes to sleep: TASK_STACK events, and capture_guest_stacks(). host: at
	 * followed threads: stacks for the sink, with the period as wait_ns. 0: do not. */
	uint32_t sample_hz;
	uint32_t sample_hz_max; /* guest: the most that capture_guest_set() may ask for */
	pid_t sample_except;    /* guest: not of this process, such as the one that names them */
	bool raw_tracepoints;   /* BPF: use the dearer programs for kernels that refuse the others,
				 * which capture_open() otherwise tries second */
};

/* Raw material of a user stack, as it was when the thread left the CPU or woke another. */
struct capture_user_stack {
	/* x86-64 in DWARF's register order: rax rdx rcx rbx rsi rdi rbp rsp r8..r15, rip. */
	uint64_t regs[17];
	size_t copied_bytes; /* from sp upwards, at most 16 KiB */
	const uint8_t *copied;
};

struct capture_stack {
	uint64_t time;    /* CLOCK_MONOTONIC ns of the switch-out or wake-up it belongs to */
	uint64_t wait_ns; /* how long the wait lasted (waker: had lasted) */
	pid_t tid, tgid;  /* whose stack */
	pid_t explains;   /* waiter: itself; waker: the task woken */
	uint16_t cpu;
	enum vs_stack_role role;
	bool sampled; /* waiter, whatever the role: it stands for shorter waits as well */
	char comm[16];
	size_t n_kernel;
	const uint64_t *kernel; /* addresses, leaf first */
	bool has_user;
	struct capture_user_stack user;
};

struct capture_sink {
	/* A run of records of one CPU, in time order and in seq order but for losses; times are
	 * CLOCK_MONOTONIC ns. Borrowed for the call. */
	void (*events)(void *context, uint16_t cpu, const struct vs_event *events, size_t n);
	void (*stack)(void *context, const struct capture_stack *stack); /* may be NULL */
	void *context;
};

struct capture_cpu_stats {
	/* Running totals: attempted by the probes, lost in the kernel. What is emitted but neither
	 * dropped nor delivered yet is in the ring, or just being written. */
	uint64_t emitted, dropped;
};

/* The way's number for its name ("auto", "bpf", "perf"), or -EINVAL. */
int capture_way_parse(const char *name, enum capture_way *out);

void capture_close(struct capture *c);
/* Hands everything committed so far to the sink, CPU by CPU. Returns events delivered or -errno. */
long capture_drain(struct capture *c, const struct capture_sink *sink);
/* The clocks, so that no event older than that will be handed over later than by the next drain,
 * but for the lag. 0 or -errno. */
int capture_clock_sample(struct capture *c, struct clock_sample *out);
/* A record may be handed over this much later than younger ones of other CPUs: what was drained is
 * complete up to then. One that comes later still counts as dropped. */
uint64_t capture_lag_ns(const struct capture *c);
/* One line for the user on how the events are captured, "" if there is nothing to say. Valid as
 * long as the capture. */
const char *capture_notice(const struct capture *c);
/* Guest capture: the next drain brings a TASK_NAME of every task that exists, as the first one
 * does; for a reader that joins late. 0, -ENOTSUP (host capture) or -errno. */
int capture_name_tasks(struct capture *c);
/* How the events are captured: "BPF" or "perf". */
const char *capture_backend_name(const struct capture *c);
/* Whether it has CAPTURE_SUMMARY. */
bool capture_summarises(const struct capture *c);
size_t capture_n_cpus(const struct capture *c);
int capture_cpu_stats(const struct capture *c, size_t cpu, struct capture_cpu_stats *out);

/* A stack that TASK_STACK events name. */
struct capture_guest_stack {
	pid_t tgid; /* 0: of the kernel */
	uint32_t id;
	enum vs_stack_role role; /* how it was taken first */
	size_t n;
	const uint64_t *frames; /* addresses, leaf first; borrowed for the call */
};
typedef void (*capture_guest_stack_taker)(void *context, const struct capture_guest_stack *stack);
/* Guest capture with sample_hz: tells stacks that were not told yet, at most `max`. Call it after a
 * drain. How many, -ENOTSUP or -errno. */
long capture_guest_stacks(struct capture *c, capture_guest_stack_taker take, void *context,
			  size_t max);
/* All are to be told again, to a reader that joins late. */
void capture_guest_stacks_forget(struct capture *c);

/* Guest capture: which fields of a Config it can change while it runs, as bits 1 << enum
 * config_field. */
uint32_t capture_guest_fields(const struct capture *c);
/* From now on tells what these fields say; ask for the tasks' names again if the filter has become
 * another. 0, -EPERM: sample_hz is above the maximum, -ENOTSUP: nothing can be changed, or -errno:
 * no samples can be had, all else is in force. */
int capture_guest_set(struct capture *c, const struct message_config *config);
/* How many stacks were taken so far, at about VS_GUEST_STACK_COST_NS each. */
uint64_t capture_guest_stacks_taken(const struct capture *c);
enum { VS_GUEST_STACK_COST_NS = 2000 };

/* Names of tracepoints that are missing in this kernel or could not be attached, "" if none. Valid
 * as long as the capture. */
const char *capture_left_out(const struct capture *c);

/*
 * Host capture: which threads to follow. `vm` is the caller's number of the VM. Threads that a
 * followed process creates later are followed by themselves; adding one says that it is a vCPU.
 * 0, -ESRCH: no such thread, -ENOSPC: too many, -ENOTSUP: not a host capture.
 */
int capture_add_thread(struct capture *c, pid_t tid, pid_t tgid, uint32_t vm, bool is_vcpu);
/* After the last thread that was added of a process, its other threads go, too. 0, -ENOENT: not
 * followed (it may have ended). */
int capture_remove_thread(struct capture *c, pid_t tid);

/* Host capture: from now on waits longer than this bring stacks, too; it never becomes longer. 0,
 * -ENOTSUP: not a host capture. */
int capture_wait_threshold(struct capture *c, uint64_t ns);

/* How much of what KVM and the block layer do for a VM becomes events; the others do not depend on
 * it. */
enum capture_level {
	CAPTURE_DETAIL = 0, /* all of it */
	/* Of KVM, VM-exits in which the vCPU leaves its pCPU, or that take exit_threshold_ns; the
	 * kernel counts the others by reason (capture_exits()). */
	CAPTURE_SUMMARY = 1,
};

/* Switches a VM's level, at any time, also before its threads are added. Until the first call all
 * VMs are at CAPTURE_DETAIL. What tasks of no VM do comes as long as a VM that was set is at
 * CAPTURE_DETAIL. 0, -EINVAL (vm >= 4096), -ENOTSUP: not a host capture, or this level by perf. */
int capture_level_set(struct capture *c, uint32_t vm, enum capture_level level);

/* One vCPU thread's exits for one reason that became no events, as totals since the capture began.
 */
struct capture_exit {
	uint32_t vm;
	pid_t tid;
	uint32_t isa, reason;
	uint64_t count;
	uint64_t kernel_ns, vmm_ns;
	uint64_t max_ns;         /* of one exit, both together */
	const uint64_t *buckets; /* VS_EXIT_BUCKETS (proto/exit_bucket.h) */
};
typedef void (*capture_exit_taker)(void *context, const struct capture_exit *exit);
/* Tells what was counted of VMs at CAPTURE_SUMMARY; of a thread that is not followed any more for
 * the last time. 0, -ENOTSUP: not a host capture, or -errno. */
int capture_exits(struct capture *c, capture_exit_taker take, void *context);

struct capture_host_stats {
	size_t tracepoints;          /* of KVM, captured now; 0: none exists here, or not yet */
	size_t threads;              /* followed now, with those that a followed process created */
	long threads_waiting;        /* of these, runnable and waiting for a CPU */
	uint64_t threads_unfollowed; /* new threads that could not be followed: too many */
	uint64_t stacks_dropped;
	uint64_t exits_uncounted; /* at summary level: there were too many vCPUs and reasons */
};
/* Zeros for a guest capture. */
void capture_host_stats_get(const struct capture *c, struct capture_host_stats *out);

/* Events that the kernel did not hand to a program because the same one was running already on that
 * CPU: lost, and in no CPU's counters. By perf on a host: wake-ups that it must have left out,
 * because a thread runs that slept; by perf in a guest, 0: nothing shows them. */
uint64_t capture_missed(const struct capture *c);

/* Run time and count of our programs if kernel.bpf_stats_enabled, for benches and doctor. 0,
 * -ENOTSUP (perf) or -errno. */
int capture_cost(const struct capture *c, uint64_t *run_time_ns, uint64_t *run_count);

#endif
