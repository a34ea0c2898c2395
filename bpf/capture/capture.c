/* SPDX-License-Identifier: GPL-2.0-only */
/* Passes the calls of a capture to the backend that was opened. */
#include "bpf/capture/capture.h"

#include <errno.h>
#include <string.h>

#include "bpf/capture/capture_internal.h"

static const char *const backend_names[] = {
	[CAPTURE_BY_ANY] = "auto",
	[CAPTURE_BY_BPF] = "bpf",
	[CAPTURE_BY_PERF] = "perf",
};

int backend_choice_parse(const char *name, enum backend_choice *out)
{
	for (size_t i = 0; i < sizeof(backend_names) / sizeof(*backend_names); i++) {
		if (strcmp(name, backend_names[i]))
			continue;
		*out = (enum backend_choice)i;
		return 0;
	}
	return -EINVAL;
}

void capture_close(struct capture *c)
{
	if (c)
		c->backend->close(c);
}

long capture_drain(struct capture *c, const struct capture_sink *sink)
{
	return c->backend->drain(c, sink);
}

int capture_clock_sample(struct capture *c, struct clock_sample *out)
{
	return c->backend->sample ? c->backend->sample(c, out) : clock_sample_take(out);
}

size_t capture_clock_samples(const struct capture *c, uint64_t after_tsc, struct clock_sample *out,
			     size_t max)
{
	return c->backend->samples ? c->backend->samples(c, after_tsc, out, max) : 0;
}

uint64_t capture_lag_ns(const struct capture *c)
{
	return c->backend->lag_ns;
}

const char *capture_notice(const struct capture *c)
{
	return c->notice;
}

const char *capture_backend_name(const struct capture *c)
{
	return c->backend->name;
}

bool capture_summarises(const struct capture *c)
{
	return c->backend->summarises;
}

int capture_name_tasks(struct capture *c)
{
	return c->backend->name_tasks(c);
}

size_t capture_n_cpus(const struct capture *c)
{
	return c->backend->n_cpus(c);
}

size_t capture_ring_events(const struct capture *c)
{
	return c->backend->ring_events ? c->backend->ring_events(c) : 0;
}

int capture_cpu_stats(const struct capture *c, size_t cpu, struct capture_cpu_stats *out)
{
	return c->backend->cpu_stats(c, cpu, out);
}

const char *capture_left_out(const struct capture *c)
{
	return c->backend->left_out(c);
}

int capture_add_thread(struct capture *c, pid_t tid, pid_t tgid, uint32_t vm, bool is_vcpu)
{
	return c->backend->add_thread(c, tid, tgid, vm, is_vcpu);
}

int capture_remove_thread(struct capture *c, pid_t tid)
{
	return c->backend->remove_thread(c, tid);
}

int capture_wait_threshold(struct capture *c, uint64_t ns)
{
	return c->backend->wait_threshold(c, ns);
}

int capture_exits(struct capture *c, capture_exit_taker take, void *context)
{
	return c->backend->exits(c, take, context);
}

int capture_level_set(struct capture *c, uint32_t vm, enum capture_level level)
{
	return c->backend->level_set(c, vm, level);
}

int capture_event_add(struct capture *c, const struct capture_event *event, uint32_t *id)
{
	return c->backend->event_add ? c->backend->event_add(c, event, UINT64_MAX, id) : -ENOTSUP;
}

int capture_event_watch(struct capture *c, const struct capture_watch *watch)
{
	return c->backend->event_watch ? c->backend->event_watch(c, watch) : -ENOTSUP;
}

uint64_t capture_event_unwatched(const struct capture *c)
{
	return c->backend->event_unwatched ? c->backend->event_unwatched(c) : 0;
}

void capture_event_stop(struct capture *c, uint32_t id)
{
	if (c->backend->event_stop)
		c->backend->event_stop(c, id);
}

int capture_event_state_get(struct capture *c, uint32_t id, uint64_t now_ms,
			    struct capture_event_state *out)
{
	return c->backend->event_state ? c->backend->event_state(c, id, now_ms, out) : -ENOENT;
}

void capture_event_remove(struct capture *c, uint32_t id)
{
	if (c->backend->event_vms)
		c->backend->event_vms(c, id, 0);
}

void capture_events_limit(struct capture *c, uint32_t rate)
{
	if (c->backend->events_limit)
		c->backend->events_limit(c, rate);
}

int capture_look_set(struct capture *c, const struct capture_look *look, char *why,
		     size_t why_bytes)
{
	why[0] = '\0';
	return c->backend->look ? c->backend->look(c, look, why, why_bytes) : -ENOTSUP;
}

uint64_t capture_look_hits(const struct capture *c)
{
	return c->backend->look_hits ? c->backend->look_hits(c) : 0;
}

void capture_host_stats_get(const struct capture *c, struct capture_host_stats *out)
{
	c->backend->host_stats(c, out);
}

uint64_t capture_missed(const struct capture *c)
{
	return c->backend->missed(c);
}

int capture_cost(const struct capture *c, uint64_t *run_time_ns, uint64_t *run_count)
{
	return c->backend->cost(c, run_time_ns, run_count);
}

long capture_guest_stacks(struct capture *c, capture_guest_stack_taker take, void *context,
			  size_t max)
{
	return c->backend->guest_stacks ? c->backend->guest_stacks(c, take, context, max)
					: -ENOTSUP;
}

void capture_guest_stacks_forget(struct capture *c)
{
	if (c->backend->guest_stacks_forget)
		c->backend->guest_stacks_forget(c);
}

uint32_t capture_guest_fields(const struct capture *c)
{
	return c->backend->guest_fields ? c->backend->guest_fields(c) : 0;
}

int capture_guest_set(struct capture *c, const struct message_config *config)
{
	return c->backend->guest_set ? c->backend->guest_set(c, config) : -ENOTSUP;
}

uint64_t capture_guest_stacks_taken(const struct capture *c)
{
	return c->backend->guest_stacks_taken ? c->backend->guest_stacks_taken(c) : 0;
}
