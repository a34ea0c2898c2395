/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/vm/cgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "proto/proc_file.h"

enum {
	GROUPS_MAX = 512,
	QUIET_EVERY = 10, /* calls: how often a group without a quota is read */
	PATH_BYTES = 512,
	LINE_BYTES = 1024,
	THREAD_BYTES = 8192, /* of a thread's `cgroup` file: a line for each hierarchy */
};

/* A vCPU's thread. Opening its file costs ten times as much as reading it, so it stays open. */
struct thread {
	int32_t tid;
	uint32_t vcpu;
	int fd;     /* of /proc/PID/task/TID/cgroup; -1: it cannot be read */
	char *text; /* what the file contained last; NULL: not read yet */
};

struct group {
	char dir[PATH_BYTES];
	size_t name_at; /* where its path below the mount begins */
	bool v2, seen;
	bool known;   /* it has been read */
	int quota_fd; /* of the file with its quota, once it was read; -1: none */
	uint64_t tsc, periods, throttled_ns;
	uint64_t quota_us, period_us; /* quota_us 0: none */
	size_t n_vcpus;
	uint32_t *vcpus; /* VS_CPUS_MAX */
};

struct mount {
	char dir[PATH_BYTES], root[PATH_BYTES];
};

struct cgroups {
	char proc[PATH_BYTES];
	struct mount v1, v2; /* dir is empty if there is none */
	uint32_t vm;
	unsigned turn;
	bool incomplete; /* not all cgroups of the threads are watched */
	int32_t pid;
	size_t n_threads;
	struct thread *threads;
	size_t n;
	struct group groups[GROUPS_MAX];
	struct message_cpu_quota message;
};

/* ---- where cgroups are ---- */

/* Does the comma-separated list hold exactly this word? */
static bool list_has(const char *list, const char *word)
{
	size_t len = strlen(word);

	for (const char *at = list; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL) {
		if (strncmp(at, word, len) == 0 && strchr(",\n", at[len]))
			return true;
	}
	return false;
}

/* "36 35 98:0 /root /mnt rw,noatime master:1 - cgroup name rw,cpu": see proc(5). */
static void mount_take(struct cgroups *c, const char *line)
{
	const char *rest = strstr(line, " - ");
	char root[PATH_BYTES], dir[PATH_BYTES], type[16], options[256];
	struct mount *m = NULL;

	if (!rest || sscanf(line, "%*d %*d %*s %511s %511s", root, dir) != 2 ||
	    sscanf(rest, " - %15s %*s %255s", type, options) != 2)
		return;
	if (strcmp(type, "cgroup2") == 0)
		m = &c->v2;
	else if (strcmp(type, "cgroup") == 0 && list_has(options, "cpu"))
		m = &c->v1;
	if (!m || m->dir[0])
		return;
	memcpy(m->root, root, sizeof(m->root));
	memcpy(m->dir, dir, sizeof(m->dir));
}

struct cgroups *cgroups_new(const char *proc)
{
	struct cgroups *c = calloc(1, sizeof(*c));
	char path[PATH_BYTES + 32], line[2 * LINE_BYTES];
	FILE *f;

	if (!c)
		return NULL;
	snprintf(c->proc, sizeof(c->proc), "%s", proc ? proc : "/proc");
	snprintf(path, sizeof(path), "%s/self/mountinfo", c->proc);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f))
		mount_take(c, line);
	if (f)
		fclose(f);
	return c;
}

static void group_fini(struct group *g)
{
	if (g->quota_fd >= 0)
		close(g->quota_fd);
	free(g->vcpus);
}

static void thread_close(struct thread *t)
{
	if (t->fd >= 0)
		close(t->fd);
	t->fd = -1;
}

static void threads_free(struct thread *threads, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		thread_close(&threads[i]);
		free(threads[i].text);
	}
	free(threads);
}

void cgroups_free(struct cgroups *c)
{
	if (!c)
		return;
	for (size_t i = 0; i < c->n; i++)
		group_fini(&c->groups[i]);
	threads_free(c->threads, c->n_threads);
	free(c);
}

/* ---- which contain the VM's threads ---- */

/* dir is shorter than PATH_BYTES. */
static struct group *group_get(struct cgroups *c, const char *dir, size_t name_at, bool v2)
{
	struct group *g;

	for (size_t i = 0; i < c->n; i++) {
		if (strcmp(c->groups[i].dir, dir) == 0)
			return &c->groups[i];
	}
	if (c->n == GROUPS_MAX)
		return NULL;
	g = &c->groups[c->n];
	*g = (struct group){.name_at = name_at, .v2 = v2, .quota_fd = -1};
	g->vcpus = calloc(VS_CPUS_MAX, sizeof(*g->vcpus));
	if (!g->vcpus)
		return NULL;
	memcpy(g->dir, dir, strlen(dir) + 1);
	c->n++;
	return g;
}

/* The thread's cgroup and all above it. `path` as /proc/PID/cgroup has it. */
static int path_take(struct cgroups *c, const struct mount *m, const char *path, bool v2,
		     uint32_t vcpu)
{
	size_t root = strlen(m->root), base = strlen(m->dir), len;
	char dir[2 * PATH_BYTES];
	int err = 0;

	if (!m->dir[0])
		return 0;
	/* In a container the mount shows a part of the tree. */
	if (root > 1 && strncmp(path, m->root, root) == 0)
		path += root;
	len = (size_t)snprintf(dir, sizeof(dir), "%s%s", m->dir, path);
	if (len >= PATH_BYTES)
		return -E2BIG;
	while (len > base + 1) {
		struct group *g = group_get(c, dir, base, v2);

		if (!g) {
			err = -E2BIG;
		} else {
			if (!g->seen)
				g->n_vcpus = 0;
			g->seen = true;
			if (g->n_vcpus < VS_CPUS_MAX)
				g->vcpus[g->n_vcpus++] = vcpu;
		}
		while (len > base && dir[len] != '/')
			len--;
		dir[len] = '\0';
	}
	return err;
}

/* "4:cpu,cpuacct:/path" or "0::/path". */
static int line_take(struct cgroups *c, char *line, uint32_t vcpu)
{
	char *controllers = strchr(line, ':'), *path;

	line[strcspn(line, "\n")] = '\0';
	path = controllers ? strchr(controllers + 1, ':') : NULL;
	if (!path)
		return 0;
	*path++ = '\0';
	controllers++;
	if (!*controllers && line[0] == '0')
		return path_take(c, &c->v2, path, true, vcpu);
	return list_has(controllers, "cpu") ? path_take(c, &c->v1, path, false, vcpu) : 0;
}

/* Reads the thread's file again. Returns true if its content changed. A thread that ended keeps
 * what was read last, until cgroups_follow() finds it gone. */
static bool thread_changed(struct cgroups *c, struct thread *t)
{
	char now[THREAD_BYTES], path[PATH_BYTES + 64], *text;
	ssize_t n;

	if (t->fd < 0) {
		snprintf(path, sizeof(path), "%s/%d/task/%d/cgroup", c->proc, c->pid, t->tid);
		t->fd = open(path, O_RDONLY | O_CLOEXEC);
	}
	n = t->fd < 0 ? -1 : pread(t->fd, now, sizeof(now) - 1, 0);
	if (n <= 0) {
		thread_close(t);
		return false;
	}
	now[n] = '\0';
	if (t->text && strcmp(t->text, now) == 0)
		return false;
	text = strdup(now);
	if (!text)
		return false; /* the next reading finds the change again */
	free(t->text);
	t->text = text;
	return true;
}

/* Finds the cgroups anew from what the threads' files contained last. */
static void groups_find(struct cgroups *c)
{
	char line[LINE_BYTES];
	size_t kept = 0;

	c->incomplete = false;
	for (size_t i = 0; i < c->n; i++)
		c->groups[i].seen = false;
	for (size_t i = 0; i < c->n_threads; i++) {
		const struct thread *t = &c->threads[i];

		for (const char *at = t->text; at && *at; at += strcspn(at, "\n"), at += *at != 0) {
			size_t len = strcspn(at, "\n");

			if (len < sizeof(line)) {
				snprintf(line, sizeof(line), "%.*s", (int)len, at);
				c->incomplete |= line_take(c, line, t->vcpu) != 0;
			} else {
				c->incomplete = true;
			}
		}
	}
	for (size_t i = 0; i < c->n; i++) {
		if (c->groups[i].seen)
			c->groups[kept++] = c->groups[i];
		else
			group_fini(&c->groups[i]);
	}
	c->n = kept;
}

/* Moves the thread's file and text from the old list. The threads are mostly the same, in the same
 * order. */
static void thread_keep(struct cgroups *c, struct thread *t, size_t at)
{
	for (size_t i = 0; i < c->n_threads; i++) {
		struct thread *old = &c->threads[(at + i) % c->n_threads];

		if (old->tid == t->tid && old->vcpu == t->vcpu) {
			*t = *old;
			*old = (struct thread){.fd = -1};
			return;
		}
	}
}

int cgroups_follow(struct cgroups *c, const struct message_vm_info *info)
{
	struct thread *threads = calloc(info->n_threads ? info->n_threads : 1, sizeof(*threads));
	size_t n = 0, kept = 0;
	bool changed;

	if (!threads)
		return -ENOMEM;
	if (c->pid != info->qemu_pid) {
		threads_free(c->threads, c->n_threads);
		c->threads = NULL;
		c->n_threads = 0;
	}
	c->vm = info->vm;
	c->pid = info->qemu_pid;
	for (size_t i = 0; i < info->n_threads; i++) {
		if (!info->threads[i].is_vcpu)
			continue;
		threads[n] = (struct thread){
			.tid = info->threads[i].tid, .vcpu = info->threads[i].vcpu, .fd = -1};
		thread_keep(c, &threads[n], n);
		kept += threads[n].text != NULL;
		n++;
	}
	changed = kept != n || n != c->n_threads;
	threads_free(c->threads, c->n_threads);
	c->threads = threads;
	c->n_threads = n;
	for (size_t i = 0; i < n; i++)
		changed |= thread_changed(c, &threads[i]);
	if (changed)
		groups_find(c);
	return c->incomplete ? -E2BIG : 0;
}

/* ---- what they count ---- */

static bool file_read(const char *dir, const char *name, char *out, size_t bytes)
{
	char path[PATH_BYTES + 64];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	return proc_file_read(path, out, bytes) > 0;
}

static void quota_read(struct group *g)
{
	char text[64];
	int64_t quota;

	g->quota_us = g->period_us = 0;
	if (g->v2) {
		if (file_read(g->dir, "cpu.max", text, sizeof(text)) &&
		    sscanf(text, "%" SCNu64 " %" SCNu64, &g->quota_us, &g->period_us) != 2)
			g->quota_us = g->period_us = 0; /* "max 100000" */
		return;
	}
	if (!file_read(g->dir, "cpu.cfs_quota_us", text, sizeof(text)) ||
	    sscanf(text, "%" SCNd64, &quota) != 1 || quota <= 0)
		return;
	if (file_read(g->dir, "cpu.cfs_period_us", text, sizeof(text)) &&
	    sscanf(text, "%" SCNu64, &g->period_us) == 1)
		g->quota_us = (uint64_t)quota;
}

/* Opens the file that quota_is_new() reads. Without it a new quota is found only by reading all. */
static void quota_watch(struct group *g)
{
	char path[PATH_BYTES + 64];

	snprintf(path, sizeof(path), "%s/%s", g->dir, g->v2 ? "cpu.max" : "cpu.cfs_quota_us");
	g->quota_fd = open(path, O_RDONLY | O_CLOEXEC);
}

/*
 * Returns true if a group that had no quota has one now. Opening the file costs ten times as much
 * as reading it, so it stays open. A file of a cgroup that was removed cannot be read.
 */
static bool quota_is_new(struct group *g)
{
	char text[4];
	ssize_t n = g->quota_fd < 0 ? 0 : pread(g->quota_fd, text, sizeof(text) - 1, 0);

	if (n < 0) {
		close(g->quota_fd);
		g->quota_fd = -1;
	}
	if (n <= 0)
		return false;
	text[n] = '\0';
	return strcmp(text, "max") != 0 && text[0] != '-';
}

/* The number after a word at the beginning of a line. */
static bool field_read(const char *text, const char *word, uint64_t *value)
{
	size_t len = strlen(word);

	for (const char *at = text; at; at = strchr(at, '\n') ? strchr(at, '\n') + 1 : NULL) {
		if (strncmp(at, word, len) == 0 && at[len] == ' ')
			return sscanf(at + len, " %" SCNu64, value) == 1;
	}
	return false;
}

static bool counters_read(const struct group *g, uint64_t *periods, uint64_t *throttled_ns)
{
	char text[1024];

	if (!file_read(g->dir, "cpu.stat", text, sizeof(text)) ||
	    !field_read(text, "nr_throttled", periods))
		return false; /* the CPU controller is not switched on here */
	if (!g->v2)
		return field_read(text, "throttled_time", throttled_ns);
	if (!field_read(text, "throttled_usec", throttled_ns))
		return false;
	*throttled_ns *= 1000;
	return true;
}

static void group_read(struct cgroups *c, struct group *g, uint64_t (*tsc)(void),
		       cgroup_reading reading, void *context)
{
	struct message_cpu_quota *m = &c->message;
	const char *name = g->dir + g->name_at;
	const size_t len = strlen(name);
	uint64_t periods, throttled_ns, now;

	if (!counters_read(g, &periods, &throttled_ns))
		return;
	now = tsc();
	quota_read(g);
	if (g->quota_fd < 0)
		quota_watch(g);
	*m = (struct message_cpu_quota){.vm = c->vm,
					.n_vcpus = g->n_vcpus,
					.from = g->tsc,
					.until = now,
					.quota_us = g->quota_us,
					.period_us = g->period_us};
	/* A counter that went back is another cgroup's of the same name. */
	if (g->known && periods >= g->periods && throttled_ns >= g->throttled_ns) {
		m->periods = periods - g->periods;
		m->throttled_ns = throttled_ns - g->throttled_ns;
	}
	memcpy(m->vcpus, g->vcpus, g->n_vcpus * sizeof(*g->vcpus));
	/* Of a path that is too long, its end. */
	if (len >= sizeof(m->cgroup))
		name += len - sizeof(m->cgroup) + 1;
	snprintf(m->cgroup, sizeof(m->cgroup), "%.*s", (int)sizeof(m->cgroup) - 1, name);
	if (g->known && (g->quota_us || m->periods || m->throttled_ns))
		reading(context, m);
	g->known = true;
	g->tsc = now;
	g->periods = periods;
	g->throttled_ns = throttled_ns;
}

void cgroups_read(struct cgroups *c, uint64_t (*tsc)(void), cgroup_reading reading, void *context)
{
	const bool all = c->turn == 0;
	bool moved = false;

	for (size_t i = 0; i < c->n_threads; i++)
		moved |= thread_changed(c, &c->threads[i]);
	if (moved)
		groups_find(c);
	c->turn = (c->turn + 1) % QUIET_EVERY;
	for (size_t i = 0; i < c->n; i++) {
		struct group *g = &c->groups[i];

		if (all || g->quota_us || !g->known || quota_is_new(g))
			group_read(c, g, tsc, reading, context);
	}
}
