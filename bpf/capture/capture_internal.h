/* SPDX-License-Identifier: GPL-2.0-only */
/* What a capture is to capture.c, which hands every call on to the backend that was opened: a
 * struct of the backend's own that begins with a struct capture. */
#ifndef CAPTURE_CAPTURE_INTERNAL_H
#define CAPTURE_CAPTURE_INTERNAL_H

#include "bpf/capture/capture.h"
#include "clock/sample.h"

struct capture {
	const struct capture_backend *backend;
	char notice[400];
};

/* The functions do what those of the same name in capture.h say. */
struct capture_backend {
	const char *name; /* for users */
	bool summarises;  /* has CAPTURE_SUMMARY */
	int (*open)(const struct capture_options *options, struct capture **out, char *why,
		    size_t why_bytes);
	void (*close)(struct capture *c);
	long (*drain)(struct capture *c, const struct capture_sink *sink);
	/* NULL: the clocks as they are now. */
	int (*sample)(struct capture *c, struct clock_sample *out);
	int (*name_tasks)(struct capture *c);
	size_t (*n_cpus)(const struct capture *c);
	int (*cpu_stats)(const struct capture *c, size_t cpu, struct capture_cpu_stats *out);
	const char *(*left_out)(const struct capture *c);
	long (*guest_stacks)(struct capture *c, capture_guest_stack_taker take, void *context,
			     size_t max); /* NULL: knows none */
	void (*guest_stacks_forget)(struct capture *c);
	int (*add_thread)(struct capture *c, pid_t tid, pid_t tgid, uint32_t vm, bool is_vcpu);
	int (*remove_thread)(struct capture *c, pid_t tid);
	int (*wait_threshold)(struct capture *c, uint64_t ns);
	int (*exits)(struct capture *c, capture_exit_taker take, void *context);
	int (*level_set)(struct capture *c, uint32_t vm, enum capture_level level);
	void (*host_stats)(const struct capture *c, struct capture_host_stats *out);
	uint64_t (*missed)(const struct capture *c);
	int (*cost)(const struct capture *c, uint64_t *run_time_ns, uint64_t *run_count);
	/* Followed threads that wait for this CPU, for tests: the count must not leak. */
	long (*waiting)(const struct capture *c, size_t cpu);
	/* NULL, all three: nothing can be changed while it runs. */
	uint32_t (*guest_fields)(const struct capture *c);
	int (*guest_set)(struct capture *c, const struct message_config *config);
	uint64_t (*guest_stacks_taken)(const struct capture *c);
	uint64_t lag_ns;
};

#endif
