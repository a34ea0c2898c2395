// SPDX-License-Identifier: GPL-2.0-only
#include "guest-agent/agent.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "bpf/capture/batcher.h"
#include "bpf/capture/capture_look.h"
#include "bpf/chosen/look_condition.h"
#include "clock/sample.h"
#include "guest-agent/configurer.h"
#include "guest-agent/cpus.h"
#include "guest-agent/dmesg_clock.h"
#include "guest-agent/guest_events.h"
#include "guest-agent/kernel_facts.h"
#include "bpf/capture/kernel_log.h"
#include "guest-agent/outbox.h"
#include "guest-agent/pvclock_page.h"
#include "guest-agent/send_queue.h"
#include "guest-agent/session.h"
#include "guest-agent/steal.h"
#include "guest-agent/symbols.h"
#include "proto/log_limit.h"
#include "proto/message.h"
#include "proto/proc_file.h"
#include "proto/self_cost.h"

enum {
	CONTROL_BYTES = 128 * 1024,
	DMESG_POINT_MS = 1000,
	FACTS_MS = 1000, /* between two reads of what changes rarely, or takes long to read */
	STOP_GRACE_MS = 300,
	NAMES_WAIT_MS = 100, /* at the end */
	STACKS_NS = 1000000, /* spent on naming stacks between two looks at the rings */
	PORT_WAIT_MS = 10000,
	TICK_MAX_MS = 50,
	/* Events of one CPU per ms: few, and more than the fastest guest makes (half as many were
	 * measured). */
	QUIET_EVENTS_PER_MS = 100,
	FLOOD_EVENTS_PER_MS = 800,
};

struct agent {
	struct agent_options options;
	uv_timer_t timer;
	struct capture *capture;
	uint64_t named_session, named_ms; /* the session that knows the tasks' names, since when */
	uint64_t stacks_session;          /* the session that has received the stacks so far */
	struct frame_writer *writer;
	struct batcher *batcher;
	struct send_queue *queue;
	struct session *session;
	struct channel *channel;
	struct kernel_log *kernel_log;
	struct dmesg_clock *dmesg_clock;

	struct outbox outbox;
	struct byte_buffer batches, payload, frame;
	struct message_hello hello;
	struct pvclock_page pvclock_page;
	struct message_kernel_log log_lines;
	struct message_heartbeat heartbeat;
	struct configurer configurer;
	struct message_config_reply config_reply;
	bool kernel_log_reported, tasks_filtered;
	struct guest_events *events; /* that the host asked for */
	struct capture_look look;    /* period 0: none */
	char look_when[VS_LOOK_WHEN_MAX];
	struct symbols *symbols; /* NULL: no stacks were captured so far */
	struct message_dmesg_point dmesg;
	struct log_limit lines;
	uint64_t heartbeat_ms, dmesg_ms, facts_ms, start_ms, stop_ms;
	uint64_t tick_ms, waiting; /* the last tick, and the events that it left in a ring */
	bool steal_clock;
	struct self_cost self_at_start;
	bool stopping, stopped, was_up, urgent, said_unreachable, said_drain, said_unnamed;
	int result;
};

static void hidden_say(struct agent *a, uint64_t now_ms)
{
	const uint64_t n = log_limit_hidden(&a->lines, now_ms);
	char line[64];

	if (!n)
		return;
	snprintf(line, sizeof(line), "%" PRIu64 " more lines were not shown", n);
	a->options.say(a->options.context, line);
}

/* Most lines are caused by what the host does or sends: all have one limit. */
static void line_say(struct agent *a, const char *line)
{
	hidden_say(a, uv_now(a->timer.loop));
	if (log_limit_admit(&a->lines, uv_now(a->timer.loop)))
		a->options.say(a->options.context, line);
}

__attribute__((format(printf, 2, 3))) static void agent_say(struct agent *a, const char *format,
							    ...)
{
	char line[512];
	va_list args;

	va_start(args, format);
	vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	line_say(a, line);
}

static void on_session_say(void *context, const char *line)
{
	line_say(context, line);
}

static void on_queue_dropped(void *context, const struct send_item *item)
{
	struct agent *a = context;

	if (item->class == SEND_BULK)
		batcher_drop(a->batcher, item->cpu, item->events);
}

/* Keeps the last good point: an old one is still true, within the clocks' drift. */
static void dmesg_refresh(struct agent *a, uint64_t now_ms)
{
	struct message_dmesg_point point;

	if (!a->dmesg_clock || (a->dmesg.known && now_ms - a->dmesg_ms < DMESG_POINT_MS))
		return;
	a->dmesg_ms = now_ms;
	dmesg_clock_sample(a->dmesg_clock, &point);
	if (point.known)
		a->dmesg = point;
}

static int on_hello_due(void *context, uint64_t now_ms, struct byte_buffer *out)
{
	struct agent *a = context;
	long n = cpus_read(a->hello.cpus, VS_CPUS_MAX);

	a->hello.n_cpus = n > 0 ? (size_t)n : 0;
	dmesg_refresh(a, now_ms);
	a->hello.dmesg = a->dmesg;
	return session_hello(a->session, &a->hello, now_ms, out);
}

static void agent_pump(struct agent *a)
{
	outbox_pump(&a->outbox, a->channel, uv_now(a->timer.loop));
}

static void urgent_set(struct agent *a, bool urgent)
{
	if (a->urgent == urgent)
		return;
	a->urgent = urgent;
	if (a->options.urgent)
		a->options.urgent(a->options.context, urgent);
}

static void on_channel_up(void *context)
{
	struct agent *a = context;

	a->was_up = true;
	urgent_set(a, false);
	session_begin(a->session);
	agent_pump(a);
}

static void on_channel_down(void *context)
{
	struct agent *a = context;

	session_end(a->session);
	urgent_set(a, true);
	outbox_cut(&a->outbox);
}

static void on_channel_received(void *context, const uint8_t *data, size_t len)
{
	struct agent *a = context;

	session_receive(a->session, data, len, clock_tsc_read());
	agent_pump(a);
}

static void on_channel_writable(void *context)
{
	agent_pump(context);
}

static void capture_queue(struct agent *a)
{
	const struct batcher_frame *frames;
	size_t n_frames;
	long n;

	a->batches.len = 0;
	n = batcher_drain(a->batcher, &a->batches, NULL);
	if (n < 0 && !a->said_drain) {
		a->said_drain = true;
		agent_say(a, "reading the kernel's rings failed: %s; lost events are counted",
			  strerror((int)-n));
	}
	frames = batcher_frames(a->batcher, &n_frames);
	for (size_t i = 0; i < n_frames; i++) {
		const struct send_item item = {
			.class = SEND_BULK,
			.cpu = frames[i].cpu,
			.events = frames[i].events,
		};

		send_queue_push(a->queue, &item, a->batches.data + frames[i].offset, frames[i].len);
	}
}

/* A host that joins late never saw these tasks being named. Not more often than it may greet us. */
static void tasks_name(struct agent *a, uint64_t now_ms)
{
	if (session_state(a->session) != SESSION_OPEN ||
	    a->named_session == session_number(a->session) ||
	    (a->named_ms && now_ms - a->named_ms < SESSION_HELLO_MS))
		return;
	a->named_session = session_number(a->session);
	a->named_ms = now_ms;
	capture_name_tasks(a->capture);
}

/* Like events, the oldest stacks go first if the host does not take them. */
static void on_named_stack(void *context, const struct message_stack *stack)
{
	const struct send_item item = {.class = SEND_BULK};
	struct agent *a = context;

	a->payload.len = a->frame.len = 0;
	if (message_stack_pack(stack, &a->payload) == 0 &&
	    frame_write(a->writer, FRAME_GUEST_STACK, a->payload.data, a->payload.len, &a->frame) ==
		    0)
		send_queue_push(a->queue, &item, a->frame.data, a->frame.len);
}

static void on_guest_stack(void *context, const struct capture_guest_stack *stack)
{
	struct agent *a = context;

	symbols_name(a->symbols, stack);
}

/* Sent after the events that name them. A host that joins late gets those in use again. */
static void stacks_queue(struct agent *a)
{
	uint64_t begin;

	if (!a->symbols)
		return;
	if (session_state(a->session) == SESSION_OPEN &&
	    a->stacks_session != session_number(a->session)) {
		a->stacks_session = session_number(a->session);
		capture_guest_stacks_forget(a->capture);
	}
	symbols_poll(a->symbols);
	if (!symbols_user(a->symbols) && !a->said_unnamed) {
		a->said_unnamed = true;
		agent_say(a, "stacks of programs will have no names: the process that would read "
			     "their files cannot be confined on this kernel");
	}
	/* It is not urgent, but done at our priority: a little at a time. */
	begin = uv_hrtime();
	while (symbols_room(a->symbols) &&
	       capture_guest_stacks(a->capture, on_guest_stack, a, 1) > 0 &&
	       uv_hrtime() - begin < STACKS_NS) {
	}
}

/* Measures the agent together with the processes that find names. */
static void self_read(const struct agent *a, struct self_cost *self)
{
	self_cost_recent(self);
	if (a->symbols)
		self->cpu_time_ns += symbols_cpu_ns(a->symbols);
}

static void control_queue(struct agent *a, enum frame_kind kind)
{
	a->frame.len = 0;
	if (frame_write(a->writer, kind, a->payload.data, a->payload.len, &a->frame) == 0)
		send_queue_push(a->queue, &(struct send_item){.class = SEND_CONTROL}, a->frame.data,
				a->frame.len);
}

static void heartbeat_queue(struct agent *a, uint64_t now_ms)
{
	const struct clock_sample *sample = batcher_sample(a->batcher);
	const struct message_aggregated *aggregated = batcher_aggregated(a->batcher);
	struct batcher_totals totals;
	struct self_cost self;
	struct message_heartbeat *heartbeat = &a->heartbeat;

	batcher_totals_get(a->batcher, &totals);
	self_read(a, &self);
	*heartbeat = (struct message_heartbeat){
		.time = batcher_promise(a->batcher),
		.cpu_time_ns = self.cpu_time_ns,
		.rss_bytes = self.rss_bytes,
		.emitted = totals.emitted,
		.delivered = totals.delivered,
		.dropped_kernel = totals.dropped_kernel,
		.dropped_user = totals.dropped_user,
		.missed = heartbeat->missed,
		.sample =
			{
				.tsc = sample->tsc,
				.tsc_width = sample->tsc_width,
				.monotonic_ns = sample->monotonic_ns,
				.raw_ns = sample->raw_ns,
				.realtime_ns = sample->realtime_ns,
			},
		.dmesg = a->dmesg,
	};
	memcpy(heartbeat->aggregated, aggregated, sizeof(heartbeat->aggregated));
	pvclock_page_read(&a->pvclock_page, &heartbeat->pvclock);
	batcher_name_tsc_cpu(a->batcher, pvclock_is_clocksource());
	if (!a->facts_ms || now_ms - a->facts_ms >= FACTS_MS) {
		a->facts_ms = now_ms;
		heartbeat->missed = capture_missed(a->capture); /* a system call for each program */
		steal_read(a->steal_clock, &heartbeat->steal);
		/* Whoever looks for lockups may set it at any time. */
		heartbeat->watchdog = 1 + kernel_watchdog_s();
	}
	a->payload.len = 0;
	if (message_heartbeat_pack(heartbeat, &a->payload) == 0)
		control_queue(a, FRAME_HEARTBEAT);
}

static void kernel_log_queue(struct agent *a, uint64_t now_ms)
{
	if (!a->kernel_log || kernel_log_read(a->kernel_log, now_ms, &a->log_lines) <= 0 ||
	    !a->kernel_log_reported)
		return;
	a->payload.len = 0;
	if (message_kernel_log_pack(&a->log_lines, &a->payload) == 0)
		control_queue(a, FRAME_KERNEL_LOG);
}

/* Applies the host's request within the owner's limits. The answer follows the events sent so
 * far. */
static void config_step(struct agent *a, uint64_t now_ms)
{
	const struct message_config *asked = session_config_take(a->session);
	struct self_cost self;
	struct configurer_now now = {
		.ms = now_ms,
		.host = session_state(a->session) == SESSION_OPEN,
		.session = session_number(a->session),
	};
	const struct message_config_reply *reply;

	if (asked)
		configurer_ask(&a->configurer, asked);
	self_read(a, &self);
	/* Stacks are taken in the kernel, at the expense of whoever runs there. */
	now.cpu_ns = self.cpu_time_ns +
		     capture_guest_stacks_taken(a->capture) * VS_GUEST_STACK_COST_NS +
		     guest_events_hits(a->events) * GUEST_EVENTS_HIT_COST_NS +
		     capture_look_hits(a->capture) * VS_LOOK_HIT_COST_NS;
	now.memory_bytes = self.rss_bytes;
	reply = configurer_step(&a->configurer, &now);
	if (!reply)
		return;
	a->config_reply = *reply;
	a->config_reply.time = clock_tsc_read();
	a->config_reply.in_force.n_events = 0; /* events_queue() describes them */
	a->payload.len = 0;
	if (message_config_reply_pack(&a->config_reply, &a->payload) == 0)
		control_queue(a, FRAME_CONFIG_REPLY);
}

/* Before the next drain: descriptions precede the hits that they describe. */
static void events_queue(struct agent *a, uint64_t now_ms)
{
	const struct message_user_events *events =
		guest_events_step(a->events, now_ms, session_number(a->session));

	a->payload.len = 0;
	if (events && message_user_events_pack(events, &a->payload) == 0)
		control_queue(a, FRAME_USER_EVENTS);
}

/* Says once that nobody can be reached, and gives up on a port that was never there. */
static void channel_check(struct agent *a, uint64_t now_ms)
{
	const bool logged = a->options.address.carrier->logs_reason;
	int err = a->was_up ? 0 : channel_error(a->channel);

	if (!err || (logged && err == -ECONNREFUSED))
		return;
	if (!a->said_unreachable) {
		a->said_unreachable = true;
		if (err == -ENODEV)
			agent_say(a, "%s is not there yet: waiting %d s for it",
				  a->options.address.text, PORT_WAIT_MS / 1000);
		else
			agent_say(a, "cannot reach %s: %s; keeps trying", a->options.address.text,
				  strerror(-err));
	}
	if (err == -ENODEV && now_ms - a->start_ms >= PORT_WAIT_MS) {
		a->result = -ENODEV;
		agent_stop(a);
	}
}

static void summary_say(struct agent *a, uint64_t now_ms)
{
	struct batcher_totals totals;
	struct session_stats session;
	struct self_cost self;
	double seconds = (double)(now_ms - a->start_ms) / 1e3;

	self_read(a, &self);
	batcher_totals_get(a->batcher, &totals);
	session_stats_get(a->session, &session);
	hidden_say(a, UINT64_MAX); /* the last lines are always shown */
	a->lines = (struct log_limit){0};
	agent_say(a,
		  "%" PRIu64 " events in %.1f s, lost %" PRIu64 " in the kernel and %" PRIu64
		  " here; %" PRIu64 " sessions, %" PRIu64 " echoes; CPU %.2f %%, RSS %.1f MiB",
		  totals.emitted, seconds, totals.dropped_kernel, totals.dropped_user,
		  session.sessions, session.echoes,
		  seconds > 0 ? (double)(self.cpu_time_ns - a->self_at_start.cpu_time_ns) /
					seconds / 1e7
			      : 0.0,
		  (double)self.rss_bytes / (1 << 20));
}

static void agent_end(struct agent *a, uint64_t now_ms)
{
	if (a->stopped)
		return;
	a->stopped = true;
	summary_say(a, now_ms);
	channel_close(a->channel);
	a->channel = NULL;
	uv_close((uv_handle_t *)&a->timer, NULL);
}

/*
 * How long the rings can wait. Each look at them costs 60 us, because whoever ran meanwhile has
 * filled the caches. `made`: events of one CPU since the last look.
 */
static uint64_t tick_delay_ms(const struct agent *a, uint64_t now_ms, uint64_t made)
{
	const uint64_t interval_ms = a->options.interval_ms, room = capture_ring_events(a->capture);
	const uint64_t beat_ms = a->heartbeat_ms + AGENT_HEARTBEAT_MS;
	uint64_t most_ms, left_ms;

	/* Stacks are named a little at each tick. */
	if (a->stopping || a->symbols || beat_ms <= now_ms ||
	    made > (now_ms - a->tick_ms) * QUIET_EVENTS_PER_MS || room <= a->waiting)
		return interval_ms;
	most_ms = (room - a->waiting) / FLOOD_EVENTS_PER_MS;
	if (most_ms > TICK_MAX_MS)
		most_ms = TICK_MAX_MS;
	if (most_ms <= interval_ms)
		return interval_ms;
	/* In equal steps, the last one at the heartbeat. */
	left_ms = beat_ms - now_ms;
	return left_ms / ((left_ms + most_ms - 1) / most_ms);
}

static void on_tick(uv_timer_t *timer)
{
	struct agent *a = timer->data;
	uint64_t now_ms = uv_now(timer->loop), made = 0;

	if (!a->stopping) {
		bool beat = now_ms - a->heartbeat_ms >= AGENT_HEARTBEAT_MS;
		const uint64_t waited = a->waiting;

		tasks_name(a, now_ms);
		a->waiting = batcher_pending(a->batcher);
		made = a->waiting - waited;
		if (beat || a->waiting >= a->options.drain_events) {
			capture_queue(a);
			a->waiting = 0;
		}
		stacks_queue(a);
		if (beat) {
			a->heartbeat_ms = now_ms;
			hidden_say(a, now_ms);
			dmesg_refresh(a, now_ms);
			kernel_log_queue(a, now_ms);
			config_step(a, now_ms);
			if (session_state(a->session) == SESSION_OPEN)
				events_queue(a, now_ms);
			/* Old heartbeats are of no use to a host that joins late. */
			if (session_state(a->session) == SESSION_OPEN)
				heartbeat_queue(a, now_ms);
			channel_check(a, now_ms);
		}
	}
	agent_pump(a);
	if (session_state(a->session) == SESSION_OPEN &&
	    a->named_session == session_number(a->session) && !outbox_waits(&a->outbox))
		urgent_set(a, true);
	if (a->stopping && (now_ms >= a->stop_ms || !outbox_waits(&a->outbox) ||
			    session_state(a->session) != SESSION_OPEN)) {
		agent_end(a, now_ms);
		return;
	}
	uv_timer_start(timer, on_tick, tick_delay_ms(a, now_ms, made), 0);
	a->tick_ms = now_ms;
}

void agent_stop(struct agent *a)
{
	if (a->stopping)
		return;
	capture_queue(a);
	stacks_queue(a);
	if (a->symbols)
		symbols_finish(a->symbols, NAMES_WAIT_MS);
	kernel_log_queue(a, uv_now(a->timer.loop));
	a->facts_ms = 0; /* the last word on them */
	heartbeat_queue(a, uv_now(a->timer.loop));
	a->stopping = true;
	a->stop_ms = uv_now(a->timer.loop) + STOP_GRACE_MS;
	uv_timer_start(&a->timer, on_tick, a->options.interval_ms, 0);
}

int agent_result(const struct agent *a)
{
	return a->result;
}

static int hello_init(struct message_hello *hello)
{
	struct utsname name;
	int err;

	*hello = (struct message_hello){
		.protocol_min = VS_PROTOCOL_MIN,
		.protocol_max = VS_PROTOCOL_MAX,
		.role = STREAM_ROLE_GUEST,
		.clock = STREAM_CLOCK_GUEST_TSC,
		.program_version = VCPUSCOPE_VERSION,
		.tick_hz = kernel_tick_hz(),
		.watchdog_s = kernel_watchdog_s(),
		.features = FEATURE_CONFIG | FEATURE_EVENTS | FEATURE_LOOK,
	};
	err = clock_tsc_hz(&hello->clock_hz);
	if (err < 0)
		return err;
	if (uname(&name) < 0)
		return -errno;
	snprintf(hello->kernel_release, sizeof(hello->kernel_release), "%s", name.release);
	proc_file_line("/proc/sys/kernel/random/boot_id", hello->boot_id, sizeof(hello->boot_id));
	return 0;
}

/* 0 or -ENOMEM. */
static int symbols_want(struct agent *a)
{
	if (a->symbols)
		return 0;
	a->symbols = symbols_new(on_named_stack, a);
	if (!a->symbols)
		return -ENOMEM;
	if (!symbols_kernel(a->symbols))
		agent_say(a, "the kernel hides its symbols (kernel.kptr_restrict): its "
			     "stacks will have no names");
	return 0;
}

/* The limits have compiled the condition before. */
static int look_apply(struct agent *a, const struct message_config *in_force, char *why,
		      size_t why_bytes)
{
	const uint64_t before_ns = a->look.period_ns;
	struct expr_error error;
	int err = 0;

	if (before_ns == in_force->look_period_ns &&
	    (!before_ns || !strcmp(a->look_when, in_force->look_when)))
		return 0;
	a->look = (struct capture_look){0};
	if (in_force->look_period_ns)
		err = look_condition_compile(in_force->look_when, EVENT_GUEST,
					     !a->options.events.texts, &a->look, &error);
	if (!err && in_force->look_period_ns)
		err = symbols_want(a);
	a->look.period_ns = err ? 0 : in_force->look_period_ns;
	snprintf(a->look_when, sizeof(a->look_when), "%s", in_force->look_when);
	if (!err)
		err = capture_look_set(a->capture, &a->look, why, why_bytes);
	if (err)
		a->look.period_ns = 0;
	return err;
}

/* configurer.h: what was decided, and can be had, comes into force. */
static void on_config_apply(void *context, struct message_config_reply *reply)
{
	struct message_config *in_force = &reply->in_force;
	struct agent *a = context;
	char why[VS_TEXT_MAX] = "";
	int err = in_force->sample_hz ? symbols_want(a) : 0;

	if (!err && capture_guest_fields(a->capture))
		err = capture_guest_set(a->capture, in_force);
	if (err) {
		limits_say(reply, CONFIG_SAMPLE_HZ, CONFIG_REASON_UNSUPPORTED,
			   "stacks cannot be sampled: %s", strerror(-err));
		in_force->sample_hz = 0;
		capture_guest_set(a->capture, in_force);
	}
	if (a->look.period_ns || in_force->look_period_ns) {
		err = look_apply(a, in_force, why, sizeof(why));
		if (err) {
			limits_say(reply, CONFIG_LOOK, CONFIG_REASON_UNSUPPORTED, "%s",
				   why[0] ? why : strerror(-err));
			in_force->look_period_ns = 0;
		}
	}
	batcher_summarise(a->batcher, in_force->handler_over_ns);
	a->kernel_log_reported = in_force->classes & 1u << EVENT_CLASS_KERNEL_LOG;
	if (!in_force->n_events && limits_text(reply, CONFIG_EVENTS))
		guest_events_stop(a->events, limits_text(reply, CONFIG_EVENTS));
	else
		guest_events_set(a->events, in_force);
	/* Of other tasks than before the names are needed. */
	if (in_force->n_tasks || a->tasks_filtered)
		capture_name_tasks(a->capture);
	a->tasks_filtered = in_force->n_tasks > 0;
}

static int agent_build(struct agent *a, struct capture *capture)
{
	const struct outbox_events outbox = {on_hello_due, on_queue_dropped, a};
	struct session_options session = {.say = on_session_say, .context = a};
	struct configurer_options configurer = {.limits = a->options.limits,
						.cpu_permille = a->options.cpu_permille,
						.memory_bytes = a->options.memory_bytes,
						.apply = on_config_apply,
						.context = a};
	int err;

	err = hello_init(&a->hello);
	if (err)
		return err;
	pvclock_page_init(&a->pvclock_page, a->hello.clock_hz);
	a->steal_clock = steal_clock_present();
	if (getrandom(&session.seed, sizeof(session.seed), 0) != sizeof(session.seed))
		return -EIO;
	a->writer = frame_writer_new(0);
	if (!a->writer)
		return -ENOMEM;
	session.writer = a->writer;
	a->session = session_new(&session);
	a->capture = capture;
	a->batcher = batcher_new(capture, a->writer);
	a->queue = send_queue_new(a->options.backlog_bytes, CONTROL_BYTES, on_queue_dropped, a);
	if (!a->session || !a->batcher || !a->queue)
		return -ENOMEM;
	err = guest_events_new(&a->options.events, capture, &a->events);
	if (err)
		return err;
	batcher_rewrite(a->batcher, guest_events_hash, a->events);
	outbox_init(&a->outbox, a->session, a->queue, &outbox);
	batcher_summarise(a->batcher, a->options.limits.handler_over_ns);
	batcher_name_tsc_cpu(a->batcher, pvclock_is_clocksource());
	configurer.limits.fields = capture_guest_fields(capture);
	configurer.limits.texts = a->options.events.texts;
	configurer_init(&a->configurer, &configurer);
	if (a->options.limits.sample_hz) {
		err = symbols_want(a);
		if (err)
			return err;
	}

	a->kernel_log_reported = a->options.limits.classes & 1u << EVENT_CLASS_KERNEL_LOG;
	if (a->kernel_log_reported) {
		err = kernel_log_open(&a->kernel_log);
		if (err)
			agent_say(a, "not forwarding the kernel's log: /dev/kmsg: %s",
				  strerror(-err));
	}
	err = dmesg_clock_open(&a->dmesg_clock);
	if (err)
		agent_say(a, "times will not be given as dmesg time: perf_event_open: %s",
			  strerror(-err));
	self_cost_read(&a->self_at_start);
	return 0;
}

int agent_start(uv_loop_t *loop, struct capture *capture, const struct agent_options *options,
		struct agent **out)
{
	struct channel_events events = {
		.up = on_channel_up,
		.down = on_channel_down,
		.received = on_channel_received,
		.writable = on_channel_writable,
	};
	struct agent *a = calloc(1, sizeof(*a));
	int err;

	if (!a)
		return -ENOMEM;
	a->options = *options;
	err = agent_build(a, capture);
	if (err)
		goto fail;
	events.context = a;
	err = channel_open(loop, &options->address, &events, &a->channel);
	if (err)
		goto fail;
	a->timer.data = a;
	a->start_ms = uv_now(loop);
	uv_timer_init(loop, &a->timer); /* neither can fail */
	uv_timer_start(&a->timer, on_tick, 0, 0);
	/* Only now: what a start reads and allocates is no reason to hold the guest's tasks up. */
	urgent_set(a, true);
	*out = a;
	return 0;
fail:
	agent_free(a);
	return err;
}

void agent_free(struct agent *a)
{
	if (!a)
		return;
	batcher_free(a->batcher);
	guest_events_free(a->events);
	send_queue_free(a->queue);
	session_free(a->session);
	symbols_free(a->symbols);
	frame_writer_free(a->writer);
	kernel_log_close(a->kernel_log);
	dmesg_clock_close(a->dmesg_clock);
	outbox_fini(&a->outbox);
	byte_buffer_fini(&a->batches);
	byte_buffer_fini(&a->payload);
	byte_buffer_fini(&a->frame);
	free(a);
}
