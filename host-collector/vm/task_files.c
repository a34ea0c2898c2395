/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/vm/task_files.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "clock/sample.h"
#include "host-collector/vm/identity.h"
#include "host-collector/vm/threads.h"
#include "proto/proc_file.h"

void task_facts_init(struct task_files *f, const char *proc, const char *passwd)
{
	static const char *const names[] = {"libvirt-qemu", "qemu"};
	FILE *users = fopen(passwd ? passwd : "/etc/passwd", "re");
	long per_second = sysconf(_SC_CLK_TCK);
	struct passwd *user;

	*f = (struct task_files){.tick_ns = 1000000000 / (per_second > 0 ? per_second : 100),
				 .suspended_ns = clock_suspended_ns()};
	snprintf(f->proc, sizeof(f->proc), "%s", proc ? proc : "/proc");
	/* The file itself: a directory service may take its time. */
	while (users && f->n_users < TASK_FILES_USERS && (user = fgetpwent(users))) {
		for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
			if (strcmp(user->pw_name, names[i]) == 0 && f->n_users < TASK_FILES_USERS)
				f->users[f->n_users++] = user->pw_uid;
		}
	}
	if (users)
		fclose(users);
}

static ssize_t read_below(int dir, const char *name, char *out, size_t bytes)
{
	return proc_file_read_at(dir, name, O_NOFOLLOW, out, bytes);
}

/* Field 22 of stat: when it began, in ticks since the machine's boot. The name before it may hold
 * blanks and parentheses. */
static bool began_read(int dir, uint64_t *ticks)
{
	char text[1024], *at;

	if (read_below(dir, "stat", text, sizeof(text)) <= 0)
		return false;
	at = strrchr(text, ')');
	for (int field = 2; at && field < 22; field++)
		at = strchr(at + 1, ' ');
	return at && sscanf(at, " %" SCNu64, ticks) == 1;
}

/* Is the task of this directory the one that was seen? Says how old it was then. */
static bool is_same(const struct task_files *f, int dir, const struct task_identity *task,
		    uint64_t *age_ns)
{
	const uint64_t seen_ns = task->seen_ns + f->suspended_ns;
	uint64_t ticks, began_ns;
	char comm[64];

	if (!began_read(dir, &ticks) || ticks > UINT64_MAX / f->tick_ns)
		return false;
	began_ns = ticks * f->tick_ns;
	if (began_ns > seen_ns)
		return false;
	*age_ns = seen_ns - began_ns;
	if (*age_ns >= f->tick_ns)
		return true;
	/* It began in the tick of the event, so perhaps after it: then its name must speak for it.
	 */
	if (read_below(dir, "comm", comm, sizeof(comm)) <= 0)
		return false;
	comm[strcspn(comm, "\n")] = '\0';
	return strncmp(comm, task->comm, sizeof(task->comm)) == 0;
}

/* "0::/path" (v2), "4:cpu,cpuacct:/path", "1:name=systemd:/path": how much the line says. */
static int line_rank(const char *line, const char **path)
{
	const char *controllers = strchr(line, ':'), *end;

	end = controllers ? strchr(++controllers, ':') : NULL;
	if (!end)
		return 0;
	*path = end + 1;
	if (strcmp(*path, "/") == 0)
		return 0;
	if (end == controllers)
		return 3;
	if (strncmp(controllers, "name=systemd:", 13) == 0)
		return 2;
	return strncmp(controllers, "cpu:", 4) == 0 || strncmp(controllers, "cpu,", 4) == 0;
}

/* In the root of every hierarchy: "/". */
static void cgroup_read(int dir, char *out, size_t bytes)
{
	char text[4096];
	int best = 0;

	out[0] = '\0';
	if (read_below(dir, "cgroup", text, sizeof(text)) <= 0)
		return;
	snprintf(out, bytes, "/");
	for (char *line = text, *next; line && *line; line = next) {
		const char *path = NULL;
		int rank;

		next = strchr(line, '\n');
		if (!next)
			break; /* cut */
		*next++ = '\0';
		rank = line_rank(line, &path);
		if (rank <= best)
			continue;
		best = rank;
		snprintf(out, bytes, "%s",
			 strlen(path) < bytes ? path : path + strlen(path) - bytes + 1);
	}
}

static uint32_t user_of(int process)
{
	char text[4096], *line;
	unsigned int uid;

	if (read_below(process, "status", text, sizeof(text)) <= 0)
		return UINT32_MAX;
	line = strstr(text, "\nUid:");
	return line && sscanf(line + 5, "%u", &uid) == 1 ? uid : UINT32_MAX;
}

static bool is_trusted(const struct task_files *f, uint32_t uid)
{
	bool trusted = uid == 0;

	for (size_t i = 0; i < f->n_users; i++)
		trusted |= uid == f->users[i];
	return trusted;
}

/* comm: of the process. */
static void name_read(int process, int32_t pid, const char *comm, char *name, size_t bytes)
{
	enum { CMDLINE_MAX = 64 * 1024 };
	struct vm_identity id = {.kind = vm_identity_kind(comm)};
	char *line = malloc(CMDLINE_MAX);
	ssize_t len = line ? read_below(process, "cmdline", line, CMDLINE_MAX) : -ENOMEM;

	if (id.kind == VMM_OTHER) /* its thread has QEMU's name of a vCPU */
		id.kind = VMM_QEMU;
	if (len > 0)
		vm_identity_command_line(line, (size_t)len, &id);
	vm_identity_name(&id, pid, name, bytes);
	free(line);
}

static void vm_read(const struct task_files *f, int process, const struct task_identity *task,
		    struct task_facts *out)
{
	const char *accelerator;
	char comm[64];

	out->vcpu_known = thread_name_is_vcpu(task->comm, &out->vcpu, &accelerator);
	if (read_below(process, "comm", comm, sizeof(comm)) <= 0)
		return;
	comm[strcspn(comm, "\n")] = '\0';
	if (!out->vcpu_known && vm_identity_kind(comm) == VMM_OTHER)
		return;
	name_read(process, task->tgid, comm, out->vm, sizeof(out->vm));
	out->uid = user_of(process);
	out->claimed = !is_trusted(f, out->uid);
}

/* Opens the directory of the task's process, and that of its thread if it is the task that was
 * seen. 0 or -errno. */
static int task_open(const struct task_files *f, const struct task_identity *task, int *process,
		     int *thread, uint64_t *age_ns)
{
	char path[sizeof(f->proc) + 32];

	snprintf(path, sizeof(path), "%s/%d", f->proc, task->tgid);
	*process = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (*process < 0)
		return errno == ENOENT ? -ESRCH : -errno;
	snprintf(path, sizeof(path), "task/%d", task->tid);
	*thread = openat(*process, path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (*thread >= 0 && is_same(f, *thread, task, age_ns))
		return 0;
	if (*thread >= 0)
		close(*thread);
	close(*process);
	return -ESRCH;
}

int task_age_read(const struct task_files *f, const struct task_identity *task, uint64_t *age_ns)
{
	int process, thread, err = task_open(f, task, &process, &thread, age_ns);

	if (err)
		return err;
	close(thread);
	close(process);
	return 0;
}

int task_facts_read(const struct task_files *f, const struct task_identity *task,
		    struct task_facts *out)
{
	int process, thread, err;

	*out = (struct task_facts){.tid = task->tid, .tgid = task->tgid};
	err = task_open(f, task, &process, &thread, &out->age_ns);
	if (err)
		return err;
	cgroup_read(thread, out->cgroup, sizeof(out->cgroup));
	vm_read(f, process, task, out);
	close(thread);
	close(process);
	return 0;
}
