// SPDX-License-Identifier: GPL-2.0-only
#include "bpf/capture/kernel_support.h"

#include <errno.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "bpf/capture/lockdown.h"
#include "proto/proc_file.h"

enum { CAP_BIT_SYS_PTRACE = 19, CAP_BIT_SYS_ADMIN = 21, CAP_BIT_PERFMON = 38, CAP_BIT_BPF = 39 };

#define BTF_PATH     "/sys/kernel/btf/vmlinux"
#define TRACEFS_PATH "/sys/kernel/tracing"
#define EVENT_PATH   "/events/sched/sched_switch/id"

/* Reads the first line of a file below `root`, without its newline. Returns 0 or -errno. */
static int line_read(const char *root, const char *path, char *line, size_t bytes)
{
	char full[512];

	if ((size_t)snprintf(full, sizeof(full), "%s%s", root, path) >= sizeof(full))
		return -ENAMETOOLONG;
	return proc_file_line(full, line, bytes);
}

static const char *remedy_for(int err, const char *if_absent)
{
	return err == -EACCES || err == -EPERM ? "run as root, on the machine itself and not in a "
						 "container without rights"
					       : if_absent;
}

static int capabilities_read(const char *root, uint64_t *caps)
{
	char path[512], line[256];
	int err = -ENODATA;
	FILE *f;

	if ((size_t)snprintf(path, sizeof(path), "%s/proc/self/status", root) >= sizeof(path))
		return -ENAMETOOLONG;
	f = fopen(path, "re");
	if (!f)
		return -errno;
	while (err && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "CapEff: %" SCNx64, caps) == 1)
			err = 0;
	}
	fclose(f);
	return err;
}

static void rights_read(const char *root, enum capture_kind side, struct kernel_support *out)
{
	uint64_t caps = 0;
	const int err = capabilities_read(root, &caps);
	const bool admin = caps >> CAP_BIT_SYS_ADMIN & 1;
	const bool bpf = admin || caps >> CAP_BIT_BPF & 1;
	const bool perfmon = admin || caps >> CAP_BIT_PERFMON & 1;
	/* CAP_SYS_ADMIN implies the other two, but not the right to read other processes. */
	const bool ptrace = side != CAPTURE_HOST || caps >> CAP_BIT_SYS_PTRACE & 1;

	if (err) {
		snprintf(out->found, sizeof(out->found), "unknown: /proc/self/status: %s",
			 strerror(-err));
		snprintf(out->without, sizeof(out->without), "the checks below try what works");
		snprintf(out->remedy, sizeof(out->remedy), "mount -t proc proc /proc");
		return;
	}
	if (bpf && perfmon && ptrace) {
		out->works = true;
		snprintf(out->found, sizeof(out->found), "user %u may trace", geteuid());
		return;
	}
	snprintf(out->found, sizeof(out->found), "missing:%s%s%s", perfmon ? "" : " CAP_PERFMON",
		 bpf ? "" : " CAP_BPF", ptrace ? "" : " CAP_SYS_PTRACE");
	snprintf(
		out->without, sizeof(out->without), "%s%s%s",
		!perfmon ? "neither BPF nor perf can capture"
		: !bpf ? "BPF cannot capture; perf can, but where kernel.perf_event_paranoid is 3 "
			 "it needs CAP_SYS_ADMIN"
		       : "",
		(!perfmon || !bpf) && !ptrace ? "; " : "",
		ptrace ? ""
		       : "the memory of other users' VMMs cannot be read: no kvmclock page, no names "
			 "in their stacks");
	snprintf(out->remedy, sizeof(out->remedy), "%s",
		 side == CAPTURE_HOST
			 ? "run as root (sudo vcpuscope ...), or give the binary these "
			   "capabilities with setcap"
			 : "run as root, or add them to CapabilityBoundingSet of the agent's unit");
}

static void btf_read(const char *root, struct kernel_support *out)
{
	char path[512];

	snprintf(path, sizeof(path), "%s" BTF_PATH, root);
	if (!access(path, R_OK)) {
		out->works = true;
		snprintf(out->found, sizeof(out->found), BTF_PATH);
		return;
	}
	snprintf(out->remedy, sizeof(out->remedy), "%s",
		 remedy_for(-errno, "boot a kernel built with CONFIG_DEBUG_INFO_BTF (Debian's "
				    "are)"));
	snprintf(out->found, sizeof(out->found), BTF_PATH ": %s", strerror(errno));
	snprintf(out->without, sizeof(out->without),
		 "BPF cannot capture; perf can: it costs more, and has neither the level summary "
		 "nor events chosen with -e");
}

static void tracefs_read(const char *root, struct kernel_support *out)
{
	static const char *const places[] = {TRACEFS_PATH, "/sys/kernel/debug/tracing"};
	char line[32];
	int err = 0;

	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		char path[128];
		int failed;

		snprintf(path, sizeof(path), "%s" EVENT_PATH, places[i]);
		failed = line_read(root, path, line, sizeof(line));
		if (!failed) {
			out->works = true;
			snprintf(out->found, sizeof(out->found), "%s, sched_switch is event %s",
				 places[i], line);
			return;
		}
		err = err ? err : failed;
	}
	snprintf(out->found, sizeof(out->found), TRACEFS_PATH "/events: %s",
		 err == -ENOENT ? "does not exist" : strerror(-err));
	snprintf(
		out->without, sizeof(out->without),
		"perf cannot capture, and events chosen with -e have no names; BPF can capture the "
		"rest");
	snprintf(out->remedy, sizeof(out->remedy), "%s",
		 remedy_for(err, "mount -t tracefs tracefs " TRACEFS_PATH));
}

static void lockdown_read(const char *root, struct kernel_support *out)
{
	char line[128];
	const int err = line_read(root, LOCKDOWN_PATH, line, sizeof(line));

	out->works = true;
	if (err == -ENOENT) {
		snprintf(out->found, sizeof(out->found),
			 "none known: the kernel has no lockdown, or securityfs is not mounted");
	} else if (err) {
		snprintf(out->found, sizeof(out->found), "unknown: " LOCKDOWN_PATH ": %s",
			 strerror(-err));
	} else if (strstr(line, "[confidentiality]")) {
		out->works = false;
		snprintf(out->found, sizeof(out->found), "mode confidentiality");
		snprintf(out->without, sizeof(out->without),
			 "BPF may not read the kernel's memory, and tracefs, which perf needs, is "
			 "empty: neither can capture");
		snprintf(out->remedy, sizeof(out->remedy),
			 "boot with lockdown=integrity, or without Secure Boot");
	} else if (strstr(line, "[integrity]")) {
		snprintf(out->found, sizeof(out->found),
			 "mode integrity, which forbids nothing that a capture needs");
	} else if (strstr(line, "[none]")) {
		snprintf(out->found, sizeof(out->found), "none");
	} else {
		snprintf(out->found, sizeof(out->found),
			 "unknown: " LOCKDOWN_PATH " names no mode");
	}
}

void kernel_support_read(const char *root, enum capture_kind side, enum kernel_support_kind kind,
			 struct kernel_support *out)
{
	*out = (struct kernel_support){0};
	switch (kind) {
	case KERNEL_SUPPORT_RIGHTS:
		rights_read(root, side, out);
		break;
	case KERNEL_SUPPORT_BTF:
		btf_read(root, out);
		break;
	case KERNEL_SUPPORT_TRACEFS:
		tracefs_read(root, out);
		break;
	case KERNEL_SUPPORT_LOCKDOWN:
		lockdown_read(root, out);
		break;
	case KERNEL_SUPPORT_KINDS:
		break;
	}
}

const char *kernel_support_name(enum kernel_support_kind kind)
{
	static const char *const names[KERNEL_SUPPORT_KINDS] = {
		[KERNEL_SUPPORT_RIGHTS] = "rights",
		[KERNEL_SUPPORT_BTF] = "btf",
		[KERNEL_SUPPORT_TRACEFS] = "tracefs",
		[KERNEL_SUPPORT_LOCKDOWN] = "lockdown",
	};

	return kind < KERNEL_SUPPORT_KINDS ? names[kind] : "";
}
