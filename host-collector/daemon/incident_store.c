/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/daemon/incident_store.h"

#include <dirent.h>
#include <errno.h>
#include <json.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "host-collector/daemon/disk.h"
#include "host-collector/daemon/incident_jobs.h"
#include "host-collector/util/json_string.h"

enum { FOLDER_BYTES = DISK_PATH_MAX - 32 }; /* room for ".part/" and a file's name */

struct incident_store {
	struct incident_store_options options;
	struct incident_jobs *jobs;
	uint64_t bytes; /* an upper bound of the size of all folders; exact after they were read */
};

static void __attribute__((format(printf, 3, 4)))
say(const struct incident_store *s, const char *vm, const char *format, ...)
{
	char line[DISK_PATH_MAX + 128];
	va_list args;

	va_start(args, format);
	vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	s->options.say(s->options.context, vm, line);
}

static void root_path(const struct incident_store *s, char *out, size_t out_bytes)
{
	snprintf(out, out_bytes, "%s/incidents", s->options.config->directory);
}

/* ---- folders ---- */

static void folder_remove(const char *path)
{
	DIR *dir = opendir(path);
	struct dirent *entry;

	if (!dir)
		return;
	while ((entry = readdir(dir)))
		unlinkat(dirfd(dir), entry->d_name, 0);
	closedir(dir);
	rmdir(path);
}

/* Returns the size of a folder. time: of its evidence; the folder's own time is that of its last
 * report. */
static uint64_t folder_bytes(const char *path, struct timespec *time)
{
	DIR *dir = opendir(path);
	struct dirent *entry;
	uint64_t sum = 0;
	struct stat st;

	if (!dir)
		return 0;
	if (!fstat(dirfd(dir), &st))
		*time = st.st_mtim;
	while ((entry = readdir(dir))) {
		if (fstatat(dirfd(dir), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) ||
		    !S_ISREG(st.st_mode))
			continue;
		sum += (uint64_t)st.st_size;
		if (!strcmp(entry->d_name, "incident.json"))
			*time = st.st_mtim;
	}
	closedir(dir);
	return sum;
}

/* Removes INCIDENT_UNFINISHED from the end of a name or path. Returns false if it does not end so.
 */
static bool unfinished_strip(char *name)
{
	const size_t len = strlen(name), end = sizeof(INCIDENT_UNFINISHED) - 1;

	if (len <= end || strcmp(name + len - end, INCIDENT_UNFINISHED) != 0)
		return false;
	name[len - end] = 0;
	return true;
}

/* Sets `vm` to the VM of a folder VM-YYYYMMDDTHHMMSSZ-WHAT. A VM's name may contain such parts,
 * too. Returns false if the name has another form. */
static bool vm_of_name(const char *name, char *vm)
{
	const size_t stamp = sizeof("-YYYYMMDDTHHMMSSZ-") - 1, len = strlen(name);

	for (size_t at = len < stamp ? 0 : len - stamp + 1; at-- > 0;) {
		unsigned int day, second;
		int end = 0;

		if (sscanf(name + at, "-%8uT%6uZ-%n", &day, &second, &end) == 2 &&
		    end == (int)stamp && at > 0 && at < DAEMON_NAME_MAX) {
			snprintf(vm, DAEMON_NAME_MAX, "%.*s", (int)at, name);
			return true;
		}
	}
	return false;
}

/* Calls `take` for each folder of the store, finished or not, with the name of its VM. `path` has
 * DISK_PATH_MAX bytes and may be changed. Folders that the store did not make are left alone. */
static void folders_each(struct incident_store *s,
			 void (*take)(struct incident_store *s, const char *vm, char *path,
				      void *context),
			 void *context)
{
	char root[FOLDER_BYTES];
	struct dirent *entry;
	DIR *dir;

	root_path(s, root, sizeof(root));
	dir = opendir(root);
	while (dir && (entry = readdir(dir))) {
		char path[DISK_PATH_MAX], vm[DAEMON_NAME_MAX];

		if (vm_of_name(entry->d_name, vm) &&
		    snprintf(path, sizeof(path), "%s/%s", root, entry->d_name) < (int)sizeof(path))
			take(s, vm, path, context);
	}
	if (dir)
		closedir(dir);
}

static void folder_list(struct incident_store *s, const char *vm, char *path, void *context)
{
	struct disk_item item = {.path = path};
	char folder[DISK_PATH_MAX];

	snprintf(item.vm, sizeof(item.vm), "%s", vm);
	snprintf(folder, sizeof(folder), "%s", path);
	unfinished_strip(folder);
	item.bytes = folder_bytes(path, &item.time);
	item.busy = incident_jobs_notifies(s->jobs, folder);
	disk_items_add(context, &item);
}

/* `more` bytes were added. The folders are read only if all may be too much: there may be many. */
static void budget_keep(struct incident_store *s, uint64_t more)
{
	const struct disk_sharing sharing = {.budget_bytes =
						     s->options.config->incidents_budget_bytes,
					     .watches = s->options.watches,
					     .context = s->options.context,
					     .now = time(NULL)};
	struct disk_items all = {0};
	struct disk_item *next;

	s->bytes += more;
	if (s->bytes <= sharing.budget_bytes)
		return;
	folders_each(s, folder_list, &all);
	while ((next = disk_items_next(&all, &sharing))) {
		char folder[DISK_PATH_MAX];

		snprintf(folder, sizeof(folder), "%s", next->path);
		if (unfinished_strip(folder))
			incident_jobs_drop(s->jobs, folder);
		folder_remove(next->path);
		if (!access(next->path, F_OK))
			break; /* not ours to remove, or its last process is not gone yet */
		next->gone = true;
		say(s, "", "removed %s: the incidents' budget is used up, and %s has most of it",
		    next->path, next->vm);
	}
	s->bytes = disk_items_bytes(&all);
	disk_items_free(&all);
}

/* ---- jobs ---- */

static void on_made(void *context, const char *vm, const char *folder)
{
	struct incident_store *s = context;
	char part[DISK_PATH_MAX];
	struct timespec time;

	snprintf(part, sizeof(part), "%s" INCIDENT_UNFINISHED, folder);
	if (rename(part, folder))
		say(s, vm, "%s: %s", folder, strerror(errno));
	else
		say(s, vm, "incident: %s", folder);
	budget_keep(s, folder_bytes(folder, &time));
}

static void on_say(void *context, const char *vm, const char *line)
{
	say(context, vm, "%s", line);
}

/* Queues the reports of an unfinished folder that an earlier daemon left, or removes it if its
 * evidence is incomplete. */
static void unfinished_take(struct incident_store *s, const char *vm, char *path, void *context)
{
	char file[DISK_PATH_MAX + 16];
	size_t *taken = context;

	snprintf(file, sizeof(file), "%s/incident.json", path);
	if (!unfinished_strip(path))
		return;
	if (!access(file, F_OK) && !incident_jobs_add(s->jobs, vm, path)) {
		++*taken;
		return;
	}
	strcat(path, INCIDENT_UNFINISHED); /* the name before unfinished_strip() */
	folder_remove(path);
}

/* ---- beginning ---- */

/* Makes an unfinished folder with a name that is not in use. */
static int folder_make(const struct incident_store *s, const struct incident_request *request,
		       char folder[FOLDER_BYTES], char part[DISK_PATH_MAX])
{
	char root[DAEMON_PATH_MAX + 16], stamp[DISK_STAMP_BYTES];
	int err = disk_folder_make(s->options.config->directory);

	root_path(s, root, sizeof(root));
	if (!err)
		err = disk_folder_make(root);
	disk_stamp(stamp);
	for (int i = 0; !err; i++) {
		char more[16] = "";

		if (i)
			snprintf(more, sizeof(more), "-%d", i);
		if ((size_t)snprintf(folder, FOLDER_BYTES, "%s/%s-%s-%.40s%s", root, request->vm,
				     stamp, request->what, more) >= FOLDER_BYTES)
			return -ENAMETOOLONG;
		snprintf(part, DISK_PATH_MAX, "%s" INCIDENT_UNFINISHED, folder);
		if (access(folder, F_OK) && !mkdir(part, 0700))
			break;
		if (i == 99 || (errno != EEXIST && access(folder, F_OK)))
			err = -errno;
	}
	return err;
}

/* Writes the summary, after all other files and in one step: if it exists, the evidence is
 * complete. */
static int summary_write(const char *part, const char *folder, struct json_object *summary)
{
	char path[DISK_PATH_MAX + 32], draft[DISK_PATH_MAX + 32];

	json_object_object_add(summary, "directory", json_string_new(folder));
	json_object_object_add(summary, "version", json_object_new_string(VCPUSCOPE_VERSION));
	snprintf(path, sizeof(path), "%s/incident.json", part);
	snprintf(draft, sizeof(draft), "%s/.incident.json", part);
	if (json_object_to_file_ext(draft, summary, JSON_C_TO_STRING_PRETTY))
		return -EIO;
	return rename(draft, path) ? -errno : 0;
}

int incident_store_make(struct incident_store *s, const struct incident_request *request,
			char *path, size_t path_bytes)
{
	char folder[FOLDER_BYTES], part[DISK_PATH_MAX], recording[DISK_PATH_MAX + 16];
	struct timespec time;
	bool made = false;
	int err = 0;

	if (disk_free_bytes(s->options.config->directory) < s->options.config->disk_reserve_bytes)
		err = -ENOSPC;
	if (!err) {
		err = folder_make(s, request, folder, part);
		made = !err;
	}
	if (!err) {
		snprintf(recording, sizeof(recording), "%s/run.vcs", part);
		err = request->write(request->context, recording);
	}
	if (!err)
		err = summary_write(part, folder, request->summary);
	if (!err)
		err = incident_jobs_add(s->jobs, request->vm, folder);
	json_object_put(request->summary);
	if (err) {
		if (made)
			folder_remove(part);
		return err;
	}
	snprintf(path, path_bytes, "%s", folder);
	budget_keep(s, folder_bytes(part, &time));
	incident_jobs_tick(s->jobs);
	return 0;
}

void incident_store_tick(struct incident_store *s)
{
	incident_jobs_tick(s->jobs);
}

void incident_store_stats_get(const struct incident_store *s, struct incident_store_stats *out)
{
	struct incident_jobs_stats jobs;

	incident_jobs_stats_get(s->jobs, &jobs);
	*out = (struct incident_store_stats){.waiting = jobs.waiting, .running = jobs.running};
}

struct incident_store *incident_store_new(uv_loop_t *loop,
					  const struct incident_store_options *options)
{
	struct incident_store *s = calloc(1, sizeof(*s));
	const struct incident_jobs_options jobs = {
		.config = options->config, .made = on_made, .say = on_say, .context = s};
	size_t taken = 0;

	if (!s)
		return NULL;
	s->options = *options;
	s->jobs = incident_jobs_new(loop, &jobs);
	if (!s->jobs) {
		free(s);
		return NULL;
	}
	folders_each(s, unfinished_take, &taken);
	if (taken)
		say(s, "", "%zu incidents that an earlier daemon left get their reports now",
		    taken);
	budget_keep(s, UINT64_MAX); /* reads all folders */
	return s;
}

void incident_store_close(struct incident_store *s)
{
	if (!s)
		return;
	incident_jobs_close(s->jobs);
	free(s);
}
