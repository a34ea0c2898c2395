/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/daemon/streams.h"

#include <errno.h>
#include <json.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host-collector/util/json_string.h"

enum {
	STATUS_MS = 200,
	QUEUE_BYTES_MAX = 16 << 20, /* sent bytes that a client has not read yet */
};

struct stream {
	struct streams *streams;
	struct watched_vm *vm; /* NULL: the VM is closed */
	uv_stream_t *pipe;
	void (*over)(void *context);
	void *context;
	struct frame_tap tap;
	struct flight_places *places;
	bool listens; /* it begins with the VM's next run, or has begun */
	bool ending;  /* it ends, unless the next run begins at once */
	bool ended;
	char why[128];
	uint64_t status_ms;
	struct stream *next;
};

struct streams {
	struct streams_options options;
	struct stream *all;
};

struct sent {
	uv_write_t request;
	uint8_t bytes[];
};

static void on_sent(uv_write_t *request, int status)
{
	(void)status; /* the reader of the connection handles a client that is gone */
	free(request);
}

/* Returns 0, or -errno if the frame was not sent. */
static int entry_send(struct stream *s, uint32_t source, uint64_t arrival_tsc, const void *bytes,
		      size_t len)
{
	const struct stream_entry entry = {
		.source = source, .bytes = (uint32_t)len, .arrival_tsc = arrival_tsc};
	struct sent *sent;
	uv_buf_t buf;
	int err;

	if (uv_stream_get_write_queue_size(s->pipe) > QUEUE_BYTES_MAX)
		return -ENOBUFS;
	sent = malloc(sizeof(*sent) + sizeof(entry) + len);
	if (!sent)
		return -ENOMEM;
	memcpy(sent->bytes, &entry, sizeof(entry));
	memcpy(sent->bytes + sizeof(entry), bytes, len);
	buf = uv_buf_init((char *)sent->bytes, (unsigned int)(sizeof(entry) + len));
	err = uv_write(&sent->request, s->pipe, &buf, 1, on_sent);
	if (err)
		free(sent);
	return err;
}

static void text_send(struct stream *s, const char *key, struct json_object *value)
{
	struct json_object *o = json_object_new_object();
	const char *text;

	json_object_object_add(o, key, value);
	text = json_object_to_json_string_ext(o, JSON_C_TO_STRING_PLAIN);
	entry_send(s, STREAM_TEXT, 0, text, strlen(text));
	json_object_put(o);
}

static void status_send(struct stream *s)
{
	s->status_ms = uv_hrtime() / 1000000;
	text_send(s, "status", s->streams->options.describe(s->streams->options.context, s->vm));
}

/* If a frame cannot be sent, the gap in the numbers shows the client that it is missing. */
static int stream_take(void *context, uint32_t source, uint64_t arrival_tsc, const uint8_t *frame,
		       size_t len)
{
	entry_send(context, source, arrival_tsc, frame, len);
	return 0;
}

static void on_frame(void *context, uint32_t source, uint64_t arrival_tsc, struct frame_item *frame)
{
	struct stream *s = context;
	const struct frame_taker taker = {.take = stream_take, .context = s};
	struct frame_view view;

	if (!s->listens || frame_item_frame(frame, &view))
		return;
	if (s->places)
		flight_places_append(s->places, &taker, source, arrival_tsc, view.bytes, view.len);
	else
		stream_take(s, source, arrival_tsc, view.bytes, view.len);
}

static void on_begin(void *context)
{
	struct stream *s = context;

	s->listens = true;
	s->ending = false;
	/* A new run: its frames are sent from the first one, unchanged. */
	flight_places_free(s->places);
	s->places = NULL;
}

static void on_end(void *context, const char *why)
{
	struct stream *s = context;

	s->ending = true;
	snprintf(s->why, sizeof(s->why), "%s", why);
}

static void end_send(struct stream *s)
{
	if (s->ended)
		return;
	status_send(s);
	text_send(s, "end", json_string_new(s->why));
	s->ended = true;
}

struct streams *streams_new(const struct streams_options *options)
{
	struct streams *s = calloc(1, sizeof(*s));

	if (s)
		s->options = *options;
	return s;
}

static void stream_free(struct stream **at)
{
	struct stream *s = *at;

	*at = s->next;
	if (s->vm)
		watched_vm_untap(s->vm, &s->tap);
	flight_places_free(s->places);
	free(s);
}

void streams_free(struct streams *s)
{
	while (s && s->all)
		stream_free(&s->all);
	free(s);
}

int streams_check(const struct watched_vm *vm, char *why, size_t why_bytes)
{
	struct watched_vm_status status;

	watched_vm_status_get(vm, &status);
	if (status.state == WATCHED_RUNNING)
		return 0;
	snprintf(why, why_bytes, "VM %s: the daemon waits for it: %s", watched_vm_config(vm)->name,
		 status.why);
	return -EAGAIN;
}

int streams_begin(struct streams *all, struct watched_vm *vm, uv_stream_t *pipe,
		  void (*over)(void *context), void *context)
{
	struct stream *s = calloc(1, sizeof(*s));
	const struct frame_taker taker = {.take = stream_take, .context = s};

	if (!s)
		return -ENOMEM;
	s->streams = all;
	s->vm = vm;
	s->pipe = pipe;
	s->over = over;
	s->context = context;
	s->tap = (struct frame_tap){
		.frame = on_frame, .begin = on_begin, .end = on_end, .context = s};
	s->next = all->all;
	all->all = s;
	status_send(s);
	s->listens = !flight_join(all->options.flight, vm, &taker, &s->places);
	if (!s->listens) {
		flight_places_free(s->places);
		s->places = NULL;
	}
	watched_vm_tap(vm, &s->tap);
	if (!s->listens) /* without a flight recorder, only a new run repeats what it needs */
		watched_vm_restart(vm);
	return 0;
}

void streams_end(struct streams *all, const uv_stream_t *pipe)
{
	for (struct stream **at = &all->all; *at; at = &(*at)->next) {
		if ((*at)->pipe != pipe)
			continue;
		stream_free(at);
		return;
	}
}

void streams_leave(struct streams *all, const struct watched_vm *vm)
{
	for (struct stream *s = all->all; s; s = s->next) {
		if (s->vm != vm)
			continue;
		if (!s->ending)
			on_end(s, "detached");
		end_send(s);
		watched_vm_untap(s->vm, &s->tap);
		s->vm = NULL;
	}
}

void streams_say(struct streams *all, const char *vm, const char *line)
{
	for (struct stream *s = all->all; s; s = s->next) {
		if (s->vm && !strcmp(watched_vm_config(s->vm)->name, vm))
			text_send(s, "say", json_string_new(line));
	}
}

void streams_tick(struct streams *all)
{
	const uint64_t now_ms = uv_hrtime() / 1000000;
	struct stream *s, *next;

	for (s = all->all; s; s = next) {
		next = s->next;
		if (s->ending)
			end_send(s);
		if (!s->ended && now_ms - s->status_ms >= STATUS_MS)
			status_send(s);
		if (s->ended && !uv_stream_get_write_queue_size(s->pipe))
			s->over(s->context); /* which calls streams_end() */
	}
}
