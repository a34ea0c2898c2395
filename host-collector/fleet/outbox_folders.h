/* SPDX-License-Identifier: GPL-2.0-only */
/* The folders of an outbox. */
#ifndef FLEET_OUTBOX_FOLDERS_H
#define FLEET_OUTBOX_FOLDERS_H

#include <sys/types.h>

/* Creates the outbox with its folders, and its parent, if they do not exist. group: may read them;
 * the process becomes a member of it. (gid_t)-1: nobody else may. Returns 0, or -errno, when some
 * of them may exist. */
int outbox_folders_make(const char *folder, gid_t group);

#endif
