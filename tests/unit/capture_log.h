/* SPDX-License-Identifier: GPL-2.0-only */
/* Shared by the tests of the host's and the guest's capture: a log of all events, and searches in
 * it. */
#ifndef TESTS_UNIT_CAPTURE_LOG_H
#define TESTS_UNIT_CAPTURE_LOG_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <bpf/bpf.h>

#include "bpf/backend/capture_open.h"
#include "bpf/capture/capture_internal.h"

/* The backends, and the builds of the BPF backend. Each must pass the same tests. */
struct variant {
	const char *name;
	enum backend_choice backend;
	bool raw_tracepoints;
	bool shared; /* a capture for several users; only of a host */
};

static const struct variant variants[] = {
	{"typed", CAPTURE_BY_BPF, false, false},
	{"raw", CAPTURE_BY_BPF, true, false},
	{"perf", CAPTURE_BY_PERF, false, false},
};

enum { N_VARIANTS = sizeof(variants) / sizeof(variants[0]) };

/* Returns whether this variant works on this machine; prints the reason if not. */
static inline bool variant_works(const struct variant *v, enum capture_kind kind)
{
	const struct capture_options options = {
		.kind = kind, .backend = v->backend, .raw_tracepoints = v->raw_tracepoints};
	struct capture *c;
	char why[256];

	if (capture_open(&options, &c, why, sizeof(why))) {
		printf("skip %s: %s\n", v->name, why);
		return false;
	}
	capture_close(c);
	return true;
}

/* A stack with copies of what it pointed to. */
struct logged_stack {
	struct capture_stack s;
	uint64_t kernel[128];
	uint8_t user[16384];
};

enum { LOGGED_STACKS_MAX = 512 };

struct log {
	struct vs_event *events;
	size_t n, capacity;
	struct logged_stack *stacks; /* the first LOGGED_STACKS_MAX */
	size_t n_stacks;
	/* log_events() checks with these what arrives. */
	uint64_t latest[VS_CPU_COLLECTOR];
	uint32_t next_seq[VS_CPU_COLLECTOR];
	uint64_t gaps[VS_CPU_COLLECTOR];
	size_t time_inversions, wrong_cpu;
};

static inline void log_events(void *context, uint16_t cpu, const struct vs_event *events, size_t n)
{
	struct log *log = context;

	if (log->n + n > log->capacity) {
		log->capacity = (log->n + n) * 2;
		log->events = realloc(log->events, log->capacity * sizeof(*events));
		assert_non_null(log->events);
	}
	memcpy(log->events + log->n, events, n * sizeof(*events));
	log->n += n;
	for (size_t i = 0; i < n; i++) {
		log->time_inversions += events[i].time < log->latest[cpu];
		log->latest[cpu] = events[i].time;
		log->wrong_cpu += events[i].cpu != cpu;
		log->gaps[cpu] += events[i].seq - log->next_seq[cpu];
		log->next_seq[cpu] = events[i].seq + 1;
	}
}

static inline void log_stack(void *context, const struct capture_stack *s)
{
	struct log *log = context;
	struct logged_stack *to = &log->stacks[log->n_stacks];

	if (log->n_stacks == LOGGED_STACKS_MAX)
		return;
	assert_true(s->n_kernel <= sizeof(to->kernel) / sizeof(*to->kernel));
	assert_true(s->user.copied_bytes <= sizeof(to->user));
	to->s = *s;
	memcpy(to->kernel, s->kernel, s->n_kernel * sizeof(*s->kernel));
	memcpy(to->user, s->user.copied, s->user.copied_bytes);
	log->n_stacks++;
}

static inline struct log *log_new(void)
{
	struct log *log = calloc(1, sizeof(*log));

	assert_non_null(log);
	log->stacks = calloc(LOGGED_STACKS_MAX, sizeof(*log->stacks));
	assert_non_null(log->stacks);
	return log;
}

static inline void log_free(struct log *log)
{
	free(log->events);
	free(log->stacks);
	free(log);
}

static inline void sleep_ms(long ms)
{
	const struct timespec t = {ms / 1000, ms % 1000 * 1000000};

	nanosleep(&t, NULL);
}

/* Appends all events that happened before the call. */
static inline void drain(struct capture *c, struct log *log)
{
	const struct capture_sink sink = {.events = log_events, .stack = log_stack, .context = log};
	const struct timespec lag = {.tv_nsec = (long)capture_lag_ns(c)};

	if (lag.tv_nsec)
		nanosleep(&lag, NULL);
	if (c->backend->sample) { /* shared: a sample reads the rings, at most once in 5 ms */
		struct clock_sample sample;

		sleep_ms(6);
		assert_int_equal(capture_clock_sample(c, &sample), 0);
	}
	assert_true(capture_drain(c, &sink) >= 0);
}

/* Drains every 10 ms for `ms`, because other tasks of the machine fill the rings too. */
static inline void drain_for(struct capture *c, struct log *log, long ms)
{
	for (long slept = 0; slept < ms; slept += 10) {
		sleep_ms(10);
		drain(c, log);
	}
}

/* Waits for a child, draining. */
static inline void drain_until_exit(struct capture *c, struct log *log, pid_t child)
{
	pid_t ended;

	while (!(ended = waitpid(child, NULL, WNOHANG)))
		drain_for(c, log, 10);
	assert_int_equal(ended, child);
	drain(c, log);
}

static inline void pin(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	assert_int_equal(sched_setaffinity(0, sizeof(set), &set), 0);
}

/* Stores two CPUs on which this process may run; twice the same one if there is only one. */
static inline void two_cpus(int cpus[2])
{
	cpu_set_t set;
	int n = 0;

	assert_int_equal(sched_getaffinity(0, sizeof(set), &set), 0);
	for (int cpu = 0; cpu < CPU_SETSIZE && n < 2; cpu++) {
		if (CPU_ISSET(cpu, &set))
			cpus[n++] = cpu;
	}
	if (n == 1)
		cpus[1] = cpus[0];
}

enum { BUSY_MAX = 256 };

/* Keeps all CPUs busy, because perf on some kernels records nothing that interrupts an idle task.
 * cpus_let_go() ends that. */
static inline size_t cpus_keep_busy(pid_t busy[BUSY_MAX])
{
	const long cpus = sysconf(_SC_NPROCESSORS_CONF);
	size_t n = 0;

	for (int cpu = 0; cpu < cpus && cpu < BUSY_MAX; cpu++) {
		pid_t child = fork();

		assert_true(child >= 0);
		if (!child) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			pin(cpu);
			(void)!nice(19);
			for (;;)
				asm volatile("pause");
		}
		busy[n++] = child;
	}
	return n;
}

static inline void cpus_let_go(const pid_t *busy, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		kill(busy[i], SIGKILL);
		waitpid(busy[i], NULL, 0);
	}
}

static inline const struct vs_event *find(const struct log *log, enum vs_event_type type, int pid)
{
	for (size_t i = 0; i < log->n; i++) {
		if (log->events[i].type == type && log->events[i].pid == pid)
			return &log->events[i];
	}
	return NULL;
}

static inline bool find_name(const struct log *log, int pid, int tgid, const char *comm)
{
	char padded[16] = "";

	for (size_t i = 0; i < sizeof(padded) - 1 && comm[i]; i++)
		padded[i] = comm[i];
	for (size_t i = 0; i < log->n; i++) {
		const struct vs_event *e = &log->events[i];

		if (e->type == VS_EVENT_TASK_NAME && e->pid == pid && e->pid2 == tgid &&
		    !memcmp(&e->arg0, padded, 8) && !memcmp(&e->arg1, padded + 8, 8))
			return true;
	}
	return false;
}

/* Stores the ids of the BPF programs that a process holds; returns their number. */
static inline size_t programs_of(pid_t pid, uint32_t *ids, size_t max)
{
	char path[300], line[128];
	struct dirent *entry;
	size_t n = 0;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/fdinfo", pid);
	dir = opendir(path);
	assert_non_null(dir);
	while ((entry = readdir(dir))) {
		FILE *f;

		snprintf(path, sizeof(path), "/proc/%d/fdinfo/%s", pid, entry->d_name);
		f = fopen(path, "r");
		while (f && fgets(line, sizeof(line), f)) {
			if (n < max && sscanf(line, "prog_id: %u", &ids[n]) == 1)
				n++;
		}
		if (f)
			fclose(f);
	}
	closedir(dir);
	return n;
}

static inline size_t programs_alive(const uint32_t *ids, size_t n)
{
	size_t alive = 0;

	for (size_t i = 0; i < n; i++) {
		const int fd = bpf_prog_get_fd_by_id(ids[i]);

		if (fd >= 0) {
			alive++;
			close(fd);
		}
	}
	return alive;
}

/* Returns how many perf events a process holds open. */
static inline size_t perf_events_of(pid_t pid)
{
	char path[300], target[64];
	struct dirent *entry;
	size_t n = 0;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/fd", pid);
	dir = opendir(path);
	assert_non_null(dir);
	while ((entry = readdir(dir))) {
		ssize_t bytes;

		snprintf(path, sizeof(path), "/proc/%d/fd/%s", pid, entry->d_name);
		bytes = readlink(path, target, sizeof(target) - 1);
		target[bytes < 0 ? 0 : bytes] = '\0';
		n += !strcmp(target, "anon_inode:[perf_event]");
	}
	closedir(dir);
	return n;
}

/* Closing a capture closes its perf events. The end of the process needs no test: the kernel closes
 * the descriptors, and with them the events. */
static inline void check_no_perf_event_stays(struct capture *(*open_one)(void))
{
	const size_t before = perf_events_of(getpid());
	struct capture *c = open_one();

	assert_true(perf_events_of(getpid()) > before);
	capture_close(c);
	assert_int_equal(perf_events_of(getpid()), before);
}

/* Neither closing a capture nor killing its process leaves a program in the kernel. */
static inline void check_nothing_stays(struct capture *(*open_one)(void))
{
	uint32_t ids[128];
	struct capture *c = open_one();
	int ready[2];
	pid_t child;
	size_t n;
	char byte;

	n = programs_of(getpid(), ids, 128);
	assert_true(n > 0);
	assert_int_equal(programs_alive(ids, n), n);
	capture_close(c);
	for (int i = 0; i < 1000 && programs_alive(ids, n); i++)
		sleep_ms(20);
	assert_int_equal(programs_alive(ids, n), 0);

	assert_int_equal(pipe(ready), 0);
	child = fork();
	if (!child) {
		c = open_one();
		if (write(ready[1], "", 1) != 1)
			_exit(1);
		pause();
	}
	assert_int_equal(read(ready[0], &byte, 1), 1);
	n = programs_of(child, ids, 128);
	assert_true(n > 0);
	kill(child, SIGKILL);
	assert_int_equal(waitpid(child, NULL, 0), child);
	for (int i = 0; i < 1000 && programs_alive(ids, n); i++)
		sleep_ms(20);
	assert_int_equal(programs_alive(ids, n), 0);
	close(ready[0]);
	close(ready[1]);
}

#endif
