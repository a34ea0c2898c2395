// SPDX-License-Identifier: GPL-2.0-only
#include "bpf/capture/kernel_log.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	RECORD_BYTES_MAX = 8192, /* the kernel's own limit of one read */
	RECORDS_PER_READ = 4096, /* so that a flood of lines does not occupy the loop */
};

struct kernel_log {
	int fd;
	bool seen_any;
	uint64_t next_seq;
	uint64_t window_begin_ms;
	unsigned int lines_in_window;
	uint64_t unsaid; /* number of lines skipped or overwritten that were not reported yet */
	struct kernel_log_record record;
	char bytes[RECORD_BYTES_MAX];
	size_t n_history, history_at;
	struct message_log_line history[KERNEL_LOG_HISTORY_MAX];
};

int kernel_log_parse(const char *record, size_t len, struct kernel_log_record *out)
{
	const char *text = memchr(record, ';', len);
	unsigned int priority;
	char head[64];
	const char *end;
	size_t n;

	if (!text || (size_t)(text - record) >= sizeof(head))
		return -EBADMSG;
	memcpy(head, record, (size_t)(text - record));
	head[text - record] = '\0';
	if (sscanf(head, "%u,%" SCNu64 ",%" SCNu64, &priority, &out->seq, &out->line.dmesg_us) != 3)
		return -EBADMSG;
	out->line.level = priority & 7;
	text++;
	n = len - (size_t)(text - record);
	end = memchr(text, '\n', n);
	if (end)
		n = (size_t)(end - text);
	if (n >= sizeof(out->line.text))
		n = sizeof(out->line.text) - 1;
	for (size_t i = 0; i < n; i++)
		out->line.text[i] = text[i];
	for (size_t i = 0; i < n; i++)
		if ((unsigned char)text[i] < 0x20 || (unsigned char)text[i] == 0x7f)
			out->line.text[i] = '?';
	out->line.text[n] = '\0';
	return 0;
}

bool kernel_log_is_stall(const char *text)
{
	static const char *const signs[] = {
		"watchdog", "soft lockup",           "hard LOCKUP", "rcu_",
		"rcu:",     "blocked for more than", "clocksource", "split_lock",
	};

	for (size_t i = 0; i < sizeof(signs) / sizeof(signs[0]); i++)
		if (strstr(text, signs[i]))
			return true;
	return false;
}

/* Reads the next record into k->record. Returns 1, 0 at the end, or -errno. */
static int record_next(struct kernel_log *k)
{
	for (;;) {
		ssize_t n = read(k->fd, k->bytes, sizeof(k->bytes));

		if (n < 0 && (errno == EPIPE || errno == EINTR))
			continue; /* EPIPE: lines were overwritten before they were read; the next
				     seq shows how many */
		if (n < 0)
			return errno == EAGAIN ? 0 : -errno;
		if (n == 0)
			return 0;
		if (kernel_log_parse(k->bytes, (size_t)n, &k->record) < 0)
			continue;
		if (k->seen_any && k->record.seq > k->next_seq)
			k->unsaid += k->record.seq - k->next_seq;
		k->seen_any = true;
		k->next_seq = k->record.seq + 1;
		return 1;
	}
}

int kernel_log_open_fd(int fd, struct kernel_log **out)
{
	struct kernel_log *k = calloc(1, sizeof(*k));
	int err;

	if (!k) {
		close(fd);
		return -ENOMEM;
	}
	k->fd = fd;
	while ((err = record_next(k)) > 0)
		if (kernel_log_is_stall(k->record.line.text))
			k->history[k->n_history++ % KERNEL_LOG_HISTORY_MAX] = k->record.line;
	if (err < 0) {
		kernel_log_close(k);
		return err;
	}
	if (k->n_history > KERNEL_LOG_HISTORY_MAX) {
		k->history_at = k->n_history % KERNEL_LOG_HISTORY_MAX;
		k->n_history = KERNEL_LOG_HISTORY_MAX;
	}
	k->unsaid = 0;
	*out = k;
	return 0;
}

int kernel_log_open(struct kernel_log **out)
{
	int fd = open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC);

	return fd < 0 ? -errno : kernel_log_open_fd(fd, out);
}

void kernel_log_close(struct kernel_log *k)
{
	if (!k)
		return;
	close(k->fd);
	free(k);
}

static void dropped_report(struct kernel_log *k, struct message_kernel_log *out)
{
	struct message_log_line *line = &out->lines[out->n_lines++];

	line->dmesg_us = k->record.line.dmesg_us;
	line->level = 4;
	snprintf(line->text, sizeof(line->text),
		 "[vcpuscope: %" PRIu64 " kernel log lines left out]", k->unsaid);
	k->unsaid = 0;
}

long kernel_log_read(struct kernel_log *k, uint64_t now_ms, struct message_kernel_log *out)
{
	out->n_lines = 0;
	for (; k->n_history; k->n_history--)
		out->lines[out->n_lines++] = k->history[k->history_at++ % KERNEL_LOG_HISTORY_MAX];

	if (now_ms - k->window_begin_ms >= 1000) {
		k->window_begin_ms = now_ms;
		k->lines_in_window = 0;
	}
	/* One place is kept for the line that reports what was left out. */
	for (size_t i = 0; i < RECORDS_PER_READ && out->n_lines < VS_LOG_LINES_MAX - 1; i++) {
		int err = record_next(k);

		if (err < 0)
			return err;
		if (err == 0)
			break;
		if (k->lines_in_window >= KERNEL_LOG_LINES_PER_SECOND) {
			k->unsaid++;
			continue;
		}
		if (k->unsaid && out->n_lines < VS_LOG_LINES_MAX - 2)
			dropped_report(k, out);
		k->lines_in_window++;
		out->lines[out->n_lines++] = k->record.line;
	}
	if (k->unsaid && k->lines_in_window < KERNEL_LOG_LINES_PER_SECOND)
		dropped_report(k, out);
	return (long)out->n_lines;
}
