/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/sql/scan.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host-collector/engine/replay.h"
#include "host-collector/util/relay.h"

enum { CHUNK_ROWS = 32 };

struct chunk {
	size_t n;
	struct sql_row rows[CHUNK_ROWS];
};

struct sql_scan {
	const struct sql_source *source;
	enum sql_scanned what;
	struct sql_wanted wanted;
	pthread_t thread;
	struct relay relay;
	atomic_bool closed; /* the rows are wanted no more */
	atomic_bool over;   /* nothing that is wanted follows */
	/* Of the reader: its chunk, and the next row in it. */
	bool holding;
	size_t chunk, at;
	/* Of the thread, until it has ended. */
	int err;
	char why[512];
	struct chunk chunks[RELAY_CHUNKS];
};

static bool stop(void *context)
{
	struct sql_scan *s = context;

	return atomic_load(&s->over) || atomic_load(&s->closed) ||
	       s->source->stopped(s->source->context);
}

static void row_take(void *context, const struct sql_row *row)
{
	struct sql_scan *s = context;
	struct chunk *c = &s->chunks[relay_filled(&s->relay)];
	struct sql_row *to = &c->rows[c->n];

	if (!row)
		atomic_store(&s->over, true);
	if (!row || atomic_load(&s->closed))
		return;
	memcpy(to, row, offsetof(struct sql_row, text) + row->used);
	if (++c->n == CHUNK_ROWS)
		relay_publish(&s->relay);
}

/* 0 or -errno and s->why. */
static int rows_read(struct sql_scan *s)
{
	struct pipeline_options options = {.model = model_new()};
	struct sql_events *events = NULL;
	struct sql_spans *spans = NULL;
	struct sql_pairs *pairs = NULL;
	struct pipeline *p = NULL;
	struct recording_info info;
	bool none = false;
	int err = -ENOMEM;

	snprintf(s->why, sizeof(s->why), "%s: out of memory", s->source->recording);
	if (options.model && s->what == SQL_SCAN_EVENTS)
		events = sql_events_new(options.model, s->source, &s->wanted, row_take, s, &none);
	else if (options.model && s->what == SQL_SCAN_PAIRS)
		pairs = sql_pairs_new(options.model, s->source, &s->wanted, row_take, s, s->why,
				      sizeof(s->why));
	else if (options.model)
		spans = sql_spans_new(options.model, s->source, &s->wanted, row_take, s);
	if (events || spans || pairs)
		p = pipeline_new(&options);
	if (none)
		err = 0;
	else if (p)
		err = replay_until(p, s->source->recording, stop, s, &info, s->why, sizeof(s->why));
	if (!err && pairs)
		err = sql_pairs_finish(pairs);
	pipeline_free(p);
	model_free(options.model);
	sql_events_free(events);
	sql_pairs_free(pairs);
	sql_spans_free(spans);
	return err == -ECANCELED && !s->source->stopped(s->source->context) ? 0 : err;
}

static void *scan_run(void *context)
{
	struct sql_scan *s = context;

	s->err = rows_read(s);
	if (s->chunks[relay_filled(&s->relay)].n)
		relay_publish(&s->relay);
	relay_end(&s->relay);
	return NULL;
}

int sql_scan_open(const struct sql_source *source, enum sql_scanned what,
		  const struct sql_wanted *wanted, struct sql_scan **out)
{
	struct sql_scan *s = calloc(1, sizeof(*s));
	int err;

	if (!s)
		return -ENOMEM;
	s->source = source;
	s->what = what;
	s->wanted = *wanted;
	if (s->wanted.rows.vm)
		s->wanted.rows.vm = s->wanted.vm;
	relay_init(&s->relay);
	err = -pthread_create(&s->thread, NULL, scan_run, s);
	if (err) {
		relay_fini(&s->relay);
		free(s);
		return err;
	}
	*out = s;
	return 0;
}

int sql_scan_next(struct sql_scan *s, const struct sql_row **row)
{
	if (s->holding && s->at == s->chunks[s->chunk].n) {
		s->chunks[s->chunk].n = 0;
		s->holding = false;
		relay_return(&s->relay);
	}
	if (!s->holding) {
		s->holding = relay_await(&s->relay, &s->chunk);
		s->at = 0;
	}
	if (!s->holding)
		return s->err;
	*row = &s->chunks[s->chunk].rows[s->at++];
	return 1;
}

const char *sql_scan_why(const struct sql_scan *s)
{
	return s->why;
}

void sql_scan_close(struct sql_scan *s)
{
	size_t index;

	if (!s)
		return;
	atomic_store(&s->closed, true);
	if (s->holding) {
		s->chunks[s->chunk].n = 0;
		relay_return(&s->relay);
	}
	while (relay_await(&s->relay, &index)) {
		s->chunks[index].n = 0;
		relay_return(&s->relay);
	}
	pthread_join(s->thread, NULL);
	relay_fini(&s->relay);
	free(s);
}
