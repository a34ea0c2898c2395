// SPDX-License-Identifier: GPL-2.0-only
#include "bpf/backend/capture_request.h"

#include <errno.h>
#include <string.h>

#include "clock/sample.h"

_Static_assert((int)VS_REQUEST_PATTERNS == (int)VS_CONFIG_TASKS_MAX, "a pattern for each");

int capture_request_find(struct capture_bpf *c, struct bpf_object *object)
{
	const long at = loader_variable_offset(object, ".bss", "request", sizeof(*c->request));

	if (at < 0)
		return -EINVAL;
	c->request = (struct vs_guest_request *)((char *)c->globals + at);
	return 0;
}

/* Names of tasks in the kernel have at most 15 bytes and a NUL. */
static struct vs_request_pattern pattern_make(const char *text)
{
	struct vs_request_pattern p = {0};
	const size_t len = strnlen(text, VS_TASK_PATTERN_MAX - 1);
	const bool beginning = len > 0 && text[len - 1] == '*';
	size_t n = beginning ? len - 1 : len + 1; /* with the NUL: the whole name */
	char word[sizeof(p.word)] = "";

	if (n > sizeof(word))
		n = sizeof(word);
	memcpy(word, text, n < len ? n : len);
	memcpy(p.word, word, sizeof(p.word));
	memset(p.mask, 0xff, n);
	return p;
}

/* The programs run meanwhile. Without patterns, they emit the events of all tasks. */
static void patterns_set(struct vs_guest_request *request, const struct message_config *config)
{
	__atomic_store_n(&request->n_patterns, 0, __ATOMIC_SEQ_CST);
	for (size_t i = 0; i < config->n_tasks; i++)
		request->patterns[i] = pattern_make(config->tasks[i]);
	__atomic_store_n(&request->n_patterns, (vs_u32)config->n_tasks, __ATOMIC_SEQ_CST);
}

/* The exits of a class are captured this long after its entries. A longer handler has no exit. */
#define EXITS_AFTER_NS 1000000000ull

/* At any time an entry is captured only if its exit will be. */
static void classes_set(struct capture_bpf *c, uint64_t off)
{
	struct vs_guest_request *request = c->request;

	__atomic_store_n(&request->exits_off, request->exits_off & off, __ATOMIC_SEQ_CST);
	__atomic_store_n(&request->classes_off, off, __ATOMIC_SEQ_CST);
	c->exits_off_ns = clock_monotonic_ns() + EXITS_AFTER_NS;
}

void capture_request_settle(struct capture_bpf *c)
{
	struct vs_guest_request *request = c->request;

	if (request->exits_off != request->classes_off && clock_monotonic_ns() >= c->exits_off_ns)
		__atomic_store_n(&request->exits_off, request->classes_off, __ATOMIC_SEQ_CST);
}

static int samples_set(struct capture_bpf *c, uint32_t hz)
{
	char why[128];
	int error = 0;

	if (hz == c->options.sample_hz)
		return 0;
	if (hz > c->options.sample_hz_max)
		return -EPERM;
	sample_timers_detach(&c->timers);
	if (hz)
		error = sample_timers_attach(&c->timers, c->programs.object, "vs_sample",
					     1000000000 / hz, why, sizeof(why));
	c->options.sample_hz = error ? 0 : hz;
	__atomic_store_n(&c->request->sample_period_ns,
			 c->options.sample_hz ? 1000000000 / c->options.sample_hz : 0,
			 __ATOMIC_RELAXED);
	return error;
}

uint32_t capture_request_fields(const struct capture *base)
{
	const struct capture_bpf *c = (const struct capture_bpf *)base;

	return c->host ? 0
		       : 1u << CONFIG_CLASSES | 1u << CONFIG_TASKS |
				 (uint32_t)(c->options.sample_hz_max > 0) << CONFIG_SAMPLE_HZ |
				 (uint32_t)(c->options.sample_hz_max > 0) << CONFIG_LOOK;
}

int capture_request_set(struct capture *base, const struct message_config *config)
{
	struct capture_bpf *c = (struct capture_bpf *)base;

	if (c->host || config->n_tasks > VS_CONFIG_TASKS_MAX)
		return -EINVAL;
	classes_set(c, ~config->classes);
	patterns_set(c->request, config);
	return samples_set(c, config->sample_hz);
}

uint64_t capture_request_stacks(const struct capture *base)
{
	const struct capture_bpf *c = (const struct capture_bpf *)base;

	return c->request ? __atomic_load_n(&c->request->stacks, __ATOMIC_RELAXED) : 0;
}
