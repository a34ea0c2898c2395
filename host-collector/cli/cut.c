/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/cli/cut.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "host-collector/daemon/flight_ring.h"
#include "host-collector/engine/replay.h"
#include "proto/message.h"
#include "proto/recording.h"

#define SECOND_NS INT64_C(1000000000)

enum {
	LAST_S = 30,  /* without a window */
	BEFORE_S = 2, /* the state in which the window begins */
	AFTER_S = 2,  /* guests send their events late */
};

/* The window, and the clock sample that converts its end to the host's TSC: frames arrive in TSC
 * time. */
struct window {
	int64_t from_ns, until_ns;
	uint64_t hz;
	struct message_clock_sample until; /* the newest one not later than until_ns */
	bool known;
};

struct writing {
	struct redactor *redactor;
	struct recording_writer *out;
	struct cut_result *result;
};

static void sample_take(struct window *w, const struct message_clock_sample *s)
{
	if (!s->tsc || (w->known && (int64_t)s->raw_ns > w->until_ns))
		return;
	w->until = *s;
	w->known = true;
}

static void clocks_take(struct window *w, const struct recording_entry *e,
			struct frame_unpacker *unpacker)
{
	static struct message_hello hello; /* large */
	static struct message_heartbeat heartbeat;
	struct message_clock_sample sample;
	const uint8_t *payload;
	size_t len;

	if (e->source != VS_SOURCE_HOST || frame_unpack(unpacker, &e->frame, &payload, &len))
		return;
	switch (e->frame.header.kind) {
	case FRAME_HELLO:
		if (!message_hello_unpack(payload, len, &hello))
			w->hz = hello.clock_hz;
		break;
	case FRAME_HEARTBEAT:
		if (!message_heartbeat_unpack(payload, len, &heartbeat))
			sample_take(w, &heartbeat.sample);
		break;
	case FRAME_CLOCK_SAMPLE:
		if (!message_clock_sample_unpack(payload, len, &sample))
			sample_take(w, &sample);
		break;
	default:
		break;
	}
}

static uint64_t tsc_of(const struct window *w, int64_t ns)
{
	double ticks = (double)w->until.tsc +
		       (double)(ns - (int64_t)w->until.raw_ns) / 1e9 * (double)w->hz;

	return ticks <= 0 ? 0 : ticks >= 1.8e19 ? UINT64_MAX : (uint64_t)ticks;
}

/* Calls `each` for every entry until it returns an error. Returns that, or -errno of reading. */
static int entries_read(const char *path,
			int (*each)(void *context, const struct recording_entry *e), void *context)
{
	struct recording_reader *reader;
	struct recording_entry entry;
	int err = recording_reader_open(path, &reader);

	if (err)
		return err;
	while (!err && (err = recording_reader_next(reader, &entry)) > 0)
		err = each(context, &entry);
	recording_reader_close(reader);
	return err;
}

struct scan {
	struct window *window;
	struct frame_unpacker *unpacker;
};

static int entry_scan(void *context, const struct recording_entry *e)
{
	struct scan *s = context;

	clocks_take(s->window, e, s->unpacker);
	return 0;
}

struct filling {
	struct flight_ring *ring;
	uint64_t end_tsc;
};

static int entry_push(void *context, const struct recording_entry *e)
{
	struct filling *f = context;
	struct frame_item item = frame_item_of(&e->frame);

	if (e->arrival_tsc <= f->end_tsc && e->frame.header.kind != FRAME_RECORDING_END)
		flight_ring_push(f->ring, e->source, e->arrival_tsc, &item);
	return 0;
}

static int frame_take(void *context, uint32_t source, uint64_t arrival_tsc, const uint8_t *frame,
		      size_t len)
{
	struct writing *w = context;
	struct frame_view view, shown;
	int err;

	if (!w->redactor)
		return recording_writer_append(w->out, source, arrival_tsc, frame, len);
	err = frame_parse(frame, len, &view);
	if (!err)
		err = redactor_frame(w->redactor, &view, &shown);
	if (err == -ENODATA) {
		w->result->left_out++;
		return 0;
	}
	if (err)
		return err;
	return recording_writer_append(w->out, source, arrival_tsc, shown.bytes, shown.len);
}

/* Writes what the ring holds. */
static int ring_write(const struct cut_request *q, const struct flight_ring *ring,
		      const struct model *names, const struct recording_info *info,
		      const char *path, struct cut_result *result)
{
	struct writing w = {.redactor = q->redactor, .result = result};
	struct frame_taker taker = {.take = frame_take, .context = &w};
	struct flight_places *places = NULL;
	int closed,
		err = recording_writer_open(path, info->flags, info->created_realtime_ns, &w.out);

	if (err)
		return err;
	err = flight_ring_begin(ring, names, 0, &taker, &places);
	flight_places_free(places);
	closed = recording_writer_close(w.out, 0);
	return err ? err : closed;
}

static int window_write(const struct cut_request *q, const struct model *names,
			const struct recording_info *info, const char *path,
			struct cut_result *result)
{
	struct window w = {.hz = SECOND_NS, .until_ns = model_now(names).ns};
	struct scan scan = {.window = &w, .unpacker = frame_unpacker_new()};
	struct filling filling = {0};
	struct flight_ring_stats stats;
	int64_t age_ns;
	int err;

	w.from_ns = w.until_ns - LAST_S * SECOND_NS;
	if (q->narrow->cut && q->narrow->until.ns < w.until_ns)
		w.until_ns = q->narrow->until.ns;
	if (q->narrow->cut)
		w.from_ns = q->narrow->from.ns;
	if (w.from_ns < model_begin(names).ns)
		w.from_ns = model_begin(names).ns;
	err = scan.unpacker ? entries_read(q->recording, entry_scan, &scan) : -ENOMEM;

	frame_unpacker_free(scan.unpacker);
	if (!err && !w.known)
		err = -ENODATA;
	if (err)
		return err;
	filling.end_tsc = tsc_of(&w, w.until_ns + AFTER_S * SECOND_NS);
	age_ns = w.until_ns - w.from_ns + (BEFORE_S + AFTER_S) * SECOND_NS;
	filling.ring = flight_ring_new((uint64_t)age_ns, (size_t)CUT_MOST_MIB << 20, w.hz);
	if (!filling.ring)
		return -ENOMEM;
	err = entries_read(q->recording, entry_push, &filling);
	flight_ring_stats_get(filling.ring, &stats);
	result->clipped = stats.early > 0;
	if (!err && stats.refused)
		err = -ENOMEM;
	if (!err)
		err = ring_write(q, filling.ring, names, info, path, result);
	flight_ring_free(filling.ring);
	return err;
}

int cut_write(const struct cut_request *q, const char *path, struct cut_result *result, char *why,
	      size_t why_bytes)
{
	struct pipeline_options options = {.model = model_new()};
	struct pipeline *p = options.model ? pipeline_new(&options) : NULL;
	struct recording_info info;
	int err = -ENOMEM;

	*result = (struct cut_result){0};
	snprintf(why, why_bytes, "out of memory");
	if (p)
		err = replay_run(p, q->recording, &info, why, why_bytes);
	if (!err) {
		err = window_write(q, options.model, &info, path, result);
		if (err == -ENODATA)
			snprintf(why, why_bytes,
				 "%s: its clock was not recorded before this time; choose a later "
				 "--to",
				 q->recording);
		else if (err)
			snprintf(why, why_bytes, "the part of %s: %s", q->recording,
				 strerror(-err));
	}
	pipeline_free(p);
	model_free(options.model);
	return err;
}
