/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/daemon/spool.h"

#include <dirent.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "clock/sample.h"
#include "host-collector/daemon/disk.h"
#include "host-collector/daemon/flight_ring.h"
#include "proto/recording.h"

enum {
	FLUSH_MS = 1000,
	DISK_LOOK_MS = 1000,
	DIRECTORY_MS = 30000, /* between two readings: other programs may add or remove files */
	TRY_AGAIN_MS = 10000,
	FOLLOW_MS = 10,             /* time of one call to begin files */
	SHARE_FILES = 2,            /* files that a VM's share has room for */
	FILE_BYTES_LEAST = 1 << 20, /* even if the share is smaller */
};

/* One VM that is being recorded. */
struct spool_file {
	struct spool *spool;
	struct watched_vm *vm;
	struct frame_tap tap;
	struct recording_writer *writer; /* NULL: no frame yet, or an error */
	struct flight_places *places;    /* NULL: the file began with the streams */
	char path[DISK_PATH_MAX];
	bool listens;        /* a run has begun since the recording was requested */
	uint64_t past_bytes; /* at its begin, from the time before it was opened */
	uint64_t opened_ms, files, refused_frames;
	int error; /* after an error nothing is written until the next attempt */
	uint64_t error_ms;
	struct spool_file *next;
};

struct spool {
	struct spool_options options;
	struct spool_file *files;
	uint64_t flush_ms, disk_ms, directory_ms;
	uint64_t bytes;  /* of all recordings */
	uint64_t closed; /* of all recordings that are closed */
	bool full;       /* the disk's reserve is reached */
};

/* Reads the clock itself, because the time of the loop does not advance while the loop is busy. */
static void __attribute__((format(printf, 2, 3)))
say(const struct spool_file *f, const char *format, ...)
{
	char line[DISK_PATH_MAX + 128];
	va_list args;

	va_start(args, format);
	vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	f->spool->options.say(f->spool->options.context, watched_vm_config(f->vm)->name, line);
}

/* ---- one file ---- */

static void file_close(struct spool_file *f)
{
	if (!f->writer)
		return;
	f->spool->closed += recording_writer_bytes(f->writer);
	recording_writer_close(f->writer, 0);
	f->writer = NULL;
	flight_places_free(f->places);
	f->places = NULL;
}

static void file_fail(struct spool_file *f, int err)
{
	if (f->error != err)
		say(f, "recording stops: %s: %s; tried again every %d s", f->path, strerror(-err),
		    TRY_AGAIN_MS / 1000);
	f->error = err;
	f->error_ms = clock_monotonic_ms();
	file_close(f);
}

/* Opens a file with a name that is not in use. Returns 0 or -errno. */
static int file_open(struct spool_file *f)
{
	const char *folder = f->spool->options.config->directory;
	const char *name = watched_vm_config(f->vm)->name;
	char stamp[DISK_STAMP_BYTES];
	const uint64_t now = disk_stamp(stamp);
	int err;

	snprintf(f->path, sizeof(f->path), "%s", folder);
	err = disk_folder_make(f->path);
	snprintf(f->path, sizeof(f->path), "%s/%s", folder, name);
	if (!err)
		err = disk_folder_make(f->path);
	for (int i = 0; !err && i < 100; i++) {
		char more[8] = "";

		if (i)
			snprintf(more, sizeof(more), "-%d", i);
		if ((size_t)snprintf(f->path, sizeof(f->path), "%s/%s/%s-%s%s.vcs", folder, name,
				     name, stamp, more) >= sizeof(f->path))
			err = -ENAMETOOLONG;
		if (err || access(f->path, F_OK))
			break;
	}
	if (!err)
		err = recording_writer_open(f->path, 0, now, &f->writer);
	f->opened_ms = clock_monotonic_ms();
	f->past_bytes = 0;
	f->files += !err;
	return err;
}

static void on_frame(void *context, uint32_t source, uint64_t arrival_tsc, struct frame_item *frame)
{
	struct spool_file *f = context;
	struct frame_taker taker;
	struct frame_view view;
	int err = 0;

	if (!f->listens)
		return;
	if (!f->error && !f->writer)
		err = f->spool->full ? -ENOSPC : file_open(f);
	taker = frame_taker_of(f->writer);
	if (!f->error && !err)
		err = frame_item_frame(frame, &view);
	if (!f->error && !err)
		err = f->places ? flight_places_append(f->places, &taker, source, arrival_tsc,
						       view.bytes, view.len)
				: recording_writer_append(f->writer, source, arrival_tsc,
							  view.bytes, view.len);
	if (err)
		file_fail(f, err);
	f->refused_frames += f->error != 0;
}

static void on_begin(void *context)
{
	struct spool_file *f = context;

	file_close(f);
	f->error = 0;
	f->listens = true;
}

static void on_end(void *context, const char *why)
{
	(void)why;
	file_close(context);
}

/* ---- the disk ---- */

static bool is_open(const struct spool *s, const char *path)
{
	for (const struct spool_file *f = s->files; f; f = f->next) {
		if (f->writer && !strcmp(f->path, path))
			return true;
	}
	return false;
}

static bool is_recording(const char *name)
{
	size_t len = strlen(name);

	return len > 4 && name[0] != '.' && !strcmp(name + len - 4, ".vcs");
}

/* Lists a VM's recordings. If memory is short, the rest are not listed, and so not removed. */
static void folder_read(const struct spool *s, const char *folder, const char *vm,
			struct disk_items *all)
{
	DIR *dir = opendir(folder);
	struct dirent *entry;
	char path[DISK_PATH_MAX];
	struct stat st;

	if (!dir)
		return;
	while ((entry = readdir(dir))) {
		struct disk_item item = {.path = path};

		if (!is_recording(entry->d_name) ||
		    snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name) >=
			    (int)sizeof(path) ||
		    lstat(path, &st) || !S_ISREG(st.st_mode))
			continue;
		snprintf(item.vm, sizeof(item.vm), "%s", vm);
		item.bytes = (uint64_t)st.st_size;
		item.time = st.st_mtim;
		item.busy = is_open(s, path);
		disk_items_add(all, &item);
	}
	closedir(dir);
}

/* Lists all recordings below the directory. */
static void directory_read(const struct spool *s, struct disk_items *all)
{
	const char *directory = s->options.config->directory;
	DIR *dir = opendir(directory);
	struct dirent *entry;

	if (!dir)
		return;
	while ((entry = readdir(dir))) {
		char path[DISK_PATH_MAX];

		if (entry->d_name[0] == '.' || strlen(entry->d_name) >= DAEMON_NAME_MAX ||
		    snprintf(path, sizeof(path), "%s/%s", directory, entry->d_name) >=
			    (int)sizeof(path))
			continue;
		folder_read(s, path, entry->d_name, all);
	}
	closedir(dir);
}

/* Returns the size of the files that are being written. */
static uint64_t open_bytes(const struct spool *s)
{
	uint64_t bytes = 0;

	for (const struct spool_file *f = s->files; f; f = f->next)
		bytes += f->writer ? recording_writer_bytes(f->writer) : 0;
	return bytes;
}

/* Reading the directory costs some system calls for each recording. So it is read only if the total
 * may exceed the budget, and at intervals. */
static void budget_keep(struct spool *s, uint64_t now_ms)
{
	const struct disk_sharing sharing = {.budget_bytes = s->options.config->disk_budget_bytes,
					     .watches = s->options.watches,
					     .context = s->options.context,
					     .now = time(NULL)};
	const uint64_t written = open_bytes(s);
	struct disk_items all = {0};
	struct disk_item *next;

	s->bytes = s->closed + written;
	if (s->directory_ms && now_ms - s->directory_ms < DIRECTORY_MS &&
	    s->bytes <= sharing.budget_bytes)
		return;
	s->directory_ms = now_ms;
	directory_read(s, &all);
	while ((next = disk_items_next(&all, &sharing)) && !unlink(next->path)) {
		char line[DISK_PATH_MAX + 96];

		next->gone = true;
		snprintf(line, sizeof(line),
			 "removed %s: the disk budget is used up, and %s has most of it",
			 next->path, next->vm);
		s->options.say(s->options.context, "", line);
	}
	s->bytes = disk_items_bytes(&all);
	s->closed = s->bytes > written ? s->bytes - written : 0;
	disk_items_free(&all);
}

/* Sets s->full if less than the reserve is free. Clears it when 5 % more than the reserve is free,
 * so that it does not change back and forth. */
static void reserve_check(struct spool *s)
{
	const struct daemon_config *c = s->options.config;
	const uint64_t reserve = c->disk_reserve_bytes, free_bytes = disk_free_bytes(c->directory);
	const bool full = free_bytes < (s->full ? reserve + reserve / 20 : reserve);
	if (full && !s->full) {
		char line[DISK_PATH_MAX + 128];

		snprintf(line, sizeof(line),
			 "%s: %llu MiB are free, %llu MiB are reserved: nothing is recorded until "
			 "there is more room",
			 c->directory, (unsigned long long)(free_bytes >> 20),
			 (unsigned long long)(reserve >> 20));
		s->options.say(s->options.context, "", line);
		for (struct spool_file *f = s->files; f; f = f->next) {
			f->error = -ENOSPC;
			f->error_ms = clock_monotonic_ms();
			file_close(f);
		}
	}
	if (!full && s->full) { /* the next files begin at once */
		for (struct spool_file *f = s->files; f; f = f->next)
			f->error_ms = 0;
	}
	s->full = full;
}

/* ---- all of them ---- */

/* Returns the largest size of one file: all files that are being written may together use half of
 * the budget. */
static uint64_t file_limit(const struct spool *s)
{
	const struct daemon_config *c = s->options.config;
	uint64_t limit, n = 0;

	for (const struct spool_file *f = s->files; f; f = f->next)
		n++;
	limit = c->disk_budget_bytes / (n ? n : 1) / SHARE_FILES;
	if (limit > c->file_bytes)
		limit = c->file_bytes;
	return limit < FILE_BYTES_LEAST ? FILE_BYTES_LEAST : limit;
}

/* Begins the next file where this one ends, or else with the next run. */
static void file_follow(struct spool_file *f)
{
	const struct spool_options *o = &f->spool->options;
	struct watched_vm_status status;
	int err;

	watched_vm_status_get(f->vm, &status);
	file_close(f);
	f->error = 0;
	if (status.state != WATCHED_RUNNING)
		return;
	f->listens = true;
	err = f->spool->full ? -ENOSPC : file_open(f);
	if (!err)
		err = o->go_on(o->context, f->vm, file_limit(f->spool) / 2, f->writer, &f->places);
	if (err == -ENOENT || err == -ENODATA) { /* the VM has no flight recorder */
		file_close(f);
		unlink(f->path);
		f->files--;
		watched_vm_restart(f->vm);
	} else if (err) {
		file_fail(f, err);
	} else {
		f->past_bytes = recording_writer_bytes(f->writer);
	}
}

/* Returns whether the next file, or the next attempt, is due. */
static bool file_is_due(const struct spool_file *f, uint64_t now, uint64_t limit)
{
	const struct spool_options *o = &f->spool->options;
	uint64_t bytes, past;

	if (f->error)
		return !f->spool->full && now - f->error_ms >= TRY_AGAIN_MS;
	if (!f->writer)
		return false;
	bytes = recording_writer_bytes(f->writer);
	if (bytes < limit && (now - f->opened_ms) * 1000000 < o->config->file_ns)
		return false;
	past = o->past_bytes(o->context, f->vm);
	return bytes - f->past_bytes >= (past < limit / 2 ? past : limit / 2);
}

/* Returns false if no file is due. */
static bool oldest_follow(struct spool *s, uint64_t now)
{
	const uint64_t limit = file_limit(s);
	struct spool_file *oldest = NULL;

	for (struct spool_file *f = s->files; f; f = f->next) {
		if (file_is_due(f, now, limit) && (!oldest || f->opened_ms < oldest->opened_ms))
			oldest = f;
	}
	if (!oldest)
		return false;
	oldest->error_ms = now;
	file_follow(oldest);
	return true;
}

/* Begins files of VMs that wait for one. Each copies some MiB, so one call may take FOLLOW_MS. But
 * hundreds that waited for room on the disk must all begin before their flight recorders drop what
 * happened meanwhile. */
static void files_follow(struct spool *s, uint64_t now)
{
	while (oldest_follow(s, now) && clock_monotonic_ms() - now < FOLLOW_MS)
		;
}

void spool_tick(struct spool *s)
{
	uint64_t now = clock_monotonic_ms();
	bool flush = now - s->flush_ms >= FLUSH_MS;

	if (flush)
		s->flush_ms = now;
	for (struct spool_file *f = s->files; f && flush; f = f->next) {
		int err = f->writer ? recording_writer_flush(f->writer) : 0;

		if (err)
			file_fail(f, err);
	}
	files_follow(s, now);
	if (!s->files || now - s->disk_ms < DISK_LOOK_MS)
		return;
	s->disk_ms = now;
	budget_keep(s, now);
	reserve_check(s);
}

struct spool *spool_new(const struct spool_options *options)
{
	struct spool *s = calloc(1, sizeof(*s));

	if (s)
		s->options = *options;
	return s;
}

void spool_free(struct spool *s)
{
	if (!s)
		return;
	while (s->files)
		spool_end(s, s->files->vm);
	free(s);
}

static struct spool_file *file_of(const struct spool *s, const struct watched_vm *vm)
{
	struct spool_file *f = s->files;

	while (f && f->vm != vm)
		f = f->next;
	return f;
}

int spool_begin(struct spool *s, struct watched_vm *vm)
{
	struct spool_file *f;

	if (file_of(s, vm))
		return -EALREADY;
	f = calloc(1, sizeof(*f));
	if (!f)
		return -ENOMEM;
	f->spool = s;
	f->vm = vm;
	f->tap = (struct frame_tap){
		.frame = on_frame, .begin = on_begin, .end = on_end, .context = f};
	f->next = s->files;
	s->files = f;
	watched_vm_tap(vm, &f->tap);
	file_follow(f);
	return 0;
}

int spool_end(struct spool *s, struct watched_vm *vm)
{
	for (struct spool_file **at = &s->files; *at; at = &(*at)->next) {
		struct spool_file *f = *at;

		if (f->vm != vm)
			continue;
		*at = f->next;
		watched_vm_untap(vm, &f->tap);
		file_close(f);
		free(f);
		return 0;
	}
	return -ENOENT;
}

void spool_status_get(const struct spool *s, const struct watched_vm *vm, struct spool_status *out)
{
	const struct spool_file *f = file_of(s, vm);

	*out = (struct spool_status){.path = ""};
	if (!f)
		return;
	*out = (struct spool_status){
		.recording = true,
		.path = f->path,
		.bytes = f->writer ? recording_writer_bytes(f->writer) : 0,
		.files = f->files,
		.refused_frames = f->refused_frames,
		.error = f->error,
	};
}

uint64_t spool_bytes(const struct spool *s)
{
	return s->bytes;
}
