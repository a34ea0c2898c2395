/* SPDX-License-Identifier: GPL-2.0-only */
#include "bpf/isolation/confine.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/futex.h>
#include <seccomp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "proto/proc_file.h"

/* The sanitizers reserve terabytes and make system calls of their own. With them, the memory limit
 * and the filter of system calls are off. */
#if defined(__SANITIZE_ADDRESS__)
#define UNDER_SANITIZER 1
#else
#define UNDER_SANITIZER 0
#endif

enum { NOBODY = 65534, DESCRIPTORS_OLD = 65536 };

static int descriptors_drop(int keep)
{
	struct rlimit limit;

	if (!syscall(SYS_close_range, keep, ~0u, 0))
		return 0;
	if (errno != ENOSYS || getrlimit(RLIMIT_NOFILE, &limit))
		return -errno;
	/* Before Linux 5.9. A helper starts with few descriptors, and their numbers are low. */
	for (int fd = keep; fd < DESCRIPTORS_OLD && (rlim_t)fd < limit.rlim_cur; fd++)
		close(fd);
	return 0;
}

static int root_drop(void)
{
	if (geteuid())
		return 0;
	if (setgroups(0, NULL) || setresgid(NOBODY, NOBODY, NOBODY) ||
	    setresuid(NOBODY, NOBODY, NOBODY))
		return -errno;
	return setuid(0) ? 0 : -EPERM; /* a success shows that the rights were not dropped */
}

static int capabilities_drop(void)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct none[2] = {{0}}, left[2];

	if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) ||
	    syscall(SYS_capset, &header, none) || syscall(SYS_capget, &header, left))
		return -errno;
	for (int i = 0; i < 2; i++) {
		if (left[i].effective || left[i].permitted || left[i].inheritable)
			return -EPERM;
	}
	return 0;
}

static uint64_t memory_now(void)
{
	char text[128];

	proc_file_line("/proc/self/statm", text, sizeof(text));
	return (uint64_t)strtoul(text, NULL, 10) * 4096;
}

static int limits_set(int descriptors, uint64_t as_bytes)
{
	const struct {
		__rlimit_resource_t what;
		rlim_t value;
	} limits[] = {
		{RLIMIT_NOFILE, (rlim_t)descriptors},
		{RLIMIT_NPROC, 0},
		{RLIMIT_FSIZE, 0},
		{RLIMIT_CORE, 0},
		{RLIMIT_MEMLOCK, 0},
		{RLIMIT_MSGQUEUE, 0},
		{RLIMIT_AS, as_bytes},
	};

	for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++) {
		struct rlimit limit = {limits[i].value, limits[i].value}, now;

		/* A process without rights cannot raise a limit that is lower already. */
		if (!getrlimit(limits[i].what, &now) && now.rlim_max < limits[i].value)
			limit.rlim_cur = limit.rlim_max = now.rlim_max;
		if (limits[i].what == RLIMIT_AS && UNDER_SANITIZER)
			continue;
		if (setrlimit(limits[i].what, &limit))
			return -errno;
	}
	return 0;
}

static int dumps_forbid(void)
{
	return prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) ? -errno : 0;
}

int confine_follow_parent(pid_t parent)
{
	if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0))
		return -errno;
	return getppid() == parent ? 0 : -ESRCH;
}

static int calls_allow(scmp_filter_ctx filter, const int *calls, size_t n)
{
	int err = 0;

	for (size_t i = 0; i < n && !err; i++)
		err = seccomp_rule_add(filter, SCMP_ACT_ALLOW, calls[i], 0);
	return err;
}

static int filter_load(bool files, bool sockets)
{
	/* A loop over two descriptors, malloc() and the clock need these. */
	static const int calls[] = {
		SCMP_SYS(write),           SCMP_SYS(recvfrom),
		SCMP_SYS(sendto),          SCMP_SYS(poll),
		SCMP_SYS(clock_gettime),   SCMP_SYS(getrandom),
		SCMP_SYS(munmap),          SCMP_SYS(brk),
		SCMP_SYS(madvise),         SCMP_SYS(shutdown),
		SCMP_SYS(restart_syscall), SCMP_SYS(exit_group),
		SCMP_SYS(mremap),          SCMP_SYS(close),
	};
	/* Descriptors of files come as messages. libelf reads the size of files, qsort() the size
	 * of the memory. */
	static const int file_calls[] = {
		SCMP_SYS(recvmsg), SCMP_SYS(pread64),    SCMP_SYS(lseek),
		SCMP_SYS(fstat),   SCMP_SYS(newfstatat), SCMP_SYS(sysinfo),
	};
	scmp_filter_ctx filter;
	int err = 0;

	if (UNDER_SANITIZER)
		return 0;
	filter = seccomp_init(SCMP_ACT_KILL_PROCESS);
	if (!filter)
		return -ENOMEM;
	err = calls_allow(filter, calls, sizeof(calls) / sizeof(calls[0]));
	if (!err && files)
		err = calls_allow(filter, file_calls, sizeof(file_calls) / sizeof(file_calls[0]));
	/* libelf checks whether a descriptor is open. */
	if (!err && files)
		err = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(fcntl), 1,
				       SCMP_A1(SCMP_CMP_EQ, F_GETFD, 0));
	if (!err && sockets && !files)
		err = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(recvmsg), 0);
	/* Only anonymous memory that cannot be executed. */
	if (!err)
		err = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(mmap), 2,
				       SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0),
				       SCMP_A3(SCMP_CMP_MASKED_EQ, MAP_ANONYMOUS, MAP_ANONYMOUS));
	/* pthread_once() in GnuTLS wakes waiting threads, even if there are none. */
	if (!err)
		err = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(futex), 1,
				       SCMP_A1(SCMP_CMP_EQ, FUTEX_WAKE_PRIVATE, 0));
	if (!err)
		err = seccomp_load(filter);
	seccomp_release(filter);
	return err;
}

int confine(const struct confinement *c, const char **step)
{
	uint64_t as_bytes = memory_now() + c->memory_bytes;
	int err;

	*step = "closing the other descriptors";
	err = descriptors_drop(c->keep);
	if (!err) {
		*step = "becoming nobody";
		err = root_drop();
	}
	if (!err) {
		*step = "dropping capabilities";
		err = capabilities_drop();
	}
	if (!err) {
		*step = "forbidding dumps";
		err = dumps_forbid();
	}
	if (!err) {
		*step = "dying with its parent";
		err = confine_follow_parent(c->parent);
	}
	if (!err) {
		*step = "setting limits";
		err = limits_set(c->keep + c->files + c->sockets, as_bytes);
	}
	if (!err) {
		*step = "the system call filter (seccomp)";
		err = filter_load(c->files > 0, c->sockets > 0);
	}
	return err;
}
