/* SPDX-License-Identifier: GPL-2.0-only */
#include "bpf/backend/event_router.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "bpf/prog/user_slot.h"
#include "proto/event_catalog.h"

enum {
	THREAD_BUCKETS = 4096,
	/* A set-associative cache of names. It is larger than the cache of the kernel's programs,
	 * which emit a name only once. */
	NAME_SETS = 8192,
	NAME_SLOTS = 4,
	CHOSEN_MAX = VS_USER_SLOTS_MAX,
};

/* A thread of a user. */
struct routed_thread {
	pid_t tid, tgid;
	struct cpu_waiter wait;
	struct routed_thread *next;
};

struct task_name {
	pid_t tid, tgid; /* tid 0: free */
	uint64_t comm[2];
	struct user_set emitted; /* users who have received this name */
	uint64_t used;
};

struct event_router {
	struct cpu_waits *waits;
	struct user_set detail;
	unsigned int users_end; /* larger than the number of any user so far */
	pid_t processes[ROUTER_USERS_MAX];
	uint64_t clock; /* counts names that were looked up */
	struct routed_thread *threads[THREAD_BUCKETS];
	struct task_name names[NAME_SETS][NAME_SLOTS];
	struct chosen {
		uint32_t id; /* 0: free */
		struct user_set users;
		bool untraced;
	} chosen[CHOSEN_MAX];
};

struct event_router *event_router_new(size_t n_cpus)
{
	struct event_router *r = calloc(1, sizeof(*r));

	if (!r)
		return NULL;
	memset(&r->detail, 0xff, sizeof(r->detail));
	r->waits = cpu_waits_new(n_cpus, ROUTER_USERS_MAX);
	if (r->waits)
		return r;
	free(r);
	return NULL;
}

void event_router_free(struct event_router *r)
{
	if (!r)
		return;
	for (size_t i = 0; i < THREAD_BUCKETS; i++) {
		while (r->threads[i]) {
			struct routed_thread *t = r->threads[i];

			r->threads[i] = t->next;
			free(t);
		}
	}
	cpu_waits_free(r->waits);
	free(r);
}

/* ---- threads ---- */

static struct routed_thread **thread_at(struct event_router *r, pid_t tid)
{
	struct routed_thread **at = &r->threads[(uint32_t)tid % THREAD_BUCKETS];

	while (*at && (*at)->tid != tid)
		at = &(*at)->next;
	return at;
}

static struct routed_thread *thread_find(const struct event_router *r, pid_t tid)
{
	return *thread_at((struct event_router *)(uintptr_t)r, tid);
}

static void user_of_add(const struct event_router *r, pid_t tid, struct user_set *out)
{
	const struct routed_thread *t = thread_find(r, tid);

	if (t)
		user_set_add(out, t->wait.user);
}

static void thread_remove(struct event_router *r, struct routed_thread **at)
{
	struct routed_thread *t = *at;

	cpu_waits_leave(r->waits, &t->wait);
	*at = t->next;
	free(t);
}

int event_router_follow(struct event_router *r, pid_t tid, pid_t tgid, unsigned int user)
{
	struct routed_thread **at = thread_at(r, tid);

	for (unsigned int i = 0; i < r->users_end; i++) {
		if (i != user && r->processes[i] == tgid)
			return -EBUSY;
	}
	/* Whoever had a thread of this number did not hear of its end yet. */
	if (*at && (*at)->wait.user != user)
		thread_remove(r, at);
	if (!*at) {
		*at = calloc(1, sizeof(**at));
		if (!*at)
			return -ENOMEM;
		**at = (struct routed_thread){.tid = tid, .tgid = tgid, .wait = {user, -1, -1}};
	}
	r->processes[user] = tgid;
	if (user >= r->users_end)
		r->users_end = user + 1;
	return 0;
}

int event_router_unfollow(struct event_router *r, pid_t tid)
{
	struct routed_thread **at = thread_at(r, tid);

	if (!*at)
		return -ENOENT;
	thread_remove(r, at);
	return 0;
}

void event_router_leave(struct event_router *r, unsigned int user,
			void (*each)(void *context, pid_t tid), void *context)
{
	for (size_t i = 0; i < THREAD_BUCKETS; i++) {
		struct routed_thread **at = &r->threads[i];

		while (*at) {
			const pid_t tid = (*at)->tid;

			if ((*at)->wait.user != user) {
				at = &(*at)->next;
				continue;
			}
			thread_remove(r, at);
			each(context, tid);
		}
	}
	r->processes[user] = 0;
	user_set_add(&r->detail, user);
	for (size_t i = 0; i < NAME_SETS; i++) {
		for (size_t k = 0; k < NAME_SLOTS; k++) {
			/* An entry that was never used stays a page of zeros. */
			if (r->names[i][k].tid)
				user_set_remove(&r->names[i][k].emitted, user);
		}
	}
}

void event_router_detail(struct event_router *r, unsigned int user, bool wanted)
{
	if (wanted)
		user_set_add(&r->detail, user);
	else
		user_set_remove(&r->detail, user);
}

int event_router_user_of(const struct event_router *r, pid_t tid)
{
	const struct routed_thread *t = thread_find(r, tid);

	return t ? (int)t->wait.user : -1;
}

/* ---- names ---- */

static struct task_name *name_find(struct event_router *r, pid_t tid)
{
	struct task_name *set = r->names[(uint32_t)tid % NAME_SETS];

	for (size_t i = 0; i < NAME_SLOTS; i++) {
		if (set[i].tid == tid) {
			set[i].used = ++r->clock;
			return &set[i];
		}
	}
	return NULL;
}

static void name_learn(struct event_router *r, const struct vs_event *e)
{
	struct task_name *set = r->names[(uint32_t)e->pid % NAME_SETS], *to = set;

	for (size_t i = 0; i < NAME_SLOTS; i++) {
		if (set[i].tid == e->pid) {
			to = &set[i];
			break;
		}
		if (set[i].used < to->used)
			to = &set[i];
	}
	*to = (struct task_name){.tid = e->pid,
				 .tgid = e->pid2,
				 .comm = {ev_task_name_comm_low(e), ev_task_name_comm_high(e)},
				 .used = ++r->clock};
}

bool event_router_introduce(struct event_router *r, pid_t tid, unsigned int user,
			    struct vs_event *out)
{
	struct task_name *name = tid > 0 ? name_find(r, tid) : NULL;

	if (!name || user_set_has(&name->emitted, user))
		return false;
	user_set_add(&name->emitted, user);
	*out = (struct vs_event){.type = VS_EVENT_TASK_NAME, .pid = tid, .pid2 = name->tgid};
	ev_set_task_name_comm_low(out, name->comm[0]);
	ev_set_task_name_comm_high(out, name->comm[1]);
	return true;
}

/* Adds a thread that a user's process created meanwhile, which the programs follow by themselves.
 */
static void thread_adopt(struct event_router *r, pid_t tid, pid_t tgid)
{
	if (thread_find(r, tid))
		return;
	for (unsigned int i = 0; i < r->users_end; i++) {
		if (r->processes[i] == tgid)
			event_router_follow(r, tid, tgid, i);
	}
}

/* ---- events ---- */

static void route_of_switch(struct event_router *r, const struct vs_event *e, struct user_set *out)
{
	struct routed_thread *leaves = thread_find(r, e->pid), *comes = thread_find(r, e->pid2);

	cpu_waits_users(r->waits, e->cpu, out);
	if (comes)
		user_set_add(out, comes->wait.user);
	if (leaves)
		user_set_add(out, leaves->wait.user);
	cpu_waits_switch(r->waits, e, leaves ? &leaves->wait : NULL, comes ? &comes->wait : NULL);
	if (leaves && ev_sched_switch_state(e) & VS_TASK_DEAD)
		thread_remove(r, thread_at(r, e->pid));
}

static void route_of_wakeup(struct event_router *r, const struct vs_event *e, struct user_set *out)
{
	struct routed_thread *t = thread_find(r, e->pid);

	if (!t)
		return;
	cpu_waits_wakeup(r->waits, e, &t->wait);
	user_set_add(out, t->wait.user);
}

static void route_of_new_thread(struct event_router *r, const struct vs_event *e,
				struct user_set *out)
{
	const struct task_name *name = name_find(r, e->pid);

	if (name)
		thread_adopt(r, e->pid, name->tgid);
	route_of_wakeup(r, e, out);
}

static void route_of_migration(struct event_router *r, const struct vs_event *e,
			       struct user_set *out)
{
	struct routed_thread *t = thread_find(r, e->pid);

	if (!t)
		return;
	cpu_waits_migrate(r->waits, e, &t->wait);
	user_set_add(out, t->wait.user);
}

static void route_of_signal(struct event_router *r, const struct vs_event *e, struct user_set *out)
{
	for (unsigned int i = 0; i < r->users_end; i++) {
		if (r->processes[i] && r->processes[i] == (pid_t)ev_signal_process(e))
			user_set_add(out, i);
	}
}

/* Passes a name to the users of the thread at once, and to others when they see the task. */
static void route_of_name(struct event_router *r, const struct vs_event *e, struct user_set *out)
{
	name_learn(r, e);
	thread_adopt(r, e->pid, e->pid2);
	user_of_add(r, e->pid, out);
	user_set_join(&name_find(r, e->pid)->emitted, out);
}

static void route_of_request_end(struct event_router *r, const struct vs_event *e,
				 struct user_set *out)
{
	const struct routed_thread *t = thread_find(r, e->pid2);

	if (t && user_set_has(&r->detail, t->wait.user))
		user_set_add(out, t->wait.user);
}

static struct chosen *chosen_find(struct event_router *r, uint32_t id)
{
	for (size_t i = 0; i < CHOSEN_MAX; i++) {
		if (r->chosen[i].id == id)
			return &r->chosen[i];
	}
	return NULL;
}

int event_router_choose(struct event_router *r, uint32_t id, const struct user_set *users,
			bool untraced)
{
	struct chosen *c = chosen_find(r, id);

	if (!c)
		c = chosen_find(r, 0); /* a free one */
	if (!c)
		return -ENOSPC;
	*c = (struct chosen){
		.id = user_set_is_empty(users) ? 0 : id, .users = *users, .untraced = untraced};
	return 0;
}

static void route_of_chosen(struct event_router *r, const struct vs_event *e, struct user_set *out)
{
	const struct routed_thread *t = thread_find(r, e->pid);
	const struct chosen *c = chosen_find(r, ev_user_id(e));

	if (!c || !c->id)
		return;
	if (c->untraced)
		*out = c->users;
	else if (t && user_set_has(&c->users, t->wait.user))
		user_set_add(out, t->wait.user);
}

typedef void (*route)(struct event_router *r, const struct vs_event *e, struct user_set *out);

/* The types of VS_SCOPE_TASKS that also change the threads, or go to other users than their task's.
 */
static const route routes[VS_EVENT_TYPE_LIMIT] = {
	[VS_EVENT_SCHED_SWITCH] = route_of_switch,
	[VS_EVENT_SCHED_WAKEUP] = route_of_wakeup,
	[VS_EVENT_SCHED_WAKEUP_NEW] = route_of_new_thread,
	[VS_EVENT_SCHED_MIGRATE] = route_of_migration,
	[VS_EVENT_SIGNAL] = route_of_signal,
	[VS_EVENT_TASK_NAME] = route_of_name,
};

void event_router_route(struct event_router *r, const struct vs_event *event, struct user_set *out)
{
	*out = (struct user_set){0};
	switch ((enum vs_scope)event_type_of(event->type)->scope) {
	case VS_SCOPE_TASKS:
		if (routes[event->type]) {
			routes[event->type](r, event, out);
			return;
		}
		break;
	case VS_SCOPE_ANYONE:
		/* Any task may raise it, or an interrupt in any task. The kernel does not say for
		 * which VM. */
		*out = r->detail;
		return;
	case VS_SCOPE_END:
		route_of_request_end(r, event, out);
		return;
	case VS_SCOPE_FOLLOWED:
	case VS_SCOPE_BEGIN:
		break;
	case VS_SCOPE_CHOSEN:
		route_of_chosen(r, event, out);
		return;
	}
	user_of_add(r, event->pid, out);
}

void event_router_tasks(const struct vs_event *event, pid_t tids[2])
{
	tids[0] = tids[1] = 0;
	if (event->type == VS_EVENT_USER)
		tids[0] = event->pid;
	if (event_type_of(event->type)->scope != VS_SCOPE_TASKS ||
	    event->type == VS_EVENT_TASK_NAME)
		return;
	tids[0] = event->pid;
	tids[1] = event->type == VS_EVENT_TASK_EXIT ? 0 : event->pid2;
}
