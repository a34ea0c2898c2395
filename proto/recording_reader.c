// SPDX-License-Identifier: GPL-2.0-only
/*
 * Reads entries through a window. An entry is valid if the CRCs of its header, of its frame's
 * header and of the payload match. After damage, the reader continues at the end of the damaged
 * entry if another entry begins there (bytes were changed), else one byte later (bytes are
 * missing).
 */
#include "proto/recording.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "proto/bytes.h"
#include "proto/recording_format.h"
#include "proto/unnamed_file.h"

enum { READER_WINDOW_BYTES = 2 * RECORDING_ENTRY_MAX_BYTES };

struct recording_reader {
	int fd;
	uint64_t size; /* when it was opened */
	struct recording_info info;
	size_t start, end; /* of what is in the window and not yet handed out */
	uint8_t window[READER_WINDOW_BYTES];
};

/* Until `want` bytes are in the window or the file has no more. The bytes there, or -errno. */
static ssize_t reader_fill(struct recording_reader *r, size_t want)
{
	if (r->end - r->start >= want)
		return (ssize_t)(r->end - r->start);
	memmove(r->window, r->window + r->start, r->end - r->start);
	r->end -= r->start;
	r->start = 0;
	while (r->end < want) {
		ssize_t n = read(r->fd, r->window + r->end, READER_WINDOW_BYTES - r->end);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		r->end += (size_t)n;
		r->info.file_bytes += (uint64_t)n;
	}
	return (ssize_t)r->end;
}

static int reader_open_header(struct recording_reader *r)
{
	ssize_t n = reader_fill(r, RECORDING_HEADER_BYTES);
	const uint8_t *h = r->window;

	if (n < 0)
		return (int)n;
	if (n == 0 || memcmp(h, RECORDING_MAGIC, n < 8 ? (size_t)n : 8))
		return -EBADMSG;
	if (n < RECORDING_HEADER_BYTES) {
		r->info.cut = true;
		return 0;
	}
	if (bytes_get32(h + 28) != frame_crc32c(0, h, 28))
		return -EBADMSG;
	if (bytes_get32(h + 8) != RECORDING_VERSION)
		return -EPROTONOSUPPORT;
	r->info.flags = bytes_get32(h + 12);
	r->info.created_realtime_ns = bytes_get64(h + 16);
	r->start = RECORDING_HEADER_BYTES;
	return 0;
}

/* ---- standard input ---- */

static int bytes_write(int fd, const uint8_t *bytes, size_t n)
{
	while (n) {
		ssize_t done = write(fd, bytes, n);

		if (done < 0 && errno == EINTR)
			continue;
		if (done < 0)
			return -errno;
		bytes += done;
		n -= (size_t)done;
	}
	return 0;
}

/* Copies all of standard input to `to`. 0 or -errno. */
static int standard_input_copy(int to)
{
	enum { PART_BYTES = 1 << 16 };
	uint8_t *part = malloc(PART_BYTES);
	ssize_t n = 1;
	int err = part ? 0 : -ENOMEM;

	while (!err && n) {
		n = read(STDIN_FILENO, part, PART_BYTES);
		if (n > 0)
			err = bytes_write(to, part, (size_t)n);
		else if (n < 0 && errno != EINTR)
			err = -errno;
	}
	free(part);
	return err;
}

/* A file of its own position, or -errno. A pipe can be read once, but a recording is read twice. */
static int standard_input_open(void)
{
	struct stat status;
	int fd, err = 0;

	if (fstat(STDIN_FILENO, &status))
		return -errno;
	if (isatty(STDIN_FILENO))
		return -ENOTTY;
	if (!S_ISREG(status.st_mode)) {
		fd = unnamed_file_open();
		if (fd < 0)
			return fd;
		err = standard_input_copy(fd);
		if (!err && dup2(fd, STDIN_FILENO) < 0)
			err = -errno;
		close(fd);
	}
	if (err)
		return err;
	fd = open("/proc/self/fd/0", O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	return fd;
}

int recording_reader_open(const char *path, struct recording_reader **out)
{
	struct recording_reader *r = malloc(sizeof(*r));
	struct stat status;
	int err;

	if (!r)
		return -ENOMEM;
	r->info = (struct recording_info){0};
	r->start = r->end = 0;
	r->fd = strcmp(path, "-") != 0 ? open(path, O_RDONLY | O_CLOEXEC) : standard_input_open();
	if (r->fd < 0) {
		err = strcmp(path, "-") != 0 ? -errno : r->fd;
		free(r);
		return err;
	}
	r->size = fstat(r->fd, &status) ? 0 : (uint64_t)status.st_size;
	err = reader_open_header(r);
	if (err) {
		recording_reader_close(r);
		return err;
	}
	*out = r;
	return 0;
}

uint64_t recording_reader_size(const struct recording_reader *r)
{
	return r->size;
}

void recording_reader_close(struct recording_reader *r)
{
	if (!r)
		return;
	close(r->fd);
	free(r);
}

/* An entry header at p: 0 and the entry's whole length, -EAGAIN (cut), -EBADMSG. */
static int entry_header_parse(const uint8_t *p, size_t len, struct recording_entry *entry,
			      size_t *entry_len)
{
	size_t frame_bytes;

	if (memcmp(p, RECORDING_ENTRY_MAGIC, len < 4 ? len : 4))
		return -EBADMSG;
	if (len < RECORDING_ENTRY_HEADER_BYTES)
		return -EAGAIN;
	if (bytes_get32(p + 20) != frame_crc32c(0, p, 20))
		return -EBADMSG;
	frame_bytes = bytes_get32(p + 16);
	if (frame_bytes < VS_FRAME_HEADER_BYTES ||
	    frame_bytes > VS_FRAME_HEADER_BYTES + VS_FRAME_PAYLOAD_MAX)
		return -EBADMSG;
	entry->source = bytes_get32(p + 4);
	entry->arrival_tsc = bytes_get64(p + 8);
	*entry_len = RECORDING_ENTRY_HEADER_BYTES + frame_bytes;
	return 0;
}

/* The same for the entry with its frame. On -EBADMSG *entry_len is 0 or can be trusted. */
static int entry_parse(const uint8_t *p, size_t len, struct recording_entry *entry,
		       size_t *entry_len)
{
	int err;

	*entry_len = 0;
	err = entry_header_parse(p, len, entry, entry_len);
	if (err)
		return err;
	if (len < *entry_len)
		return -EAGAIN;
	err = frame_parse(p + RECORDING_ENTRY_HEADER_BYTES,
			  *entry_len - RECORDING_ENTRY_HEADER_BYTES, &entry->frame);
	if (err || entry->frame.len != *entry_len - RECORDING_ENTRY_HEADER_BYTES)
		return -EBADMSG;
	return 0;
}

static void reader_skip(struct recording_reader *r, size_t n)
{
	r->start += n;
	r->info.damaged_bytes += n;
}

/* Passes over a damaged entry. */
static int reader_skip_damage(struct recording_reader *r, size_t entry_len)
{
	const uint8_t *p, *at;
	ssize_t n;

	if (entry_len) {
		struct recording_entry ignored;
		size_t ignored_len;

		n = reader_fill(r, entry_len + RECORDING_ENTRY_HEADER_BYTES);
		if (n < 0)
			return (int)n;
		p = r->window + r->start + entry_len;
		if ((size_t)n == entry_len || entry_header_parse(p, (size_t)n - entry_len, &ignored,
								 &ignored_len) != -EBADMSG) {
			reader_skip(r, entry_len);
			return 0;
		}
	}
	p = r->window + r->start;
	at = memchr(p + 1, RECORDING_ENTRY_MAGIC[0], r->end - r->start - 1);
	reader_skip(r, at ? (size_t)(at - p) : r->end - r->start);
	return 0;
}

int recording_reader_next(struct recording_reader *r, struct recording_entry *entry)
{
	if (r->info.cut && r->info.file_bytes < RECORDING_HEADER_BYTES)
		return 0;
	for (;;) {
		size_t entry_len, there = r->end - r->start;
		int err = entry_parse(r->window + r->start, there, entry, &entry_len);
		ssize_t n;

		/* Filling moves what is there: not for each of the entries that are there whole. */
		if (err == -EAGAIN) {
			n = reader_fill(r, RECORDING_ENTRY_MAX_BYTES);
			if (n < 0)
				return (int)n;
			r->info.cut = false;
			if (n == 0)
				return 0;
			if ((size_t)n > there)
				err = entry_parse(r->window + r->start, (size_t)n, entry,
						  &entry_len);
		}
		if (!err) {
			r->start += entry_len;
			r->info.entries++;
			r->info.closed = entry->source == VS_SOURCE_HOST &&
					 entry->frame.header.kind == FRAME_RECORDING_END;
			return 1;
		}
		if (err == -EAGAIN) {
			r->info.cut = true;
			return 0;
		}
		err = reader_skip_damage(r, entry_len);
		if (err)
			return err;
	}
}

const struct recording_info *recording_reader_info(const struct recording_reader *r)
{
	return &r->info;
}
