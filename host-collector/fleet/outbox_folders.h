/* SPDX-License-Identifier: GPL-2.0-only */
/* Makes the folders of an outbox. */
#ifndef FLEET_OUTBOX_FOLDERS_H
#define FLEET_OUTBOX_FOLDERS_H

#include <sys/types.h>

/* Creates the outbox with its folders, and its parent, if they do not exist. group: its members may
 * read them, and the process becomes a member; (gid_t)-1: only the owner may read them. Returns 0,
 * or -errno; after an error some of the folders may exist. */
int outbox_folders_make(const char *folder, gid_t group);

#endif
