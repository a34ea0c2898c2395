/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Writes log lines to a descriptor whose reader may be slow or stopped. The caller never waits: a
 * separate thread writes the lines from a bounded buffer. If the buffer is full, the line is
 * dropped, and the log states the number of dropped lines as soon as the buffer has space.
 *
 * The writer does not set O_NONBLOCK: standard error is often shared with other programs, and the
 * flag would affect them too.
 */
#ifndef PROTO_LOG_WRITER_H
#define PROTO_LOG_WRITER_H

#include <stddef.h>
#include <stdint.h>

enum { LOG_WRITER_BYTES = 64 * 1024 };

struct log_writer;

/* Starts the thread. `fd` is borrowed and must stay open until the process ends. Returns 0 or
 * -errno. */
int log_writer_new(int fd, struct log_writer **out);
/* Queues the complete text (lines that end with a newline) or drops it. If w is NULL, writes it to
 * standard error at once. */
void log_writer_put(struct log_writer *w, const char *text);
/* Formats one line of at most 1023 bytes, appends a newline and queues the line. Cuts longer
 * lines. */
void log_writer_line(struct log_writer *w, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* Waits at most `wait_ms` until all lines are written and drops the rest. Accepts NULL. */
void log_writer_free(struct log_writer *w, unsigned int wait_ms);

#endif
