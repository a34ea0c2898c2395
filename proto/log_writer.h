/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Log lines to a descriptor whose reader may be slow or stopped: the caller never waits. A thread
 * of its own writes what waits in a bounded buffer; what finds no room is dropped, and the lines
 * dropped are counted in the log as soon as there is room again.
 *
 * The descriptor itself is left as it is: standard error is often shared with other programs, and
 * O_NONBLOCK would be theirs, too.
 */
#ifndef PROTO_LOG_WRITER_H
#define PROTO_LOG_WRITER_H

#include <stddef.h>
#include <stdint.h>

enum { LOG_WRITER_BYTES = 64 * 1024 };

struct log_writer;

/* `fd` is borrowed and stays open as long as the process. 0 or -errno. */
int log_writer_new(int fd, struct log_writer **out);
/* Takes the whole text (lines, each with its newline) or drops it. NULL as the writer: writes at
 * once, to standard error. */
void log_writer_put(struct log_writer *w, const char *text);
/* One line, printf-like; a newline is added. At most 1023 bytes, the rest is cut. */
void log_writer_line(struct log_writer *w, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* Lines dropped so far. */
uint64_t log_writer_dropped(struct log_writer *w);
/* Waits at most `wait_ms` until everything is written, then gives up the rest. NULL is allowed. */
void log_writer_free(struct log_writer *w, unsigned int wait_ms);

#endif
