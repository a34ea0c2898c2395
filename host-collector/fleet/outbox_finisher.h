/* SPDX-License-Identifier: GPL-2.0-only */
/* A thread that completes segments: waits until a file is on the disk, and then gives it its final
 * name. The daemon's loop does not wait for the disk. */
#ifndef FLEET_OUTBOX_FINISHER_H
#define FLEET_OUTBOX_FINISHER_H

struct outbox_finisher;

/* Starts the thread. dir: descriptor of the outbox, borrowed. Returns 0 or -errno. */
int outbox_finisher_new(int dir, struct outbox_finisher **out);
/* Completes what waits, and ends the thread. NULL is allowed. */
void outbox_finisher_free(struct outbox_finisher *f);
/* Passes on the file NAME.part, which the finisher closes. If there is no memory, it does the work
 * itself. If the disk refuses, the file keeps its name and is tried again after 1 s, later after
 * 60 s at most. The next outbox completes the files that are still refused at the end. */
void outbox_finisher_add(struct outbox_finisher *f, int fd, const char *name);
/* Returns 0, or the -errno with which the disk refused a file that waits for another try. f may be
 * NULL. */
int outbox_finisher_error(struct outbox_finisher *f);

#endif
