/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/fleet/outbox_account.h"

#include <errno.h>
#include <fcntl.h>
#include <json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "clock/sample.h"
#include "host-collector/util/json_get.h"

enum { ACCOUNT_BYTES = 4096 };

static const uint64_t account_magic = 0x31786f6274756f76; /* "voutbox1" */

int outbox_account_open(int dir, struct outbox_account *out)
{
	static const char zeros[ACCOUNT_BYTES];
	const int fd = openat(dir, "account", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);

	if (fd < 0)
		return -errno;
	if (pread(fd, out, sizeof(*out), 0) == sizeof(*out) && out->magic == account_magic)
		return fd;
	/* Above the numbers of an outbox that somebody removed. */
	*out = (struct outbox_account){.magic = account_magic,
				       .seq = (uint64_t)clock_realtime_ns()};
	if (pwrite(fd, zeros, sizeof(zeros), 0) != sizeof(zeros)) {
		close(fd);
		return -ENOSPC;
	}
	outbox_account_save(fd, out);
	fsync(fd);
	return fd;
}

void outbox_account_save(int fd, const struct outbox_account *a)
{
	ssize_t n;

	if (fd < 0)
		return;
	n = pwrite(fd, a, sizeof(*a), 0);
	(void)n; /* its block exists: only a broken disk refuses */
}

void outbox_account_merge(struct outbox_account *a, const struct outbox_account *before)
{
	for (int k = 0; k < SEGMENT_KINDS; k++) {
		a->written[k] += before->written[k];
		a->lost[k] += before->lost[k];
		a->unreported[1][k] += before->unreported[1][k];
	}
}

/* ---- losses ---- */

void outbox_account_lose(struct outbox_account *a, enum segment_kind kind, uint64_t n, bool full)
{
	a->lost[kind] += n;
	a->unreported[full][kind] += n;
}

static uint64_t member_of(struct json_object *line, const char *key)
{
	const int64_t n = json_get_int(line, key);

	return n > 0 ? (uint64_t)n : 0;
}

/* A line that reports losses is given up itself: what it reports is to be reported again. */
static bool loss_again(struct outbox_account *a, const char *line)
{
	static const char *const keys[SEGMENT_KINDS] = {"lost_incidents", "lost_figures",
							"lost_evidence"};
	struct json_object *json;

	if (!strstr(line, "\"record\":\"loss\""))
		return false;
	json = json_tokener_parse(line);
	for (int k = 0; json && k < SEGMENT_KINDS; k++)
		a->unreported[0][k] += member_of(json, keys[k]);
	json_object_put(json);
	return true;
}

void outbox_account_lose_lines(struct outbox_account *a, int fd, enum segment_kind kind, bool full)
{
	FILE *f = fd < 0 ? NULL : fdopen(fd, "r");
	char *line = NULL;
	size_t bytes = 0;

	if (!f && fd >= 0)
		close(fd);
	while (f && getline(&line, &bytes, f) > 0) {
		if (!loss_again(a, line))
			outbox_account_lose(a, kind, 1, full);
	}
	free(line);
	if (f)
		fclose(f);
}

/* ---- reports ---- */

/* The number of the next report. An engine takes reports with one number for one report, so a
 * removed outbox must not begin again, nor hosts that were cloned count alike: it is the time, if
 * the clock was not set back. */
static uint64_t number_after(uint64_t number)
{
	const int64_t now = clock_realtime_ns();

	return now > 0 && (uint64_t)now > number ? (uint64_t)now : number + 1;
}

bool outbox_account_report(struct outbox_account *a)
{
	static const uint64_t none[SEGMENT_KINDS];

	if (memcmp(a->reporting, none, sizeof(none)) != 0)
		return true;
	for (int full = 0; full < 2; full++) {
		if (!memcmp(a->unreported[full], none, sizeof(none)))
			continue;
		a->number = number_after(a->number);
		memcpy(a->reporting, a->unreported[full], sizeof(none));
		memcpy(a->unreported[full], none, sizeof(none));
		a->reporting_full = (uint64_t)full;
		return true;
	}
	return false;
}
