/* SPDX-License-Identifier: GPL-2.0-only */
/* The part of a BPF capture that only a host has: the followed threads, their stacks, the levels
 * and the counted exits. Functions without a comment do what capture.h says of their
 * counterparts. */
#ifndef BACKEND_CAPTURE_HOST_H
#define BACKEND_CAPTURE_HOST_H

#include <bpf/libbpf.h>

#include "bpf/capture/capture.h"
#include "bpf/prog/follow.h"

struct capture_host;

/* Returns NULL if out of memory. */
struct capture_host *capture_host_new(const struct capture_options *options);
void capture_host_free(struct capture_host *h);
/* capture_host_prepare() sets variables and maps of the object before it is loaded.
 * capture_host_loaded() uses its maps afterwards. Return 0 or -errno. globals: the object's .bss,
 * mapped. */
int capture_host_prepare(struct capture_host *h, struct bpf_object *object);
int capture_host_loaded(struct capture_host *h, struct bpf_object *object, void *globals);
/* Frees the slots of removed threads after it has waited for the programs that may still use them.
 * Then delivers at most 1024 stacks to the sink. Returns 0 or -errno. */
int capture_host_drain(struct capture_host *h, const struct capture_sink *sink);
int capture_host_add(struct capture_host *h, pid_t tid, pid_t tgid, uint32_t vm, bool is_vcpu);
int capture_host_exits(struct capture_host *h, capture_exit_taker take, void *context);
int capture_host_level(struct capture_host *h, uint32_t vm, enum capture_level level);
void capture_host_wait_threshold(struct capture_host *h, uint64_t ns);
int capture_host_remove(struct capture_host *h, pid_t tid);
/* Returns the number of followed threads that wait for this CPU. For tests, which check that each
 * increment of the count is undone. */
long capture_host_waiting(const struct capture_host *h, size_t cpu);
void capture_host_stats(const struct capture_host *h, struct capture_host_stats *out);

#endif
