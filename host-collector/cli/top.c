/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * `vcpuscope top`: shows the VMs and vCPUs that are impaired most, once a second, live or from a
 * recording. The live analysis is engine/live.h.
 */
#include <errno.h>
#include <inttypes.h>
#include <langinfo.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <uv.h>

#include "clock/sample.h"
#include "host-collector/cli/common_options.h"
#include "host-collector/tables/activity.h"
#include "host-collector/cli/commands.h"
#include "host-collector/cli/feed.h"
#include "host-collector/engine/live.h"
#include "host-collector/cli/top_daemon.h"
#include "host-collector/cli/top_history.h"
#include "host-collector/cli/top_terminal.h"
#include "host-collector/util/escape.h"
#include "host-collector/util/wrap.h"
#include "host-collector/view/text.h"
#include "proto/recording.h"
#include "proto/program/main_loop.h"

enum { TICK_MS = 100, ROWS_MAX = 4096 };
#define STALL_NS          100000000
#define INTERVAL_LEAST_NS 100000000 /* TICK_MS */

struct top_arguments {
	const char *color;
	struct feed_arguments which;
	const char *recording, *channel, *sort, *filter;
	uint64_t count, interval_ns;
	bool batch;
};

struct top {
	struct top_arguments arguments;
	struct main_loop loop;
	uv_poll_t keys;
	struct live *live;
	struct activity *activity;
	struct top_history *history;
	struct feed *feed;
	struct recording_reader *reader; /* of a recording that is played */
	struct top_terminal *terminal;   /* NULL: batch */
	struct top_screen screen;
	struct host_ns ticked, looked; /* the timeline's time of the newest tick and look */
	int64_t screen_begin;          /* and of the first */
	bool begun, over, refused;
	uint64_t looks, shown_ns;
	char notice[640], filter[64], inside_name[128], when[32];
	bool inside;
	uint32_t inside_vm;
	size_t n_rows, n_drawn;
	double seconds; /* that the rows cover */
	struct activity_row rows[ROWS_MAX];
	struct top_row drawn[ROWS_MAX];
	struct top_vm vms[DAEMON_VMS_MAX]; /* the daemon's */
	size_t n_vms;
};

static const struct option_spec top_option_table[] = {
	{.name = "RUN.vcs",
	 .type = OPTION_OPERAND,
	 .offset = offsetof(struct top_arguments, recording),
	 .help = "a recording to replay (default: the live VMs of the daemon)"},
	FEED_OPTION_ROWS(offsetof(struct top_arguments, which)),
	{.name = "channel",
	 .type = OPTION_STRING,
	 .offset = offsetof(struct top_arguments, channel),
	 .value = "PATH",
	 .help = "the path of the agent's socket; without it, only the host side is shown"},
	{.name = "sort",
	 .type = OPTION_CHOICE,
	 .offset = offsetof(struct top_arguments, sort),
	 .value = "delay|blocked|steal|exits|irq|open|ran|name",
	 .help = "the column to sort by (default delay)"},
	{.name = "filter",
	 .type = OPTION_STRING,
	 .offset = offsetof(struct top_arguments, filter),
	 .value = "TEXT",
	 .help = "show only VMs whose name contains TEXT"},
	{.name = "interval",
	 .letter = 'i',
	 .type = OPTION_DURATION,
	 .offset = offsetof(struct top_arguments, interval_ns),
	 .value = "1s",
	 .help = "time between two refreshes (default 1s)"},
	{.name = "batch",
	 .letter = 'b',
	 .type = OPTION_FLAG,
	 .offset = offsetof(struct top_arguments, batch),
	 .help = "print lines for scripts instead of a screen; a recording is replayed "
		 "without pauses"},
	{.name = "count",
	 .letter = 'n',
	 .type = OPTION_NUMBER,
	 .offset = offsetof(struct top_arguments, count),
	 .value = "N",
	 .help = "with --batch: stop after N refreshes"},
	COLOR_OPTION_ROW(offsetof(struct top_arguments, color)),
};

/* ---- what happens ---- */

static void on_incident(void *context, const struct report *report)
{
	struct top *t = context;

	for (size_t i = 0; i < report->n_incidents; i++) {
		const struct incident *at = &report->incidents[i];
		const struct top_stall stall = top_stall_of(report, at);

		if (!at->healthy)
			top_history_stall(t->history, model_vm_name(live_model(t->live), at->vm),
					  &stall);
	}
}

static void on_ongoing(void *context, const struct incident *i, const char *vm_name)
{
	struct top *t = context;

	snprintf(t->notice, sizeof(t->notice), "%s, vCPU %u stalls: %s", vm_name, i->vcpu,
		 verdict_name(i->verdict));
}

static void on_line(void *context, const char *line)
{
	struct top *t = context;

	snprintf(t->notice, sizeof(t->notice), "%s", line);
}

static void on_frame(void *context, uint32_t source, uint64_t arrival_tsc, struct frame_item *frame)
{
	struct top *t = context;

	main_loop_fail(&t->loop, live_frame(t->live, source, arrival_tsc, frame));
}

static void on_ended(void *context, const char *why)
{
	struct top *t = context;

	snprintf(t->notice, sizeof(t->notice), "%s", why);
	t->over = true;
	if (!t->terminal)
		main_loop_stop(&t->loop);
}

/* ---- rows ---- */

static bool of_daemon(const struct top *t)
{
	const struct feed_arguments *which = &t->arguments.which;

	return !t->arguments.recording && !which->vm && !which->pid && !which->qmp;
}

static const char *vm_name(const struct top *t, uint32_t vm)
{
	if (of_daemon(t))
		return vm < t->n_vms ? t->vms[vm].name : "";
	return model_vm_name(live_model(t->live), vm);
}

static uint64_t vm_open_stalls(const struct top *t, uint32_t vm)
{
	if (of_daemon(t))
		return vm < t->n_vms ? t->vms[vm].open : 0;
	return live_ongoing(t->live, vm);
}

/* Begins a row: of a whole VM, or of one vCPU. */
static void row_begin(const struct top *t, struct top_row *r, const struct activity_row *a,
		      bool of_vcpu)
{
	const struct top_stall *last;

	*r = (struct top_row){.vm = a->vm, .vcpu = a->vcpu, .tid = a->tid};
	snprintf(r->name, sizeof(r->name), "%s", vm_name(t, a->vm));
	if (of_vcpu) {
		snprintf(r->state, sizeof(r->state), "%s", vcpu_state_name(a->now));
		return;
	}
	r->open = vm_open_stalls(t, a->vm);
	last = of_daemon(t) ? &t->vms[a->vm].last : top_history_last(t->history, r->name);
	if (last)
		r->last = *last;
}

/* VMs that the daemon does not observe now. */
static size_t absent_add(const struct top *t, struct top_row *rows, size_t n)
{
	for (size_t i = 0; of_daemon(t) && i < t->n_vms && n < ROWS_MAX; i++) {
		bool there = !*t->vms[i].absent;

		for (size_t k = 0; k < t->n_rows && !there; k++)
			there = t->rows[k].vm == i;
		if (there)
			continue;
		rows[n] = (struct top_row){.vm = (uint32_t)i};
		snprintf(rows[n].name, sizeof(rows[n].name), "%s", t->vms[i].name);
		snprintf(rows[n].absent, sizeof(rows[n].absent), "%s", t->vms[i].absent);
		n++;
	}
	return n;
}

/* One row for each VM, or for each vCPU of the VM `inside`. */
static size_t rows_sum(const struct top *t, const uint32_t *inside, struct top_row *out)
{
	size_t n = 0;

	for (size_t i = 0; i < t->n_rows; i++) {
		const struct activity_row *a = &t->rows[i];
		struct top_row *r = n ? &out[n - 1] : NULL;

		if (inside && a->vm != *inside)
			continue;
		/* The rows of one VM follow each other. */
		if (inside || !r || r->vm != a->vm) {
			r = &out[n++];
			row_begin(t, r, a, inside != NULL);
		}
		top_row_add(r, a, t->seconds);
	}
	for (size_t i = 0; i < n; i++)
		top_row_finish(&out[i]);
	return n;
}

/* Makes the rows to draw from the last look. */
static void rows_make(struct top *t)
{
	size_t n = rows_sum(t, t->inside ? &t->inside_vm : NULL, t->drawn);

	for (size_t i = 0; i < n; i++)
		top_history_fill(t->history, &t->drawn[i],
				 t->inside ? t->drawn[i].vcpu : UINT32_MAX);
	if (!t->inside)
		n = absent_add(t, t->drawn, n);
	t->screen.inside = t->inside ? t->inside_name : NULL;
	t->screen.filter = t->inside ? "" : t->filter;
	t->n_drawn = top_rows_prepare(t->drawn, n, &t->screen);
}

/* Keeps what was looked at for the charts. */
static void rows_remember(struct top *t)
{
	size_t n = rows_sum(t, NULL, t->drawn);
	struct top_row row;

	for (size_t i = 0; i < n; i++)
		top_history_add(t->history, &t->drawn[i], UINT32_MAX);
	for (size_t i = 0; i < t->n_rows; i++) {
		row_begin(t, &row, &t->rows[i], true);
		top_row_add(&row, &t->rows[i], t->seconds);
		top_row_finish(&row);
		top_history_add(t->history, &row, row.vcpu);
	}
}

static void line_print(void *context, enum top_look look, const char *text)
{
	(void)context;
	(void)look;
	printf("%s\n", text);
}

static void draw(struct top *t)
{
	rows_make(t);
	t->screen.notice = t->notice;
	t->screen.when = t->when;
	if (t->terminal) {
		top_terminal_size(t->terminal, &t->screen.columns, &t->screen.lines);
		top_terminal_draw(t->terminal, &t->screen, t->drawn, t->n_drawn);
		return;
	}
	top_screen_draw(&t->screen, t->drawn, t->n_drawn, line_print, NULL);
	putchar('\n');
	if (fflush(stdout) || ferror(stdout))
		main_loop_fail(&t->loop, -EPIPE);
}

static void wall_clock_note(struct top *t)
{
	time_t wall = time(NULL);
	struct tm local;

	if (localtime_r(&wall, &local))
		strftime(t->when, sizeof(t->when), "%H:%M:%S%z", &local);
}

static void look_over(struct top *t)
{
	t->looks++;
	rows_remember(t);
	draw(t);
	if (t->arguments.batch && t->looks == t->arguments.count)
		main_loop_stop(&t->loop);
}

/* A daemon that goes away may come back. */
static void daemon_look(struct top *t)
{
	struct top_answer answer = {.rows = t->rows, .vms = t->vms};
	const char *control = t->arguments.which.control;
	int err = top_daemon_ask(control ? control : DAEMON_CONTROL_PATH, &answer, ROWS_MAX,
				 DAEMON_VMS_MAX, t->notice, sizeof(t->notice));

	if (err && !t->looks) {
		fprintf(stderr, "vcpuscope top: %s; or give --vm, --pid, --qmp or a recording\n",
			t->notice);
		t->refused = true;
		main_loop_stop(&t->loop);
		return;
	}
	t->n_rows = err ? 0 : answer.n_rows;
	t->n_vms = err ? 0 : answer.n_vms;
	t->seconds = answer.seconds;
	if (!err)
		t->notice[0] = '\0';
	wall_clock_note(t);
	look_over(t);
}

/* The time since the last look is over. `now`: the timeline's. */
static void look(struct top *t, struct host_ns now)
{
	long n = activity_look(t->activity, t->rows, ROWS_MAX);

	if (n < 0) {
		main_loop_fail(&t->loop, (int)n);
		return;
	}
	t->n_rows = (size_t)n;
	t->seconds = (double)(now.ns - t->looked.ns) / 1e9;
	t->looked = now;
	if (t->arguments.recording)
		snprintf(t->when, sizeof(t->when), "%+.1f s",
			 (double)(now.ns - t->screen_begin) / 1e9);
	else
		wall_clock_note(t);
	look_over(t);
}

/* Time passes up to `tsc`. */
static void pass(struct top *t, uint64_t tsc)
{
	struct host_ns now;

	if (!live_host_ns(t->live, tsc, &now))
		return;
	if (!t->begun) {
		t->begun = true;
		t->looked = t->ticked = now;
		t->screen_begin = now.ns;
	}
	if (now.ns - t->ticked.ns < TICK_MS * 1000000ll)
		return;
	t->ticked = now;
	main_loop_fail(&t->loop, live_tick(t->live, tsc));
	/* Half a tick early is nearer than half a tick late. */
	if (now.ns - t->looked.ns + TICK_MS * 500000ll >= (int64_t)t->arguments.interval_ns)
		look(t, now);
}

/* Plays on until the next look, or the recording's end. */
static void play(struct top *t)
{
	struct recording_entry entry;
	struct frame_item item;
	uint64_t looks = t->looks;
	int r = 1;

	while (!t->over && !t->loop.stopping && t->looks == looks &&
	       (r = recording_reader_next(t->reader, &entry)) > 0) {
		item = frame_item_of(&entry.frame);
		main_loop_fail(&t->loop,
			       live_frame(t->live, entry.source, entry.arrival_tsc, &item));
		if (entry.arrival_tsc)
			pass(t, entry.arrival_tsc);
	}
	if (r < 0)
		main_loop_fail(&t->loop, r);
	if (r > 0 || t->over)
		return;
	t->over = true;
	snprintf(t->notice, sizeof(t->notice), "end of the recording; press q to quit");
	main_loop_fail(&t->loop, live_finish(t->live));
	look(t, t->ticked);
}

static void on_tick(void *context)
{
	struct top *t = context;
	uint64_t now = uv_hrtime();

	if (of_daemon(t)) {
		if (!t->screen.paused && (!t->looks || now - t->shown_ns + TICK_MS * 500000ull >=
							       t->arguments.interval_ns)) {
			t->shown_ns = now;
			daemon_look(t);
		}
	} else if (!t->reader) {
		if (!t->screen.paused)
			pass(t, clock_tsc_read());
		else
			main_loop_fail(&t->loop, live_tick(t->live, clock_tsc_read()));
	} else if (!t->screen.paused && !t->over &&
		   now - t->shown_ns + TICK_MS * 500000ull >= t->arguments.interval_ns) {
		t->shown_ns = now;
		play(t);
	}
}

/* ---- keys ---- */

static void filter_key(struct top *t, enum top_key key, char text)
{
	size_t len = strlen(t->filter);

	if (key == TOP_KEY_ENTER) {
		t->screen.typing = false;
	} else if (key == TOP_KEY_BACK) {
		t->screen.typing = false;
		t->filter[0] = '\0';
	} else if (key == TOP_KEY_ERASE && len) {
		t->filter[len - 1] = '\0';
	} else if (key == TOP_KEY_TEXT && (unsigned char)text >= ' ' &&
		   len + 1 < sizeof(t->filter)) {
		t->filter[len] = text;
		t->filter[len + 1] = '\0';
	}
}

static void text_key(struct top *t, char text)
{
	struct top_screen *s = &t->screen;

	switch (text) {
	case 'q':
	case 3: /* Ctrl-C, if the terminal makes no signal of it */
		main_loop_stop(&t->loop);
		break;
	case 'h':
	case '?':
		s->help = !s->help;
		break;
	case 'p':
	case ' ':
		s->paused = !s->paused;
		break;
	case 's':
		s->sort = (s->sort + 1) % TOP_SORT_COUNT;
		break;
	case 'S':
		s->sort = (s->sort + TOP_SORT_COUNT - 1) % TOP_SORT_COUNT;
		break;
	case '/':
		s->typing = !t->inside;
		break;
	default:
		break;
	}
}

static void key_take(struct top *t, enum top_key key, char text)
{
	struct top_screen *s = &t->screen;

	if (s->typing) {
		filter_key(t, key, text);
	} else if (key == TOP_KEY_TEXT) {
		text_key(t, text);
	} else if (s->help) {
		s->help = false;
	} else if (key == TOP_KEY_UP && s->selected) {
		s->selected--;
	} else if (key == TOP_KEY_DOWN) {
		s->selected++;
	} else if (key == TOP_KEY_ENTER && !t->inside && s->selected < t->n_drawn) {
		t->inside = true;
		t->inside_vm = t->drawn[s->selected].vm;
		memcpy(t->inside_name, t->drawn[s->selected].name, sizeof(t->inside_name));
		s->selected = 0;
	} else if (key == TOP_KEY_BACK) {
		t->inside = false;
	}
}

static void on_keys(uv_poll_t *poll, int status, int events)
{
	struct top *t = poll->data;
	enum top_key key;
	char text = 0;

	(void)events;
	if (status < 0) {
		main_loop_stop(&t->loop);
		return;
	}
	while (!t->loop.stopping && (key = top_terminal_key(t->terminal, &text)) != TOP_KEY_NONE)
		key_take(t, key, text);
	if (!t->loop.stopping)
		draw(t);
}

static void on_resize(void *context, int number)
{
	(void)number;
	draw(context);
}

/* ---- beginning and end ---- */

static int handles_open(struct top *t)
{
	int err = main_loop_every(&t->loop, 0, TICK_MS, on_tick);

	if (!err)
		err = main_loop_stop_on_signals(&t->loop);
	if (err || !t->terminal)
		return err;
	err = main_loop_on_signal(&t->loop, SIGWINCH, on_resize);
	if (!err)
		err = uv_poll_init(&t->loop.uv, &t->keys, STDIN_FILENO);
	t->keys.data = t;
	return err ? err : uv_poll_start(&t->keys, UV_READABLE, on_keys);
}

/* Says what is wrong. */
static bool arguments_check(const struct top_arguments *a)
{
	const struct feed_arguments *w = &a->which;
	const char *wrong = NULL;

	if ((a->recording != NULL) + (w->pid || w->qmp) + (w->vm != NULL) > 1)
		wrong = "give only one of: a recording, --vm, --pid (with --qmp); or none, for the daemon's VMs";
	else if (!w->pid && !w->qmp && !w->vm && !a->recording && a->channel)
		wrong = "--channel needs --vm, --pid or --qmp";
	else if (a->recording && a->channel)
		wrong = "--channel: a recording contains its guest side";
	else if (w->pid > INT32_MAX)
		wrong = "--pid: expected a process ID";
	else if (a->interval_ns < INTERVAL_LEAST_NS)
		wrong = "--interval: the minimum is 100ms";
	else if (a->count && !a->batch)
		wrong = "--count needs --batch; press q to leave a screen";
	if (wrong)
		fprintf(stderr, "vcpuscope top: %s; see `vcpuscope top --help`\n", wrong);
	return !wrong;
}

/* Opens the source of the frames. Returns 0, or -errno with one line in `why`. */
static int source_open(struct top *t, char *why, size_t why_bytes)
{
	const struct collector_sink sink = {
		.frame = on_frame, .say = on_line, .ended = on_ended, .context = t};
	const struct collector_options collector = {.channel = t->arguments.channel};
	struct feed_place place;
	int err;

	if (of_daemon(t))
		return 0;
	if (!t->arguments.recording) {
		err = feed_find(&t->arguments.which, &place, why, why_bytes);
		return err ? err
			   : feed_open(&t->loop.uv, &place, &collector, false, &sink, &t->feed, why,
				       why_bytes);
	}
	err = recording_reader_open(t->arguments.recording, &t->reader);
	if (err)
		snprintf(why, why_bytes, "%s: %s", t->arguments.recording,
			 err == -EBADMSG ? "is not a recording of vcpuscope" : strerror(-err));
	return err;
}

static int top_loop(struct top *t, char *why, size_t why_bytes)
{
	int err = source_open(t, why, why_bytes);

	if (err)
		return err;
	if (!t->arguments.batch) {
		t->terminal = isatty(STDIN_FILENO) && isatty(STDOUT_FILENO)
				      ? top_terminal_open(
						text_options_for(stdout, t->arguments.color).colour)
				      : NULL;
		if (!t->terminal) {
			snprintf(
				why, why_bytes,
				"standard output is not a terminal that can show a screen; use --batch");
			return -ENOTTY;
		}
		t->screen.blocks = !strcmp(nl_langinfo(CODESET), "UTF-8");
	}
	err = handles_open(t);
	if (err) {
		snprintf(why, why_bytes, "%s", strerror(-err));
		return err;
	}
	if (t->reader && t->arguments.batch) {
		while (!t->over && !t->loop.stopping) {
			play(t);
			uv_run(&t->loop.uv, UV_RUN_NOWAIT); /* signals */
		}
	} else {
		main_loop_run(&t->loop);
	}
	return 0;
}

static int top_run(const struct command *self, int argc, char **argv)
{
	struct top *t = calloc(1, sizeof(*t));
	const struct live_options live = {.than_ns = STALL_NS,
					  .incident = on_incident,
					  .ongoing = on_ongoing,
					  .line = on_line,
					  .context = t};
	char why[512] = "out of memory";
	int err, result;

	if (!t)
		return COMMAND_TROUBLE;
	t->arguments = (struct top_arguments){.sort = "delay", .interval_ns = 1000000000};
	if (options_read(self, argc, argv, &t->arguments) || !arguments_check(&t->arguments)) {
		free(t);
		return COMMAND_USAGE;
	}
	top_sort_parse(t->arguments.sort, &t->screen.sort);
	if (t->arguments.filter)
		snprintf(t->filter, sizeof(t->filter), "%s", t->arguments.filter);
	t->screen.columns = wrap_columns(stdout);
	t->screen.plain = t->arguments.batch;
	err = main_loop_open(&t->loop, t, NULL);
	if (err) {
		fprintf(stderr, "vcpuscope top: %s\n", strerror(-err));
		free(t);
		return COMMAND_TROUBLE;
	}
	t->live = live_new(&live);
	t->activity = t->live ? activity_new(live_model(t->live)) : NULL;
	t->history = top_history_new();
	err = t->activity && t->history ? top_loop(t, why, sizeof(why)) : -ENOMEM;
	top_terminal_close(t->terminal);
	if (err)
		fprintf(stderr, "vcpuscope top: %s\n", why);
	else if (t->loop.error && t->loop.error != -EPIPE)
		fprintf(stderr, "vcpuscope top: %s\n", strerror(-t->loop.error));
	if (err)
		result = command_exit_of(err);
	else
		result = t->loop.error || t->refused ? COMMAND_TROUBLE : COMMAND_OK;
	feed_close(t->feed);
	main_loop_close(&t->loop);
	if (t->reader)
		recording_reader_close(t->reader);
	live_free(t->live);
	activity_free(t->activity);
	top_history_free(t->history);
	free(t);
	return result;
}

const struct command command_top = {
	.name = "top",
	.summary = "show VMs and vCPUs ranked by delay, refreshed every second",
	.usage = "[RUN.vcs | --vm NAME | --pid N | --qmp PATH] [--channel PATH] [options]",
	.options = top_option_table,
	.n_options = sizeof(top_option_table) / sizeof(top_option_table[0]),
	.examples = "  sudo vcpuscope top          # all VMs of the daemon\n"
		    "  sudo vcpuscope top --pid $(pidof qemu-system-x86_64) --channel "
		    "/run/vcpuscope/web1.sock\n"
		    "  vcpuscope top run.vcs\n"
		    "  vcpuscope top run.vcs -b -n 5 --sort exits\n",
	.run = top_run,
};
