/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/daemon/incident_store.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <json.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "host-collector/daemon/disk.h"
#include "host-collector/view/json_string.h"

enum {
	JOBS_MAX = 4,
	FOLDER_BYTES = DISK_PATH_MAX - 32, /* room for ".part/" and a file's name */
};

static const char unfinished[] = ".part";

struct store_job {
	struct incident_store *store;
	char vm[DAEMON_NAME_MAX];
	char folder[FOLDER_BYTES]; /* its final name */
	size_t step;
	bool runs; /* a process, and its handle is open */
	uv_process_t process;
	struct store_job *next;
};

struct incident_store {
	uv_loop_t *loop;
	struct incident_store_options options;
	struct store_job *jobs;
	size_t n_jobs;
	uint64_t bytes;
	bool closing;
};

/* What is made of each recording, one after the other. */
static const struct {
	const char *format, *file;
} reports[] = {{"json", "report.json"}, {"text", "report.txt"}, {"html", "report.html"}};

enum { N_REPORTS = sizeof(reports) / sizeof(reports[0]) };

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
		if (!fstatat(dirfd(dir), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) &&
		    S_ISREG(st.st_mode))
			sum += (uint64_t)st.st_size;
	}
	closedir(dir);
	return sum;
}

static bool is_unfinished(const char *name)
{
	const size_t len = strlen(name), end = sizeof(unfinished) - 1;

	return len > end && !strcmp(name + len - end, unfinished);
}

/* All finished folders together, and the oldest of them. */
static uint64_t folders_sum(const struct incident_store *s, struct disk_oldest *oldest)
{
	char root[FOLDER_BYTES];
	struct dirent *entry;
	uint64_t sum = 0;
	DIR *dir;

	*oldest = (struct disk_oldest){0};
	root_path(s, root, sizeof(root));
	dir = opendir(root);
	if (!dir)
		return 0;
	while ((entry = readdir(dir))) {
		struct timespec time = {0};
		char path[DISK_PATH_MAX];

		if (entry->d_name[0] == '.' || is_unfinished(entry->d_name) ||
		    snprintf(path, sizeof(path), "%s/%s", root, entry->d_name) >= (int)sizeof(path))
			continue;
		sum += folder_bytes(path, &time);
		disk_oldest_offer(oldest, path, &time);
	}
	closedir(dir);
	return sum;
}

static void budget_keep(struct incident_store *s)
{
	struct disk_oldest oldest;

	while ((s->bytes = folders_sum(s, &oldest)) > s->options.config->incidents_budget_bytes &&
	       oldest.path[0]) {
		folder_remove(oldest.path);
		if (!access(oldest.path, F_OK))
			return; /* not ours to remove */
		say(s, "", "removed %s: the incidents' budget is used up", oldest.path);
	}
}

static void unfinished_remove(const struct incident_store *s)
{
	char root[FOLDER_BYTES];
	struct dirent *entry;
	DIR *dir;

	root_path(s, root, sizeof(root));
	dir = opendir(root);
	if (!dir)
		return;
	while ((entry = readdir(dir))) {
		char path[DISK_PATH_MAX];

		if (is_unfinished(entry->d_name) &&
		    snprintf(path, sizeof(path), "%s/%s", root, entry->d_name) < (int)sizeof(path))
			folder_remove(path);
	}
	closedir(dir);
}

/* ---- a job: reports, then the name, then the notification ---- */

static void job_next(struct store_job *job);

static void job_free(struct store_job *job)
{
	struct incident_store *s = job->store;

	for (struct store_job **at = &s->jobs; *at; at = &(*at)->next) {
		if (*at != job)
			continue;
		*at = job->next;
		break;
	}
	free(job);
	s->n_jobs--;
	if (s->closing && !s->n_jobs)
		free(s);
}

static void on_process_closed(uv_handle_t *handle)
{
	struct store_job *job = handle->data;

	job->runs = false;
	job_next(job);
}

static void on_process_exit(uv_process_t *process, int64_t status, int signal)
{
	struct store_job *job = process->data;

	if ((status || signal) && !job->store->closing)
		say(job->store, job->vm, "%s: %s failed (%s %d)", job->folder,
		    job->step <= N_REPORTS ? reports[job->step - 1].file
					   : "the notification command",
		    signal ? "signal" : "exit code", signal ? signal : (int)status);
	uv_close((uv_handle_t *)process, on_process_closed);
}

/* input: a file for its standard input, or NULL. The handle is open in any case. */
static void process_start(struct store_job *job, const char *program, char **args,
			  const char *input)
{
	int fd = input ? open(input, O_RDONLY | O_CLOEXEC) : -1, err;
	uv_stdio_container_t files[3] = {
		{.flags = fd < 0 ? UV_IGNORE : UV_INHERIT_FD, .data.fd = fd},
		{.flags = UV_IGNORE},
		{.flags = UV_INHERIT_FD, .data.fd = STDERR_FILENO},
	};
	const uv_process_options_t options = {
		.exit_cb = on_process_exit,
		.file = program,
		.args = args,
		.stdio_count = 3,
		.stdio = files,
	};

	job->process.data = job;
	job->runs = true;
	err = uv_spawn(job->store->loop, &job->process, &options);
	if (fd >= 0)
		close(fd);
	if (!err)
		return;
	say(job->store, job->vm, "%s: %s: %s", job->folder, program, uv_strerror(err));
	uv_close((uv_handle_t *)&job->process, on_process_closed);
}

static void report_start(struct store_job *job)
{
	char recording[DISK_PATH_MAX], output[DISK_PATH_MAX], format[8];
	char *args[] = {(char[]){"vcpuscope"},
			(char[]){"report"},
			recording,
			(char[]){"--format"},
			format,
			(char[]){"--output"},
			output,
			NULL};

	snprintf(recording, sizeof(recording), "%s%s/run.vcs", job->folder, unfinished);
	snprintf(output, sizeof(output), "%s%s/%s", job->folder, unfinished,
		 reports[job->step].file);
	snprintf(format, sizeof(format), "%s", reports[job->step].format);
	job->step++;
	process_start(job, "/proc/self/exe", args, NULL);
}

static void notification_start(struct store_job *job)
{
	char command[DAEMON_PATH_MAX], input[DISK_PATH_MAX];
	char *args[] = {(char[]){"sh"}, (char[]){"-c"}, command, NULL};

	snprintf(command, sizeof(command), "%s", job->store->options.config->on_incident);
	snprintf(input, sizeof(input), "%s/incident.json", job->folder);
	job->step++;
	process_start(job, "/bin/sh", args, input);
}

static void job_next(struct store_job *job)
{
	struct incident_store *s = job->store;
	char part[DISK_PATH_MAX];

	if (s->closing) {
		job_free(job);
		return;
	}
	if (job->step < N_REPORTS) {
		report_start(job);
		return;
	}
	if (job->step == N_REPORTS) {
		snprintf(part, sizeof(part), "%s%s", job->folder, unfinished);
		if (rename(part, job->folder))
			say(s, job->vm, "%s: %s", job->folder, strerror(errno));
		else
			say(s, job->vm, "incident: %s", job->folder);
		budget_keep(s);
		if (s->options.config->on_incident[0]) {
			notification_start(job);
			return;
		}
	}
	job_free(job);
}

/* ---- beginning ---- */

/* The folder, unfinished, under a name that is not taken. */
static int job_folder(struct store_job *job, const char *what)
{
	const struct incident_store *s = job->store;
	char root[DAEMON_PATH_MAX + 16], part[DISK_PATH_MAX], stamp[DISK_STAMP_BYTES];
	int err = disk_folder_make(s->options.config->directory);

	root_path(s, root, sizeof(root));
	if (!err)
		err = disk_folder_make(root);
	disk_stamp(stamp);
	for (int i = 0; !err; i++) {
		char more[16] = "";

		if (i)
			snprintf(more, sizeof(more), "-%d", i);
		if ((size_t)snprintf(job->folder, sizeof(job->folder), "%s/%s-%s-%.40s%s", root,
				     job->vm, stamp, what, more) >= sizeof(job->folder))
			return -ENAMETOOLONG;
		snprintf(part, sizeof(part), "%s%s", job->folder, unfinished);
		if (access(job->folder, F_OK) && !mkdir(part, 0700))
			break;
		if (i == 99 || (errno != EEXIST && access(job->folder, F_OK)))
			err = -errno;
	}
	return err;
}

static int summary_write(const struct store_job *job, struct json_object *summary)
{
	char path[DISK_PATH_MAX];

	json_object_object_add(summary, "directory", json_string_new(job->folder));
	json_object_object_add(summary, "version", json_object_new_string(VCPUSCOPE_VERSION));
	snprintf(path, sizeof(path), "%s%s/incident.json", job->folder, unfinished);
	return json_object_to_file_ext(path, summary, JSON_C_TO_STRING_PRETTY) ? -EIO : 0;
}

int incident_store_make(struct incident_store *s, const struct incident_request *request,
			char *path, size_t path_bytes)
{
	struct store_job *job = NULL;
	char part[DISK_PATH_MAX];
	int err = 0;

	if (s->n_jobs >= JOBS_MAX)
		err = -EBUSY;
	else if (disk_free_bytes(s->options.config->directory) <
		 s->options.config->disk_reserve_bytes)
		err = -ENOSPC;
	if (!err) {
		job = calloc(1, sizeof(*job));
		err = job ? 0 : -ENOMEM;
	}
	if (err)
		goto out;
	job->store = s;
	snprintf(job->vm, sizeof(job->vm), "%s", request->vm);
	err = job_folder(job, request->what);
	if (err)
		goto out;
	snprintf(part, sizeof(part), "%s%s/run.vcs", job->folder, unfinished);
	err = request->write(request->context, part);
	if (!err)
		err = summary_write(job, request->summary);
	if (err) {
		snprintf(part, sizeof(part), "%s%s", job->folder, unfinished);
		folder_remove(part);
		goto out;
	}
	snprintf(path, path_bytes, "%s", job->folder);
	job->next = s->jobs;
	s->jobs = job;
	s->n_jobs++;
	job_next(job);
	job = NULL;
out:
	free(job);
	json_object_put(request->summary);
	return err;
}

uint64_t incident_store_bytes(const struct incident_store *s)
{
	return s->bytes;
}

struct incident_store *incident_store_new(uv_loop_t *loop,
					  const struct incident_store_options *options)
{
	struct incident_store *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->loop = loop;
	s->options = *options;
	unfinished_remove(s);
	budget_keep(s);
	return s;
}

void incident_store_close(struct incident_store *s)
{
	if (!s)
		return;
	s->closing = true;
	for (struct store_job *job = s->jobs; job; job = job->next) {
		if (job->runs && uv_is_active((uv_handle_t *)&job->process))
			uv_process_kill(&job->process, SIGKILL);
	}
	if (!s->n_jobs)
		free(s);
}
