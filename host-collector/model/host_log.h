/* SPDX-License-Identifier: GPL-2.0-only */
/* Keeps the lines of the host's kernel log and recognizes those that explain why a VM was slow. */
#ifndef MODEL_HOST_LOG_H
#define MODEL_HOST_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "clock/types.h"

enum { HOST_LOG_MAX = 256, HOST_LOG_TEXT = 160 };

enum host_log_kind {
	HOST_LOG_OTHER,
	HOST_LOG_LOCKUP, /* `cpu` of the host was stuck in its kernel */
	/* The kernel slowed down thread `pid` because it took a split lock. */
	HOST_LOG_SPLIT_LOCK,
};

struct host_log_line {
	/* The time at which it was read: up to a few 100 ms after it was written. */
	struct host_ns t;
	enum host_log_kind kind;
	uint16_t cpu;
	int32_t pid;
	char text[HOST_LOG_TEXT];
};

/* A ring of the newest HOST_LOG_MAX lines. */
struct host_log {
	uint64_t n; /* total number */
	struct host_log_line lines[HOST_LOG_MAX];
};

/* Adds a line. The text is copied and truncated if it is too long. The oldest line is removed when
 * the ring is full. */
void host_log_add(struct host_log *log, struct host_ns t, const char *text);
/* Returns the i-th newest line, or NULL after the last. */
const struct host_log_line *host_log_get(const struct host_log *log, size_t i);

#endif
