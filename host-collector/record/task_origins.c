/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/record/task_origins.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "clock/sample.h"
#include "host-collector/vm/task_files.h"
#include "proto/event_fields.h"

enum {
	KNOWN_SLOTS = 1024, /* threads of one stream, by id */
	QUEUE_MAX = 512,    /* questions of all streams */
	ANSWERS_MAX = 256,  /* of one stream that were not taken */
	LOOKUPS_A_TURN = 8,
	TURN_NS = 20000000, /* so 400 lookups a second at most */
	READ_SLOTS = 256,   /* tasks that were read last, by id */
	END_MS = 200,
	STACK_BYTES = 256 * 1024,
};

/* A task may move to another cgroup: a stream asks again after the first time, and what was read
 * for another stream serves for the second. */
static const uint64_t again_ns = VS_REPEAT_S * 1000000000ull, read_again_ns = 5000000000;

/* A thread, as an event described it. */
struct known_task {
	int32_t tid, tgid;
	char comm[16];
	uint64_t asked_ns; /* 0: not yet */
};

struct question {
	struct origins_asker *asker; /* NULL: it is gone */
	struct task_identity task;
	uint64_t tsc;
};

struct answer {
	struct task_facts facts;
	uint64_t tsc; /* of the event that asked */
};

/* What /proc said about a task. Streams that share the thread ask about the same tasks, because a
 * task ran beside many VMs. */
struct read_task {
	struct task_identity task; /* tid 0: none; seen_ns: when it was read */
	struct task_facts facts;
	uint64_t began_ns;
};

struct origins_asker {
	struct task_origins *owner;
	struct known_task known[KNOWN_SLOTS];
	size_t n_answers; /* under the owner's lock, like the next */
	struct answer answers[ANSWERS_MAX];
};

struct task_origins {
	pthread_mutex_t lock;
	pthread_cond_t asked, ended;
	struct task_files files;
	bool stop, over;                /* over: the thread has ended */
	bool left;                      /* by its owner: the thread frees it */
	struct origins_asker *busy_for; /* whose question is being answered */
	size_t first, n;
	struct question queue[QUEUE_MAX];
	struct read_task read[READ_SLOTS]; /* the thread's */
};

static void origins_delete(struct task_origins *o)
{
	pthread_cond_destroy(&o->asked);
	pthread_cond_destroy(&o->ended);
	pthread_mutex_destroy(&o->lock);
	free(o);
}

/* Is what was read of this task still good? If it was read after it was seen, it had its id from
 * its begin until then, so nothing else can have been seen. Else /proc says whether it is still
 * there. It may have begun a tick later than /proc says. */
static bool read_serves(const struct task_origins *o, const struct read_task *r,
			const struct task_identity *task, uint64_t now_ns)
{
	uint64_t age_ns;

	if (r->task.tid != task->tid || r->task.tgid != task->tgid ||
	    memcmp(r->task.comm, task->comm, sizeof(task->comm)) != 0 ||
	    now_ns - r->task.seen_ns >= read_again_ns ||
	    task->seen_ns < r->began_ns + o->files.tick_ns)
		return false;
	return task->seen_ns <= r->task.seen_ns ||
	       (!task_age_read(&o->files, task, &age_ns) && task->seen_ns - age_ns == r->began_ns);
}

static bool facts_find(struct task_origins *o, const struct task_identity *task,
		       struct task_facts *out)
{
	struct read_task *r = &o->read[(uint32_t)task->tid % READ_SLOTS];
	const uint64_t now_ns = clock_monotonic_ns();

	if (read_serves(o, r, task, now_ns)) {
		*out = r->facts;
		out->age_ns = task->seen_ns - r->began_ns;
		return true;
	}
	if (task_facts_read(&o->files, task, out))
		return false;
	*r = (struct read_task){
		.task = *task, .facts = *out, .began_ns = task->seen_ns - out->age_ns};
	r->task.seen_ns = now_ns;
	return true;
}

/* The thread's. Holds the lock when it begins and when it ends. */
static void one_answer(struct task_origins *o)
{
	struct question q = o->queue[o->first];
	struct answer answer = {.tsc = q.tsc};
	bool found;

	o->first = (o->first + 1) % QUEUE_MAX;
	o->n--;
	if (!q.asker)
		return;
	o->busy_for = q.asker;
	pthread_mutex_unlock(&o->lock);
	found = facts_find(o, &q.task, &answer.facts);
	pthread_mutex_lock(&o->lock);
	/* Freed meanwhile? */
	if (found && o->busy_for && o->busy_for->n_answers < ANSWERS_MAX)
		o->busy_for->answers[o->busy_for->n_answers++] = answer;
	o->busy_for = NULL;
}

static void *work(void *context)
{
	const struct timespec pause = {.tv_nsec = TURN_NS};
	struct task_origins *o = context;
	bool left;

	pthread_mutex_lock(&o->lock);
	while (!o->stop) {
		if (!o->n) {
			pthread_cond_wait(&o->asked, &o->lock);
			continue;
		}
		for (int i = 0; i < LOOKUPS_A_TURN && o->n && !o->stop; i++)
			one_answer(o);
		pthread_mutex_unlock(&o->lock);
		nanosleep(&pause, NULL);
		pthread_mutex_lock(&o->lock);
	}
	o->over = true;
	left = o->left;
	pthread_cond_signal(&o->ended);
	pthread_mutex_unlock(&o->lock);
	if (left)
		origins_delete(o);
	return NULL;
}

static int thread_start(struct task_origins *o)
{
	pthread_attr_t attr;
	pthread_t thread;
	int err = pthread_attr_init(&attr);

	if (err)
		return err;
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	pthread_attr_setstacksize(&attr, STACK_BYTES);
	err = pthread_create(&thread, &attr, work, o);
	pthread_attr_destroy(&attr);
	return err;
}

struct task_origins *task_origins_new(const char *proc, const char *passwd)
{
	struct task_origins *o = calloc(1, sizeof(*o));
	pthread_condattr_t attr;

	if (!o)
		return NULL;
	task_facts_init(&o->files, proc, passwd);
	pthread_mutex_init(&o->lock, NULL);
	pthread_cond_init(&o->asked, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&o->ended, &attr);
	pthread_condattr_destroy(&attr);
	if (thread_start(o)) {
		origins_delete(o);
		return NULL;
	}
	return o;
}

void task_origins_free(struct task_origins *o)
{
	struct timespec until;
	bool over;

	if (!o)
		return;
	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_nsec += END_MS * 1000000L;
	until.tv_sec += until.tv_nsec / 1000000000;
	until.tv_nsec %= 1000000000;
	pthread_mutex_lock(&o->lock);
	o->stop = true;
	pthread_cond_signal(&o->asked);
	while (!o->over && !pthread_cond_timedwait(&o->ended, &o->lock, &until))
		;
	over = o->over;
	o->left = !over;
	pthread_mutex_unlock(&o->lock);
	if (over)
		origins_delete(o);
}

struct origins_asker *origins_asker_new(struct task_origins *o)
{
	struct origins_asker *a = calloc(1, sizeof(*a));

	if (a)
		a->owner = o;
	return a;
}

void origins_asker_free(struct origins_asker *a)
{
	struct task_origins *o;

	if (!a)
		return;
	o = a->owner;
	pthread_mutex_lock(&o->lock);
	for (size_t i = 0; i < o->n; i++) {
		struct question *q = &o->queue[(o->first + i) % QUEUE_MAX];

		if (q->asker == a)
			q->asker = NULL;
	}
	if (o->busy_for == a)
		o->busy_for = NULL;
	pthread_mutex_unlock(&o->lock);
	free(a);
}

/* False if there is no room. */
static bool question_put(struct origins_asker *a, const struct known_task *k, uint64_t seen_ns,
			 uint64_t tsc)
{
	struct task_origins *o = a->owner;
	struct question *q;
	bool room;

	pthread_mutex_lock(&o->lock);
	room = o->n < QUEUE_MAX;
	if (room) {
		q = &o->queue[(o->first + o->n++) % QUEUE_MAX];
		*q = (struct question){.asker = a, .tsc = tsc};
		q->task =
			(struct task_identity){.tid = k->tid, .tgid = k->tgid, .seen_ns = seen_ns};
		memcpy(q->task.comm, k->comm, sizeof(q->task.comm));
		pthread_cond_signal(&o->asked);
	}
	pthread_mutex_unlock(&o->lock);
	return room;
}

void origins_event(struct origins_asker *a, const struct vs_event *e, uint64_t monotonic_ns)
{
	struct known_task *k;

	if (e->type == VS_EVENT_TASK_NAME && e->pid > 0 && e->pid2 > 0) {
		k = &a->known[(uint32_t)e->pid % KNOWN_SLOTS];
		*k = (struct known_task){.tid = e->pid, .tgid = e->pid2};
		ev_task_comm(e, k->comm);
		return;
	}
	if (e->type != VS_EVENT_SCHED_SWITCH || e->pid2 <= 0)
		return;
	k = &a->known[(uint32_t)e->pid2 % KNOWN_SLOTS];
	if (k->tid != e->pid2 || (k->asked_ns && monotonic_ns - k->asked_ns < again_ns))
		return;
	if (question_put(a, k, monotonic_ns, e->time))
		k->asked_ns = monotonic_ns;
}

bool origins_take(struct origins_asker *a, uint64_t tsc_hz, struct message_task_origins *out)
{
	struct task_origins *o = a->owner;

	out->n = 0;
	pthread_mutex_lock(&o->lock);
	while (a->n_answers && out->n < VS_TASK_ORIGINS_MAX) {
		const struct answer *from = &a->answers[--a->n_answers];
		struct message_task_origin *to = &out->tasks[out->n++];
		uint64_t ticks = (uint64_t)((double)from->facts.age_ns / 1e9 * (double)tsc_hz);

		*to = (struct message_task_origin){.tid = from->facts.tid,
						   .tgid = from->facts.tgid,
						   .seen = from->tsc,
						   .began = from->tsc > ticks ? from->tsc - ticks
									      : 0,
						   .vcpu = from->facts.vcpu,
						   .vcpu_known = from->facts.vcpu_known,
						   .claimed = from->facts.claimed,
						   .uid = from->facts.uid};
		memcpy(to->cgroup, from->facts.cgroup, sizeof(to->cgroup));
		memcpy(to->vm, from->facts.vm, sizeof(to->vm));
	}
	pthread_mutex_unlock(&o->lock);
	return out->n > 0;
}
