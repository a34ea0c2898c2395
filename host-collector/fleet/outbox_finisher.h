/* SPDX-License-Identifier: GPL-2.0-only */
/* A thread that completes segments: waits until a file is on the disk, and then gives it its final
 * name. The daemon's loop does not wait for the disk. */
#ifndef FLEET_OUTBOX_FINISHER_H
#define FLEET_OUTBOX_FINISHER_H

#include <stdbool.h>
#include <stdint.h>

struct outbox_finisher;

/* Starts the thread. dir: descriptor of the outbox, borrowed. Returns 0 or -errno. */
int outbox_finisher_new(int dir, struct outbox_finisher **out);
/* Completes what waits, and ends the thread. NULL is allowed. */
void outbox_finisher_free(struct outbox_finisher *f);
/* Passes on the file NAME.part, which the finisher closes; fd -1: it is opened. If there is no
 * memory, it does the work itself. If the disk refuses, the file keeps its name and is tried again
 * after 1 s, later after 60 s at most. What is refused until the end, the next outbox completes. */
void outbox_finisher_add(struct outbox_finisher *f, int fd, const char *name);
/* Forgets the file NAME.part if the disk refused it. Returns false if it is still to be completed,
 * or just now is: it must not be removed. NULL is allowed. */
bool outbox_finisher_drop(struct outbox_finisher *f, const char *name);
/* Returns why the disk refused the last of the files that wait for another try, -errno; 0: there is
 * none. Writes their number to *n, unless that is NULL. f NULL is allowed. */
int outbox_finisher_refused(struct outbox_finisher *f, uint64_t *n);

#endif
