/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/record/host_stream.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/utsname.h>

#include "bpf/backend/capture_open.h"
#include "bpf/capture/capture.h"
#include "bpf/backend/capture_shared.h"
#include "bpf/capture/tracepoint_format.h"
#include "bpf/capture/tracepoint_losses.h"
#include "clock/sample.h"
#include "host-collector/record/followed.h"
#include "proto/proc_file.h"
#include "proto/self_cost.h"

enum {
	FINISH_MS = 200, /* for names of the last stacks */
	EVENTS_CHECK_MS = 1000,
	EVENTS_AGAIN_MS = 10000, /* descriptions of chosen events, for late readers */
};

/* A batch of the drain under way. */
struct drained {
	struct batch batch;
	size_t first; /* of its events in host_stream.events */
	uint32_t seq;
};

struct host_stream {
	struct host_stream_options options;
	struct message_hello hello;
	struct capture *capture;
	struct frame_writer *writer;
	struct batcher *batcher;
	struct stack_writer *stacks;
	struct byte_buffer payload, frames;
	struct frame_maker *own_maker, *maker;
	struct drained *drained;
	struct vs_event *events;
	size_t n_drained, drained_room, n_events, events_room;
	uint64_t promised; /* by the last heartbeat */
	uint64_t now_ms;
	bool kernel_names;
	/* NULL without a thread to be had: then nobody says where tasks come from. */
	struct task_origins *own_origins;
	struct origins_asker *origins;
	struct message_task_origins found;
	struct message_user_events *chosen; /* NULL: no events were chosen */
	uint64_t chosen_kept[VS_USER_EVENTS_MAX];
	uint64_t chosen_checked_ms, chosen_sent_ms;
	char chosen_failed[512];
	uint64_t look_period_ns; /* 0: no looks */
	char look_failed[256];
	struct followed followed;
};

/* Returns the array with room for `wanted` members; NULL: no memory, the array stays as it is. */
static void *array_grow(void *array, size_t *room, size_t wanted, size_t member_bytes)
{
	size_t larger = *room ? *room : 64;

	if (wanted <= *room)
		return array;
	while (larger < wanted)
		larger *= 2;
	array = realloc(array, larger * member_bytes);
	if (array)
		*room = larger;
	return array;
}

/* Keeps a batch until the drain is over: what its users do takes longer than the rings can wait. */
static int on_batch(void *context, const struct batch *batch)
{
	struct host_stream *h = context;
	struct drained *drained =
		array_grow(h->drained, &h->drained_room, h->n_drained + 1, sizeof(*h->drained));
	struct vs_event *events = array_grow(h->events, &h->events_room,
					     h->n_events + batch->n_events, sizeof(*h->events));

	if (drained)
		h->drained = drained;
	if (events)
		h->events = events;
	if (!drained || !events)
		return -ENOMEM;
	memcpy(h->events + h->n_events, batch->events, batch->n_events * sizeof(*h->events));
	h->drained[h->n_drained++] =
		(struct drained){*batch, h->n_events, frame_writer_number(h->writer)};
	h->n_events += batch->n_events;
	return 0;
}

static void batch_deliver(struct host_stream *h, uint64_t tsc, const struct batch *batch,
			  uint32_t seq)
{
	struct frame_item item = {.kind = FRAME_BATCH,
				  .session_id = frame_writer_session(h->writer),
				  .frame_seq = seq,
				  .batch = batch,
				  .maker = h->maker};

	h->options.frame(h->options.context, tsc, &item);
}

static void drained_deliver(struct host_stream *h)
{
	const uint64_t tsc = clock_tsc_read();

	for (size_t i = 0; i < h->n_drained; i++) {
		struct drained *d = &h->drained[i];

		d->batch.events = h->events + d->first;
		batch_deliver(h, tsc, &d->batch, d->seq);
	}
	h->n_drained = h->n_events = 0;
}

/* Hands over the frames that lie in h->frames. */
static void frames_deliver(struct host_stream *h)
{
	uint64_t tsc = clock_tsc_read();
	size_t at = 0;

	while (at < h->frames.len) {
		struct frame_view frame = {.bytes = h->frames.data + at};
		struct frame_item item;

		if (frame_header_parse(frame.bytes, h->frames.len - at, &frame.header))
			break;
		frame.len = VS_FRAME_HEADER_BYTES + frame.header.payload_bytes;
		item = frame_item_of(&frame);
		h->options.frame(h->options.context, tsc, &item);
		at += frame.len;
	}
	h->frames.len = 0;
}

/* Frames the message that was packed into h->payload; err: what packing said. */
static int payload_deliver(struct host_stream *h, enum frame_kind kind, int err)
{
	struct frame_view frame;
	struct frame_item item;

	if (!err)
		err = frame_maker_frame(h->maker, (uint8_t)kind, frame_writer_session(h->writer),
					frame_writer_number(h->writer), h->payload.data,
					h->payload.len, &frame);
	h->payload.len = 0;
	if (err)
		return err;
	item = frame_item_of(&frame);
	h->options.frame(h->options.context, clock_tsc_read(), &item);
	return 0;
}

static struct message_clock_sample sample_message(const struct clock_sample *s)
{
	return (struct message_clock_sample){.tsc = s->tsc,
					     .tsc_width = s->tsc_width,
					     .monotonic_ns = s->monotonic_ns,
					     .raw_ns = s->raw_ns,
					     .realtime_ns = s->realtime_ns};
}

static int hello_fill(struct message_hello *hello, uint64_t tsc_hz)
{
	struct utsname name = {0};

	uname(&name);
	hello->protocol_min = VS_PROTOCOL_MIN;
	hello->protocol_max = VS_PROTOCOL_MAX;
	hello->role = STREAM_ROLE_HOST;
	hello->clock = STREAM_CLOCK_HOST_TSC;
	hello->features = FEATURE_CONFIG | FEATURE_EVENTS;
	snprintf(hello->program_version, sizeof(hello->program_version), VCPUSCOPE_VERSION);
	hello->suspended_ns = clock_suspended_ns();
	snprintf(hello->kernel_release, sizeof(hello->kernel_release), "%s", name.release);
	proc_file_line("/proc/sys/kernel/random/boot_id", hello->boot_id, sizeof(hello->boot_id));
	hello->clock_hz = tsc_hz;
	return tsc_hz ? 0 : clock_tsc_hz(&hello->clock_hz);
}

/* The HELLO of the recording also has what no agent needs to know. */
static int hello_deliver(struct host_stream *h)
{
	struct message_hello *hello = malloc(sizeof(*hello));
	int err = -ENOMEM;

	if (hello) {
		*hello = h->hello;
		hello->look_period_ns = h->look_period_ns;
		if (h->look_period_ns)
			snprintf(hello->look_when, sizeof(hello->look_when), "%s",
				 h->options.look_when);
		err = payload_deliver(h, FRAME_HELLO, message_hello_pack(hello, &h->payload));
	}
	free(hello);
	return err;
}

static int stream_begin(struct host_stream *h)
{
	struct message_clock_sample sample = {0};
	struct clock_sample now = {0};
	int err = hello_deliver(h);

	if (err)
		return err;
	if (!clock_sample_take(&now))
		sample = sample_message(&now);
	return payload_deliver(h, FRAME_CLOCK_SAMPLE,
			       message_clock_sample_pack(&sample, &h->payload));
}

static int capture_begin(struct host_stream *h, char *why, size_t why_bytes)
{
	const struct host_stream_options *options = &h->options;
	const struct capture_options capture = {.kind = CAPTURE_HOST,
						.backend = options->backend,
						.wait_threshold_ns = options->wait_threshold_ns,
						.stacks = true,
						.sample_hz = options->sample_hz,
						.tracepoints = tracepoint_format_read};
	int err;

	if (!options->shared)
		return capture_open(&capture, &h->capture, why, why_bytes);
	err = capture_shared_join(options->shared, options->wait_threshold_ns, &h->capture);
	if (err)
		snprintf(why, why_bytes, "the host's capture takes no more: %s", strerror(-err));
	return err;
}

/* Through perf there are no looks, and the recording goes on without; any other reason is one to
 * change the condition. Without a capture (tests), they are only described. */
static int look_begin(struct host_stream *h, char *why, size_t why_bytes)
{
	const struct capture_look *look = h->options.look;
	char reason[192];
	int err;

	if (!look)
		return 0;
	h->look_period_ns = look->period_ns;
	err = h->capture ? capture_look_set(h->capture, look, reason, sizeof(reason)) : 0;
	if (!err)
		return 0;
	h->look_period_ns = 0;
	if (err == -ENOTSUP) {
		snprintf(h->look_failed, sizeof(h->look_failed), "no looks through %s (--look)%s%s",
			 capture_backend_name(h->capture), *reason ? ": " : "", reason);
		return 0;
	}
	snprintf(why, why_bytes, "--look: %s", *reason ? reason : strerror(-err));
	return err == -ENOENT ? -EOPNOTSUPP : err;
}

/* ---- chosen events ---- */

static int chosen_send(struct host_stream *h)
{
	h->chosen_sent_ms = h->now_ms;
	return payload_deliver(h, FRAME_USER_EVENTS,
			       message_user_events_pack(h->chosen, &h->payload));
}

static const char *attach_error(const struct capture_event *e, int err)
{
	if (err == -ENOTSUP && e->stack)
		return "this backend takes no stacks of hits: only BPF does";
	if (err == -ENOTSUP)
		return "this backend cannot capture it: perf reads no memory of processes, and "
		       "compares comm only in the kernel's filter";
	if (err == -ENOSYS)
		return "this kernel cannot probe its functions (CONFIG_KPROBES)";
	if (err == -ENOENT && (e->kind == USER_KPROBE || e->kind == USER_KRETPROBE))
		return "the kernel does not let this function be probed";
	return strerror(-err);
}

/* Without a capture (tests), they are only described. */
static void chosen_attach(struct host_stream *h, const struct chosen_event *from, size_t i)
{
	struct message_user_event *e = &h->chosen->events[i];
	const size_t used = strlen(h->chosen_failed);
	int err;

	*e = from->description;
	e->id = (uint32_t)i + 1;
	err = h->capture ? capture_event_add(h->capture, &from->capture, &e->id) : 0;
	if (!err)
		return;
	e->id = VS_USER_ID_MAX - (uint32_t)i;
	e->flags |= USER_FAILED;
	snprintf(e->why, sizeof(e->why), "%s", attach_error(&from->capture, err));
	snprintf(h->chosen_failed + used, sizeof(h->chosen_failed) - used, "%s%s is missing: %s",
		 used ? "; " : "", e->spec, e->why);
}

/* Before the events: else their first hits would be missing. */
static int watches_begin(struct host_stream *h, char *why, size_t why_bytes)
{
	for (size_t i = 0; i < h->options.n_watches && h->capture; i++) {
		const struct capture_watch *watch = &h->options.watches[i];
		const int err = capture_event_watch(h->capture, watch);

		if (!err)
			continue;
		snprintf(why, why_bytes, "%s cannot be watched: %s", watch->name,
			 err == -ENOSPC    ? "there are too many"
			 : err == -EBADF   ? "it is not a directory of cgroup v2"
			 : err != -ENOTSUP ? strerror(-err)
			 : watch->kind == CAPTURE_WATCH_CGROUP
				 ? "this needs BPF, and a kernel with cgroup v2"
				 : "this needs BPF");
		return err == -ENOTSUP ? -EOPNOTSUPP : err;
	}
	return 0;
}

static int chosen_begin(struct host_stream *h, char *why, size_t why_bytes)
{
	const struct chosen_events *events = h->options.events;
	int err;

	if (!events || !events->n)
		return 0;
	err = watches_begin(h, why, why_bytes);
	if (err)
		return err;
	h->chosen = calloc(1, sizeof(*h->chosen));
	if (!h->chosen)
		return -ENOMEM;
	h->chosen->n = events->n;
	for (size_t i = 0; i < events->n; i++)
		chosen_attach(h, &events->events[i], i);
	return chosen_send(h);
}

/* Sends the descriptions again if their state has changed, or after some time. */
static int chosen_check(struct host_stream *h, bool last)
{
	bool changed = false;

	if (!h->chosen || (!last && h->now_ms - h->chosen_checked_ms < EVENTS_CHECK_MS))
		return 0;
	h->chosen_checked_ms = h->now_ms;
	for (size_t i = 0; i < h->chosen->n && h->capture; i++) {
		struct message_user_event *e = &h->chosen->events[i];
		struct capture_event_state state;

		if (capture_event_state_get(h->capture, e->id, h->now_ms, &state))
			continue;
		changed |= state.limited != e->limited ||
			   state.detached != !!(e->flags & USER_DETACHED);
		e->limited = state.limited;
		e->flags |= state.detached ? USER_DETACHED : 0;
		if (state.detached)
			snprintf(e->why, sizeof(e->why), "too many hits");
		h->chosen_kept[i] = state.kept;
	}
	return changed || h->now_ms - h->chosen_sent_ms >= EVENTS_AGAIN_MS ? chosen_send(h) : 0;
}

const char *host_stream_events_failed(const struct host_stream *h)
{
	return h->chosen_failed;
}

bool host_stream_has_events(const struct host_stream *h)
{
	size_t failed = 0;

	for (size_t i = 0; h->chosen && i < h->chosen->n; i++)
		failed += (h->chosen->events[i].flags & USER_FAILED) != 0;
	return h->chosen && failed < h->chosen->n;
}

static uint32_t stack_find(void *context, const struct capture_stack *stack)
{
	const struct host_stream *h = context;

	return stack_writer_find(h->stacks, stack, h->now_ms);
}

static void origins_begin(struct host_stream *h)
{
	struct task_origins *from = h->options.origins;

	if (!from)
		from = h->own_origins = task_origins_new(NULL, NULL);
	if (from)
		h->origins = origins_asker_new(from);
}

int host_stream_open(const struct host_stream_options *options, struct host_stream **out, char *why,
		     size_t why_bytes)
{
	struct host_stream *h = calloc(1, sizeof(*h));
	uint64_t session_id;
	int err = -ENOMEM;

	snprintf(why, why_bytes, "out of memory");
	if (!h)
		return err;
	h->options = *options;
	err = hello_fill(&h->hello, options->tsc_hz);
	if (err) {
		snprintf(why, why_bytes, "this machine's TSC cannot be read: %s", strerror(-err));
		goto fail;
	}
	if (!options->source) {
		err = capture_begin(h, why, why_bytes);
		if (err)
			goto fail;
		err = -EOPNOTSUPP;
		if (options->level == CAPTURE_SUMMARY && !capture_summarises(h->capture)) {
			snprintf(why, why_bytes,
				 "the summary level needs BPF%s%s: record at level detail",
				 *capture_notice(h->capture) ? ", but " : "",
				 capture_notice(h->capture));
			goto fail;
		}
	}
	err = -ENOMEM;
	if (getrandom(&session_id, sizeof(session_id), 0) != sizeof(session_id))
		goto fail;
	h->writer = frame_writer_new(session_id);
	h->stacks = stack_writer_new(h->hello.clock_hz, options->names, &h->kernel_names);
	if (h->capture && h->stacks)
		capture_shared_stacks_known(h->capture, stack_find, h);
	h->maker = options->maker;
	if (!h->maker)
		h->maker = h->own_maker = frame_maker_new();
	if (!h->writer || !h->stacks || !h->maker)
		goto fail;
	h->batcher = options->source ? batcher_new_from(options->source, h->writer)
				     : batcher_new(h->capture, h->writer);
	if (!h->batcher)
		goto fail;
	if (!options->source || options->origins)
		origins_begin(h);
	err = look_begin(h, why, why_bytes);
	if (!err)
		err = stream_begin(h);
	if (!err)
		err = chosen_begin(h, why, why_bytes);
	if (err)
		goto fail;
	*out = h;
	return 0;
fail:
	host_stream_close(h);
	return err;
}

void host_stream_close(struct host_stream *h)
{
	if (!h)
		return;
	batcher_free(h->batcher);
	stack_writer_free(h->stacks);
	followed_fini(&h->followed);
	origins_asker_free(h->origins);
	task_origins_free(h->own_origins);
	frame_writer_free(h->writer);
	frame_maker_free(h->own_maker);
	free(h->drained);
	free(h->events);
	free(h->chosen);
	if (h->capture)
		capture_close(h->capture);
	byte_buffer_fini(&h->payload);
	byte_buffer_fini(&h->frames);
	free(h);
}

const char *host_stream_backend(const struct host_stream *h)
{
	return h->capture ? capture_backend_name(h->capture) : "";
}

const char *host_stream_notice(const struct host_stream *h)
{
	return h->capture ? capture_notice(h->capture) : "";
}

const char *host_stream_look_failed(const struct host_stream *h)
{
	return h->look_failed;
}

void host_stream_losses(const struct host_stream *h, bool kvm, char *out, size_t out_bytes)
{
	char names[512] = "";

	if (h->capture) {
		snprintf(names, sizeof(names), "%s", capture_left_out(h->capture));
		tracepoint_rows_missing(tracepoint_format_read, kvm, names, sizeof(names));
	}
	tracepoint_losses(CAPTURE_HOST, names, out, out_bytes);
}

const struct message_hello *host_stream_hello(const struct host_stream *h)
{
	return &h->hello;
}

int host_stream_follow(struct host_stream *h, const struct message_vm_info *info)
{
	int first = 0, err;

	if (h->capture)
		first = capture_level_set(h->capture, info->vm, h->options.level);
	if (first)
		return first;
	if (!followed_has(&h->followed, info->vm))
		stack_writer_expect(h->stacks, info->qemu_pid);
	first = followed_set(&h->followed, info, h->capture);
	if (first == -ENOMEM)
		return first;
	err = payload_deliver(h, FRAME_VM_INFO, message_vm_info_pack(info, &h->payload));
	return first ? first : err;
}

int host_stream_level(struct host_stream *h, enum capture_level level)
{
	int err = 0;

	if (h->capture && level == CAPTURE_SUMMARY && !capture_summarises(h->capture))
		return -EOPNOTSUPP;
	h->options.level = level;
	for (size_t i = 0; i < h->followed.n_vms && h->capture && !err; i++)
		err = capture_level_set(h->capture, h->followed.vms[i].vm, level);
	return err;
}

static void on_stack(void *context, const struct capture_stack *stack, uint64_t err_ticks)
{
	struct host_stream *h = context;

	stack_writer_offer(h->stacks, stack, err_ticks, h->now_ms);
}

static void on_task(void *context, const struct vs_event *e, uint64_t monotonic_ns)
{
	struct host_stream *h = context;

	origins_event(h->origins, e, monotonic_ns);
}

static int origins_deliver(struct host_stream *h)
{
	int err = 0;

	while (h->origins && !err && origins_take(h->origins, h->hello.clock_hz, &h->found))
		err = payload_deliver(h, FRAME_TASK_ORIGINS,
				      message_task_origins_pack(&h->found, &h->payload));
	return err;
}

/* Returns the watermark: the promise ends before a stack that waits for its names. */
static uint64_t promise(const struct host_stream *h)
{
	const uint64_t hold = stack_writer_hold(h->stacks), all = batcher_promise(h->batcher);
	const uint64_t most = hold < all ? hold : all;

	return most > h->promised ? most : h->promised;
}

/* The stacks that have their names now, and the events that refer to them. */
static int stacks_deliver(struct host_stream *h, uint64_t now_ms)
{
	struct batch batch;
	const int err = stack_writer_flush(h->stacks, h->writer, h->promised,
					   batcher_promise(h->batcher), now_ms, &h->frames, &batch);

	frames_deliver(h);
	if (batch.n_events)
		batch_deliver(h, clock_tsc_read(), &batch, frame_writer_number(h->writer));
	return err;
}

bool host_stream_holds(const struct host_stream *h)
{
	return stack_writer_hold(h->stacks) != UINT64_MAX;
}

bool host_stream_is_idle(struct host_stream *h)
{
	return h->capture && !host_stream_holds(h) && capture_shared_is_idle(h->capture) &&
	       !batcher_tick(h->batcher);
}

int host_stream_drain(struct host_stream *h, uint64_t now_ms)
{
	const struct batcher_stack_sink sink = {.stack = on_stack,
						.context = h,
						.task = h->origins ? on_task : NULL,
						.batch = on_batch};
	long n;
	int err, last;

	h->now_ms = now_ms;
	n = batcher_drain(h->batcher, &h->frames, &sink);
	drained_deliver(h);
	err = stacks_deliver(h, now_ms);
	last = origins_deliver(h);
	err = err ? err : last;
	return n < 0 ? (int)n : err;
}

int host_stream_finish(struct host_stream *h, uint64_t now_ms)
{
	int err, last;

	/* Else the counts at the end would contain hits after the last drain. */
	for (size_t i = 0; h->chosen && i < h->chosen->n && h->capture; i++)
		capture_event_stop(h->capture, h->chosen->events[i].id);
	err = host_stream_drain(h, now_ms);
	stack_writer_settle(h->stacks, FINISH_MS);
	last = stacks_deliver(h, now_ms);
	err = err ? err : last;
	last = chosen_check(h, true);
	return err ? err : last;
}

static void on_exit_count(void *context, const struct capture_exit *exit)
{
	struct host_stream *h = context;

	followed_count(&h->followed, exit);
}

/* Delivers the VM-exits that the kernel counted instead of emitting events. */
static int exits_deliver(struct host_stream *h)
{
	int err = h->capture ? capture_exits(h->capture, on_exit_count, h) : 0;

	for (size_t i = 0; i < h->followed.n_vms && !err; i++) {
		const struct followed_vm *vm = &h->followed.vms[i];
		struct message_exit_summary m = {.vm = vm->vm, .host_tsc = clock_tsc_read()};

		m.cells = (struct message_exit_cell *)exit_counts_take(vm->exits, &m.n_cells);
		if (m.n_cells)
			err = payload_deliver(h, FRAME_EXIT_SUMMARY,
					      message_exit_summary_pack(&m, &h->payload));
	}
	return err;
}

int host_stream_heartbeat(struct host_stream *h)
{
	struct message_heartbeat beat;
	struct batcher_totals totals;
	struct self_cost cost;
	int err = exits_deliver(h);

	/* Its list of guest CPUs, which a host does not have, takes 16 KiB. */
	memset(&beat, 0, offsetof(struct message_heartbeat, steal.cpus));
	beat.time = promise(h);
	if (!err)
		err = chosen_check(h, false);
	if (err)
		return err;
	batcher_totals_get(h->batcher, &totals);
	self_cost_recent(&cost);
	beat.cpu_time_ns = cost.cpu_time_ns;
	beat.rss_bytes = cost.rss_bytes;
	beat.emitted = totals.emitted;
	beat.delivered = totals.delivered;
	beat.dropped_kernel = totals.dropped_kernel;
	beat.dropped_user = totals.dropped_user;
	beat.missed = h->capture ? capture_missed(h->capture) : 0;
	beat.sample = sample_message(batcher_sample(h->batcher));
	h->promised = beat.time;
	return payload_deliver(h, FRAME_HEARTBEAT, message_heartbeat_pack(&beat, &h->payload));
}

int host_stream_note(struct host_stream *h, const struct message_note *note)
{
	return payload_deliver(h, FRAME_NOTE, message_note_pack(note, &h->payload));
}

int host_stream_observation(struct host_stream *h, const struct message_echo_observation *o)
{
	return payload_deliver(h, FRAME_ECHO_OBSERVATION,
			       message_echo_observation_pack(o, &h->payload));
}

int host_stream_cpu_quota(struct host_stream *h, const struct message_cpu_quota *m)
{
	return payload_deliver(h, FRAME_CPU_QUOTA, message_cpu_quota_pack(m, &h->payload));
}

int host_stream_kernel_log(struct host_stream *h, const struct message_kernel_log *m)
{
	return payload_deliver(h, FRAME_KERNEL_LOG, message_kernel_log_pack(m, &h->payload));
}

int host_stream_vm_clock(struct host_stream *h, const struct message_vm_clock *m)
{
	return payload_deliver(h, FRAME_VM_CLOCK, message_vm_clock_pack(m, &h->payload));
}

uint64_t host_stream_emitted(const struct host_stream *h)
{
	struct batcher_totals totals;

	batcher_totals_get(h->batcher, &totals);
	return totals.emitted;
}

void host_stream_stats_get(const struct host_stream *h, struct host_stream_stats *out)
{
	batcher_totals_get(h->batcher, &out->events);
	out->lost_shared = h->capture ? capture_shared_lost(h->capture) : 0;
	out->missed = h->capture ? capture_missed(h->capture) : 0;
	stack_writer_stats_get(h->stacks, &out->stacks);
	out->kernel_names = h->kernel_names;
	out->chosen = h->chosen;
	out->chosen_kept = h->chosen_kept;
	out->unwatched = h->capture ? capture_event_unwatched(h->capture) : 0;
}
