/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/fleet/vm_facts.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/proc_file.h"

enum { STATUS_MAX = 4096, CMDLINE_MAX = 64 * 1024 };

/* The unified hierarchy's path, or else the first one. */
static void cgroup_take(const char *text, char *out, size_t out_bytes)
{
	const char *line = strstr(text, "0::"), *path;
	size_t len;

	if (!line || (line != text && line[-1] != '\n'))
		line = text;
	path = strchr(line, '/');
	if (!path)
		return;
	len = strcspn(path, "\n");
	if (len >= out_bytes)
		path += len - (out_bytes - 1); /* the end says more */
	snprintf(out, out_bytes, "%.*s", (int)strcspn(path, "\n"), path);
}

/* "-machine pc-q35-7.2,accel=kvm", "-M type=virt". */
static void machine_take(const char *argv, size_t bytes, char *out, size_t out_bytes)
{
	for (size_t at = 0; at < bytes; at += strnlen(argv + at, bytes - at) + 1) {
		const char *word = argv + at, *value = word + strlen(word) + 1;

		if (strcmp(word, "-machine") != 0 && strcmp(word, "-M") != 0 &&
		    strcmp(word, "--machine") != 0)
			continue;
		if (value >= argv + bytes)
			return;
		if (!strncmp(value, "type=", 5))
			value += 5;
		snprintf(out, out_bytes, "%.*s", (int)strcspn(value, ","), value);
	}
}

static void uuid_copy(const char *from, char *out)
{
	for (size_t i = 0; i < IDENTITY_UUID_BYTES; i++)
		out[i] = (char)tolower((unsigned char)from[i]);
}

void vm_facts_process(const char *proc, pid_t pid, struct vm_facts *out)
{
	struct vm_identity identity;
	char path[512], *text;
	ssize_t n;

	if (vm_identity_read(proc, pid, &identity))
		return;
	uuid_copy(identity.uuid, out->uuid);
	uuid_copy(identity.pod_uid, out->pod_uid);
	snprintf(out->vmm, sizeof(out->vmm), "%s", vm_identity_vmm(&identity));
	if (!out->manager[0])
		snprintf(out->manager, sizeof(out->manager), "%s", identity.manager);
	text = malloc(CMDLINE_MAX + 1);
	if (!text)
		return;
	snprintf(path, sizeof(path), "%s/%d/cgroup", proc, pid);
	n = proc_file_read(path, text, CMDLINE_MAX);
	if (n > 0)
		cgroup_take(text, out->cgroup, sizeof(out->cgroup));
	snprintf(path, sizeof(path), "%s/%d/cmdline", proc, pid);
	n = proc_file_read(path, text, CMDLINE_MAX);
	if (n > 0) {
		text[n] = 0;
		machine_take(text, (size_t)n, out->machine_type, sizeof(out->machine_type));
	}
	free(text);
}

void cgroup_unit(const char *cgroup, char *out, size_t out_bytes)
{
	static const char *const ends[] = {".service", ".scope"};

	out[0] = 0;
	for (const char *at = cgroup; *at; at += strcspn(at, "/")) {
		size_t len;

		at += strspn(at, "/");
		len = strcspn(at, "/");
		for (size_t e = 0; e < 2; e++) {
			const size_t end = strlen(ends[e]);

			/* The innermost one: user@1000.service holds others. */
			if (len > end && !strncmp(at + len - end, ends[e], end))
				snprintf(out, out_bytes, "%.*s", (int)len, at);
		}
	}
}

pid_t thread_process(const char *proc, pid_t tid)
{
	char path[512], text[STATUS_MAX];
	const char *line;

	snprintf(path, sizeof(path), "%s/%d/status", proc, tid);
	if (tid <= 0 || proc_file_read(path, text, sizeof(text)) <= 0)
		return 0;
	line = strstr(text, "\nTgid:");
	return line ? (pid_t)strtol(line + 6, NULL, 10) : 0;
}
