// SPDX-License-Identifier: GPL-2.0-only
/*
 * Appends complete entries to a buffer and writes the buffer to the file. After each flush the
 * file ends with a complete entry. If a write fails, the writer cuts off the incomplete entry.
 */
#include "proto/recording.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "proto/bytes.h"
#include "proto/message.h"
#include "proto/recording_format.h"

enum {
	WRITER_FLUSH_BYTES = 256 * 1024,
	WRITER_CHECKPOINT_BYTES = 4 * 1024 * 1024,
	WRITER_CHECKPOINTS_MAX = 4096, /* then every other is dropped and their distance doubled */
};

struct recording_writer {
	int fd;
	int error; /* sticky */
	struct byte_buffer buffer;
	uint64_t file_bytes; /* whole entries in the file */
	uint64_t entries;
	uint64_t last_arrival;
	uint64_t checkpoint_distance;
	size_t n_checkpoints;
	uint64_t checkpoints[WRITER_CHECKPOINTS_MAX];
};

/* Writes all or says how much. 0 or -errno. */
static int write_all(int fd, const uint8_t *data, size_t len, size_t *written)
{
	*written = 0;
	while (*written < len) {
		ssize_t n = write(fd, data + *written, len - *written);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			return -ENOSPC;
		*written += (size_t)n;
	}
	return 0;
}

int recording_writer_open(const char *path, uint32_t flags, uint64_t realtime_ns,
			  struct recording_writer **out)
{
	uint8_t h[RECORDING_HEADER_BYTES] = {0};
	struct recording_writer *w = calloc(1, sizeof(*w));
	size_t written;
	int err;

	if (!w)
		return -ENOMEM;
	/* Task names and kernel addresses of a guest are its owner's business. */
	w->fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (w->fd < 0) {
		err = -errno;
		free(w);
		return err;
	}
	memcpy(h, RECORDING_MAGIC, 8);
	bytes_put32(h + 8, RECORDING_VERSION);
	bytes_put32(h + 12, flags);
	bytes_put64(h + 16, realtime_ns);
	bytes_put32(h + 28, frame_crc32c(0, h, 28));
	err = write_all(w->fd, h, sizeof(h), &written);
	if (err) {
		close(w->fd);
		free(w);
		return err;
	}
	w->file_bytes = sizeof(h);
	w->checkpoint_distance = WRITER_CHECKPOINT_BYTES;
	*out = w;
	return 0;
}

/* The end of the last whole entry within the first `written` bytes of the buffer. */
static size_t writer_whole_entries(const struct recording_writer *w, size_t written)
{
	size_t end = 0;

	while (end < w->buffer.len) {
		size_t next =
			end + RECORDING_ENTRY_HEADER_BYTES + bytes_get32(w->buffer.data + end + 16);

		if (next > written)
			break;
		end = next;
	}
	return end;
}

int recording_writer_flush(struct recording_writer *w)
{
	size_t written;

	if (w->error)
		return w->error;
	w->error = write_all(w->fd, w->buffer.data, w->buffer.len, &written);
	if (w->error) {
		w->file_bytes += writer_whole_entries(w, written);
		/* Where even this fails, a reader finds the cut by itself. */
		if (ftruncate(w->fd, (off_t)w->file_bytes))
			lseek(w->fd, (off_t)w->file_bytes, SEEK_SET);
	} else {
		w->file_bytes += written;
	}
	w->buffer.len = 0;
	return w->error;
}

uint64_t recording_writer_bytes(const struct recording_writer *w)
{
	return w->file_bytes + w->buffer.len;
}

static void writer_checkpoint(struct recording_writer *w)
{
	uint64_t offset = recording_writer_bytes(w);

	if (w->n_checkpoints &&
	    offset - w->checkpoints[w->n_checkpoints - 1] < w->checkpoint_distance)
		return;
	if (w->n_checkpoints == WRITER_CHECKPOINTS_MAX) {
		for (size_t i = 0; i < WRITER_CHECKPOINTS_MAX / 2; i++)
			w->checkpoints[i] = w->checkpoints[2 * i];
		w->n_checkpoints = WRITER_CHECKPOINTS_MAX / 2;
		w->checkpoint_distance *= 2;
	}
	w->checkpoints[w->n_checkpoints++] = offset;
}

int recording_writer_append(struct recording_writer *w, uint32_t source, uint64_t arrival_tsc,
			    const uint8_t *frame, size_t len)
{
	struct frame_header header;
	uint8_t *h;
	int err;

	if (w->error)
		return w->error;
	err = frame_header_parse(frame, len, &header);
	if (err || len != VS_FRAME_HEADER_BYTES + (size_t)header.payload_bytes)
		return -EBADMSG;
	err = byte_buffer_reserve(&w->buffer, RECORDING_ENTRY_HEADER_BYTES + len);
	if (err)
		return err;
	writer_checkpoint(w);
	h = w->buffer.data + w->buffer.len;
	memcpy(h, RECORDING_ENTRY_MAGIC, 4);
	bytes_put32(h + 4, source);
	bytes_put64(h + 8, arrival_tsc);
	bytes_put32(h + 16, (uint32_t)len);
	bytes_put32(h + 20, frame_crc32c(0, h, 20));
	memcpy(h + RECORDING_ENTRY_HEADER_BYTES, frame, len);
	w->buffer.len += RECORDING_ENTRY_HEADER_BYTES + len;
	w->entries++;
	w->last_arrival = arrival_tsc;
	return w->buffer.len < WRITER_FLUSH_BYTES ? 0 : recording_writer_flush(w);
}

static int writer_append_end(struct recording_writer *w, uint64_t host_dropped)
{
	struct message_recording_end end = {
		.entries = w->entries,
		.host_dropped = host_dropped,
		.n_checkpoints = w->n_checkpoints,
		.checkpoints = w->checkpoints,
	};
	struct byte_buffer payload = {0}, frame = {0};
	struct frame_writer *frames = frame_writer_new(0);
	int err = -ENOMEM;

	if (!frames)
		goto out;
	err = message_recording_end_pack(&end, &payload);
	if (err)
		goto out;
	err = frame_write(frames, FRAME_RECORDING_END, payload.data, payload.len, &frame);
	if (err)
		goto out;
	err = recording_writer_append(w, VS_SOURCE_HOST, w->last_arrival, frame.data, frame.len);
out:
	frame_writer_free(frames);
	byte_buffer_fini(&payload);
	byte_buffer_fini(&frame);
	return err;
}

int recording_writer_close(struct recording_writer *w, uint64_t host_dropped)
{
	int err = writer_append_end(w, host_dropped), flushed = recording_writer_flush(w);

	if (!err)
		err = flushed;
	if (close(w->fd) && !err)
		err = -errno;
	byte_buffer_fini(&w->buffer);
	free(w);
	return err;
}
