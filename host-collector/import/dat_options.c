// SPDX-License-Identifier: GPL-2.0-only
#include "host-collector/import/dat_options.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "host-collector/model/model.h"

enum {
	OPTION_DONE = 0,
	OPTION_BUFFER = 3,
	OPTION_TRACECLOCK = 4,
	OPTION_CPUCOUNT = 8,
	OPTION_TRACEID = 11,
	OPTION_TIME_SHIFT = 12,
	OPTION_GUEST = 13,
	OPTION_TSC2NSEC = 14,

	SECTION_COMPRESSED = 1,
	FLAG_INTERPOLATE = 1,

	OPTIONS_MAX = 1 << 16,      /* of one file; the CPUs' statistics are one each */
	OPTION_BYTES_MAX = 1 << 26, /* of one that is used */
	SAMPLES_MAX = OPTION_BYTES_MAX / 24,
	LIST_MAX = 1 << 20,  /* entries of a list in the header of version 6 */
	VCPUS_MAX = 1 << 14, /* of all guests */
};

/* The file, or one option of it in memory. */
struct bytes {
	FILE *in;
	const uint8_t *at; /* NULL with `in` */
	uint64_t left;     /* bytes up to the end */
	bool big_endian;
	bool bad; /* something was read beyond the end */
};

static bool bytes_take(struct bytes *b, void *out, size_t n)
{
	if (b->bad || n > b->left || (b->in && fread(out, 1, n, b->in) != n)) {
		b->bad = true;
		memset(out, 0, n);
		return false;
	}
	if (b->at) {
		memcpy(out, b->at, n);
		b->at += n;
	}
	b->left -= n;
	return true;
}

static uint64_t number_take(struct bytes *b, size_t n)
{
	uint8_t raw[8] = {0};
	uint64_t value = 0;

	bytes_take(b, raw, n);
	for (size_t i = 0; i < n; i++)
		value = value << 8 | raw[b->big_endian ? i : n - 1 - i];
	return value;
}

static void bytes_skip(struct bytes *b, uint64_t n)
{
	if (b->bad || n > b->left || (b->in && fseeko(b->in, (off_t)n, SEEK_CUR))) {
		b->bad = true;
		return;
	}
	if (b->at)
		b->at += n;
	b->left -= n;
}

/* A text up to its NUL, cut to out[bytes]. */
static void text_take(struct bytes *b, char *out, size_t bytes)
{
	size_t len = 0;
	char c = 0;

	while (bytes_take(b, &c, 1) && c) {
		if (len + 1 < bytes)
			out[len++] = c;
	}
	out[len] = 0;
}

/* ---- the options ---- */

static void sync_fini(struct dat_sync *s)
{
	free(s->first);
	free(s->samples);
	memset(s, 0, sizeof(*s));
}

static int sample_order(const void *a, const void *b)
{
	const struct dat_sample *x = a, *y = b;

	return (x->time > y->time) - (x->time < y->time);
}

/* The samples of one CPU, appended at samples[at]. Returns their number, 0 if they are damaged. */
static size_t cpu_take(struct bytes *b, struct dat_sync *s, size_t at, size_t capacity)
{
	const size_t n = (size_t)number_take(b, 4);

	if (!n || n > capacity - at || n > b->left / 24)
		return 0;
	for (size_t i = 0; i < n; i++)
		s->samples[at + i].time = number_take(b, 8);
	for (size_t i = 0; i < n; i++)
		s->samples[at + i].offset = (int64_t)number_take(b, 8);
	for (size_t i = 0; i < n; i++)
		s->scaled |= number_take(b, 8) != 1;
	return n;
}

/* After the samples of all CPUs, newer versions have their fraction bits. */
static int sync_take(struct dat_sync *s, struct bytes *b)
{
	const size_t capacity = (size_t)(b->left / 24);
	uint64_t flags, n_cpus;
	size_t at = 0;

	sync_fini(s);
	s->peer_id = number_take(b, 8);
	flags = number_take(b, 4);
	n_cpus = number_take(b, 4);
	if (b->bad || !n_cpus || n_cpus > VS_CPUS_MAX || !capacity || capacity > SAMPLES_MAX)
		return -EBADMSG;
	s->first = calloc((size_t)n_cpus + 1, sizeof(*s->first));
	s->samples = calloc(capacity, sizeof(*s->samples));
	if (!s->first || !s->samples)
		return -ENOMEM;
	for (size_t cpu = 0; cpu < n_cpus; cpu++) {
		const size_t n = cpu_take(b, s, at, capacity);

		if (!n)
			return -EBADMSG;
		qsort(s->samples + at, n, sizeof(*s->samples), sample_order);
		at += n;
		s->first[cpu + 1] = at;
	}
	while (b->left >= 8)
		s->scaled |= number_take(b, 8) != 0;
	s->n_cpus = (size_t)n_cpus;
	s->interpolated = flags & FLAG_INTERPOLATE;
	s->present = true;
	return 0;
}

static int guest_take(struct dat_options *o, struct bytes *b)
{
	struct dat_guest guest = {0}, *grown;
	uint64_t n, listed = 0;

	text_take(b, guest.name, sizeof(guest.name));
	guest.trace_id = number_take(b, 8);
	n = number_take(b, 4);
	if (b->bad || n > VS_CPUS_MAX || n > b->left / 8)
		return -EBADMSG;
	for (size_t i = 0; i < o->n_guests; i++)
		listed += o->guests[i].n;
	if (o->n_guests == MODEL_VMS_MAX || listed + n > VCPUS_MAX)
		return 0; /* its vCPUs are found like those of other tracers */
	grown = realloc(o->guests, (o->n_guests + 1) * sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	o->guests = grown;
	guest.n = (size_t)n;
	guest.tids = calloc(guest.n + 1, sizeof(*guest.tids));
	if (!guest.tids)
		return -ENOMEM;
	o->guests[o->n_guests++] = guest;
	for (size_t i = 0; i < n; i++) {
		const uint64_t cpu = number_take(b, 4), tid = number_take(b, 4);

		if (cpu >= n)
			return -EBADMSG;
		guest.tids[cpu] = tid <= INT32_MAX ? (int32_t)tid : 0; /* -1: unknown */
	}
	return 0;
}

/* The clock in brackets, as in tracefs's file trace_clock. */
static void clock_take(struct dat_options *o, const char *list)
{
	const char *begin = strchr(list, '['), *end = begin ? strchr(begin, ']') : NULL;

	if (end)
		snprintf(o->clock, sizeof(o->clock), "%.*s", (int)(end - begin - 1), begin + 1);
}

/* A buffer of the trace. Version 7 has one for the main buffer, which has no name. */
static void buffer_take(struct dat_options *o, struct bytes *b, bool has_clock)
{
	char name[2], clock[sizeof(o->clock)];

	number_take(b, 8);
	text_take(b, name, sizeof(name));
	o->has_instances |= name[0] != 0;
	if (!has_clock || name[0])
		return;
	text_take(b, clock, sizeof(clock));
	if (!b->bad)
		memcpy(o->clock, clock, sizeof(clock));
}

static int option_take(struct dat_options *o, uint64_t id, struct bytes *b, bool is_v7)
{
	char list[256];

	switch (id) {
	case OPTION_BUFFER:
		buffer_take(o, b, is_v7);
		return 0;
	case OPTION_TRACECLOCK:
		text_take(b, list, sizeof(list));
		clock_take(o, list);
		return 0;
	case OPTION_CPUCOUNT:
		o->n_cpus = (uint32_t)number_take(b, 4);
		return 0;
	case OPTION_TRACEID:
		o->trace_id_known = b->left >= 8;
		o->trace_id = number_take(b, 8);
		return 0;
	case OPTION_TIME_SHIFT:
		/* libtracecmd ignores shorter ones. */
		return b->left < 16 ? 0 : sync_take(&o->sync, b);
	case OPTION_GUEST:
		return guest_take(o, b);
	case OPTION_TSC2NSEC:
		o->tsc_known = b->left >= 16;
		o->tsc_mult = (uint32_t)number_take(b, 4);
		o->tsc_shift = (uint32_t)number_take(b, 4);
		o->tsc_offset = number_take(b, 8);
		return 0;
	default:
		return 0;
	}
}

static bool option_is_used(uint64_t id)
{
	return id == OPTION_BUFFER || id == OPTION_TRACECLOCK || id == OPTION_CPUCOUNT ||
	       (id >= OPTION_TRACEID && id <= OPTION_TSC2NSEC);
}

/* An option's `bytes` bytes are next in the file. */
static int option_read(struct dat_options *o, struct bytes *file, uint64_t id, uint64_t bytes,
		       bool is_v7)
{
	struct bytes option = {.left = bytes, .big_endian = file->big_endian};
	uint8_t *data;
	int err;

	if (!option_is_used(id)) {
		bytes_skip(file, bytes);
		return file->bad ? -EBADMSG : 0;
	}
	if (bytes > OPTION_BYTES_MAX || bytes > file->left)
		return -EBADMSG;
	data = malloc((size_t)bytes + 1);
	if (!data)
		return -ENOMEM;
	option.at = data;
	err = bytes_take(file, data, (size_t)bytes) ? option_take(o, id, &option, is_v7) : -EBADMSG;
	free(data);
	return err;
}

/* ---- the file ---- */

static bool file_seek(struct bytes *b, uint64_t to, uint64_t size)
{
	if (to > size || fseeko(b->in, (off_t)to, SEEK_SET))
		return false;
	b->left = size - to;
	return !b->bad;
}

/* Sections of options, each of which ends with the place of the next one. */
static int v7_read(struct dat_options *o, struct bytes *b, uint64_t size)
{
	unsigned n_options = 0;
	char text[2];
	uint64_t at;

	text_take(b, text, sizeof(text)); /* the compression and its version */
	text_take(b, text, sizeof(text));
	at = number_take(b, 8);
	if (b->bad)
		return -EBADMSG;
	while (at) {
		uint64_t id, flags, bytes;
		int err = 0;

		if (!file_seek(b, at, size))
			return -EBADMSG;
		id = number_take(b, 2);
		flags = number_take(b, 2);
		bytes_skip(b, 4 + 8);
		if (b->bad || id != OPTION_DONE)
			return -EBADMSG;
		if (flags & SECTION_COMPRESSED)
			return -ENOTSUP;
		do {
			id = number_take(b, 2);
			bytes = number_take(b, 4);
			if (b->bad || ++n_options > OPTIONS_MAX)
				return -EBADMSG;
			if (id != OPTION_DONE)
				err = option_read(o, b, id, bytes, true);
		} while (id != OPTION_DONE && !err);
		if (err)
			return err;
		at = number_take(b, 8);
		if (b->bad)
			return -EBADMSG;
	}
	return 0;
}

/* A list of parts, each with its size in front. */
static void parts_skip(struct bytes *b)
{
	const uint64_t n = number_take(b, 4);

	if (n > LIST_MAX)
		b->bad = true;
	for (uint64_t i = 0; i < n && !b->bad; i++)
		bytes_skip(b, number_take(b, 8));
}

/* Skips what precedes the options in version 6. */
static void v6_header_skip(struct bytes *b)
{
	uint64_t systems;
	char text[2];

	for (int i = 0; i < 2; i++) { /* header_page, header_event */
		text_take(b, text, sizeof(text));
		bytes_skip(b, number_take(b, 8));
	}
	parts_skip(b);
	systems = number_take(b, 4);
	if (systems > LIST_MAX)
		b->bad = true;
	for (uint64_t i = 0; i < systems && !b->bad; i++) {
		text_take(b, text, sizeof(text));
		parts_skip(b);
	}
	bytes_skip(b, number_take(b, 4)); /* names of functions */
	bytes_skip(b, number_take(b, 4)); /* formats of trace_printk() */
	bytes_skip(b, number_take(b, 8)); /* names of tasks */
}

static int v6_read(struct dat_options *o, struct bytes *b)
{
	char word[11];

	v6_header_skip(b);
	o->n_cpus = (uint32_t)number_take(b, 4);
	text_take(b, word, sizeof(word));
	if (b->bad)
		return -EBADMSG;
	if (strncmp(word, "options", 7))
		return 0; /* a file without any */
	for (unsigned i = 0; i < OPTIONS_MAX; i++) {
		const uint64_t id = number_take(b, 2);
		int err;

		if (b->bad || id == OPTION_DONE)
			return b->bad ? -EBADMSG : 0;
		err = option_read(o, b, id, number_take(b, 4), false);
		if (err)
			return err;
	}
	return -EBADMSG;
}

int dat_options_read(struct dat_options *o, FILE *in)
{
	struct bytes b = {.in = in};
	char version[4], magic[10];
	off_t size;

	memset(o, 0, sizeof(*o));
	if (fseeko(in, 0, SEEK_END))
		return -EBADMSG;
	size = ftello(in);
	if (size < 0 || !file_seek(&b, 0, (uint64_t)size))
		return -EBADMSG;
	bytes_take(&b, magic, sizeof(magic));
	text_take(&b, version, sizeof(version));
	b.big_endian = number_take(&b, 1) != 0;
	bytes_skip(&b, 1 + 4);
	if (b.bad || memcmp(magic, "\027\010\104tracing", sizeof(magic)))
		return -EBADMSG;
	if (!strcmp(version, "6"))
		return v6_read(o, &b);
	return strcmp(version, "7") ? -ENOTSUP : v7_read(o, &b, (uint64_t)size);
}

void dat_options_fini(struct dat_options *o)
{
	for (size_t i = 0; i < o->n_guests; i++)
		free(o->guests[i].tids);
	free(o->guests);
	sync_fini(&o->sync);
	memset(o, 0, sizeof(*o));
}

/* ---- what a sync contradicts itself by ---- */

static uint64_t distance(int64_t a, int64_t b)
{
	return a > b ? (uint64_t)a - (uint64_t)b : (uint64_t)b - (uint64_t)a;
}

/* Returns the offset that is added to a time of a CPU. */
static int64_t offset_at(const struct dat_sync *s, size_t cpu, uint64_t time)
{
	const struct dat_sample *at = s->samples + s->first[cpu];
	size_t low = 0, high = s->first[cpu + 1] - s->first[cpu];
	__int128 moved;

	/* samples[low] is the last one that is not newer. */
	while (high - low > 1) {
		const size_t middle = low + (high - low) / 2;

		if (at[middle].time <= time)
			low = middle;
		else
			high = middle;
	}
	high = low + 1;
	if (!s->interpolated || s->first[cpu] + high == s->first[cpu + 1] || time <= at[low].time ||
	    at[high].time <= at[low].time)
		return at[low].offset;
	moved = (__int128)(time - at[low].time) * ((__int128)at[high].offset - at[low].offset);
	return (int64_t)(at[low].offset + moved / (__int128)(at[high].time - at[low].time));
}

uint64_t dat_sync_spread(const struct dat_sync *sync, bool *compared)
{
	uint64_t most = 0;

	*compared = false;
	for (size_t cpu = 0; cpu < sync->n_cpus; cpu++) {
		for (size_t i = sync->first[cpu]; i < sync->first[cpu + 1]; i++) {
			const struct dat_sample *x = &sync->samples[i];
			uint64_t by = 0;

			if (i > sync->first[cpu])
				by = distance(x->offset, x[-1].offset);
			if (by > most)
				most = by;
			by = distance(x->offset, offset_at(sync, 0, x->time));
			if (by > most)
				most = by;
			*compared |= cpu > 0 || i > sync->first[cpu];
		}
	}
	return most;
}
