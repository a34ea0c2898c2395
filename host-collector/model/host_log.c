/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/model/host_log.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/message.h"

/* The text before the number of a CPU that is stuck: two forms, from kernel/watchdog.c. */
static const char *const lockups[] = {"soft lockup - CPU#", "hard LOCKUP on cpu "};

static bool lockup_parse(const char *text, struct host_log_line *out)
{
	for (size_t i = 0; i < sizeof(lockups) / sizeof(lockups[0]); i++) {
		const char *at = strstr(text, lockups[i]);
		unsigned long cpu;
		char *end;

		if (!at)
			continue;
		at += strlen(lockups[i]);
		cpu = strtoul(at, &end, 10);
		if (end == at || cpu >= VS_CPUS_MAX)
			return false;
		out->kind = HOST_LOG_LOCKUP;
		out->cpu = (uint16_t)cpu;
		return true;
	}
	return false;
}

/* "x86/split lock detection: #AC: COMM/PID took a split_lock trap at address: 0x..." (or "fatal",
 * "bogus" instead of "took a"); a comm may hold slashes, so the last one before the words counts.
 */
static void split_lock_parse(const char *text, struct host_log_line *out)
{
	const char *at = strstr(text, "split_lock trap");
	long pid;

	while (at && at > text && *at != '/')
		at--;
	if (!at || at == text)
		return;
	pid = strtol(at + 1, NULL, 10);
	if (pid <= 0 || pid > INT32_MAX)
		return;
	out->kind = HOST_LOG_SPLIT_LOCK;
	out->pid = (int32_t)pid;
}

void host_log_add(struct host_log *log, struct host_ns t, const char *text)
{
	struct host_log_line *line = &log->lines[log->n++ % HOST_LOG_MAX];

	*line = (struct host_log_line){.t = t};
	snprintf(line->text, sizeof(line->text), "%s", text);
	if (!lockup_parse(text, line))
		split_lock_parse(text, line);
}

const struct host_log_line *host_log_get(const struct host_log *log, size_t i)
{
	if (i >= log->n || i >= HOST_LOG_MAX)
		return NULL;
	return &log->lines[(log->n - 1 - i) % HOST_LOG_MAX];
}
