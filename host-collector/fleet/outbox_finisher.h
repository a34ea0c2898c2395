/* SPDX-License-Identifier: GPL-2.0-only */
/* Completes segments on a thread of its own: waits until a file is on the disk, and then gives it
 * its final name. So the daemon's loop does not wait for the disk. */
#ifndef FLEET_OUTBOX_FINISHER_H
#define FLEET_OUTBOX_FINISHER_H

#include <stdbool.h>
#include <stdint.h>

struct outbox_finisher;

/* Starts the thread. dir: descriptor of the outbox, borrowed. Returns 0 or -errno. */
int outbox_finisher_new(int dir, struct outbox_finisher **out);
/* Completes what waits, and ends the thread. NULL is allowed. */
void outbox_finisher_free(struct outbox_finisher *f);
/* Queues the file NAME.part for completion. The finisher closes `fd`; fd -1: it opens the file
 * itself. If there is no memory, the function completes the file itself. If the disk refuses the
 * file, it keeps its name and is tried again after 1 s, later after 60 s at most. A file that the
 * disk refuses until the end is completed by the next outbox. */
void outbox_finisher_add(struct outbox_finisher *f, int fd, const char *name);
/* Forgets the file NAME.part if the disk refused it. Returns false if the file waits for its
 * completion or is being completed: it must not be removed. NULL is allowed. */
bool outbox_finisher_drop(struct outbox_finisher *f, const char *name);
/* Returns why the disk refused the last of the files that wait for another try, -errno; 0: there is
 * none. Writes their number to *n, unless that is NULL. f NULL is allowed. */
int outbox_finisher_refused(struct outbox_finisher *f, uint64_t *n);

#endif
