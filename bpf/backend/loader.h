/* SPDX-License-Identifier: GPL-2.0-only */
/* Loads and attaches one of the project's BPF objects. Leaves out the programs whose tracepoints
 * this kernel does not have. Tries the raw-tracepoint build if the verifier refuses the BTF-typed
 * one. Describes a failure in one line that says what to do. */
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
	const struct loader_build *build; /* the build that was loaded; borrowed from the request */
	struct bpf_link *links[LOADER_PROGRAMS_MAX];
	size_t n_links;
	char left_out[256]; /* names of tracepoints that are not captured, "" if none */
};

/* A build of a source: its name for messages, and a function that returns its ELF file. */
struct loader_build {
	const char *name;
	const void *(*elf)(size_t *bytes);
};

struct loader_request {
	const struct loader_build *builds; /* tried in this order */
	size_t n_builds;
	/* Programs whose names begin with one of these are left to loader_load_later(). Ends with
	 * NULL. */
	const char *const *later;
	/* Sets variables and map sizes of an opened object before each attempt to load it. Returns
	 * 0 or -errno. */
	int (*prepare)(void *context, struct bpf_object *object);
	/* Uses the maps of the loaded object before any program runs. Returns 0 or -errno. */
	int (*loaded)(void *context, struct bpf_object *object);
	void *context;
};

/* Loads and attaches the object. Returns 0, or -errno with one line in `why`. loader_unload()
 * releases it. */
int loader_load(const struct loader_request *request, struct loader_object *out, char *why,
		size_t why_bytes);
void loader_unload(struct loader_object *o);
/* Loads the programs whose names begin with `later` into an object of their own, which shares all
 * maps with the first. Attaches none of them. prepare: called before the load, returns 0 or -errno;
 * may be NULL. Returns 0, -ENOENT if there are none, or another -errno. The caller closes `out`
 * with bpf_object__close(). */
int loader_load_later(const struct loader_object *o, const char *later,
		      int (*prepare)(void *context, struct bpf_object *object), void *context,
		      struct bpf_object **out);

/* Returns the initial value of a global variable of an object that is opened but not loaded; NULL
 * if the section has no variable of this name and size. section: ".rodata", ".data" or ".bss". */
void *loader_variable(struct bpf_object *object, const char *section, const char *name,
		      size_t bytes);
/* Returns the map that holds the variables of a section, NULL if there is none. */
struct bpf_map *loader_section(struct bpf_object *object, const char *section);
/* Returns the offset of a global variable in its section, in bytes, or -ENOENT. */
long loader_variable_offset(struct bpf_object *object, const char *section, const char *name,
			    size_t bytes);

#endif
