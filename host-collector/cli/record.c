/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * `vcpuscope record`: records the events of the host's and the guest's kernel until it is stopped.
 */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <uv.h>

#include "clock/sample.h"
#include "host-collector/cli/commands.h"
#include "host-collector/cli/event_options.h"
#include "host-collector/cli/feed.h"
#include "host-collector/cli/guest_options.h"
#include "host-collector/cli/look_options.h"
#include "host-collector/cli/task_options.h"
#include "host-collector/cli/vms_options.h"
#include "host-collector/cli/workload.h"
#include "host-collector/util/escape.h"
#include "proto/buffer.h"
#include "proto/log_writer.h"
#include "proto/program/main_loop.h"
#include "proto/recording.h"

enum {
	TICK_MS = 100,
	STATUS_TTY_MS = 500,
	STATUS_PLAIN_MS = 5000,
	FLUSH_MS = 1000,
	LOG_FLUSH_MS = 2000,
};

struct record_options {
	struct vms_arguments which;
	const char *output;
	struct link_security security;
	struct guest_arguments guest;
	struct event_arguments events;
	struct task_arguments tasks;
	uint64_t duration_ns;
	uint64_t stacks_over_ns, sample_hz;
	struct look_arguments look;
	const char *level, *backend;
	bool no_guest;
};

#define ROW(field) offsetof(struct record_options, field)
static const struct option_spec record_option_table[] = {
	VMS_OPTION_ROWS(ROW(which)),
	CHANNEL_SECURITY_ROWS(ROW(security)),
	GUEST_OPTION_ROWS(ROW(guest)),
	EVENT_OPTION_ROWS(ROW(events)),
	TASK_OPTION_ROWS(ROW(tasks)),
	NO_GUEST_OPTION_ROW(ROW(no_guest)),
	{.name = "output",
	 .letter = 'o',
	 .type = OPTION_FILE,
	 .required = true,
	 .offset = ROW(output),
	 .value = "FILE",
	 .help = "the recording to write"},
	{.name = "for",
	 .type = OPTION_DURATION,
	 .offset = ROW(duration_ns),
	 .value = "TIME",
	 .help = "stop after this time, such as 10s or 5m (default: run until Ctrl-C)"},
	{.name = "stacks-over",
	 .type = OPTION_DURATION,
	 .offset = ROW(stacks_over_ns),
	 .value = "TIME",
	 .help = "record the stacks of all waits longer than this, and of a sample of the "
		 "shorter ones (default 20ms)"},
	{.name = "sample-hz",
	 .type = OPTION_NUMBER,
	 .offset = ROW(sample_hz),
	 .value = "N",
	 .max = 10000,
	 .help = "sample the stacks of the VM's threads N times per second, for flame graphs, "
		 "and ask the agent to sample the guest's tasks at the same rate (default: no "
		 "samples)"},
	LOOK_OPTION_ROWS(ROW(look)),
	{.name = "level",
	 .type = OPTION_CHOICE,
	 .offset = ROW(level),
	 .value = "detail|summary",
	 .help = "how much of KVM's and the block layer's events to record. detail: all "
		 "events (default). summary: only VM-exits that take at least 1 ms, or during "
		 "which the vCPU leaves its pCPU; the others are counted by reason. SIGUSR1 "
		 "switches to detail, SIGUSR2 to summary"},
	{.name = "backend",
	 .type = OPTION_CHOICE,
	 .offset = ROW(backend),
	 .value = "auto|bpf|perf",
	 .help = "how to capture the host's events: auto uses BPF, or perf where BPF does not "
		 "work (no BTF, an old kernel); perf costs more and has no summary level "
		 "(default auto)"},
	TASK_COMMAND_ROW(ROW(tasks)),
};

struct record {
	struct record_options options;
	enum capture_level level;
	enum backend_choice backend;
	struct message_config request;
	struct capture_look look;     /* period 0: none */
	struct chosen_events *events; /* NULL: none */
	uint32_t detached;            /* bits of chosen events: reported as detached */
	struct watched_tasks *tasks;  /* NULL: only those of the VM */
	struct workload workload;
	struct main_loop loop;
	size_t n_vms; /* 0: only `tasks` */
	struct feed_place places[FEED_VMS_MAX];
	struct feed *feed;
	bool opened;              /* all VMs are */
	struct byte_buffer early; /* frames of before: each a struct early_frame and its bytes */
	struct recording_writer *writer;
	struct log_writer *log; /* of the lines and the status */
	int write_error;
	bool tty, line_open; /* a status line stands on the terminal */
	uint64_t begin_ms, status_ms, flush_ms;
	uint64_t host_events, guest_events; /* at the last status */
	int exit_code;
};

struct early_frame {
	uint32_t source;
	uint64_t arrival_tsc;
	size_t len;
};

static void line_clear(struct record *r)
{
	if (r->line_open)
		log_writer_put(r->log, "\r\033[K");
	r->line_open = false;
}

static void on_say(void *context, const char *line)
{
	struct record *r = context;

	line_clear(r);
	log_writer_line(r->log, "%s", escape(line).text);
}

/* The file is created with the first frame after the start: a start that fails leaves an older
 * recording alone. */
static int writer_open(struct record *r)
{
	return recording_writer_open(r->options.output, 0, (uint64_t)clock_realtime_ns(),
				     &r->writer);
}

static void write_failed(struct record *r, int err)
{
	if (r->write_error || !err)
		return;
	r->write_error = err;
	line_clear(r);
	if (!r->writer)
		log_writer_line(r->log, "vcpuscope record: %s: %s", r->options.output,
				strerror(-err));
	else
		log_writer_line(
			r->log,
			"vcpuscope record: %s: %s; the part written so far is readable; free "
			"some space, or record to another disk",
			r->options.output, strerror(-err));
	r->exit_code = COMMAND_TROUBLE;
	main_loop_stop(&r->loop);
}

static int early_keep(struct record *r, const struct early_frame *head, const uint8_t *bytes)
{
	int err = byte_buffer_append(&r->early, head, sizeof(*head));

	return err ? err : byte_buffer_append(&r->early, bytes, head->len);
}

static void frame_store(struct record *r, const struct early_frame *head, const uint8_t *bytes)
{
	int err = 0;

	if (r->write_error)
		return;
	if (!r->writer)
		err = writer_open(r);
	if (!err)
		err = recording_writer_append(r->writer, head->source, head->arrival_tsc, bytes,
					      head->len);
	write_failed(r, err);
}

static void early_write(struct record *r)
{
	struct early_frame head;

	r->opened = true;
	for (size_t at = 0; at < r->early.len; at += sizeof(head) + head.len) {
		memcpy(&head, r->early.data + at, sizeof(head));
		frame_store(r, &head, r->early.data + at + sizeof(head));
	}
	byte_buffer_fini(&r->early);
}

static void on_frame(void *context, uint32_t source, uint64_t arrival_tsc, struct frame_item *frame)
{
	struct record *r = context;
	struct frame_view view = {0};
	int err = frame_item_frame(frame, &view);
	const struct early_frame head = {
		.source = source, .arrival_tsc = arrival_tsc, .len = view.len};

	if (!err && r->opened)
		frame_store(r, &head, view.bytes);
	else
		write_failed(r, err ? err : early_keep(r, &head, view.bytes));
}

static void on_ended(void *context, const char *why)
{
	struct record *r = context;

	line_clear(r);
	log_writer_line(r->log, "%s: the recording ends", why);
	main_loop_stop(&r->loop);
}

static const char *const level_names[] = {
	[CAPTURE_DETAIL] = "detail", [CAPTURE_SUMMARY] = "summary"};

/* ---- the live line ---- */

static uint64_t lost_events(const struct collector_status *s)
{
	return s->host.events.dropped_kernel + s->host.events.dropped_user + s->host.missed +
	       s->guest_dropped;
}

static void clock_text(const struct collector_status *s, char *text, size_t bytes)
{
	if (!s->has_channel)
		snprintf(text, bytes, "-");
	else if (!s->clock_known)
		snprintf(text, bytes, "?");
	else if (s->clock_contested)
		snprintf(text, bytes, "not proven");
	else if (s->clock_exact)
		snprintf(text, bytes, "exact");
	else
		snprintf(text, bytes, "+-%.0f us", (double)s->clock_error_ns / 1000);
}

static void status_print(struct record *r)
{
	struct collector_status s;
	uint64_t now = clock_monotonic_ms(), elapsed = now - r->status_ms, host, guest;
	char clock[32], agent[64], line[256];

	feed_status_get(r->feed, &s);
	feed_guest_text(&s, agent, sizeof(agent));
	host = s.host.events.emitted;
	guest = s.guest_emitted;
	clock_text(&s, clock, sizeof(clock));
	if (!elapsed)
		elapsed = 1;
	line_clear(r);
	snprintf(line, sizeof(line),
		 "%6.1f s  host %" PRIu64 " ev/s  guest %" PRIu64 " ev/s  lost %" PRIu64
		 "  clock %s  %s%s  %.1f MB%s",
		 (double)(now - r->begin_ms) / 1000, (host - r->host_events) * 1000 / elapsed,
		 (guest - r->guest_events) * 1000 / elapsed, lost_events(&s), clock, agent,
		 s.paused ? ", VM paused" : "",
		 r->writer ? (double)recording_writer_bytes(r->writer) / 1e6 : 0.0,
		 r->tty ? "" : "\n");
	log_writer_put(r->log, line);
	r->line_open = r->tty;
	r->status_ms = now;
	r->host_events = host;
	r->guest_events = guest;
}

/* Reports chosen events that flooded, once each. */
static void events_check(struct record *r)
{
	struct collector_status s;

	if (!r->events)
		return;
	feed_status_get(r->feed, &s);
	for (size_t i = 0; s.host.chosen && i < s.host.chosen->n; i++) {
		const struct message_user_event *e = &s.host.chosen->events[i];

		if (!(e->flags & USER_DETACHED) || r->detached & 1u << i)
			continue;
		r->detached |= 1u << i;
		line_clear(r);
		log_writer_line(
			r->log,
			"%s has too many hits and is no longer captured; give it a filter, or "
			"take a rarer event",
			escape(e->spec).text);
	}
}

static void events_print(const struct record *r, const struct host_stream_stats *s)
{
	for (size_t i = 0; s->chosen && i < s->chosen->n; i++) {
		const struct message_user_event *e = &s->chosen->events[i];
		char limited[96] = "";

		if (e->limited)
			snprintf(limited, sizeof(limited),
				 ", %" PRIu64 " more were above the limit of %d per second and CPU",
				 e->limited, CAPTURE_EVENT_RATE);
		log_writer_line(r->log, "%s: %s%" PRIu64 " hit%s%s", escape(e->spec).text,
				e->flags & USER_FAILED ? "not captured, " : "", s->chosen_kept[i],
				s->chosen_kept[i] == 1 ? "" : "s", limited);
	}
}

static void on_tick(void *context)
{
	struct record *r = context;
	uint64_t now = clock_monotonic_ms();

	if (r->writer && !r->write_error && now - r->flush_ms >= FLUSH_MS) {
		r->flush_ms = now;
		write_failed(r, recording_writer_flush(r->writer));
	}
	events_check(r);
	if (workload_ended(&r->workload))
		main_loop_stop(&r->loop);
	/* Not between the lines of the command. */
	if (!r->loop.stopping && !r->workload.pid &&
	    now - r->status_ms >= (r->tty ? STATUS_TTY_MS : STATUS_PLAIN_MS))
		status_print(r);
}

static void on_level_signal(void *context, int number)
{
	const enum capture_level level = number == SIGUSR1 ? CAPTURE_DETAIL : CAPTURE_SUMMARY;
	struct record *r = context;
	int err = feed_level(r->feed, level);

	line_clear(r);
	if (err == -EOPNOTSUPP)
		log_writer_line(r->log,
				"vcpuscope record: the level stays detail: summary needs BPF");
	else if (err)
		log_writer_line(r->log, "vcpuscope record: cannot switch the level: %s",
				strerror(-err));
	else
		log_writer_line(r->log, "the level is now %s", level_names[level]);
}

/* Names the guests that have a channel and sent nothing. */
static void guests_print(const struct record *r, const struct collector_status *s)
{
	if (r->n_vms < 2 && s->has_channel && !s->link.frames)
		log_writer_line(r->log,
				"no data arrived from the guest: the recording has only the host "
				"side");
	for (size_t i = 0; r->n_vms > 1 && i < r->n_vms; i++) {
		struct collector_status vm;

		if (!feed_vm_status_get(r->feed, i, &vm) || !vm.has_channel || vm.link.frames)
			continue;
		log_writer_line(r->log,
				"no data arrived from the guest of %s: the recording has only its "
				"host side",
				vm.vm->name);
	}
}

/* Prints one or two lines about what was recorded. */
static void summary_print(struct record *r)
{
	const char *path = r->options.output;
	struct collector_status s;
	char frames[48] = "", of[VS_TEXT_MAX + 64] = "";

	feed_status_get(r->feed, &s);
	if (r->n_vms > 1)
		snprintf(of, sizeof(of), " of %zu VMs (%zu vCPUs)", r->n_vms, s.n_vcpus);
	else if (s.vm)
		snprintf(of, sizeof(of), " of %s (%zu vCPU%s)", s.vm->name, s.n_vcpus,
			 s.n_vcpus == 1 ? "" : "s");
	if (s.has_channel || s.link.frames)
		snprintf(frames, sizeof(frames), ", %" PRIu64 " guest frames", s.link.frames);
	log_writer_line(r->log, "%s: %.1f s%s, %" PRIu64 " host events by %s%s, lost %" PRIu64,
			path, (double)(clock_monotonic_ms() - r->begin_ms) / 1000, of,
			s.host.events.emitted, s.backend, frames, lost_events(&s));
	events_print(r, &s.host);
	guests_print(r, &s);
	if (s.link.decoder.session.damaged || s.link.decoder.session.skipped_bytes ||
	    s.link.decoder.session.replayed)
		log_writer_line(r->log,
				"the channel delivered %" PRIu64 " damaged and %" PRIu64
				" replayed frames; %" PRIu64 " bytes were skipped",
				s.link.decoder.session.damaged, s.link.decoder.session.replayed,
				s.link.decoder.session.skipped_bytes);
	if (!s.host.kernel_names)
		log_writer_line(r->log,
				"kernel addresses are hidden (kernel.kptr_restrict): stacks lack "
				"kernel names");
	if (s.host.stacks.bare)
		log_writer_line(
			r->log,
			"%" PRIu64 " of %" PRIu64
			" stacks have addresses instead of names for user code: the process "
			"that reads symbols failed or was late",
			s.host.stacks.bare, s.host.stacks.named);
	log_writer_line(r->log, "next: vcpuscope %s %s", s.vm ? "report" : "events", path);
}

/* NULL: the default. */
static enum capture_level level_of(const char *name)
{
	return name && !strcmp(name, level_names[CAPTURE_SUMMARY]) ? CAPTURE_SUMMARY
								   : CAPTURE_DETAIL;
}

/* Without a VM, nothing of the guest or of vCPUs is recorded. Returns "" if all is well. */
static const char *tasks_check(const struct record_options *o)
{
	if (!o->events.events.n)
		return "--tid, --cgroup and a command choose whose events are recorded: also give the "
		       "events, with -e EVENT";
	if (vms_arguments_count(&o->which))
		return "";
	if (o->which.channels.n || o->no_guest || o->level || o->sample_hz || o->stacks_over_ns ||
	    look_arguments_any(&o->look) || o->which.control)
		return "--channel, --no-guest, --level, --sample-hz, --look, --stacks-over and "
		       "--control need a VM: give --vm NAME, --pid N or --qmp PATH";
	return "";
}

static int options_check(const struct record_options *o, char **argv)
{
	const bool tasks = task_arguments_any(&o->tasks), vm = vms_arguments_count(&o->which) > 0;
	const char *why = task_arguments_check(&o->tasks, argv);

	if (!*why && (vm || !tasks))
		why = vms_arguments_check(&o->which, o->no_guest);
	if (!*why && tasks)
		why = tasks_check(o);
	if (!*why)
		return 0;
	fprintf(stderr, "vcpuscope record: %s; see `vcpuscope record --help`\n", why);
	return COMMAND_USAGE;
}

/* Checks the options that depend on who captures the VM: a VM of the daemon has the daemon's
 * channel, and is captured as the daemon's configuration says. */
static int place_check(const struct record *r)
{
	const struct record_options *o = &r->options;
	const struct feed_place *place = &r->places[0]; /* the daemon has none of several VMs */
	const char *why = NULL;

	if (!r->n_vms)
		why = r->request.asks ? "--guest-* and -e guest:... need a VM" : NULL;
	else if (!place->by_daemon && !o->which.channels.n && !o->no_guest)
		why = "the channel to the agent is missing: give --channel ADDRESS, or --no-guest to "
		      "record the host side only";
	else if (place->by_daemon && o->sample_hz)
		why = "--sample-hz: the daemon, which watches this VM, takes no samples; run `vcpuscope "
		      "ctl detach` first";
	else if (place->by_daemon && r->look.period_ns)
		why = "--look: the daemon, which watches this VM, takes no stacks on a condition; run "
		      "`vcpuscope ctl detach` first";
	else if (place->by_daemon && r->request.asks)
		why = "--guest-*: the daemon, which watches this VM, configures its agent; run "
		      "`vcpuscope ctl detach` first";
	else if (place->by_daemon && o->events.events.n)
		why = "-e: the daemon, which watches this VM, chooses its events; write `events =` "
		      "in its section of the daemon's configuration";
	else if (place->by_daemon && o->level && strcmp(o->level, place->level))
		why = "--level: the daemon watches this VM at the other level; change it with "
		      "`vcpuscope ctl level`";
	if (!why)
		return 0;
	fprintf(stderr, "vcpuscope record: %s; see `vcpuscope record --help`\n", why);
	return COMMAND_USAGE;
}

static enum backend_choice route_of(const char *name)
{
	enum backend_choice backend = CAPTURE_BY_ANY;

	if (name)
		backend_choice_parse(name, &backend);
	return backend;
}

/* Runs until stopped. 0 or the error with which nothing began; `why` says it. */
static int record_loop(struct record *r, char *why, size_t why_bytes)
{
	const struct record_options *o = &r->options;
	const struct collector_options options = {.channel = vms_arguments_channel(&o->which, 0),
						  .security = o->security,
						  .wait_threshold_ns = o->stacks_over_ns,
						  .sample_hz = (uint32_t)o->sample_hz,
						  .look = r->look.period_ns ? &r->look : NULL,
						  .look_when = o->look.when,
						  .request = &r->request,
						  .events = r->events,
						  .tasks = r->tasks,
						  .level = r->level,
						  .backend = r->backend};
	const struct collector_sink sink = {on_frame, on_say, on_ended, r};
	int err = feed_open(&r->loop.uv, &r->places[0], &options, o->no_guest, &sink, &r->feed, why,
			    why_bytes);

	for (size_t i = 1; i < r->n_vms && !err; i++)
		err = feed_add(r->feed, &r->loop.uv, &r->places[i],
			       vms_arguments_channel(&o->which, i), &options, why, why_bytes);
	if (err)
		return err;
	early_write(r);
	r->begin_ms = r->status_ms = r->flush_ms = clock_monotonic_ms();
	err = main_loop_stop_on_signals(&r->loop);
	if (!err)
		err = main_loop_on_signal(&r->loop, SIGUSR1, on_level_signal);
	if (!err)
		err = main_loop_on_signal(&r->loop, SIGUSR2, on_level_signal);
	if (!err)
		err = main_loop_every(&r->loop, TICK_MS, TICK_MS, on_tick);
	if (!err)
		err = main_loop_stop_after(&r->loop, o->duration_ns);
	if (err)
		snprintf(why, why_bytes, "%s", strerror(-err));
	else if (r->workload.pid)
		err = workload_start(&r->workload, why, why_bytes);
	if (!err)
		main_loop_run(&r->loop);
	feed_stop(r->feed);
	return err;
}

/* Reads the arguments and finds the VM. Returns an exit code, after a message. */
static int arguments_read(struct record *r, const struct command *self, int argc, char **argv)
{
	char why[512] = "";
	int err;

	if (options_read(self, argc, argv, &r->options) || options_check(&r->options, argv))
		return COMMAND_USAGE;
	if (guest_arguments_read(&r->options.guest, r->options.sample_hz, &r->request, why,
				 sizeof(why))) {
		fprintf(stderr, "vcpuscope record: %s\n", why);
		return COMMAND_USAGE;
	}
	err = look_arguments_read(&r->options.look, &r->look, &r->request);
	if (err)
		return err;
	if (r->request.asks & 1u << CONFIG_LOOK && r->options.no_guest) {
		fputs("vcpuscope record: --guest-look and --no-guest cannot be combined\n", stderr);
		return COMMAND_USAGE;
	}
	r->n_vms = vms_arguments_count(&r->options.which);
	err = vms_arguments_find(&r->options.which, r->places, why, sizeof(why));
	if (err) {
		fprintf(stderr, "vcpuscope record: %s\n", why);
		return err == -EINVAL ? COMMAND_USAGE : command_exit_of(err);
	}
	err = place_check(r);
	if (!err)
		err = event_arguments_read(&r->options.events, "record", r->options.no_guest,
					   &r->events, &r->request);
	if (!err)
		err = place_check(r); /* again: the events may ask something of the guest */
	return err;
}

/* Finds the tasks, and prepares the command if there is one. Returns an exit code, after a
 * message. */
static int tasks_open(struct record *r)
{
	char why[512];
	int err = 0;

	if (r->options.tasks.command.n)
		err = workload_prepare(&r->workload, (char *const *)r->options.tasks.command.items,
				       why, sizeof(why));
	if (!err)
		err = task_arguments_open(&r->options.tasks, r->workload.pid, &r->tasks, why,
					  sizeof(why));
	if (err)
		fprintf(stderr, "vcpuscope record: %s\n", why);
	return command_exit_of(err);
}

/* Completes the file and says what it contains. */
static void recording_end(struct record *r)
{
	struct collector_status s = {0};

	line_clear(r);
	if (r->feed)
		feed_status_get(r->feed, &s);
	write_failed(r, recording_writer_close(r->writer, s.host.events.dropped_kernel +
								  s.host.events.dropped_user));
	if (r->feed)
		summary_print(r);
}

static void workload_report(struct record *r)
{
	char text[300];

	workload_end(&r->workload);
	if (!r->workload.started)
		return;
	workload_text(&r->workload, text, sizeof(text));
	log_writer_line(r->log, "%s", text);
	if (workload_failed(&r->workload) && !r->exit_code)
		r->exit_code = COMMAND_TROUBLE;
}

static int record_run(const struct command *self, int argc, char **argv)
{
	struct record *r = calloc(1, sizeof(*r));
	char why[512] = "";
	int err;

	if (!r)
		return COMMAND_TROUBLE;
	err = arguments_read(r, self, argc, argv);
	if (!err)
		err = tasks_open(r);
	if (err)
		goto out;
	r->level = level_of(r->options.level);
	r->backend = route_of(r->options.backend);
	r->tty = isatty(STDERR_FILENO);
	err = main_loop_open(&r->loop, r, NULL);
	if (err) {
		fprintf(stderr, "vcpuscope record: %s\n", strerror(-err));
		err = COMMAND_TROUBLE;
		goto out;
	}
	log_writer_new(STDERR_FILENO, &r->log); /* without, lines are written at once */
	err = record_loop(r, why, sizeof(why));
	if (err) {
		log_writer_line(r->log, "vcpuscope record: %s", why);
		r->exit_code = command_exit_of(err);
	}
	workload_report(r);
	if (r->writer)
		recording_end(r);
	feed_close(r->feed);
	main_loop_close(&r->loop);
	log_writer_free(r->log, LOG_FLUSH_MS);
	err = r->exit_code;
out:
	byte_buffer_fini(&r->early);
	workload_end(&r->workload);
	watched_tasks_close(r->tasks);
	free(r->events);
	free(r);
	return err;
}

const struct command command_record = {
	.name = "record",
	.summary = "record the host side and the guest side of VMs to a file",
	.usage =
		"[--vm NAME... | --pid N... | --qmp PATH] [--channel ADDRESS... | --no-guest] -o FILE [options] [-- COMMAND [ARGUMENT...]]",
	.notes = "With a COMMAND, the exit code is 1 if the command fails.\n",
	.options = record_option_table,
	.n_options = sizeof(record_option_table) / sizeof(record_option_table[0]),
	.examples =
		"  vcpuscope record --pid $(pidof qemu-system-x86_64) --channel /run/vm1.sock \\\n"
		"                   -o run.vcs --for 30s\n"
		"  vcpuscope record --qmp /run/vm1.qmp --no-guest -o run.vcs   # until Ctrl-C\n"
		"  vcpuscope record --pid 4242 --no-guest --backend perf -o run.vcs\n"
		"  vcpuscope record --pid 4242 --no-guest -o run.vcs \\\n"
		"                   -e 'sched:sched_process_exec//untraced/' \\\n"
		"                   -e 'kprobe:vfs_read/count > 4096/'\n"
		"  vcpuscope record --pid 4242 --channel /run/vm1.sock -o run.vcs --for 30s \\\n"
		"                   -e guest:block:block_rq_issue -e guest:block:block_rq_complete\n"
		"  vcpuscope record -e block:block_rq_issue -e block:block_rq_complete//untraced/ \\\n"
		"                   -o run.vcs -- dd if=/dev/vda of=/dev/null count=1000 iflag=direct\n"
		"  vcpuscope record -e 'block:block_rq_issue//stack/' -o run.vcs -- make -j4   # with stacks\n"
		"  vcpuscope record -e 'sched:sched_switch' --cgroup /sys/fs/cgroup/system.slice \\\n"
		"                   -o run.vcs --for 10s\n"
		"  vcpuscope record --vm web1 -o run.vcs --for 10s   # a VM that the daemon watches\n"
		"  vcpuscope record --vm web1 --channel /run/web1.sock --vm db1 --channel none \\\n"
		"                   -o run.vcs\n"
		"  vcpuscope record --pid 4242 --channel /run/vm1.sock --sample-hz 99 \\\n"
		"                   --guest-events wakeups,vectors --guest-task-filter 'fio,kworker*' \\\n"
		"                   -o run.vcs\n",
	.run = record_run,
};
