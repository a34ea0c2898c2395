/* SPDX-License-Identifier: GPL-2.0-only */
/* What the host's own kernel complained of in its log, as far as a VM can suffer from it. */
#ifndef MODEL_HOST_LOG_H
#define MODEL_HOST_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "clock/types.h"

enum { HOST_LOG_MAX = 256, HOST_LOG_TEXT = 160 };

enum host_log_kind {
	HOST_LOG_OTHER,
	HOST_LOG_LOCKUP,     /* `cpu` of the host stood still in its kernel */
	HOST_LOG_SPLIT_LOCK, /* thread `pid` locked across cache lines, and was slowed down for it
			      */
};

struct host_log_line {
	struct host_ns t; /* when it was read: at most some 100 ms later than it was written */
	enum host_log_kind kind;
	uint16_t cpu;
	int32_t pid;
	char text[HOST_LOG_TEXT];
};

/* The newest HOST_LOG_MAX lines. */
struct host_log {
	uint64_t n; /* ever added */
	struct host_log_line lines[HOST_LOG_MAX];
};

/* Copied, cut if it is too long; the oldest goes. */
void host_log_add(struct host_log *log, struct host_ns t, const char *text);
/* The i-th newest, NULL beyond the last. */
const struct host_log_line *host_log_get(const struct host_log *log, size_t i);

#endif
