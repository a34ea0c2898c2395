/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Follows /dev/kmsg from its end. Of what was logged before, only the last lines about lockups and
 * stalls are reported, because they are why somebody started us. A flood is cut at a rate, and what
 * was cut or overwritten is said in a line of its own.
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

/* One read of /dev/kmsg: "level,seq,usec,flags;text\n KEY=value\n". Control characters in the text
 * become '?'. 0 or -EBADMSG. */
int kernel_log_parse(const char *record, size_t len, struct kernel_log_record *out);
/* Does the line speak of a stall? */
bool kernel_log_is_stall(const char *text);

struct kernel_log_stats {
	uint64_t forwarded, skipped_rate, overwritten;
};

struct kernel_log;

/* Opens /dev/kmsg and reads the history. 0 or -errno. */
int kernel_log_open(struct kernel_log **out);
/* The same on a descriptor of records, one per read, that says EAGAIN at its end. Owns fd. */
int kernel_log_open_fd(int fd, struct kernel_log **out);
void kernel_log_close(struct kernel_log *k);
/* Fills `out` with what is new, at most VS_LOG_LINES_MAX lines. now_ms: monotonic, for the rate.
 * Returns the number of lines or -errno. */
long kernel_log_read(struct kernel_log *k, uint64_t now_ms, struct message_kernel_log *out);
const struct kernel_log_stats *kernel_log_stats_get(const struct kernel_log *k);

#endif
