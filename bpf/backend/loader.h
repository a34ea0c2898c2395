/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Loads and attaches one of our BPF objects: leaves out programs whose tracepoint this kernel does
 * not have, falls back to the raw-tracepoint build if the verifier refuses the BTF-typed one, and
 * turns a failure into one line that says what to do.
 */
#ifndef BACKEND_LOADER_H
#define BACKEND_LOADER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>

enum { LOADER_PROGRAMS_MAX = 32 };

struct loader_object {
	struct bpf_object *object;
	struct bpf_link *links[LOADER_PROGRAMS_MAX];
	size_t n_links;
	char left_out[256]; /* names of tracepoints that are not captured here, "" if all are */
};

/* One build of a source: its name in messages, and the ELF file. */
struct loader_build {
	const char *name;
	const void *(*elf)(size_t *bytes);
};

struct loader_request {
	const struct loader_build *builds; /* tried one after the other */
	size_t n_builds;
	/* Sets variables and map sizes of an opened object, before each attempt to load it. */
	int (*prepare)(void *context, struct bpf_object *object);
	/* Uses the loaded object's maps before any program runs. */
	int (*loaded)(void *context, struct bpf_object *object);
	void *context;
};

/* 0 or -errno with one line in `why`. On success the object is loaded and attached. */
int loader_load(const struct loader_request *request, struct loader_object *out, char *why,
		size_t why_bytes);
void loader_unload(struct loader_object *o);

/* Initial value of a global variable of an opened, not yet loaded object; NULL if there is none of
 * this name and size. section: ".rodata", ".data" or ".bss". */
void *loader_variable(struct bpf_object *object, const char *section, const char *name,
		      size_t bytes);
/* The map that holds a section's variables, NULL if there is none. */
struct bpf_map *loader_section(struct bpf_object *object, const char *section);
/* Byte offset of a global variable in its section, or -ENOENT. */
long loader_variable_offset(struct bpf_object *object, const char *section, const char *name,
			    size_t bytes);

#endif
