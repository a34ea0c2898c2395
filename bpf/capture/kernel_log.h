/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Reads /dev/kmsg from its end on. Of the older lines, only the last ones about lockups and stalls
 * are delivered, because they may be the reason for the capture. At most
 * KERNEL_LOG_LINES_PER_SECOND are delivered. Lines above this limit are skipped. One more line
 * gives the number of lines that were skipped or overwritten.
 */
#ifndef CAPTURE_KERNEL_LOG_H
#define CAPTURE_KERNEL_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/message.h"

enum {
	KERNEL_LOG_LINES_PER_SECOND = 100,
	KERNEL_LOG_HISTORY_MAX = 16,
};

struct kernel_log_record {
	uint64_t seq;
	struct message_log_line line;
};

/* Parses one record of /dev/kmsg: "level,seq,usec,flags;text\n KEY=value\n". Replaces control
 * characters in the text by '?'. Returns 0 or -EBADMSG. */
int kernel_log_parse(const char *record, size_t len, struct kernel_log_record *out);
/* Returns true if the text has a sign of a stall, for example "soft lockup" or "rcu:". */
bool kernel_log_is_stall(const char *text);

struct kernel_log;

/* Opens /dev/kmsg and reads the history. Returns 0 or -errno. */
int kernel_log_open(struct kernel_log **out);
/* Does the same for a descriptor from which each read() returns one record, and fails with EAGAIN
 * after the last one. Takes over fd, also if it returns an error. */
int kernel_log_open_fd(int fd, struct kernel_log **out);
void kernel_log_close(struct kernel_log *k);
/* Fills `out` with the new lines, at most VS_LOG_LINES_MAX. now_ms: monotonic time, for the rate
 * limit. Returns the number of lines or -errno. */
long kernel_log_read(struct kernel_log *k, uint64_t now_ms, struct message_kernel_log *out);

#endif
