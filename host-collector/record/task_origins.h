/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Where the host's tasks come from that were seen on a pCPU while a vCPU wanted it: their cgroup,
 * and of a VMM's threads the VM. /proc is read by a thread of its own: a task whose memory map is
 * locked, or whose command line lies in memory that somebody else serves, keeps that thread
 * waiting, and nobody else. At most 400 tasks a second are looked at, for all streams that share
 * one of these.
 *
 * A thread id may have gone to another task since the event that named it. So an answer counts only
 * if the task that /proc shows began before that event and belongs to the process that it named;
 * all files of one answer are read below one directory that stands for one task.
 */
#ifndef RECORD_TASK_ORIGINS_H
#define RECORD_TASK_ORIGINS_H

#include <stdbool.h>
#include <stdint.h>

#include "proto/event.h"
#include "proto/message.h"

struct task_origins;

/* One stream's questions and answers. */
struct origins_asker;

/* proc: NULL is /proc; passwd: NULL is /etc/passwd, for the users that libvirt runs VMs as. NULL on
 * ENOMEM, or if there is no thread to be had. */
struct task_origins *task_origins_new(const char *proc, const char *passwd);
/* Once all askers are freed. Waits at most 0.2 s for the thread; if it hangs in /proc it ends with
 * the program. NULL is allowed. */
void task_origins_free(struct task_origins *o);

/* NULL on ENOMEM. */
struct origins_asker *origins_asker_new(struct task_origins *o);
void origins_asker_free(struct origins_asker *a); /* NULL is allowed */
/*
 * An event of the stream, whose time is in the host's TSC; monotonic_ns: in CLOCK_MONOTONIC.
 * TASK_NAME says who a thread is; a SCHED_SWITCH to a thread asks for it, if that was not done in
 * the last 30 s. Cheap.
 */
void origins_event(struct origins_asker *a, const struct vs_event *e, uint64_t monotonic_ns);
/* The answers so far, at most VS_TASK_ORIGINS_MAX at a time; returns whether there are any.
 * tsc_hz: of the host. */
bool origins_take(struct origins_asker *a, uint64_t tsc_hz, struct message_task_origins *out);

#endif
