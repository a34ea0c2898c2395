/* SPDX-License-Identifier: GPL-2.0-only */
/* Implements the looks of the BPF backend (bpf/prog/look_shared.h). */
#ifndef BACKEND_LOOKS_H
#define BACKEND_LOOKS_H

#include "bpf/backend/loader.h"
#include "bpf/capture/capture_look.h"

struct looks;

/* The programs' names begin with this. They are loaded with the first look. */
#define LOOKS_LATER "vs_l_"

/* Finds the maps of a loaded object, which is borrowed. globals: its .bss, mapped. Returns 0,
 * -EINVAL or -ENOMEM. */
int looks_new(const struct loader_object *programs, void *globals, struct looks **out);
void looks_free(struct looks *l); /* NULL is allowed */
/* Implement capture_look_set() and capture_look_hits(). */
int looks_set(struct looks *l, const struct capture_look *look, char *why, size_t why_bytes);
uint64_t looks_hits(const struct looks *l);

#endif
