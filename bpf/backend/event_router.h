/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Whose a host's events are, when one capture serves many users (capture_shared.h): each gets what
 * a capture of its own would give it. Replays the scheduler's events in the order of time, for a
 * switch also concerns those whose threads wait for that CPU.
 *
 * Cost: a few loads per event, whatever the number of users.
 */
#ifndef BACKEND_EVENT_ROUTER_H
#define BACKEND_EVENT_ROUTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "proto/event.h"

enum { ROUTER_USERS_MAX = 64 }; /* a set of users is a word of bits */

struct event_router;

struct event_router *event_router_new(size_t n_cpus); /* NULL on ENOMEM */
void event_router_free(struct event_router *r);

/* The thread is `user`'s from now on, and so are threads that its process creates later. 0,
 * -EBUSY: the same process is another user's, -ENOMEM. */
int event_router_follow(struct event_router *r, pid_t tid, pid_t tgid, unsigned int user);
/* What it does from now on is nobody's. 0, -ENOENT. */
int event_router_unfollow(struct event_router *r, pid_t tid);
/* Unfollows all threads of a user, which `each` hears of. */
void event_router_leave(struct event_router *r, unsigned int user,
			void (*each)(void *context, pid_t tid), void *context);
/* Whether a user wants events that the kernel does not ascribe to one VM. A new user does. */
void event_router_detail(struct event_router *r, unsigned int user, bool wanted);

/* The users whose event this is, as bits; the next one in the order of time. */
uint64_t event_router_route(struct event_router *r, const struct vs_event *event);
/* Whose thread this is now, -1: nobody's. */
int event_router_user_of(const struct event_router *r, pid_t tid);

/* Whether `user` must be told the name of a task before an event that names it; fills `out` but for
 * time, seq and cpu. It counts as told then. */
bool event_router_introduce(struct event_router *r, pid_t tid, unsigned int user,
			    struct vs_event *out);
/* The tasks that an event of the scheduler or of signals names, 0 where it names none. */
void event_router_tasks(const struct vs_event *event, pid_t tids[2]);

#endif
