/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/export/trace_file.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "proto/text.h"

/* Whole blocks of this size are written. The kernel copies an aligned block at two thirds of the
 * cost of one that begins anywhere, because it keeps the block in large pages. */
enum { BLOCK_BYTES = 1 << 18 };

int trace_file_init(struct trace_file *f, FILE *out)
{
	*f = (struct trace_file){.out = out, .until = UINT64_MAX};
	setvbuf(out, NULL, _IONBF, 0);
	f->names = calloc(TRACE_NAMES_MAX, sizeof(*f->names));
	return f->names ? lru_init(&f->index, TRACE_NAMES_MAX) : -ENOMEM;
}

void trace_file_fini(struct trace_file *f)
{
	free(f->names);
	lru_fini(&f->index);
	byte_buffer_fini(&f->packets.bytes);
}

/* Writes the first `len` bytes. */
static void flush(struct trace_file *f, size_t len)
{
	struct byte_buffer *b = &f->packets.bytes;

	if (!f->error) {
		if (fwrite(b->data, 1, len, f->out) != len)
			f->error = errno ? -errno : -EIO;
		f->bytes += len;
	}
	b->len -= len;
	memmove(b->data, b->data + len, b->len);
}

static inline void blocks_flush(struct trace_file *f)
{
	if (f->packets.bytes.len >= BLOCK_BYTES)
		flush(f, f->packets.bytes.len / BLOCK_BYTES * BLOCK_BYTES);
}

int trace_file_finish(struct trace_file *f)
{
	if (f->packets.bytes.len)
		flush(f, f->packets.bytes.len);
	if (!f->error)
		f->error = f->packets.error;
	if (!f->error && fflush(f->out))
		f->error = -errno;
	return f->error;
}

bool trace_has(const struct trace_file *f, uint64_t t)
{
	return t >= f->from && t < f->until;
}

size_t trace_packet_open(struct trace_file *f, enum trace_sequence sequence, uint32_t machine)
{
	size_t opened;

	blocks_flush(f);
	opened = protobuf_open(&f->packets, TRACE_PACKET);
	protobuf_uint(&f->packets, PACKET_SEQUENCE_ID, sequence);
	if (machine != TRACE_MACHINE_HOST)
		protobuf_uint(&f->packets, PACKET_MACHINE_ID, machine);
	return opened;
}

void trace_packet_close(struct trace_file *f, size_t opened)
{
	protobuf_close(&f->packets, opened);
}

/* ---- what the trace is about ---- */

static void clock_write(struct protobuf *p, enum builtin_clock id, uint64_t time)
{
	size_t opened = protobuf_open(p, SNAPSHOT_CLOCKS);

	protobuf_uint(p, CLOCK_FIELD_ID, id);
	protobuf_uint(p, CLOCK_FIELD_TIME, time);
	protobuf_close(p, opened);
}

void trace_clock_snapshot(struct trace_file *f, const struct trace_clocks *clocks)
{
	struct protobuf *p = &f->packets;
	size_t packet = trace_packet_open(f, SEQUENCE_META, TRACE_MACHINE_HOST), opened;

	protobuf_uint(p, PACKET_TIMESTAMP, clocks->boottime);
	opened = protobuf_open(p, PACKET_CLOCK_SNAPSHOT);
	clock_write(p, BUILTIN_BOOTTIME, clocks->boottime);
	clock_write(p, BUILTIN_MONOTONIC, clocks->monotonic);
	clock_write(p, BUILTIN_MONOTONIC_RAW, clocks->raw);
	if (clocks->realtime)
		clock_write(p, BUILTIN_REALTIME, clocks->realtime);
	protobuf_uint(p, SNAPSHOT_PRIMARY_CLOCK, BUILTIN_BOOTTIME);
	protobuf_close(p, opened);
	trace_packet_close(f, packet);
	/* The events' sequence begins: names are interned from here on. */
	packet = trace_packet_open(f, SEQUENCE_EVENTS, TRACE_MACHINE_HOST);
	protobuf_uint(p, PACKET_SEQUENCE_FLAGS, SEQUENCE_STATE_CLEARED);
	protobuf_uint(p, PACKET_FIRST_ON_SEQUENCE, 1);
	trace_packet_close(f, packet);
}

void trace_system_info(struct trace_file *f, uint32_t machine, const char *name,
		       const char *release)
{
	struct protobuf *p = &f->packets;
	size_t packet = trace_packet_open(f, SEQUENCE_META, machine);
	size_t opened = protobuf_open(p, PACKET_SYSTEM_INFO);
	size_t utsname = protobuf_open(p, SYSTEM_UTSNAME);

	protobuf_text(p, UTSNAME_SYSNAME, "Linux");
	protobuf_text(p, UTSNAME_RELEASE, release);
	protobuf_text(p, UTSNAME_MACHINE, "x86_64");
	protobuf_close(p, utsname);
	protobuf_text(p, SYSTEM_MACHINE_NAME, name);
	protobuf_close(p, opened);
	trace_packet_close(f, packet);
}

void trace_process(struct trace_file *f, uint32_t machine, uint64_t t, int32_t pid,
		   const char *name)
{
	struct protobuf *p = &f->packets;
	size_t packet = trace_packet_open(f, SEQUENCE_META, machine), tree, opened;

	protobuf_uint(p, PACKET_TIMESTAMP, t);
	tree = protobuf_open(p, PACKET_PROCESS_TREE);
	opened = protobuf_open(p, TREE_PROCESSES);
	protobuf_uint(p, TREE_PROCESS_PID, (uint32_t)pid);
	protobuf_text(p, TREE_PROCESS_CMDLINE, name);
	protobuf_close(p, opened);
	protobuf_close(p, tree);
	trace_packet_close(f, packet);
}

void trace_thread(struct trace_file *f, uint32_t machine, uint64_t t, int32_t tid, int32_t tgid,
		  const char *name)
{
	struct protobuf *p = &f->packets;
	size_t packet = trace_packet_open(f, SEQUENCE_META, machine), tree, opened;

	protobuf_uint(p, PACKET_TIMESTAMP, t);
	tree = protobuf_open(p, PACKET_PROCESS_TREE);
	opened = protobuf_open(p, TREE_THREADS);
	protobuf_uint(p, TREE_THREAD_TID, (uint32_t)tid);
	protobuf_text(p, TREE_THREAD_NAME, name);
	protobuf_uint(p, TREE_THREAD_TGID, (uint32_t)tgid);
	protobuf_close(p, opened);
	protobuf_close(p, tree);
	trace_packet_close(f, packet);
}

/* ---- tracks ---- */

static uint64_t track_new(struct trace_file *f, uint64_t parent, const char *name, uint32_t rank,
			  bool counter)
{
	struct protobuf *p = &f->packets;
	size_t packet = trace_packet_open(f, SEQUENCE_EVENTS, TRACE_MACHINE_HOST);
	size_t opened = protobuf_open(p, PACKET_TRACK_DESCRIPTOR);

	protobuf_uint(p, TRACK_UUID, ++f->last_uuid);
	protobuf_text(p, TRACK_NAME, name);
	if (parent)
		protobuf_uint(p, TRACK_PARENT, parent);
	protobuf_uint(p, TRACK_CHILD_ORDER, TRACK_ORDER_EXPLICIT);
	protobuf_uint(p, TRACK_RANK, rank);
	if (counter) {
		size_t unit = protobuf_open(p, TRACK_COUNTER);

		protobuf_uint(p, COUNTER_UNIT, COUNTER_UNIT_NS);
		protobuf_close(p, unit);
	}
	protobuf_close(p, opened);
	trace_packet_close(f, packet);
	return f->last_uuid;
}

uint64_t trace_track_new(struct trace_file *f, uint64_t parent, const char *name, uint32_t rank)
{
	return track_new(f, parent, name, rank, false);
}

uint64_t trace_counter_track_new(struct trace_file *f, uint64_t parent, const char *name,
				 uint32_t rank)
{
	return track_new(f, parent, name, rank, true);
}

uint64_t trace_thread_track_new(struct trace_file *f, int32_t pid, int32_t tid, const char *name)
{
	struct protobuf *p = &f->packets;
	size_t packet = trace_packet_open(f, SEQUENCE_EVENTS, TRACE_MACHINE_HOST);
	size_t opened = protobuf_open(p, PACKET_TRACK_DESCRIPTOR), thread;

	protobuf_uint(p, TRACK_UUID, ++f->last_uuid);
	thread = protobuf_open(p, TRACK_THREAD);
	protobuf_uint(p, THREAD_PID, (uint32_t)pid);
	protobuf_uint(p, THREAD_TID, (uint32_t)tid);
	protobuf_text(p, THREAD_NAME, name);
	protobuf_close(p, thread);
	protobuf_close(p, opened);
	trace_packet_close(f, packet);
	return f->last_uuid;
}

/* ---- events ---- */

static void name_intern(struct trace_file *f, const char *name, uint32_t iid)
{
	struct protobuf *p = &f->packets;
	size_t packet = trace_packet_open(f, SEQUENCE_EVENTS, TRACE_MACHINE_HOST), data, opened;

	protobuf_uint(p, PACKET_SEQUENCE_FLAGS, SEQUENCE_NEEDS_STATE);
	data = protobuf_open(p, PACKET_INTERNED_DATA);
	opened = protobuf_open(p, INTERNED_EVENT_NAMES);
	protobuf_uint(p, INTERNED_IID, iid);
	protobuf_text(p, INTERNED_NAME, name);
	protobuf_close(p, opened);
	protobuf_close(p, data);
	trace_packet_close(f, packet);
}

uint32_t trace_name(struct trace_file *f, const char *name)
{
	struct trace_name *n;
	char text[TRACE_NAME_BYTES];
	size_t len = strnlen(name, sizeof(text) - 1);
	bool fresh;

	memcpy(text, name, len);
	text[len] = '\0';
	n = &f->names[lru_put(&f->index, text_hash(text), &fresh)];
	if (fresh || strcmp(n->text, text)) {
		memcpy(n->text, text, len + 1);
		n->iid = ++f->last_iid;
		name_intern(f, text, n->iid);
	}
	return n->iid;
}

/* Most of a trace are events. So this writes what all of them have with a single check for room:
 * EVENT_ROOM holds a packet with five numbers, each with its tag, and two messages. */
enum { EVENT_ROOM = 9 * (1 + PROTOBUF_VARINT_ROOM) };

/* The low part of a time has four digits of a varint. */
enum { LOW_BITS = 28 };

static inline uint8_t *time_put(struct trace_file *f, uint8_t *at, uint64_t t)
{
	const uint64_t high = t >> LOW_BITS;
	uint32_t low;

	if (!high)
		return protobuf_put_uint(at, PACKET_TIMESTAMP, t);
	if (high != f->high) {
		f->high = high;
		f->high_bytes =
			(unsigned)(protobuf_put_varint(f->high_varint, high) - f->high_varint);
	}
	low = htole32(0x80808080 | (uint32_t)protobuf_sevens(t & ((1u << LOW_BITS) - 1)));
	*at++ = PACKET_TIMESTAMP << 3 | PROTOBUF_VARINT;
	memcpy(at, &low, sizeof(low));
	memcpy(at + sizeof(low), f->high_varint, sizeof(f->high_varint));
	return at + sizeof(low) + f->high_bytes;
}

/* Begins a packet with an event at `begin`, where there is room for it. */
static inline uint8_t *event_put(struct trace_file *f, uint8_t *begin, uint64_t t, uint64_t track,
				 enum track_event_type type, uint32_t name,
				 struct trace_event *opened)
{
	uint8_t *at = protobuf_put_open(begin, TRACE_PACKET);

	opened->packet = (size_t)(at - begin);
	at = protobuf_put_uint(at, PACKET_SEQUENCE_ID, SEQUENCE_EVENTS);
	at = time_put(f, at, t);
	at = protobuf_put_uint(at, PACKET_SEQUENCE_FLAGS, SEQUENCE_NEEDS_STATE);
	at = protobuf_put_open(at, PACKET_TRACK_EVENT);
	opened->event = (size_t)(at - begin);
	at = protobuf_put_uint(at, EVENT_TYPE, type);
	if (name)
		at = protobuf_put_uint(at, EVENT_NAME_IID, name);
	return protobuf_put_uint(at, EVENT_TRACK, track);
}

/* Returns the place of a new event, NULL without memory. */
static inline uint8_t *event_room(struct trace_file *f)
{
	blocks_flush(f);
	return protobuf_room(&f->packets, EVENT_ROOM);
}

/* Writes an event without annotations and flows. It is shorter than 128 bytes. */
static inline void event_write(struct trace_file *f, uint64_t t, uint64_t track,
			       enum track_event_type type, uint32_t name)
{
	uint8_t *begin = event_room(f), *end;
	struct trace_event opened;

	if (!begin)
		return;
	end = event_put(f, begin, t, track, type, name, &opened);
	begin[opened.packet - 1] = (uint8_t)(end - begin - (ptrdiff_t)opened.packet);
	begin[opened.event - 1] = (uint8_t)(end - begin - (ptrdiff_t)opened.event);
	f->packets.bytes.len += (size_t)(end - begin);
}

struct trace_event trace_event_open(struct trace_file *f, uint64_t t, uint64_t track,
				    enum track_event_type type, uint32_t name)
{
	uint8_t *begin = event_room(f);
	struct trace_event e = {0};
	size_t before = f->packets.bytes.len;

	if (!begin)
		return e;
	f->packets.bytes.len += (size_t)(event_put(f, begin, t, track, type, name, &e) - begin);
	e.packet += before;
	e.event += before;
	return e;
}

void trace_event_close(struct trace_file *f, struct trace_event e)
{
	protobuf_close(&f->packets, e.event);
	trace_packet_close(f, e.packet);
}

void trace_begin(struct trace_file *f, uint64_t t, uint64_t track, uint32_t name)
{
	event_write(f, t, track, EVENT_BEGIN, name);
}

static void text_annotate(struct trace_file *f, uint32_t field, const char *key, const char *value)
{
	size_t opened = protobuf_open(&f->packets, field);

	protobuf_text(&f->packets, ANNOTATION_TEXT, value);
	protobuf_text(&f->packets, ANNOTATION_NAME, key);
	protobuf_close(&f->packets, opened);
}

static void int_annotate(struct trace_file *f, uint32_t field, const char *key, int64_t value)
{
	size_t opened = protobuf_open(&f->packets, field);

	protobuf_uint(&f->packets, ANNOTATION_INT, (uint64_t)value);
	protobuf_text(&f->packets, ANNOTATION_NAME, key);
	protobuf_close(&f->packets, opened);
}

void trace_annotate_text(struct trace_file *f, const char *key, const char *value)
{
	text_annotate(f, EVENT_ANNOTATION, key, value);
}

void trace_annotate_int(struct trace_file *f, const char *key, int64_t value)
{
	int_annotate(f, EVENT_ANNOTATION, key, value);
}

size_t trace_annotate_group_open(struct trace_file *f, const char *key)
{
	size_t opened = protobuf_open(&f->packets, EVENT_ANNOTATION);

	protobuf_text(&f->packets, ANNOTATION_NAME, key);
	return opened;
}

void trace_annotate_group_text(struct trace_file *f, const char *key, const char *value)
{
	text_annotate(f, ANNOTATION_GROUP, key, value);
}

void trace_annotate_group_int(struct trace_file *f, const char *key, int64_t value)
{
	int_annotate(f, ANNOTATION_GROUP, key, value);
}

void trace_annotate_group_close(struct trace_file *f, size_t opened)
{
	protobuf_close(&f->packets, opened);
}

void trace_flow(struct trace_file *f, uint64_t flow, bool ends)
{
	protobuf_fixed64(&f->packets, ends ? EVENT_FLOW_END : EVENT_FLOW, flow);
}

void trace_counter(struct trace_file *f, uint64_t t, uint64_t track, int64_t value)
{
	struct trace_event e = trace_event_open(f, t, track, EVENT_COUNTER, 0);

	protobuf_uint(&f->packets, EVENT_COUNTER_VALUE, (uint64_t)value);
	trace_event_close(f, e);
}

void trace_end(struct trace_file *f, uint64_t t, uint64_t track)
{
	event_write(f, t, track, EVENT_END, 0);
}
