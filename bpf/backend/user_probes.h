/* SPDX-License-Identifier: GPL-2.0-only */
/* Captures the events that the user chose, in the BPF backend (bpf/prog/user_slot.h). Functions
 * without a comment do what capture_event.h says of their counterparts. */
#ifndef BACKEND_USER_PROBES_H
#define BACKEND_USER_PROBES_H

#include "bpf/backend/loader.h"
#include "bpf/capture/capture_event.h"

struct user_probes;

/* The programs' names begin with this. They are loaded with the first event (user_program.h). */
#define USER_PROBES_LATER "vs_u_"

/* Finds the maps of a loaded object, which is borrowed. globals: its .bss, mapped. Returns 0,
 * -EINVAL or -ENOMEM. */
int user_probes_new(const struct loader_object *programs, void *globals, struct user_probes **out);
void user_probes_free(struct user_probes *p); /* NULL is allowed */
/* Limits the hits of all events together, per second and CPU; 0: no limit. */
void user_probes_limit(struct user_probes *p, uint32_t rate);
/* vms: the VMs in whose threads hits are captured, as bits 1 << (number of the VM % 64). */
int user_probes_add(struct user_probes *p, const struct capture_event *event, uint64_t vms,
		    uint32_t *id);
/* Changes `vms` of an event. 0 detaches the event for good. */
void user_probes_vms(struct user_probes *p, uint32_t id, uint64_t vms);
int user_probes_watch(struct user_probes *p, const struct capture_watch *watch);
uint64_t user_probes_unwatched(const struct user_probes *p);
void user_probes_stop(struct user_probes *p, uint32_t id);
int user_probes_state(struct user_probes *p, uint32_t id, uint64_t now_ms,
		      struct capture_event_state *out);

#endif
