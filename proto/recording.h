/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A recording (.vcs): a 32-byte file header, then entries. An entry says where a frame came from
 * and when it arrived, and holds the frame as it was received: a reader decodes exactly what a
 * live collector decodes. Little-endian.
 *
 *   file:   0 8 "VCSREC\r\n" | 8 4 version (1) | 12 4 flags | 16 8 created, CLOCK_REALTIME ns
 *           24 4 reserved | 28 4 CRC32C of bytes 0..27
 *   entry:  0 4 "VCSE" | 4 4 source | 8 8 arrival, host TSC | 16 4 frame bytes
 *           20 4 CRC32C of bytes 0..19 | frame
 *
 * A recording cut anywhere is readable up to its last whole entry; damage inside costs the damaged
 * entries only. The last entry of a cleanly closed recording is FRAME_RECORDING_END (source 0); it
 * lists where an entry begins about every 4 MiB, sparser in a recording of more than 16 GiB.
 */
#ifndef PROTO_RECORDING_H
#define PROTO_RECORDING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/frame.h"

enum { VS_SOURCE_HOST = 0 }; /* sources 1.. are VMs, the `vm` of their VmInfo */
enum {
	VS_RECORDING_SIMULATED = 1,
	VS_RECORDING_IMPORTED = 2, /* made from another tracer's recording */
};

struct recording_writer;

/* Creates or truncates `path`. flags: VS_RECORDING_*. 0 or -errno of open/write. */
int recording_writer_open(const char *path, uint32_t flags, uint64_t realtime_ns,
			  struct recording_writer **out);
/* Buffers one entry (`frame` is one whole frame, else -EBADMSG and nothing is written); flushed
 * every second by recording_writer_flush or when 256 KiB are waiting. After an error of the file
 * (disk full) it is cut back to its last whole entry, and every further call returns the same
 * error. 0 or -errno. A program that may meet RLIMIT_FSIZE ignores SIGXFSZ. */
int recording_writer_append(struct recording_writer *w, uint32_t source, uint64_t arrival_tsc,
			    const uint8_t *frame, size_t len);
int recording_writer_flush(struct recording_writer *w);
/* What the file holds plus what is buffered. */
uint64_t recording_writer_bytes(const struct recording_writer *w);
/* Writes RECORDING_END and frees `w` in any case. 0 or -errno. */
int recording_writer_close(struct recording_writer *w, uint64_t host_dropped);

struct recording_entry {
	uint32_t source;
	uint64_t arrival_tsc;
	struct frame_view frame;
};

struct recording_info {
	uint32_t flags;
	uint64_t created_realtime_ns;
	uint64_t file_bytes;    /* seen so far */
	uint64_t entries;       /* good ones read so far */
	uint64_t damaged_bytes; /* passed over */
	bool closed;            /* its last entry is RECORDING_END: nothing is missing at the end */
	bool cut;               /* the file ends inside an entry (or inside the file header) */
};

/*
 * Reads through a window of bounded size, not through a mapping: a file that shrinks under a reader
 * (a writer that cuts back, a hostile owner) ends the reading instead of the process.
 */
struct recording_reader;
/* 0, -errno of open, -ENOMEM, -EBADMSG if it is no recording, -EPROTONOSUPPORT if it is one of
 * another version. */
int recording_reader_open(const char *path, struct recording_reader **out);
void recording_reader_close(struct recording_reader *r);
/* The next whole entry whose CRCs hold, valid until the next call: 1, 0 at the end, or -errno of
 * read. A recording that still grows can be asked again after 0. */
int recording_reader_next(struct recording_reader *r, struct recording_entry *entry);
const struct recording_info *recording_reader_info(const struct recording_reader *r);

#endif
