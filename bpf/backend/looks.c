// SPDX-License-Identifier: GPL-2.0-only
#include "bpf/backend/looks.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bpf/backend/sample_timers.h"

struct looks {
	const struct loader_object *programs;
	struct bpf_object *mine; /* NULL until the first look */
	/* These are variables of the programs. */
	struct vs_look *look;
	const uint64_t *hits;
	int cpus_fd, n_cpus;
	struct bpf_link *counts[VS_LOOK_COUNTS];
	struct sample_timers timers;
};

int looks_new(const struct loader_object *programs, void *globals, struct looks **out)
{
	struct bpf_object *object = programs->object;
	const long look = loader_variable_offset(object, ".bss", "look", sizeof(struct vs_look));
	const long hits = loader_variable_offset(object, ".bss", "look_hits", sizeof(uint64_t));
	struct looks *l = calloc(1, sizeof(*l));

	if (!l)
		return -ENOMEM;
	l->programs = programs;
	l->cpus_fd = bpf_object__find_map_fd_by_name(object, "look_cpus");
	l->n_cpus = libbpf_num_possible_cpus();
	if (look < 0 || hits < 0 || l->cpus_fd < 0 || l->n_cpus <= 0) {
		free(l);
		return -EINVAL;
	}
	l->look = (struct vs_look *)((char *)globals + look);
	l->hits = (const uint64_t *)((char *)globals + hits);
	*out = l;
	return 0;
}

static void looks_end(struct looks *l)
{
	sample_timers_detach(&l->timers);
	for (size_t i = 0; i < VS_LOOK_COUNTS; i++) {
		bpf_link__destroy(l->counts[i]);
		l->counts[i] = NULL;
	}
}

void looks_free(struct looks *l)
{
	if (!l)
		return;
	looks_end(l);
	bpf_object__close(l->mine);
	free(l);
}

static int cpus_clear(const struct looks *l)
{
	struct vs_look_cpu *none = calloc((size_t)l->n_cpus, sizeof(*none));
	const __u32 zero = 0;
	int error = none ? bpf_map_update_elem(l->cpus_fd, &zero, none, BPF_ANY) : -ENOMEM;

	free(none);
	return error;
}

static int count_attach(struct looks *l, const struct capture_look *look, size_t i, char *why,
			size_t why_bytes)
{
	LIBBPF_OPTS(bpf_tracepoint_opts, options, .bpf_cookie = i);
	struct bpf_program *program = bpf_object__find_program_by_name(l->mine, "vs_l_count");
	const libbpf_print_fn_t print = libbpf_set_print(NULL);
	int error = 0;

	if (program)
		l->counts[i] = bpf_program__attach_tracepoint_opts(program, look->counts[i].system,
								   look->counts[i].name, &options);
	if (!l->counts[i])
		error = program ? -errno : -EINVAL;
	libbpf_set_print(print);
	if (error == -ENOENT)
		snprintf(why, why_bytes, "this kernel has no %s:%s, or its module is not loaded",
			 look->counts[i].system, look->counts[i].name);
	else if (error)
		snprintf(why, why_bytes, "cannot count %s:%s: %s", look->counts[i].system,
			 look->counts[i].name, strerror(-error));
	return error == -EOPNOTSUPP ? -ENOTSUP : error;
}

static int looks_begin(struct looks *l, const struct capture_look *look, char *why,
		       size_t why_bytes)
{
	int error = l->mine ? 0 : loader_load_later(l->programs, LOOKS_LATER, NULL, NULL, &l->mine);

	if (error) {
		snprintf(why, why_bytes, "cannot load the programs that look: %s",
			 strerror(-error));
		return error;
	}
	error = cpus_clear(l);
	if (error)
		return error;
	l->look->least_ns = look->period_ns - look->period_ns / 8;
	l->look->first_test = look->n_tests ? look->first_test : VS_USER_KEEP;
	memcpy(l->look->tests, look->tests, sizeof(l->look->tests));
	for (size_t i = 0; i < look->n_counts && i < VS_LOOK_COUNTS && !error; i++)
		error = count_attach(l, look, i, why, why_bytes);
	if (error)
		return error;
	return sample_timers_attach(&l->timers, l->mine, "vs_l_look", look->period_ns, why,
				    why_bytes);
}

int looks_set(struct looks *l, const struct capture_look *look, char *why, size_t why_bytes)
{
	int error;

	looks_end(l);
	if (!look->period_ns)
		return 0;
	error = looks_begin(l, look, why, why_bytes);
	if (error)
		looks_end(l);
	return error;
}

uint64_t looks_hits(const struct looks *l)
{
	return __atomic_load_n(l->hits, __ATOMIC_RELAXED);
}
