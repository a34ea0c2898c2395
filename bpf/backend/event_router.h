/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Decides which users an event of the host concerns when one capture serves many users
 * (capture_shared.h): each user gets the events that a capture of its own would give it. The router
 * must receive the events in the order of time, because it tracks which threads wait for which CPU:
 * a switch also concerns the users whose threads wait for that CPU.
 *
 * Cost: a few loads per event. For most events the cost does not depend on the number of users.
 */
#ifndef BACKEND_EVENT_ROUTER_H
#define BACKEND_EVENT_ROUTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "bpf/capture/cpu_waits.h"
#include "bpf/capture/user_set.h"
#include "proto/event.h"

enum { ROUTER_USERS_MAX = USER_SET_MAX };

struct event_router;

struct event_router *event_router_new(size_t n_cpus); /* NULL if out of memory */
void event_router_free(struct event_router *r);

/* Assigns a thread, and the threads that its process creates later, to `user`. Returns 0, -EBUSY:
 * the process belongs to another user, -ENOMEM. */
int event_router_follow(struct event_router *r, pid_t tid, pid_t tgid, unsigned int user);
/* Removes a thread; its later events concern no user. Returns 0 or -ENOENT. */
int event_router_unfollow(struct event_router *r, pid_t tid);
/* Removes all threads of a user and calls `each` for every one. */
void event_router_leave(struct event_router *r, unsigned int user,
			void (*each)(void *context, pid_t tid), void *context);
/* Sets whether a user gets events that the kernel does not assign to one VM. A new user gets them.
 */
void event_router_detail(struct event_router *r, unsigned int user, bool wanted);

/* Sets the users that chose the event with this id (proto/user_event.h). An empty set removes the
 * event. untraced: hits in any task concern these users; otherwise only hits in their threads do.
 * Returns 0 or -ENOSPC. */
int event_router_choose(struct event_router *r, uint32_t id, const struct user_set *users,
			bool untraced);

/* Sets `out` to the users that the event concerns. Call it for every event, in the order of time.
 */
void event_router_route(struct event_router *r, const struct vs_event *event, struct user_set *out);
/* Returns the user to which the thread belongs now, or -1 if it belongs to none. */
int event_router_user_of(const struct event_router *r, pid_t tid);

/* Returns true if `user` needs a TASK_NAME of this task before an event that names the task. Fills
 * `out` with it, except for time, seq and cpu, and records that the user has the name. */
bool event_router_introduce(struct event_router *r, pid_t tid, unsigned int user,
			    struct vs_event *out);
/* Sets tids to the tasks that an event of the scheduler or of signals names; 0: no task. */
void event_router_tasks(const struct vs_event *event, pid_t tids[2]);

#endif
