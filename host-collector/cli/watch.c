/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * `vcpuscope watch`: shows the stalls of one VM live, or a table at regular intervals. The live
 * analysis is engine/live.h.
 */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <uv.h>

#include "clock/sample.h"
#include "host-collector/analyze/scene/strip.h"
#include "host-collector/analyze/stall/builder.h"
#include "host-collector/cli/channel_options.h"
#include "host-collector/cli/commands.h"
#include "host-collector/cli/common_options.h"
#include "host-collector/cli/event_options.h"
#include "host-collector/cli/feed.h"
#include "host-collector/cli/guest_options.h"
#include "host-collector/cli/watch_events.h"
#include "host-collector/cli/watch_pairs.h"
#include "host-collector/engine/live.h"
#include "host-collector/metrics/metrics_page.h"
#include "host-collector/tables/report_tables.h"
#include "host-collector/util/duration.h"
#include "host-collector/util/escape.h"
#include "host-collector/util/wrap.h"
#include "host-collector/view/json.h"
#include "host-collector/view/headline.h"
#include "host-collector/view/text.h"
#include "proto/log_writer.h"
#include "proto/program/main_loop.h"

enum { TICK_MS = 100, LOG_FLUSH_MS = 2000 };
#define METRICS_INTERVAL_NS 5000000000ull
#define INTERVAL_DEFAULT_NS 1000000000
#define INTERVAL_LEAST_NS   100000000 /* TICK_MS */

struct watch_arguments {
	const char *color;
	struct feed_arguments which;
	uint64_t for_ns, interval_ns, stacks_over_ns;
	const char *backend, *metrics;
	struct channel_arguments channel; /* none: the host's half alone is seen */
	bool no_guest;
	struct guest_arguments guest;
	struct event_arguments events;
	struct watch_pairs_arguments pair_texts;
	struct report_table_request table; /* .table NULL: stalls */
};

struct watch {
	struct watch_arguments arguments;
	struct text_options text;
	struct main_loop loop;
	struct feed *feed;
	struct live *live;
	struct report_table *table;   /* NULL: stalls */
	struct strips *strips;        /* of stalls as text */
	struct metrics *metrics;      /* NULL: not wanted */
	struct chosen_events *chosen; /* of the host; NULL: no events were chosen */
	struct watch_events *events;  /* NULL: no events were chosen */
	struct pair_figure_list *list;
	struct event_texts hidden; /* captured for pairs only */
	struct watch_pairs *pairs; /* NULL: none were named */
	struct log_writer *log;    /* of what goes to standard error */
	uint64_t start_ns, shown_ns, metrics_ns;
	bool gone, terminal;
};

static const struct option_spec watch_option_table[] = {
	FEED_OPTION_ROWS(offsetof(struct watch_arguments, which)),
	CHANNEL_OPTION_ROWS(offsetof(struct watch_arguments, channel)),
	NO_GUEST_OPTION_ROW(offsetof(struct watch_arguments, no_guest)),
	GUEST_OPTION_ROWS(offsetof(struct watch_arguments, guest)),
	EVENT_OPTION_ROWS(offsetof(struct watch_arguments, events)),
	WATCH_PAIRS_OPTION_ROWS(offsetof(struct watch_arguments, pair_texts)),
	{.name = "TABLE",
	 .type = OPTION_OPERAND,
	 .offset = offsetof(struct watch_arguments, table.table),
	 .help = "show a table for each interval instead of stalls; the tables are those of "
		 "`vcpuscope report RUN.vcs TABLE`"},
	{.name = "interval",
	 .letter = 'i',
	 .type = OPTION_DURATION,
	 .offset = offsetof(struct watch_arguments, interval_ns),
	 .value = "1s",
	 .help = "time between two tables (default 1s); without TABLE, shows the table vcpu"},
	TABLE_THAN_PER_ROWS(offsetof(struct watch_arguments, table)),
	TABLE_TOP_ROW(offsetof(struct watch_arguments, table)),
	{.name = "metrics",
	 .type = OPTION_FILE,
	 .offset = offsetof(struct watch_arguments, metrics),
	 .value = "FILE",
	 .help = "write counters to this file every 5 s, in the Prometheus text format "
		 "(docs/metrics.md)"},
	{.name = "for",
	 .type = OPTION_DURATION,
	 .offset = offsetof(struct watch_arguments, for_ns),
	 .value = "10s",
	 .help = "stop after this time (default: run until Ctrl-C or until the VM ends)"},
	{.name = "stacks-over",
	 .type = OPTION_DURATION,
	 .offset = offsetof(struct watch_arguments, stacks_over_ns),
	 .value = "TIME",
	 .help = "record the stacks of all waits longer than this, and of a sample of the "
		 "shorter ones (default 20ms)"},
	{.name = "backend",
	 .type = OPTION_CHOICE,
	 .offset = offsetof(struct watch_arguments, backend),
	 .value = "auto|bpf|perf",
	 .help = "how to capture the host's events, as for `record` (default auto)"},
	{.name = "format",
	 .type = OPTION_CHOICE,
	 .offset = offsetof(struct watch_arguments, table.format),
	 .value = "text|json",
	 .help = "text for people, or json: one report or table object per line "
		 "(docs/report-json.md) (default text)"},
	COLOR_OPTION_ROW(offsetof(struct watch_arguments, color)),
};

static bool wants_json(const struct watch *w)
{
	return !strcmp(w->arguments.table.format, "json");
}

static int64_t stall_than_ns(const struct watch *w)
{
	return w->arguments.table.than_ns ? (int64_t)w->arguments.table.than_ns : STALL_DEFAULT_NS;
}

/* Standard output is gone: nobody reads on, so it ends. */
static void output_flush(struct watch *w)
{
	if (fflush(stdout) || ferror(stdout))
		main_loop_fail(&w->loop, -EPIPE);
}

/* ---- what happens ---- */

static void on_incident(void *context, const struct report *report)
{
	struct watch *w = context;

	for (size_t i = 0; w->metrics && i < report->n_incidents; i++)
		metrics_incident(w->metrics, &report->incidents[i]);
	if (w->table)
		return;
	if (wants_json(w)) {
		json_report_write(report, false, stdout);
	} else {
		/* Without memory for a strip, the stall is shown without it. */
		strips_live(w->strips, report->incidents, report->n_incidents,
			    text_strip_cells(stdout));
		text_incidents_write(report, &w->text, stdout);
	}
	output_flush(w);
}

static void on_evidence(void *context, struct incident *incident)
{
	const struct watch *w = context;

	if (w->pairs)
		watch_pairs_evidence(w->pairs, incident);
}

static void on_ongoing(void *context, const struct incident *incident, const char *vm_name)
{
	struct watch *w = context;
	char *text = NULL;
	size_t len = 0;
	FILE *out;

	if (w->table)
		return;
	/* JSON is printed when the incident is complete, text at once. */
	out = wants_json(w) ? open_memstream(&text, &len) : stdout;
	if (!out)
		return;
	text_ongoing_write(incident, vm_name, &w->text, out);
	if (out != stdout) {
		fclose(out);
		log_writer_put(w->log, text);
		free(text);
	}
	output_flush(w);
}

static void on_line(void *context, const char *line)
{
	struct watch *w = context;

	if (wants_json(w) || w->table)
		log_writer_line(w->log, "%s", escape(line).text);
	else if (w->terminal)
		wrap_print(stdout, "%s\n", escape(line).text);
	else /* a program may look for it */
		fprintf(stdout, "%s\n", escape(line).text);
	output_flush(w);
}

static void on_frame(void *context, uint32_t source, uint64_t arrival_tsc, struct frame_item *frame)
{
	struct watch *w = context;

	main_loop_fail(&w->loop, live_frame(w->live, source, arrival_tsc, frame));
}

static void on_say(void *context, const char *line)
{
	struct watch *w = context;

	log_writer_line(w->log, "vcpuscope watch: %s", escape(line).text);
}

static void on_ended(void *context, const char *why)
{
	struct watch *w = context;

	log_writer_line(w->log, "vcpuscope watch: %s", escape(why).text);
	w->gone = true;
	main_loop_stop(&w->loop);
}

static void table_show(struct watch *w)
{
	w->shown_ns = uv_hrtime();
	main_loop_fail(&w->loop, report_table_interval(w->table, w->terminal, stdout));
}

/* A file that cannot be written now may be so later: it is said each time. */
static void metrics_keep(struct watch *w)
{
	const struct metrics_part part = {.metrics = w->metrics,
					  .pipeline = live_pipeline(w->live)};
	const struct metrics_page_options options = {.now_tsc = clock_tsc_read(), .vms = true};
	int err = metrics_page_save(&part, 1, &options, w->arguments.metrics);

	w->metrics_ns = uv_hrtime();
	if (err)
		log_writer_line(w->log, "vcpuscope watch: --metrics %s: cannot write: %s",
				w->arguments.metrics, strerror(-err));
}

static void on_tick(void *context)
{
	struct watch *w = context;

	main_loop_fail(&w->loop, live_tick(w->live, clock_tsc_read()));
	if (w->events && watch_events_printed(w->events))
		output_flush(w);
	if (w->pairs && watch_pairs_tick(w->pairs))
		output_flush(w);
	/* Half a tick early is nearer than half a tick late. */
	if (w->table && uv_hrtime() - w->shown_ns + TICK_MS * 500000ull >= w->arguments.interval_ns)
		table_show(w);
	if (w->metrics && uv_hrtime() - w->metrics_ns >= METRICS_INTERVAL_NS)
		metrics_keep(w);
	if (w->arguments.for_ns && uv_hrtime() - w->start_ns >= w->arguments.for_ns)
		main_loop_stop(&w->loop);
}

/* ---- beginning and end ---- */

static void summary_say(const struct watch *w)
{
	struct live_summary s;
	struct headline h;

	live_summarise(w->live, &s);
	log_writer_line(w->log,
			"vcpuscope watch: %s: %" PRIu64 " incidents, %" PRIu64 " events, %" PRIu64
			" lost, %" PRIu64 " late",
			duration_text((int64_t)(uv_hrtime() - w->start_ns)).text, s.incidents,
			s.events, s.lost, s.late);
	if (!live_report(w->live))
		return;
	headline_make(live_report(w->live), &h);
	for (size_t i = 0; i < h.n_lines; i++)
		log_writer_line(w->log, "vcpuscope watch: %s", h.lines[i]);
}

/* Completes the arguments, or says what is wrong. */
static bool arguments_check(struct watch_arguments *a)
{
	char why[320];
	const char *wrong = NULL;

	if (a->interval_ns && !a->table.table)
		a->table.table = "vcpu";
	if (a->table.table && !a->interval_ns)
		a->interval_ns = INTERVAL_DEFAULT_NS;
	if (*feed_arguments_check(&a->which))
		wrong = feed_arguments_check(&a->which);
	else if (a->channel.address && a->no_guest)
		wrong = CHANNEL_OR_NO_GUEST;
	else if (a->interval_ns && a->interval_ns < INTERVAL_LEAST_NS)
		wrong = "--interval: the minimum is 100ms";
	else if (a->table.per && !a->table.table)
		wrong = "--per needs a TABLE; stalls have no rows to split";
	if (wrong) {
		fprintf(stderr, "vcpuscope watch: %s; see `vcpuscope watch --help`\n", wrong);
		return false;
	}
	if (a->table.table && report_table_check(&a->table, why, sizeof(why))) {
		fprintf(stderr, "vcpuscope watch: %s: %s\n", a->table.table, why);
		return false;
	}
	return true;
}

/* A stall has at least this many grains. */
static int strips_open(void *context, struct model *model)
{
	struct watch *w = context;

	if (w->arguments.table.table || wants_json(w))
		return 0;
	w->strips = strips_new(model, text_strip_cells(stdout), stall_than_ns(w) / 128);
	w->text.strips = w->strips;
	return w->strips ? 0 : -ENOMEM;
}

/* Creates the model of the VM and its observers. Returns 0 or -ENOMEM. */
static int live_open(struct watch *w, const struct live_options *options)
{
	const struct watch_pairs_options pairs = {.list = w->list,
						  .json = wants_json(w),
						  .terminal = w->terminal,
						  .out = stdout,
						  .say = on_say,
						  .context = w};

	w->live = live_new(options);
	if (w->live && w->arguments.table.table)
		w->table = report_table_new(live_model(w->live), &w->arguments.table);
	if (w->live && w->arguments.events.events.n)
		w->events =
			watch_events_new(live_model(w->live), wants_json(w), &w->hidden, stdout);
	if (w->live && w->list->n)
		w->pairs = watch_pairs_new(w->live, live_model(w->live), &pairs);
	if (w->live && w->arguments.metrics)
		w->metrics = metrics_new(live_model(w->live), live_chains(w->live));
	return w->live && (w->table || !w->arguments.table.table) &&
			       (w->events || !w->arguments.events.events.n) &&
			       (w->pairs || !w->list->n) && (w->metrics || !w->arguments.metrics)
		       ? 0
		       : -ENOMEM;
}

/* The end: what still goes on. 0 or -errno. */
static int live_close(struct watch *w)
{
	int err = live_finish(w->live);

	if (w->events)
		watch_events_finish(w->events);
	if (w->pairs && !err)
		err = watch_pairs_finish(w->pairs);
	if (err || !w->table)
		return err;
	report_table_finish(w->table);
	return report_table_interval(w->table, false, stdout);
}

static int watch_run(const struct command *self, int argc, char **argv)
{
	static struct pair_figure_list list;
	struct watch w = {.arguments = {.table = {.format = "text", .top = 20}}, .list = &list};
	struct live_options live = {.opened = strips_open,
				    .evidence = on_evidence,
				    .incident = on_incident,
				    .ongoing = on_ongoing,
				    .line = on_line,
				    .context = &w};
	const struct collector_sink sink = {
		.frame = on_frame, .say = on_say, .ended = on_ended, .context = &w};
	struct collector_options collector = {0};
	struct feed_place place;
	struct message_config request;
	char why[512] = "out of memory";
	int err, result = COMMAND_TROUBLE;

	if (options_read(self, argc, argv, &w.arguments) || !arguments_check(&w.arguments))
		return COMMAND_USAGE;
	if (watch_pairs_read(&w.arguments.pair_texts, w.list, why, sizeof(why))) {
		fprintf(stderr, "vcpuscope watch: %s\n", why);
		return COMMAND_USAGE;
	}
	if (guest_arguments_read(&w.arguments.guest, 0, &request, why, sizeof(why))) {
		fprintf(stderr, "vcpuscope watch: %s\n", why);
		return COMMAND_USAGE;
	}
	if (request.asks && w.arguments.no_guest) {
		fputs("vcpuscope watch: --guest-* and --no-guest cannot be combined\n", stderr);
		return COMMAND_USAGE;
	}
	result = event_arguments_read(&w.arguments.events, "watch", w.arguments.no_guest, &w.chosen,
				      &request);
	if (result)
		return result;
	result = COMMAND_TROUBLE;
	collector.request = &request;
	collector.wait_threshold_ns = w.arguments.stacks_over_ns;
	w.text = text_options_for(stdout, w.arguments.color);
	w.terminal = isatty(STDOUT_FILENO);
	live.than_ns = stall_than_ns(&w);
	collector.channel = w.arguments.channel.address;
	collector.security = w.arguments.channel.security;
	if (w.arguments.backend)
		backend_choice_parse(w.arguments.backend, &collector.backend);
	err = main_loop_open(&w.loop, &w, NULL);
	if (err) {
		fprintf(stderr, "vcpuscope watch: %s\n", strerror(-err));
		free(w.chosen);
		return COMMAND_TROUBLE;
	}
	log_writer_new(STDERR_FILENO, &w.log); /* without, lines are written at once */
	w.start_ns = w.shown_ns = uv_hrtime();
	err = live_open(&w, &live);
	if (!err)
		err = main_loop_every(&w.loop, TICK_MS, TICK_MS, on_tick);
	if (!err)
		err = main_loop_stop_on_signals(&w.loop);
	if (!err)
		err = feed_find(&w.arguments.which, &place, why, sizeof(why));
	if (!err && place.by_daemon && w.arguments.events.events.n) {
		snprintf(why, sizeof(why),
			 "-e: the daemon, which watches this VM, chooses its events; write `events "
			 "=` in its section of the daemon's configuration");
		err = -EINVAL;
	}
	if (!err && place.by_daemon && request.asks) {
		snprintf(why, sizeof(why),
			 "--guest-*: the daemon, which watches this VM, configures its "
			 "agent; run `vcpuscope ctl detach` first");
		err = -EINVAL;
	}
	/* Those of a VM of the daemon come from its stream. */
	if (!err && w.list->n && !place.by_daemon) {
		result = event_arguments_add_pairs(&w.arguments.events, "watch", w.list->items,
						   w.list->n, w.arguments.no_guest, &w.chosen,
						   &request, &w.hidden);
		if (result)
			goto out;
	}
	collector.events = w.chosen;
	result = COMMAND_TROUBLE;
	if (!err)
		err = feed_open(&w.loop.uv, &place, &collector, w.arguments.no_guest, &sink,
				&w.feed, why, sizeof(why));
	if (err) {
		log_writer_line(w.log, "vcpuscope watch: %s", why);
		result = command_exit_of(err);
		goto out;
	}
	main_loop_run(&w.loop);
	feed_stop(w.feed);
	if (!w.loop.error)
		main_loop_fail(&w.loop, live_close(&w));
	/* Counters of a watch that is over would look like a VM that stands still. */
	if (w.metrics)
		unlink(w.arguments.metrics);
	summary_say(&w);
	if (w.loop.error && w.loop.error != -EPIPE)
		log_writer_line(w.log, "vcpuscope watch: %s", strerror(-w.loop.error));
	result = w.loop.error ? COMMAND_TROUBLE : COMMAND_OK;
out:
	feed_close(w.feed);
	main_loop_close(&w.loop);
	live_free(w.live);
	report_table_free(w.table);
	watch_events_free(w.events);
	watch_pairs_free(w.pairs);
	strips_free(w.strips);
	metrics_free(w.metrics);
	free(w.chosen);
	log_writer_free(w.log, LOG_FLUSH_MS);
	return result;
}

const struct command command_watch = {
	.name = "watch",
	.summary = "report a VM's stalls and their causes as they happen",
	.usage =
		"(--vm NAME | --pid N | --qmp PATH) [--channel ADDRESS | --no-guest] [options] [TABLE]",
	.options = watch_option_table,
	.n_options = sizeof(watch_option_table) / sizeof(watch_option_table[0]),
	.examples =
		"  sudo vcpuscope watch --pid $(pgrep -f 'qemu.*web1') --channel "
		"/run/vcpuscope/web1.sock\n"
		"  sudo vcpuscope watch --qmp /run/web1.qmp --channel /run/vcpuscope/web1.sock "
		"--than 20ms\n"
		"  sudo vcpuscope watch --pid 4711 --channel /run/vcpuscope/web1.sock -i 1s tasks\n"
		"  sudo vcpuscope watch --pid 4711 --channel /run/vcpuscope/web1.sock \\\n"
		"                       -e 'guest:block:block_rq_issue/nr_sector > 256/'\n"
		"  sudo vcpuscope watch --pid 4711 --channel /run/vcpuscope/web1.sock \\\n"
		"      --pair-than 1ms --pair "
		"msi=host:kvm:kvm_msi_set_irq..guest:irq:irq_handler_entry\n"
		"  sudo vcpuscope watch --pid 4711 --no-guest   # a VM without an agent\n"
		"  sudo vcpuscope watch --vm web1   # a VM that the daemon watches\n",
	.run = watch_run,
};
