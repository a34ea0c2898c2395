/* SPDX-License-Identifier: GPL-2.0-only */
/* The interface between capture.c and a backend. capture.c passes each call to the backend that was
 * opened. The backend's own struct begins with a struct capture. */
#ifndef CAPTURE_CAPTURE_INTERNAL_H
#define CAPTURE_CAPTURE_INTERNAL_H

#include "bpf/capture/capture.h"
#include "bpf/capture/capture_event.h"
#include "bpf/capture/capture_look.h"
#include "clock/sample.h"

struct capture {
	const struct capture_backend *backend;
	char notice[400];
};

/* Each function does what capture.h says of the function of the same name. */
struct capture_backend {
	const char *name; /* name shown to users */
	bool summarises;  /* supports CAPTURE_SUMMARY */
	int (*open)(const struct capture_options *options, struct capture **out, char *why,
		    size_t why_bytes);
	void (*close)(struct capture *c);
	long (*drain)(struct capture *c, const struct capture_sink *sink);
	/* NULL: capture_clock_sample() reads the clocks */
	int (*sample)(struct capture *c, struct clock_sample *out);
	/* NULL: the only samples are those of `sample` */
	size_t (*samples)(const struct capture *c, uint64_t after_tsc, struct clock_sample *out,
			  size_t max);
	int (*name_tasks)(struct capture *c);
	size_t (*n_cpus)(const struct capture *c);
	size_t (*ring_events)(const struct capture *c); /* NULL: 0 */
	int (*cpu_stats)(const struct capture *c, size_t cpu, struct capture_cpu_stats *out);
	const char *(*left_out)(const struct capture *c);
	long (*guest_stacks)(struct capture *c, capture_guest_stack_taker take, void *context,
			     size_t max); /* NULL: not supported */
	void (*guest_stacks_forget)(struct capture *c);
	int (*add_thread)(struct capture *c, pid_t tid, pid_t tgid, uint32_t vm, bool is_vcpu);
	int (*remove_thread)(struct capture *c, pid_t tid);
	int (*wait_threshold)(struct capture *c, uint64_t ns);
	int (*exits)(struct capture *c, capture_exit_taker take, void *context);
	int (*level_set)(struct capture *c, uint32_t vm, enum capture_level level);
	/* All four NULL: not supported. vms: the VMs in whose threads hits are captured, as bits 1
	 * << (number of the VM % 64). event_vms() changes that; with 0 it detaches the event for
	 * good. */
	int (*event_add)(struct capture *c, const struct capture_event *event, uint64_t vms,
			 uint32_t *id);
	void (*event_vms)(struct capture *c, uint32_t id, uint64_t vms);
	int (*event_state)(struct capture *c, uint32_t id, uint64_t now_ms,
			   struct capture_event_state *out);
	void (*events_limit)(struct capture *c, uint32_t rate);
	void (*event_stop)(struct capture *c, uint32_t id); /* NULL: not supported */
	/* Both NULL: not supported. */
	int (*event_watch)(struct capture *c, const struct capture_watch *watch);
	uint64_t (*event_unwatched)(const struct capture *c);
	/* Both NULL: not supported. */
	int (*look)(struct capture *c, const struct capture_look *look, char *why,
		    size_t why_bytes);
	uint64_t (*look_hits)(const struct capture *c);
	void (*host_stats)(const struct capture *c, struct capture_host_stats *out);
	uint64_t (*missed)(const struct capture *c);
	int (*cost)(const struct capture *c, uint64_t *run_time_ns, uint64_t *run_count);
	/* Returns the number of followed threads that wait for this CPU. For tests, which check
	 * that each increment of the count is undone. */
	long (*waiting)(const struct capture *c, size_t cpu);
	/* All three NULL: nothing can be changed while the capture runs. */
	uint32_t (*guest_fields)(const struct capture *c);
	int (*guest_set)(struct capture *c, const struct message_config *config);
	uint64_t (*guest_stacks_taken)(const struct capture *c);
	uint64_t lag_ns;
};

#endif
