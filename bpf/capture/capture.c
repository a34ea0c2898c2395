/* SPDX-License-Identifier: GPL-2.0-only */
/* Chooses the backend of a capture, and hands the calls on to it. */
#include "bpf/capture/capture.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "bpf/capture/capture_internal.h"

static const struct way {
	const char *name;
	const struct capture_backend *first, *second; /* second: if the first fails */
} ways[] = {
	[CAPTURE_BY_ANY] = {"auto", &capture_backend_bpf, &capture_backend_perf},
	[CAPTURE_BY_BPF] = {"bpf", &capture_backend_bpf, NULL},
	[CAPTURE_BY_PERF] = {"perf", &capture_backend_perf, NULL},
};

int capture_way_parse(const char *name, enum capture_way *out)
{
	for (size_t i = 0; i < sizeof(ways) / sizeof(*ways); i++) {
		if (strcmp(name, ways[i].name))
			continue;
		*out = (enum capture_way)i;
		return 0;
	}
	return -EINVAL;
}

static int backend_open(const struct capture_backend *backend,
			const struct capture_options *options, struct capture **out, char *why,
			size_t why_bytes)
{
	const int error = backend->open(options, out, why, why_bytes);

	if (!error) {
		(*out)->backend = backend;
		why[0] = '\0';
	}
	return error;
}

int capture_open(const struct capture_options *options, struct capture **out, char *why,
		 size_t why_bytes)
{
	const struct way *way = &ways[options->way];
	char first_why[256] = "", second_why[256] = "";
	int second = 0;
	int error = backend_open(way->first, options, out, first_why, sizeof(first_why));

	if (error && way->second)
		second = backend_open(way->second, options, out, second_why, sizeof(second_why));
	if (error && way->second && !second) {
		snprintf((*out)->notice, sizeof((*out)->notice), "%s: capturing through perf",
			 first_why);
		error = 0;
	}
	if (!error && options->sample_hz && (*out)->backend == &capture_backend_perf) {
		const size_t used = strlen((*out)->notice);

		snprintf((*out)->notice + used, sizeof((*out)->notice) - used,
			 "%sno samples of stacks through perf", used ? ", " : "");
	}
	/* Each backend lacks something else, and either would do; rights both lack are one thing.
	 */
	if (why && why_bytes && error && error != -EPERM && second && second_why[0])
		snprintf(why, why_bytes, "%s; nor does perf do: %s", first_why, second_why);
	else if (why && why_bytes)
		snprintf(why, why_bytes, "%s", error ? first_why : "");
	if (error)
		*out = NULL;
	return error;
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
