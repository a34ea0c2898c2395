/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Recordings (.vcs): a file header of 32 bytes, then entries. An entry contains a frame as it was
 * received, with its source and arrival time. So a reader decodes the same bytes as a live
 * collector. All integers are little-endian.
 *
 *   file:   0 8 "VCSREC\r\n" | 8 4 version (1) | 12 4 flags | 16 8 created, CLOCK_REALTIME ns
 *           24 4 reserved | 28 4 CRC32C of bytes 0..27
 *   entry:  0 4 "VCSE" | 4 4 source | 8 8 arrival, host TSC | 16 4 frame bytes
 *           20 4 CRC32C of bytes 0..19 | frame
 *
 * A recording that was cut at any byte is readable up to its last complete entry. Damage inside
 * costs only the damaged entries. The last entry of a recording that was closed is
 * FRAME_RECORDING_END (source 0). It lists the offset of an entry about every 4 MiB, at larger
 * distances if the recording exceeds 16 GiB.
 */
#ifndef PROTO_RECORDING_H
#define PROTO_RECORDING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/frame.h"

enum { VS_SOURCE_HOST = 0 }; /* sources from 1 on are VMs: VmInfo.vm */
enum {
	VS_RECORDING_SIMULATED = 1,
	VS_RECORDING_IMPORTED = 2, /* made from a recording of another tracer */
};

struct recording_writer;

/* Creates `path` with mode 0600, or truncates it. flags: VS_RECORDING_*. Returns 0, -ENOMEM or
 * -errno of open() or write(). */
int recording_writer_open(const char *path, uint32_t flags, uint64_t realtime_ns,
			  struct recording_writer **out);
/*
 * Appends one entry to the buffer. `frame` must be one complete frame; else -EBADMSG and nothing
 * is appended. When the buffer holds 256 KiB, it is written to the file. Call
 * recording_writer_flush() once a second to bound what a crash loses.
 *
 * After a file error, for example a full disk, the writer cuts the file behind its last complete
 * entry, and all further calls return the same error. Returns 0 or -errno. A program that may
 * reach RLIMIT_FSIZE must ignore SIGXFSZ.
 */
int recording_writer_append(struct recording_writer *w, uint32_t source, uint64_t arrival_tsc,
			    const uint8_t *frame, size_t len);
int recording_writer_flush(struct recording_writer *w);
/* Returns the size of the file plus the buffered bytes. */
uint64_t recording_writer_bytes(const struct recording_writer *w);
/* Writes RECORDING_END, closes the file and frees `w`, even on error. host_dropped: number of lost
 * events of the host, for RECORDING_END. Returns 0 or -errno. */
int recording_writer_close(struct recording_writer *w, uint64_t host_dropped);

struct recording_entry {
	uint32_t source;
	uint64_t arrival_tsc;
	struct frame_view frame;
};

struct recording_info {
	uint32_t flags;
	uint64_t created_realtime_ns;
	uint64_t file_bytes;    /* bytes read so far */
	uint64_t entries;       /* valid entries read so far */
	uint64_t damaged_bytes; /* skipped bytes */
	bool closed; /* the last entry read was RECORDING_END: nothing is missing at the end */
	bool cut;    /* the file ends inside an entry or inside the file header */
};

/*
 * Reads a recording through a window of bounded size, not through a mapping. If another process
 * shrinks the file (a writer that cuts it, a hostile owner), reading ends early, but the reader
 * gets no SIGBUS.
 */
struct recording_reader;
/* Opens the recording at `path`. "-" is standard input, which may be opened several times: if it is
 * not a file, it is first copied to an unnamed file in $TMPDIR or /var/tmp, which takes its place.
 * Returns 0, -errno of open(), read() or write(), -ENOMEM, -EBADMSG (not a recording) or
 * -EPROTONOSUPPORT (another version). */
int recording_reader_open(const char *path, struct recording_reader **out);
/* Returns the size of the file in bytes when it was opened. */
uint64_t recording_reader_size(const struct recording_reader *r);
void recording_reader_close(struct recording_reader *r);
/* Reads the next complete entry with valid CRCs; it is valid until the next call. Returns 1, 0 at
 * the end or -errno of read(). While the recording grows, call it again after 0. */
int recording_reader_next(struct recording_reader *r, struct recording_entry *entry);
const struct recording_info *recording_reader_info(const struct recording_reader *r);

#endif
