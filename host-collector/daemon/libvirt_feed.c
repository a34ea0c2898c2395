/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/daemon/libvirt_feed.h"

#include <errno.h>
#include <json.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "host-collector/daemon/child.h"
#include "host-collector/daemon/trigger.h"
#include "host-collector/daemon/flight.h"
#include "host-collector/daemon/libvirt_helper.h"
#include "host-collector/util/json_get.h"
#include "proto/sibling.h"

enum {
	LINE_MAX_BYTES = 64 * 1024,
	AGAIN_MS = 5000,
	UUID_BYTES = 37,
};

#define PROGRAM "vcpuscope-libvirt" /* proto/sibling.h finds it */

/* A domain that the feed attached. */
struct fed {
	struct candidate candidate;
	char uuid[UUID_BYTES];
	struct vm_config config;      /* as attached */
	struct libvirt_helper *relay; /* NULL: its channel needs none */
	struct libvirt_helper *plug;  /* adds its channel; NULL: none is to be added */
};

struct libvirt_feed {
	uv_loop_t *loop;
	struct vm_source source;
	char uri[256];
	struct child process;
	uv_pipe_t in, out; /* its standard input and output */
	int open;          /* how many of its handles are not closed yet */
	bool closing, starting_later;
	uint64_t again_ms;
	char line[LINE_MAX_BYTES], buffer[4096];
	size_t len;
	struct fed fed[DAEMON_VMS_MAX];
	size_t n_fed;
	size_t n_plugging; /* processes that add a channel */
};

/* ---- domains ---- */

static struct fed *fed_find(struct libvirt_feed *f, const char *uuid)
{
	for (size_t i = 0; i < f->n_fed; i++) {
		if (!strcmp(f->fed[i].uuid, uuid))
			return &f->fed[i];
	}
	return NULL;
}

static void fed_drop(struct libvirt_feed *f, struct fed *fed)
{
	candidate_detach(&f->source, &fed->candidate);
	libvirt_helper_close(fed->relay);
	libvirt_helper_close(fed->plug);
	*fed = f->fed[--f->n_fed];
}

/* Returns true if a domain's owner may set the key. Keys that name files or sockets are not
 * allowed. */
static bool setting_is_allowed(const char *key)
{
	static const char *const keys[] = {"record",      "level",       "stacks_over",
					   "flight",      "stall",       "flight_time",
					   "flight_size", "guest_level", "guest_handlers_over"};

	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		if (!strcmp(keys[i], key))
			return true;
	}
	return trigger_find(key) >= 0;
}

/* Returns false if the domain's settings say that it must not be watched. */
static bool settings_apply(const struct libvirt_feed *f, struct json_object *settings,
			   struct vm_config *config)
{
	char why[256];

	json_object_object_foreach(settings, key, value)
	{
		const char *text = json_object_is_type(value, json_type_string)
					   ? json_object_get_string(value)
					   : "";

		if (!strcmp(key, "watch")) {
			if (!strcmp(text, "no"))
				return false;
		} else if (!strcmp(key, "attach")) {
			continue; /* attach_is_wanted() */
		} else if (!setting_is_allowed(key)) {
			vm_source_say(&f->source, config->name,
				      "its metadata: %.40s is no setting; ignored", key);
		} else if (vm_config_set(config, key, text, why, sizeof(why))) {
			vm_source_say(&f->source, config->name, "its metadata: %s", why);
		}
	}
	return true;
}

/* Chooses the VM's name: the domain's name if that is a valid name here, else its UUID. */
static void name_set(struct vm_config *config, const char *name, const char *uuid)
{
	if (!candidate_name(config, name) || strlen(name) >= sizeof(config->name))
		snprintf(config->name, sizeof(config->name), "%s", uuid);
}

/* Sets the owner of the VM from its manager's metadata. */
static void owner_set(const struct libvirt_feed *f, struct json_object *o, struct vm_config *config)
{
	static const char *const keys[] = {"owner", "manager"};
	char why[256];

	for (size_t i = 0; i < 2; i++) {
		const char *text = json_get_string(o, keys[i]);

		if (*text && vm_config_set(config, keys[i], text, why, sizeof(why)))
			vm_source_say(&f->source, config->name, "its metadata: %s", why);
	}
}

/* Sets the address of the domain's channel. Returns true if it needs libvirt's relay, because no
 * process here can connect to its socket. */
static bool channel_set(struct vm_config *config, struct json_object *channel)
{
	const bool connects = !strcmp(json_get_string(channel, "mode"), "connect");
	const char *path = json_get_string(channel, "path");
	const bool relay = !connects && access(path, R_OK | W_OK);

	snprintf(config->channel, sizeof(config->channel), "%s",
		 connects || relay ? "daemon:" : path);
	return relay;
}

/* Returns true if the daemon must add the agent's channel to a domain with these settings (NULL: no
 * settings). */
static bool attach_is_wanted(const struct libvirt_feed *f, struct json_object *settings)
{
	const char *which = vm_daemon_config(f->source.daemon)->libvirt_attach;
	const char *label = json_get_string(settings, "attach");

	return strcmp(label, "no") &&
	       (!strcmp(which, "all") || (!strcmp(which, "labelled") && !strcmp(label, "yes")));
}

/* Adds a channel once in each run of the domain. If somebody removes it later, it stays removed. */
static struct libvirt_helper *plug_new(struct libvirt_feed *f, const struct fed *fed)
{
	char agents[DAEMON_PATH_MAX];

	daemon_config_agents(vm_daemon_config(f->source.daemon), agents, sizeof(agents));
	return libvirt_plug_new(f->loop, &f->source, f->uri, fed->uuid, fed->candidate.vm, agents,
				&f->n_plugging);
}

static void on_domain(struct libvirt_feed *f, struct json_object *o)
{
	struct json_object *channel = json_get(o, "channel"), *settings = json_get(o, "settings");
	const char *uuid = json_get_string(o, "uuid");
	struct fed *fed = fed_find(f, uuid);
	struct candidate candidate = {0};
	struct libvirt_helper *plug = NULL;
	struct vm_config config;
	bool relay = false;

	vm_config_default(&config);
	config.pid = json_get_uint(o, "pid");
	if (!config.pid || strlen(uuid) != UUID_BYTES - 1)
		return; /* it has ended meanwhile */
	if (channel)
		relay = channel_set(&config, channel);
	name_set(&config, json_get_string(o, "name"), uuid);
	owner_set(f, o, &config);
	if (settings && !settings_apply(f, settings, &config))
		config.pid = 0;
	if (fed && (!config.pid || memcmp(&fed->config, &config, sizeof(config)))) {
		if (fed->config.pid == config.pid) {
			plug = fed->plug;
			fed->plug = NULL;
		}
		fed_drop(f, fed);
		fed = NULL;
	}
	if (fed || !config.pid || f->n_fed == DAEMON_VMS_MAX ||
	    !candidate_attach(&f->source, &candidate, &config, VM_BY_LIBVIRT, "libvirt's domain")) {
		libvirt_helper_close(plug);
		return;
	}
	fed = &f->fed[f->n_fed++];
	*fed = (struct fed){.candidate = candidate, .config = config, .plug = plug};
	snprintf(fed->uuid, sizeof(fed->uuid), "%s", uuid);
	if (relay)
		fed->relay =
			libvirt_relay_new(f->loop, &f->source, f->uri, uuid, fed->candidate.vm);
	if (!plug && attach_is_wanted(f, settings))
		fed->plug = plug_new(f, fed);
	if (channel)
		libvirt_plug_over(fed->plug);
	vm_source_say(&f->source, config.name, "a domain of libvirt, QEMU %llu, channel %s%s",
		      (unsigned long long)config.pid, config.channel[0] ? config.channel : "none",
		      relay ? " (through libvirt: its socket cannot be reached)" : "");
}

static void on_gone(struct libvirt_feed *f, struct json_object *o)
{
	struct fed *fed = fed_find(f, json_get_string(o, "uuid"));

	if (!fed)
		return;
	vm_source_say(&f->source, fed->candidate.vm, "the domain has ended");
	fed_drop(f, fed);
}

static void on_note(struct libvirt_feed *f, struct json_object *o)
{
	const struct fed *fed = fed_find(f, json_get_string(o, "uuid"));
	struct watched_vm *vm = fed ? vm_daemon_find(f->source.daemon, fed->candidate.vm) : NULL;
	const int trigger = trigger_find(json_get_string(o, "trigger"));

	vm_source_say(&f->source, fed ? fed->candidate.vm : "", "libvirt: %.200s",
		      json_get_string(o, "text"));
	if (vm && trigger >= 0)
		flight_trigger(vm_daemon_flight(f->source.daemon), vm, (enum trigger)trigger,
			       json_get_string(o, "text"));
}

static void on_disconnected(struct libvirt_feed *f, struct json_object *o)
{
	vm_source_say(&f->source, "", "libvirt %s: %.200s; trying again", f->uri,
		      json_get_string(o, "why"));
}

static void on_connected(struct libvirt_feed *f, struct json_object *o)
{
	(void)o;
	vm_source_say(&f->source, "", "libvirt %s: connected", f->uri);
}

static void line_take(struct libvirt_feed *f, const char *line)
{
	static const struct {
		const char *event;
		void (*take)(struct libvirt_feed *f, struct json_object *o);
	} events[] = {{"domain", on_domain},
		      {"gone", on_gone},
		      {"note", on_note},
		      {"connected", on_connected},
		      {"disconnected", on_disconnected}};
	struct json_object *o = json_tokener_parse(line);

	for (size_t i = 0; o && i < sizeof(events) / sizeof(events[0]); i++) {
		if (!strcmp(json_get_string(o, "event"), events[i].event))
			events[i].take(f, o);
	}
	json_object_put(o);
}

/* ---- the process ---- */

bool libvirt_feed_possible(void)
{
	char path[PATH_MAX];

	return !sibling_path(PROGRAM, path, sizeof(path));
}

static void part_closed(struct libvirt_feed *f)
{
	if (--f->open == 0 && f->closing)
		free(f);
}

static void on_pipe_closed(uv_handle_t *handle)
{
	part_closed(handle->data);
}

static void on_process_closed(void *context)
{
	part_closed(context);
}

static void pipes_drop(struct libvirt_feed *f)
{
	if (!uv_is_closing((uv_handle_t *)&f->in))
		uv_close((uv_handle_t *)&f->in, on_pipe_closed);
	if (!uv_is_closing((uv_handle_t *)&f->out))
		uv_close((uv_handle_t *)&f->out, on_pipe_closed);
}

static void start_later(struct libvirt_feed *f)
{
	pipes_drop(f);
	f->starting_later = true;
	f->again_ms = uv_now(f->loop) + AGAIN_MS;
}

static void on_exit_seen(void *context, int status, int number)
{
	struct libvirt_feed *f = context;

	if (!f->closing)
		vm_source_say(&f->source, "", PROGRAM " ended (%s %d); it is started again",
			      number ? "signal" : "exit code", number ? number : status);
	start_later(f);
}

static void on_alloc(uv_handle_t *handle, size_t wanted, uv_buf_t *out)
{
	struct libvirt_feed *f = handle->data;

	(void)wanted;
	*out = uv_buf_init(f->buffer, sizeof(f->buffer));
}

static void on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *buffer)
{
	struct libvirt_feed *f = stream->data;

	for (ssize_t i = 0; i < n; i++) {
		if (buffer->base[i] != '\n') {
			/* The helper writes no longer line: a cut one does not parse. */
			if (f->len < sizeof(f->line) - 1)
				f->line[f->len++] = buffer->base[i];
			continue;
		}
		f->line[f->len] = '\0';
		f->len = 0;
		line_take(f, f->line);
	}
}

/* we_read: the direction. *its: the descriptor for the process. */
static int pipe_make(uv_pipe_t *ours, bool we_read, int *its)
{
	int ends[2], err = uv_pipe(ends, 0, 0);

	if (err)
		return err;
	*its = ends[we_read];
	err = uv_pipe_open(ours, ends[!we_read]);
	if (err)
		close(ends[!we_read]);
	return err;
}

static void process_start(struct libvirt_feed *f)
{
	char path[PATH_MAX];
	char *args[] = {(char[]){PROGRAM}, (char[]){"follow"}, f->uri, NULL};
	int in = -1, out = -1, err;

	f->starting_later = false;
	f->len = 0;
	uv_pipe_init(f->loop, &f->in, 0);
	uv_pipe_init(f->loop, &f->out, 0);
	f->in.data = f->out.data = f;
	f->open = 2;
	f->process =
		(struct child){.ended = on_exit_seen, .closed = on_process_closed, .context = f};
	(void)sibling_path(PROGRAM, path, sizeof(path)); /* the start fails for the same reason */
	err = pipe_make(&f->in, false, &in);
	if (!err)
		err = pipe_make(&f->out, true, &out);
	if (!err) {
		f->open++;
		err = child_start(&f->process, f->loop, path, args, in, out);
	}
	if (in >= 0)
		close(in);
	if (out >= 0)
		close(out);
	if (!err)
		err = uv_read_start((uv_stream_t *)&f->out, on_alloc, on_read);
	if (err) {
		vm_source_say(&f->source, "", PROGRAM ": %s", uv_strerror(err));
		start_later(f);
	}
}

void libvirt_feed_rescan(struct libvirt_feed *f)
{
	uv_buf_t byte = uv_buf_init((char[]){"\n"}, 1);

	/* If the pipe is full, enough requests wait in it. */
	if (f && !f->starting_later && !uv_is_closing((uv_handle_t *)&f->in))
		uv_try_write((uv_stream_t *)&f->in, &byte, 1);
}

void libvirt_feed_tick(struct libvirt_feed *f)
{
	if (!f)
		return;
	if (f->starting_later && !f->open && uv_now(f->loop) >= f->again_ms)
		process_start(f);
	for (size_t i = 0; i < f->n_fed; i++) {
		libvirt_helper_tick(f->fed[i].relay);
		libvirt_helper_tick(f->fed[i].plug);
	}
}

struct libvirt_feed *libvirt_feed_new(uv_loop_t *loop, const char *uri,
				      const struct vm_source *source)
{
	struct libvirt_feed *f = calloc(1, sizeof(*f));

	if (!f)
		return NULL;
	f->loop = loop;
	f->source = *source;
	snprintf(f->uri, sizeof(f->uri), "%s", uri);
	process_start(f);
	return f;
}

void libvirt_feed_close(struct libvirt_feed *f)
{
	if (!f)
		return;
	f->closing = true;
	for (size_t i = 0; i < f->n_fed; i++) {
		libvirt_helper_close(f->fed[i].relay);
		libvirt_helper_close(f->fed[i].plug);
	}
	if (!f->open) {
		free(f);
		return;
	}
	child_kill(&f->process);
	pipes_drop(f);
}
