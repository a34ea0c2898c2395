/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/cli/feed.h"

#include <errno.h>
#include <inttypes.h>
#include <json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "host-collector/cli/descriptors.h"
#include "host-collector/cli/detach.h"
#include "host-collector/daemon/control.h"
#include "host-collector/daemon/streams.h"
#include "host-collector/util/json_get.h"
#include "proto/recording.h"

enum {
	READ_BYTES = 256 * 1024,
	ENTRY_BYTES_MAX = VS_FRAME_HEADER_BYTES + VS_FRAME_PAYLOAD_MAX,
};

struct counts {
	uint64_t host_emitted, host_dropped, guest_emitted, guest_dropped;
};

/* A VM that this process captures. */
struct feed_vm {
	struct feed *feed;
	struct collector *collector; /* NULL while it is opened */
	pid_t pid;
};

struct feed {
	struct feed_vm vms[FEED_VMS_MAX];
	size_t n_vms, n_ended; /* 0 VMs: the daemon captures it */
	struct collector_sink sink;
	struct feed_place place;
	bool no_guest, piped, stopped, ended;
	uv_pipe_t pipe;
	uint8_t *bytes; /* read and not used yet */
	size_t n, capacity;
	/* By the daemon's word. */
	struct message_vm_info vm;
	struct collector_status status;
	struct counts before;
	bool counted;
	char backend[16];
};

static void end(struct feed *f, const char *why)
{
	if (f->ended || f->stopped)
		return;
	f->ended = true;
	f->sink.ended(f->sink.context, why);
}

/* ---- collectors of this process ---- */

static void on_frame(void *context, uint32_t source, uint64_t arrival_tsc, struct frame_item *frame)
{
	const struct feed_vm *vm = context;

	vm->feed->sink.frame(vm->feed->sink.context, source, arrival_tsc, frame);
}

/* With several VMs, a line names its VM. */
static void on_say(void *context, const char *line)
{
	const struct feed_vm *vm = context;
	const struct feed *f = vm->feed;
	struct collector_status s;
	char named[512 + VS_TEXT_MAX];

	if (f->n_vms < 2 && vm == f->vms) {
		f->sink.say(f->sink.context, line);
		return;
	}
	if (vm->collector) {
		collector_status_get(vm->collector, &s);
		snprintf(named, sizeof(named), "%s: %s", s.vm->name, line);
	} else {
		snprintf(named, sizeof(named), "process %d: %s", (int)vm->pid, line);
	}
	f->sink.say(f->sink.context, named);
}

static void on_ended(void *context, const char *why)
{
	struct feed *f = ((struct feed_vm *)context)->feed;
	char line[256];

	if (++f->n_ended >= f->n_vms) {
		end(f, why);
		return;
	}
	snprintf(line, sizeof(line), "%.160s: the other VMs are still recorded", why);
	f->sink.say(f->sink.context, line);
}

static int collector_add(struct feed *f, uv_loop_t *loop, const struct feed_place *place,
			 const struct collector_options *options, char *why, size_t why_bytes)
{
	struct feed_vm *vm = &f->vms[f->n_vms];
	const struct collector_sink sink = {on_frame, on_say, on_ended, vm};
	struct collector_options direct = *options;
	int err;

	*vm = (struct feed_vm){.feed = f, .pid = place->pid};
	direct.pid = place->pid;
	direct.qmp_path = place->qmp;
	err = collector_open(loop, &direct, &sink, &vm->collector, why, why_bytes);
	f->n_vms += !err;
	return err;
}

/* ---- what the daemon tells beside frames ---- */

static bool truth_of(struct json_object *o, const char *name)
{
	return json_object_get_boolean(json_get(o, name));
}

static enum link_state link_state_of(const char *text)
{
	static const char *const states[] = {[LINK_DOWN] = "down",
					     [LINK_SILENT] = "silent",
					     [LINK_TALKING] = "ok",
					     [LINK_REFUSED] = "refused"};

	for (size_t i = 0; i < sizeof(states) / sizeof(states[0]); i++) {
		if (!strcmp(text, states[i]))
			return (enum link_state)i;
	}
	return LINK_DOWN;
}

static uint64_t since(uint64_t now, uint64_t before)
{
	return now > before ? now - before : 0;
}

static void status_take(struct feed *f, struct json_object *o)
{
	const struct counts now = {.host_emitted = json_get_uint(o, "host_emitted"),
				   .host_dropped = json_get_uint(o, "host_dropped"),
				   .guest_emitted = json_get_uint(o, "guest_emitted"),
				   .guest_dropped = json_get_uint(o, "guest_dropped")};
	struct collector_status *s = &f->status;
	const char *channel = json_get_text(o, "channel"), *clock = json_get_text(o, "clock");

	if (strcmp(json_get_text(o, "state"), "running"))
		return; /* its last counts stand */
	if (!f->counted)
		f->before = now;
	f->counted = true;
	snprintf(f->vm.name, sizeof(f->vm.name), "%s", json_get_text(o, "name"));
	f->vm.qemu_pid = (int32_t)json_get_uint(o, "qemu_pid");
	snprintf(f->backend, sizeof(f->backend), "%s", json_get_text(o, "backend"));
	s->n_vcpus = json_get_uint(o, "vcpus");
	s->paused = truth_of(o, "paused");
	s->host.kernel_names = truth_of(o, "kernel_names");
	s->host.events.emitted = since(now.host_emitted, f->before.host_emitted);
	s->host.events.dropped_kernel = since(now.host_dropped, f->before.host_dropped);
	s->guest_emitted = since(now.guest_emitted, f->before.guest_emitted);
	s->guest_dropped = since(now.guest_dropped, f->before.guest_dropped);
	s->has_channel = !f->no_guest && strcmp(channel, "none") != 0;
	s->link.state = link_state_of(channel);
	s->agent_silent_ms = json_get_uint(o, "agent_silent_ms");
	s->clock_known = *clock != 0;
	s->clock_error_ns = json_get_uint(o, "clock_error_ns");
	s->clock_contested = !strcmp(clock, "untrusted");
	s->clock_exact = s->clock_known && s->clock_error_ns <= 1;
}

static void text_take(struct feed *f, const uint8_t *bytes, size_t len)
{
	struct json_tokener *tokener = json_tokener_new();
	struct json_object *o =
		tokener ? json_tokener_parse_ex(tokener, (const char *)bytes, (int)len) : NULL;

	if (json_get(o, "status"))
		status_take(f, json_get(o, "status"));
	if (*json_get_text(o, "say"))
		f->sink.say(f->sink.context, json_get_text(o, "say"));
	if (*json_get_text(o, "end"))
		end(f, json_get_text(o, "end"));
	json_object_put(o);
	if (tokener)
		json_tokener_free(tokener);
}

/* ---- the stream ---- */

static void entry_take(struct feed *f, const struct stream_entry *entry, const uint8_t *bytes)
{
	struct frame_view frame;
	struct frame_item item;

	if (entry->source == STREAM_TEXT) {
		text_take(f, bytes, entry->bytes);
		return;
	}
	if (entry->source != VS_SOURCE_HOST && f->no_guest)
		return;
	f->status.link.frames += entry->source != VS_SOURCE_HOST;
	if (frame_parse(bytes, entry->bytes, &frame))
		return;
	item = frame_item_of(&frame);
	f->sink.frame(f->sink.context, entry->source, entry->arrival_tsc, &item);
}

static void entries_take(struct feed *f)
{
	struct stream_entry entry;
	size_t at = 0;

	while (!f->stopped && !f->ended && f->n - at >= sizeof(entry)) {
		memcpy(&entry, f->bytes + at, sizeof(entry));
		if (entry.bytes > ENTRY_BYTES_MAX) {
			end(f, "the peer is not a daemon of this version");
			return;
		}
		if (f->n - at < sizeof(entry) + entry.bytes)
			break;
		entry_take(f, &entry, f->bytes + at + sizeof(entry));
		at += sizeof(entry) + entry.bytes;
	}
	f->n -= at;
	memmove(f->bytes, f->bytes + at, f->n);
}

static void on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *buf)
{
	struct feed *f = handle->data;

	(void)suggested;
	*buf = uv_buf_init((char *)f->bytes + f->n, (unsigned int)(f->capacity - f->n));
}

static void on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf)
{
	struct feed *f = stream->data;

	(void)buf;
	if (n < 0) {
		uv_read_stop(stream);
		end(f, "the daemon has ended");
		return;
	}
	f->n += (size_t)n;
	entries_take(f);
}

static int stream_open(struct feed *f, uv_loop_t *loop, char *why, size_t why_bytes)
{
	struct json_object *request = json_object_new_object(), *reply = NULL;
	const struct timeval for_ever = {0};
	int fd, err = 0;

	json_object_object_add(request, "command", json_object_new_string("stream"));
	json_object_object_add(request, "vm", json_object_new_string(f->place.vm));
	fd = control_dial(f->place.control, request, &reply, why, why_bytes);
	json_object_put(request);
	if (fd < 0)
		return fd;
	if (!truth_of(reply, "ok")) {
		snprintf(why, why_bytes, "%s", json_get_text(reply, "error"));
		err = -EAGAIN;
	}
	json_object_put(reply);
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &for_ever, sizeof(for_ever));
	f->capacity = READ_BYTES + sizeof(struct stream_entry) + ENTRY_BYTES_MAX;
	f->bytes = malloc(f->capacity);
	if (!err && !f->bytes)
		err = -ENOMEM;
	if (err) {
		close(fd);
		return err;
	}
	uv_pipe_init(loop, &f->pipe, 0);
	f->pipe.data = f;
	f->piped = true;
	err = uv_pipe_open(&f->pipe, fd);
	if (err)
		close(fd);
	if (!err)
		err = uv_read_start((uv_stream_t *)&f->pipe, on_alloc, on_read);
	if (err)
		snprintf(why, why_bytes, "%s: %s", f->place.control, strerror(-err));
	return err;
}

int feed_open(uv_loop_t *loop, const struct feed_place *place,
	      const struct collector_options *options, bool no_guest,
	      const struct collector_sink *sink, struct feed **out, char *why, size_t why_bytes)
{
	struct feed *f = calloc(1, sizeof(*f));
	char line[640];
	int err;

	if (!f) {
		snprintf(why, why_bytes, "out of memory");
		return -ENOMEM;
	}
	f->place = *place;
	f->sink = *sink;
	f->no_guest = no_guest;
	f->status.host.kernel_names = true;
	if (!place->by_daemon) {
		descriptors_allow();
		err = collector_add(f, loop, place, options, why, why_bytes);
	} else {
		err = stream_open(f, loop, why, why_bytes);
		snprintf(line, sizeof(line),
			 "the daemon watches VM %s: its events come through %s, with the channel, "
			 "the level (%s) and the stacks_over of the daemon",
			 place->vm, place->control, place->level);
	}
	if (err) {
		feed_close(f);
		return err;
	}
	if (place->by_daemon)
		sink->say(sink->context, line);
	*out = f;
	return 0;
}

int feed_add(struct feed *f, uv_loop_t *loop, const struct feed_place *place, const char *channel,
	     const struct collector_options *options, char *why, size_t why_bytes)
{
	struct collector_options more = *options;

	if (f->n_vms == FEED_VMS_MAX) {
		snprintf(why, why_bytes, "more than %d VMs", FEED_VMS_MAX);
		return -ENOSPC;
	}
	more.channel = channel;
	more.number = COLLECTOR_VM + (uint32_t)f->n_vms;
	more.beside = f->vms[0].collector;
	return collector_add(f, loop, place, &more, why, why_bytes);
}

void feed_stop(struct feed *f)
{
	/* The first one, whose host stream they share, last. */
	for (size_t i = f->n_vms; i-- > 0;)
		collector_stop(f->vms[i].collector);
	if (!f->n_vms && !f->stopped && f->piped)
		uv_read_stop((uv_stream_t *)&f->pipe);
	f->stopped = true;
}

static void feed_free(struct feed *f)
{
	free(f->bytes);
	free(f);
}

static void pipe_closed(uv_handle_t *handle)
{
	feed_free(handle->data);
}

void feed_close(struct feed *f)
{
	struct detach detach;

	if (!f)
		return;
	feed_stop(f);
	if (f->n_vms)
		detach_begin(&detach);
	for (size_t i = f->n_vms; i-- > 0;)
		collector_close(f->vms[i].collector);
	if (f->n_vms && !detach_end(&detach, DETACH_WAIT_MS))
		fprintf(stderr, DETACH_GOES_ON);
	if (f->piped)
		uv_close((uv_handle_t *)&f->pipe, pipe_closed);
	else
		feed_free(f);
}

int feed_level(struct feed *f, enum capture_level level)
{
	struct json_object *request, *reply = NULL;
	char why[256];
	int err = 0;

	for (size_t i = 0; i < f->n_vms && !err; i++)
		err = collector_level(f->vms[i].collector, level);
	if (f->n_vms)
		return err;
	request = json_object_new_object();
	json_object_object_add(request, "command", json_object_new_string("level"));
	json_object_object_add(request, "vm", json_object_new_string(f->place.vm));
	json_object_object_add(
		request, "what",
		json_object_new_string(level == CAPTURE_SUMMARY ? "summary" : "detail"));
	err = control_ask(f->place.control, request, &reply, why, sizeof(why));
	json_object_put(request);
	if (!err && !truth_of(reply, "ok"))
		err = -EOPNOTSUPP;
	json_object_put(reply);
	return err;
}

void feed_guest_text(const struct collector_status *s, char *out, size_t out_bytes)
{
	static const char *const states[] = {
		[LINK_DOWN] = "channel down",
		[LINK_SILENT] = "no agent yet",
		[LINK_TALKING] = "agent ok",
		[LINK_REFUSED] = "agent of another version",
	};

	if (s->has_channel && s->link.state == LINK_TALKING &&
	    s->agent_silent_ms >= COLLECTOR_SILENT_MS)
		snprintf(out, out_bytes, "agent silent for %" PRIu64 " s",
			 s->agent_silent_ms / 1000);
	else
		snprintf(out, out_bytes, "%s",
			 s->has_channel ? states[s->link.state] : "host only");
}

/* LINK_TALKING is the best state. */
static bool link_is_worse(enum link_state a, enum link_state b)
{
	return a != LINK_TALKING && (b == LINK_TALKING || a < b);
}

static void counts_add(struct collector_status *sum, const struct collector_status *s)
{
	struct guest_session_stats *session = &sum->link.decoder.session;
	const struct guest_session_stats *more = &s->link.decoder.session;

	sum->n_vcpus += s->n_vcpus;
	sum->link.frames += s->link.frames;
	session->damaged += more->damaged;
	session->skipped_bytes += more->skipped_bytes;
	session->replayed += more->replayed;
	sum->guest_emitted += s->guest_emitted;
	sum->guest_dropped += s->guest_dropped;
}

static void guest_copy(struct collector_status *to, const struct collector_status *from)
{
	to->has_channel = from->has_channel;
	to->link.state = from->link.state;
	to->agent_silent_ms = from->agent_silent_ms;
	to->clock_known = from->clock_known;
	to->clock_exact = from->clock_exact;
	to->clock_contested = from->clock_contested;
	to->clock_error_ns = from->clock_error_ns;
}

static void guest_add(struct collector_status *sum, const struct collector_status *s)
{
	if (link_is_worse(s->link.state, sum->link.state))
		sum->link.state = s->link.state;
	if (s->agent_silent_ms > sum->agent_silent_ms)
		sum->agent_silent_ms = s->agent_silent_ms;
	sum->clock_known &= s->clock_known;
	sum->clock_exact &= s->clock_exact;
	sum->clock_contested |= s->clock_contested;
	if (s->clock_error_ns > sum->clock_error_ns)
		sum->clock_error_ns = s->clock_error_ns;
}

void feed_status_add(struct collector_status *sum, const struct collector_status *s)
{
	counts_add(sum, s);
	if (s->ended && !sum->ended)
		return;
	if (sum->ended && !s->ended) {
		sum->paused = s->paused;
		guest_copy(sum, s);
	} else {
		sum->paused |= s->paused;
		if (!sum->has_channel)
			guest_copy(sum, s);
		else if (s->has_channel)
			guest_add(sum, s);
	}
	sum->ended = s->ended;
}

void feed_status_get(struct feed *f, struct collector_status *out)
{
	struct collector_status more;

	for (size_t i = 0; i < f->n_vms; i++) {
		collector_status_get(f->vms[i].collector, i ? &more : out);
		if (i)
			feed_status_add(out, &more);
	}
	if (f->n_vms)
		return;
	*out = f->status;
	out->vm = &f->vm;
	out->backend = f->backend;
}

bool feed_vm_status_get(struct feed *f, size_t index, struct collector_status *out)
{
	if (index >= f->n_vms)
		return false;
	collector_status_get(f->vms[index].collector, out);
	return true;
}
