/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/fleet/outbox_folders.h"

#include <errno.h>
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "host-collector/fleet/outbox.h"

/* Makes the process a member of the group. The owner of a file may give it to one of its own groups
 * without CAP_CHOWN. Returns 0 or -errno. */
static int group_join(gid_t group)
{
	const int most = getgroups(0, NULL);
	gid_t *groups;
	int n, err = 0;

	if (most < 0)
		return -errno;
	groups = malloc(((size_t)most + 1) * sizeof(*groups));
	if (!groups)
		return -ENOMEM;
	n = getgroups(most, groups);
	if (n < 0)
		err = -errno;
	for (int i = 0; i < n; i++) {
		if (groups[i] == group)
			goto out;
	}
	if (!err) {
		groups[n] = group;
		err = setgroups((size_t)n + 1, groups) ? -errno : 0;
	}
out:
	free(groups);
	return err;
}

static int folder_make(const char *path, mode_t mode, gid_t group)
{
	struct stat st;

	if (mkdir(path, mode) && errno != EEXIST)
		return -errno;
	if (lstat(path, &st) || !S_ISDIR(st.st_mode))
		return -ENOTDIR;
	if (group != (gid_t)-1 && lchown(path, (uid_t)-1, group))
		return -errno;
	return chmod(path, group == (gid_t)-1 ? 0700 : mode) ? -errno : 0;
}

int outbox_folders_make(const char *folder, gid_t group)
{
	static const struct {
		const char *name;
		mode_t mode;
	} folders[] = {{"", 0750}, {"/" OUTBOX_SENT, 0750}, {"/" OUTBOX_DONE, 0770}};
	char path[OUTBOX_PATH_MAX + 16], *last;
	int err = 0;

	if (group != (gid_t)-1 && group != getegid())
		err = group_join(group);
	snprintf(path, sizeof(path), "%s", folder);
	last = strrchr(path, '/');
	if (last && last > path) {
		*last = 0;
		if (!err && mkdir(path, 0700) && errno != EEXIST)
			err = -errno;
	}
	for (size_t i = 0; i < sizeof(folders) / sizeof(*folders) && !err; i++) {
		snprintf(path, sizeof(path), "%s%s", folder, folders[i].name);
		err = folder_make(path, folders[i].mode, group);
	}
	return err;
}
