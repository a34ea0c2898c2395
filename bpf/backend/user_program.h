/* SPDX-License-Identifier: GPL-2.0-only */
/* The programs of the events that the user chose: copies of one program of the loaded object, with
 * the gaps of user_slot.h filled for one event each. */
#ifndef BACKEND_USER_PROGRAM_H
#define BACKEND_USER_PROGRAM_H

#include "bpf/backend/loader.h"
#include "bpf/capture/capture_event.h"

struct user_program;

/* Loads the program with all numbers 0, so that libbpf adapts it to this kernel, and the other
 * programs whose names begin with USER_PROBES_LATER. *out: the caller frees it with
 * user_program_free(). Returns 0 or -errno. */
int user_program_new(const struct loader_object *programs, struct user_program **out);
void user_program_free(struct user_program *p); /* NULL is allowed */
/* Returns the object that holds these programs; borrowed. */
struct bpf_object *user_program_object(struct user_program *p);
/* Loads the program of an event and attaches it. slot: index in user_slots. Returns a file
 * descriptor, which detaches and unloads the program when it is closed; -EINVAL: a value cannot be
 * read; or another -errno. */
int user_program_attach(const struct user_program *p, const struct capture_event *event,
			uint32_t slot);

#endif
