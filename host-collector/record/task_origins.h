/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Finds the origin of host tasks that ran on a pCPU while a vCPU waited for it: their cgroup and,
 * for threads of a VMM, the VM.
 *
 * A worker thread reads /proc. If the memory map of a task is locked, or another process serves the
 * memory of its command line, only this thread waits. It looks up at most 400 tasks per second, for
 * all streams that share it. What it read of a task serves all of them for 5 s, if /proc shows that
 * the task is still the same.
 *
 * A thread id may have been given to another task since the event. So an answer counts only if the
 * task in /proc started before the event and belongs to the process that the event named. All files
 * of one answer are read below one open directory, which belongs to one task.
 */
#ifndef RECORD_TASK_ORIGINS_H
#define RECORD_TASK_ORIGINS_H

#include <stdbool.h>
#include <stdint.h>

#include "proto/event.h"
#include "proto/message.h"

struct task_origins;

/* The requests and answers of one stream. */
struct origins_asker;

/* Starts the worker thread. proc: NULL for /proc. passwd: NULL for /etc/passwd, from which it reads
 * the users that libvirt runs VMs as. Returns NULL on ENOMEM or if the thread cannot be started. */
struct task_origins *task_origins_new(const char *proc, const char *passwd);
/* Stops the thread and frees the object. All askers must have been freed. Waits at most 0.2 s; a
 * thread that is blocked in /proc ends later, or with the program. NULL is allowed. */
void task_origins_free(struct task_origins *o);

/* NULL on ENOMEM. */
struct origins_asker *origins_asker_new(struct task_origins *o);
void origins_asker_free(struct origins_asker *a); /* NULL is allowed */
/* Processes an event of the stream. e->time: host TSC. monotonic_ns: the same time in
 * CLOCK_MONOTONIC. TASK_NAME names a thread; a SCHED_SWITCH to a named thread requests its origin
 * unless this was done in the last VS_REPEAT_S. Does not wait for the worker. */
void origins_event(struct origins_asker *a, const struct vs_event *e, uint64_t monotonic_ns);
/* Takes up to VS_TASK_ORIGINS_MAX answers. tsc_hz: TSC frequency of the host. Returns false if
 * there are none. */
bool origins_take(struct origins_asker *a, uint64_t tsc_hz, struct message_task_origins *out);

#endif
