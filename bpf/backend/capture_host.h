/* SPDX-License-Identifier: GPL-2.0-only */
/* The host's half of a capture: which threads are followed, and their stacks. */
#ifndef BACKEND_CAPTURE_HOST_H
#define BACKEND_CAPTURE_HOST_H

#include <bpf/libbpf.h>

#include "bpf/capture/capture.h"
#include "bpf/prog/follow.h"

struct capture_host;

/* NULL on ENOMEM. */
struct capture_host *capture_host_new(const struct capture_options *options);
void capture_host_free(struct capture_host *h);
/* Before load and after it; 0 or -errno. globals: the mapped .bss of the object. */
int capture_host_prepare(struct capture_host *h, struct bpf_object *object);
int capture_host_loaded(struct capture_host *h, struct bpf_object *object, void *globals);
/* Slots of removed threads that no program can hold any more become free. Then the stacks that
 * have arrived go to the sink. 0 or -errno. */
int capture_host_drain(struct capture_host *h, const struct capture_sink *sink);
int capture_host_add(struct capture_host *h, pid_t tid, pid_t tgid, uint32_t vm, bool is_vcpu);
int capture_host_exits(struct capture_host *h, capture_exit_taker take, void *context);
int capture_host_level(struct capture_host *h, uint32_t vm, enum capture_level level);
void capture_host_wait_threshold(struct capture_host *h, uint64_t ns);
int capture_host_remove(struct capture_host *h, pid_t tid);
/* The waiter count of one CPU, for tests: it must not leak. */
long capture_host_waiting(const struct capture_host *h, size_t cpu);
void capture_host_stats(const struct capture_host *h, struct capture_host_stats *out);

#endif
