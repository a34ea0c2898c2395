/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/daemon/incident_jobs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "clock/sample.h"
#include "host-collector/daemon/child.h"
#include "host-collector/daemon/disk.h"

enum {
	NOTIFICATIONS_MAX = 8,
	REPORT_MS_MAX = 300000,
	NOTIFICATION_MS_MAX = 600000,
	REPORT_NICE = 10,
};

/* A VM that has folders here. */
struct served_vm {
	char name[DAEMON_NAME_MAX];
	uint64_t turn; /* number of its last job; 0: it had none */
	size_t n_jobs;
	struct served_vm *next;
};

enum job_state { JOB_WAITS, JOB_REPORTS, JOB_MADE, JOB_NOTIFIES };

struct incident_job {
	struct incident_jobs *jobs;
	struct served_vm *vm;
	char folder[DISK_PATH_MAX - 32]; /* room for ".part/" and a file's name */
	enum job_state state;
	size_t step;
	bool runs; /* its process runs, or is not closed yet */
	bool late; /* it was killed */
	bool dropped;
	uint64_t began_ms;
	struct child process;
	struct incident_job *next;
};

struct incident_jobs {
	uv_loop_t *loop;
	struct incident_jobs_options options;
	struct incident_job *first; /* by age */
	struct served_vm *vms;
	uint64_t turns;
	bool closing;
};

/* The reports of each recording, in the order in which they are made. */
static const struct {
	const char *format, *file;
} reports[] = {{"json", "report.json"}, {"text", "report.txt"}, {"html", "report.html"}};

enum { N_REPORTS = sizeof(reports) / sizeof(reports[0]) };
/* Exit status of a report that was made, but in which too little of a vCPU was observed to say that
 * it had no stall. */
enum { REPORT_CANNOT_TELL = 5 };

static void __attribute__((format(printf, 2, 3)))
say(const struct incident_job *job, const char *format, ...)
{
	const struct incident_jobs_options *o = &job->jobs->options;
	char line[DISK_PATH_MAX + 128];
	va_list args;

	va_start(args, format);
	vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	o->say(o->context, job->vm->name, line);
}

/* ---- VMs and their jobs ---- */

static struct served_vm *vm_get(struct incident_jobs *j, const char *name)
{
	struct served_vm *vm = j->vms;

	while (vm && strcmp(vm->name, name))
		vm = vm->next;
	if (vm)
		return vm;
	vm = calloc(1, sizeof(*vm));
	if (!vm)
		return NULL;
	snprintf(vm->name, sizeof(vm->name), "%s", name);
	vm->next = j->vms;
	j->vms = vm;
	return vm;
}

static void vm_release(struct incident_jobs *j, struct served_vm *vm)
{
	struct served_vm **at = &j->vms;

	if (vm->n_jobs)
		return;
	while (*at != vm)
		at = &(*at)->next;
	*at = vm->next;
	free(vm);
}

/* Frees `jobs` with the last one, once they are closing. */
static void job_free(struct incident_job *job)
{
	struct incident_jobs *j = job->jobs;
	struct incident_job **at = &j->first;

	while (*at != job)
		at = &(*at)->next;
	*at = job->next;
	job->vm->n_jobs--;
	vm_release(j, job->vm);
	free(job);
	if (j->closing && !j->first)
		free(j);
}

static size_t count(const struct incident_jobs *j, enum job_state state)
{
	size_t n = 0;

	for (const struct incident_job *job = j->first; job; job = job->next)
		n += job->state == state;
	return n;
}

/* ---- processes ---- */

static void job_next(struct incident_job *job);

static void on_process_closed(void *context)
{
	struct incident_job *job = context;
	struct incident_jobs *j = job->jobs;

	job->runs = false;
	if (j->closing || job->dropped)
		job_free(job); /* the next job begins with the next tick */
	else
		job_next(job);
}

static void on_process_exit(void *context, int status, int signal)
{
	struct incident_job *job = context;
	const bool reported = job->state == JOB_REPORTS && status == REPORT_CANNOT_TELL;
	const char *what = job->state == JOB_NOTIFIES ? "the notification command"
						      : reports[job->step - 1].file;

	if (job->jobs->closing || job->dropped)
		; /* nobody waits for the result */
	else if (job->late)
		say(job, "%s: %s took too long and was ended", job->folder, what);
	else if (signal || (status && !reported))
		say(job, "%s: %s failed (%s %d)", job->folder, what,
		    signal ? "signal" : "exit code", signal ? signal : status);
}

/* input: a file for its standard input, or NULL. on_process_closed() is called in any case. */
static void process_start(struct incident_job *job, const char *program, char **args,
			  const char *input)
{
	int fd = input ? open(input, O_RDONLY | O_CLOEXEC) : -1, err;

	job->process = (struct child){
		.ended = on_process_exit, .closed = on_process_closed, .context = job};
	job->runs = true;
	job->late = false;
	job->began_ms = clock_monotonic_ms();
	err = child_start(&job->process, job->jobs->loop, program, args, fd, -1);
	if (fd >= 0)
		close(fd);
	if (err)
		say(job, "%s: %s: %s", job->folder, program, strerror(-err));
}

static void report_start(struct incident_job *job)
{
	char recording[DISK_PATH_MAX], output[DISK_PATH_MAX], format[8];
	char pairs[PAIR_WATCH_MAX][PAIR_TEXT_BYTES], pair_option[] = "--pair";
	char *args[8 + 2 * PAIR_WATCH_MAX] = {(char[]){"vcpuscope"},
					      (char[]){"report"},
					      recording,
					      (char[]){"--format"},
					      format,
					      (char[]){"--output"},
					      output};
	const struct daemon_config *config = job->jobs->options.config;

	snprintf(recording, sizeof(recording), "%s" INCIDENT_UNFINISHED "/run.vcs", job->folder);
	snprintf(output, sizeof(output), "%s" INCIDENT_UNFINISHED "/%s", job->folder,
		 reports[job->step].file);
	snprintf(format, sizeof(format), "%s", reports[job->step].format);
	for (size_t i = 0; i < config->n_pairs && i < PAIR_WATCH_MAX; i++) {
		pair_definition_text(&config->pairs[i], pairs[i], sizeof(pairs[i]));
		args[7 + 2 * i] = pair_option;
		args[8 + 2 * i] = pairs[i];
	}
	job->step++;
	process_start(job, "/proc/self/exe", args, NULL);
	if (job->process.pid)
		setpriority(PRIO_PROCESS, (id_t)job->process.pid, REPORT_NICE);
}

static void notification_start(struct incident_job *job)
{
	char command[DAEMON_PATH_MAX], input[DISK_PATH_MAX];
	char *args[] = {(char[]){"sh"}, (char[]){"-c"}, command, NULL};

	snprintf(command, sizeof(command), "%s", job->jobs->options.config->on_incident);
	snprintf(input, sizeof(input), "%s/incident.json", job->folder);
	process_start(job, "/bin/sh", args, input);
}

/* ---- the queue ---- */

/* Returns the job that is next, or NULL if none waits. */
static struct incident_job *waiting_next(const struct incident_jobs *j)
{
	struct incident_job *next = NULL;

	for (struct incident_job *job = j->first; job; job = job->next) {
		if (job->state == JOB_WAITS && (!next || job->vm->turn < next->vm->turn))
			next = job;
	}
	return next;
}

static void queue_serve(struct incident_jobs *j)
{
	struct incident_job *job;

	while (count(j, JOB_REPORTS) < j->options.config->report_jobs && (job = waiting_next(j))) {
		job->state = JOB_REPORTS;
		job->vm->turn = ++j->turns;
		report_start(job);
	}
	job = j->first;
	while (job && count(j, JOB_NOTIFIES) < NOTIFICATIONS_MAX) {
		if (job->state == JOB_MADE) {
			job->state = JOB_NOTIFIES;
			notification_start(job);
		}
		job = job->next;
	}
}

/* A process of the job has ended. */
static void job_next(struct incident_job *job)
{
	struct incident_jobs *j = job->jobs;
	bool over = true;

	if (job->state == JOB_REPORTS && job->step < N_REPORTS) {
		report_start(job);
		return;
	}
	if (job->state == JOB_REPORTS) {
		job->state = JOB_MADE;
		j->options.made(j->options.context, job->vm->name, job->folder);
		over = !j->options.config->on_incident[0];
	}
	if (over)
		job_free(job);
	queue_serve(j);
}

int incident_jobs_add(struct incident_jobs *j, const char *vm, const char *folder)
{
	struct incident_job *job = calloc(1, sizeof(*job)), **end = &j->first;

	if (!job)
		return -ENOMEM;
	job->jobs = j;
	if ((size_t)snprintf(job->folder, sizeof(job->folder), "%s", folder) >=
	    sizeof(job->folder)) {
		free(job);
		return -ENAMETOOLONG;
	}
	job->vm = vm_get(j, vm);
	if (!job->vm) {
		free(job);
		return -ENOMEM;
	}
	job->vm->n_jobs++;
	while (*end)
		end = &(*end)->next;
	*end = job;
	return 0;
}

static struct incident_job *job_find(const struct incident_jobs *j, const char *folder)
{
	struct incident_job *job = j->first;

	while (job && strcmp(job->folder, folder))
		job = job->next;
	return job;
}

bool incident_jobs_notifies(const struct incident_jobs *j, const char *folder)
{
	const struct incident_job *job = job_find(j, folder);

	return job && (job->state == JOB_MADE || job->state == JOB_NOTIFIES);
}

void incident_jobs_drop(struct incident_jobs *j, const char *folder)
{
	struct incident_job *job = job_find(j, folder);

	if (job && job->state == JOB_WAITS) {
		job_free(job);
	} else if (job && job->state == JOB_REPORTS) {
		job->dropped = true;
		child_kill(&job->process);
	}
}

void incident_jobs_stats_get(const struct incident_jobs *j, struct incident_jobs_stats *out)
{
	out->waiting = count(j, JOB_WAITS);
	out->running = count(j, JOB_REPORTS);
}

void incident_jobs_tick(struct incident_jobs *j)
{
	const uint64_t now = clock_monotonic_ms();

	for (struct incident_job *job = j->first; job; job = job->next) {
		const uint64_t most =
			job->state == JOB_NOTIFIES ? NOTIFICATION_MS_MAX : REPORT_MS_MAX;

		if (!job->process.pid || job->late || now - job->began_ms < most)
			continue;
		job->late = true;
		child_kill(&job->process);
	}
	queue_serve(j);
}

struct incident_jobs *incident_jobs_new(uv_loop_t *loop,
					const struct incident_jobs_options *options)
{
	struct incident_jobs *j = calloc(1, sizeof(*j));

	if (!j)
		return NULL;
	j->loop = loop;
	j->options = *options;
	return j;
}

void incident_jobs_close(struct incident_jobs *j)
{
	struct incident_job *next;

	if (!j)
		return;
	for (struct incident_job *job = j->first; job; job = next) {
		next = job->next;
		if (!job->runs)
			job_free(job);
	}
	j->closing = true;
	for (struct incident_job *job = j->first; job; job = job->next) {
		child_kill(&job->process);
	}
	if (!j->first)
		free(j);
}
