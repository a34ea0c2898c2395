/* SPDX-License-Identifier: GPL-2.0-only */
#include "bpf/backend/loader.h"

#include <bpf/btf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bpf/capture/explain.h"
#include "bpf/capture/lockdown.h"

static const char mandatory[] = "sched_switch";

enum { VERIFIER_LOG_BYTES = 1 << 20 };

/* Returns "sched_switch" for "tp_btf/sched_switch", or NULL if the program is not on a tracepoint.
 */
static const char *program_tracepoint(const struct bpf_program *program)
{
	const char *section = bpf_program__section_name(program);

	if (!strncmp(section, "tp_btf/", 7) || !strncmp(section, "raw_tp/", 7))
		return section + 7;
	return NULL;
}

static bool program_begins(const struct bpf_program *program, const char *name)
{
	return !strncmp(bpf_program__name(program), name, strlen(name));
}

/* Returns the prototype of a tracepoint's probes, with the leading void *, or NULL if there is no
 * such tracepoint. */
static const struct btf_type *tracepoint_prototype(const struct btf *kernel, const char *name)
{
	char type_name[128];
	const struct btf_type *type;
	int id;

	snprintf(type_name, sizeof(type_name), "btf_trace_%s", name);
	id = btf__find_by_name_kind(kernel, type_name, BTF_KIND_TYPEDEF);
	if (id < 0)
		return NULL;
	type = btf__type_by_id(kernel, btf__type_by_id(kernel, (__u32)id)->type);
	if (!type || !btf_is_ptr(type))
		return NULL;
	type = btf__type_by_id(kernel, type->type);
	return type && btf_is_func_proto(type) ? type : NULL;
}

long loader_variable_offset(struct bpf_object *object, const char *section, const char *name,
			    size_t bytes)
{
	const struct btf *btf = bpf_object__btf(object);
	const int id = btf ? btf__find_by_name_kind(btf, section, BTF_KIND_DATASEC) : -ENOENT;
	const struct btf_type *data;
	const struct btf_var_secinfo *variables;

	if (id < 0)
		return -ENOENT;
	data = btf__type_by_id(btf, (__u32)id);
	variables = btf_var_secinfos(data);
	for (unsigned int i = 0; i < btf_vlen(data); i++) {
		const struct btf_type *variable = btf__type_by_id(btf, variables[i].type);

		if (!strcmp(btf__name_by_offset(btf, variable->name_off), name) &&
		    variables[i].size == bytes)
			return variables[i].offset;
	}
	return -ENOENT;
}

struct bpf_map *loader_section(struct bpf_object *object, const char *section)
{
	struct bpf_map *map;

	bpf_object__for_each_map(map, object)
	{
		const char *name = bpf_map__name(map);
		const char *dot = strrchr(name, '.');

		if (bpf_map__is_internal(map) && dot && !strcmp(dot, section))
			return map;
	}
	return NULL;
}

void *loader_variable(struct bpf_object *object, const char *section, const char *name,
		      size_t bytes)
{
	const long offset = loader_variable_offset(object, section, name, bytes);
	struct bpf_map *map = loader_section(object, section);
	size_t size;
	char *value;

	if (offset < 0 || !map)
		return NULL;
	/* libbpf 1.1 declares it const; it is the writable copy that the load will use. */
	value = (char *)(uintptr_t)bpf_map__initial_value(map, &size);
	return value ? value + offset : NULL;
}

static struct bpf_object *object_open(const struct loader_request *request,
				      const struct loader_build *build)
{
	LIBBPF_OPTS(bpf_object_open_opts, options, .object_name = build->name);
	size_t bytes;
	const void *elf = build->elf(&bytes);
	struct bpf_object *object = bpf_object__open_mem(elf, bytes, &options);
	struct bpf_program *program;
	int error;

	if (!object)
		return NULL;
	bpf_object__for_each_program(program, object)
	{
		for (size_t i = 0; request->later && request->later[i]; i++) {
			if (program_begins(program, request->later[i]))
				bpf_program__set_autoload(program, false);
		}
	}
	error = request->prepare(request->context, object);
	if (error) {
		bpf_object__close(object);
		errno = -error;
		return NULL;
	}
	return object;
}

/* Leaves out what this kernel does not have, and sets the variables that say which prototypes it
 * has. */
static int object_adapt(struct bpf_object *object, const struct btf *kernel, char *left_out,
			size_t left_out_bytes)
{
	bool *has_state = loader_variable(object, ".rodata", "switch_has_state", sizeof(bool));
	struct bpf_program *program;
	size_t used = 0;

	left_out[0] = '\0';
	bpf_object__for_each_program(program, object)
	{
		const char *name = program_tracepoint(program);
		const struct btf_type *prototype;

		if (!name)
			continue;
		prototype = tracepoint_prototype(kernel, name);
		if (!strcmp(name, mandatory)) {
			if (!prototype)
				return -ENOENT;
			/* void *, preempt, prev, next[, prev_state] */
			if (has_state)
				*has_state = btf_vlen(prototype) >= 5;
		} else if (!prototype) {
			bpf_program__set_autoload(program, false);
			used += (size_t)snprintf(left_out + used, left_out_bytes - used, "%s%s",
						 used ? ", " : "", name);
			if (used >= left_out_bytes)
				used = left_out_bytes - 1;
		}
	}
	return 0;
}

/* Finds the line that names the fault: the verifier writes it before the statistics at the log's
 * end.
 */
static void verifier_summary(char *log, char *out, size_t out_bytes)
{
	char *line, *rest = log;
	const char *last = "no verifier log";

	while ((line = strsep(&rest, "\n"))) {
		if (*line && strncmp(line, "processed ", 10) &&
		    strncmp(line, "verification time", 17) && strncmp(line, "stack depth", 11) &&
		    strncmp(line, "max_states", 10))
			last = line;
	}
	snprintf(out, out_bytes, "%.160s", last);
}

/* After a failed load, loads program by program to name the first that fails. */
static int diagnose(const struct loader_request *request, const struct loader_build *build,
		    const struct btf *kernel, int load_error, char *why, size_t why_bytes)
{
	char *log = malloc(VERIFIER_LOG_BYTES), summary[192], left_out[256];
	struct bpf_program *program;

	if (!log)
		return explain(why, why_bytes, -ENOMEM, "out of memory");
	for (int chosen = 0; chosen < LOADER_PROGRAMS_MAX; chosen++) {
		struct bpf_object *object = object_open(request, build);
		const char *name = NULL;
		int error = 0, i = 0;

		if (!object || object_adapt(object, kernel, left_out, sizeof(left_out))) {
			bpf_object__close(object);
			break;
		}
		bpf_object__for_each_program(program, object)
		{
			if (i++ != chosen) {
				bpf_program__set_autoload(program, false);
				continue;
			}
			if (bpf_program__autoload(program)) {
				name = bpf_program__name(program);
				log[0] = '\0';
				bpf_program__set_log_buf(program, log, VERIFIER_LOG_BYTES);
			}
		}
		if (name)
			error = bpf_object__load(object);
		if (error) {
			const bool seen =
				log[0]; /* without rights, the verifier does not even begin */

			verifier_summary(log, summary, sizeof(summary));
			if (error == -EPERM && !seen) {
				bpf_object__close(object);
				break;
			}
			if (lockdown_explains(LOCKDOWN_PATH, summary))
				explain(why, why_bytes, error,
					"the kernel is locked down (mode confidentiality) and "
					"forbids BPF to read its memory: boot with "
					"lockdown=integrity, or without Secure Boot");
			else
				explain(why, why_bytes, error,
					"this kernel refuses BPF program %s: %s (%s); please report it",
					name, strerror(-error), summary);
			bpf_object__close(object);
			free(log);
			return error;
		}
		bpf_object__close(object);
		if (chosen >= i)
			break;
	}
	free(log);
	if (load_error == -EPERM)
		return explain(why, why_bytes, load_error,
			       "BPF is not permitted: run as root (CAP_BPF and CAP_PERFMON)");
	return explain(why, why_bytes, load_error,
		       "cannot load the BPF programs %s: %s; check the memory limits of this "
		       "service (ulimit -l, cgroup)",
		       build->name, strerror(-load_error));
}

static int object_attach(struct loader_object *o, char *why, size_t why_bytes)
{
	struct bpf_program *program;

	bpf_object__for_each_program(program, o->object)
	{
		const char *name = program_tracepoint(program);
		struct bpf_link *link;

		if (!name || !bpf_program__autoload(program))
			continue;
		if (o->n_links == LOADER_PROGRAMS_MAX)
			return explain(why, why_bytes, -E2BIG, "more than %d BPF programs",
				       LOADER_PROGRAMS_MAX);
		link = bpf_program__attach(program);
		if (link) {
			o->links[o->n_links++] = link;
		} else if (!strcmp(name, mandatory)) {
			const int error = -errno;

			return explain(why, why_bytes, error,
				       "cannot attach to tracepoint %s: %s; is another tool or a "
				       "kernel lockdown in the way?",
				       name, strerror(-error));
		} else {
			const size_t used = strlen(o->left_out);

			snprintf(o->left_out + used, sizeof(o->left_out) - used, "%s%s",
				 used ? ", " : "", name);
		}
	}
	return 0;
}

/* Finds out whether BPF is permitted before anything large is loaded. */
static int check_permission(char *why, size_t why_bytes)
{
	const int fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, "vs_probe", 4, 4, 1, NULL);

	if (fd >= 0) {
		close(fd);
		return 0;
	}
	if (fd == -ENOSYS)
		return explain(why, why_bytes, fd,
			       "this kernel has no bpf() system call (CONFIG_BPF_SYSCALL)");
	if (fd == -EPERM)
		return explain(why, why_bytes, fd,
			       "BPF is not permitted: run as root (CAP_BPF and CAP_PERFMON)");
	return explain(why, why_bytes, fd, "bpf() fails: %s", strerror(-fd));
}

/* libbpf returns ESRCH ("No such process") for a file that is missing. */
static int no_btf(int error, char *why, size_t why_bytes)
{
	const char *const path = "/sys/kernel/btf/vmlinux";

	if (access(path, R_OK))
		return explain(why, why_bytes, -errno,
			       "this kernel has no type information (%s: %s): BPF needs one built "
			       "with CONFIG_DEBUG_INFO_BTF=y",
			       path, strerror(errno));
	return explain(why, why_bytes, error ? error : -EINVAL,
		       "this kernel's type information (%s) cannot be used: %s", path,
		       strerror(error ? -error : EINVAL));
}

int loader_load(const struct loader_request *request, struct loader_object *out, char *why,
		size_t why_bytes)
{
	const libbpf_print_fn_t print = libbpf_set_print(NULL);
	struct btf *kernel = NULL;
	int error;

	*out = (struct loader_object){0};
	error = check_permission(why, why_bytes);
	if (error)
		goto out;
	kernel = btf__load_vmlinux_btf();
	if (!kernel) {
		error = no_btf(-errno, why, why_bytes);
		goto out;
	}
	for (size_t i = 0; i < request->n_builds; i++) {
		out->object = object_open(request, &request->builds[i]);
		if (!out->object) {
			error = explain(why, why_bytes, -errno, "cannot set up BPF maps: %s",
					strerror(errno));
			goto out;
		}
		error = object_adapt(out->object, kernel, out->left_out, sizeof(out->left_out));
		if (error) {
			explain(why, why_bytes, error,
				"this kernel has no tracepoint %s: nothing can be captured",
				mandatory);
			goto out;
		}
		error = bpf_object__load(out->object);
		if (!error) {
			out->build = &request->builds[i];
			break;
		}
		bpf_object__close(out->object);
		out->object = NULL;
	}
	if (error) {
		error = diagnose(request, &request->builds[0], kernel, error, why, why_bytes);
		goto out;
	}
	error = request->loaded(request->context, out->object);
	if (error) {
		explain(why, why_bytes, error, "cannot map the capture's rings: %s",
			strerror(-error));
		goto out;
	}
	error = object_attach(out, why, why_bytes);
out:
	if (error)
		loader_unload(out);
	btf__free(kernel);
	libbpf_set_print(print);
	return error;
}

void loader_unload(struct loader_object *o)
{
	for (size_t i = 0; i < o->n_links; i++)
		bpf_link__destroy(o->links[i]);
	bpf_object__close(o->object);
	*o = (struct loader_object){0};
}

/* Makes an object use the maps of another instead of new ones. */
static int maps_share(struct bpf_object *object, const struct bpf_object *with)
{
	struct bpf_map *map;
	int error = 0;

	bpf_object__for_each_map(map, object)
	{
		const int fd = bpf_object__find_map_fd_by_name(with, bpf_map__name(map));

		error = fd < 0 ? fd : bpf_map__reuse_fd(map, fd);
		if (error)
			break;
	}
	return error;
}

int loader_load_later(const struct loader_object *o, const char *later,
		      int (*prepare)(void *context, struct bpf_object *object), void *context,
		      struct bpf_object **out)
{
	LIBBPF_OPTS(bpf_object_open_opts, options, .object_name = o->build->name);
	const libbpf_print_fn_t print = libbpf_set_print(NULL);
	size_t bytes;
	const void *elf = o->build->elf(&bytes);
	struct bpf_object *object = bpf_object__open_mem(elf, bytes, &options);
	struct bpf_program *program;
	int error = object ? maps_share(object, o->object) : -errno;
	bool any = false;

	if (error)
		goto out;
	bpf_object__for_each_program(program, object)
	{
		const bool wanted = program_begins(program, later);

		bpf_program__set_autoload(program, wanted);
		any |= wanted;
	}
	if (!any) {
		error = -ENOENT;
		goto out;
	}
	if (prepare)
		error = prepare(context, object);
	if (!error)
		error = bpf_object__load(object);
out:
	if (error) {
		bpf_object__close(object);
		object = NULL;
	}
	libbpf_set_print(print);
	*out = object;
	return error;
}
