/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/record/collector.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "bpf/capture/kernel_log.h"
#include "clock/echo.h"
#include "clock/sample.h"
#include "host-collector/record/collector_internal.h"
#include "host-collector/record/vm_clocks.h"
#include "host-collector/vm/cgroup.h"
#include "host-collector/vm/vm.h"
#include "proto/log_limit.h"
#include "proto/recording.h"

enum {
	DRAIN_MS = 20,
	HEARTBEAT_MS = 100, /* a multiple of the above */
	RESCAN_MS = 1000,
	/* A VM with at most so many events in a drain is drained with its heartbeats only: nobody
	 * can use an event before the heartbeat that promises that no older one follows. */
	CALM_EVENTS = 1024,
	/* Between two events, or frames of its agent, a VM has fewer heartbeats: nothing waits for
	 * their promises but stalls in progress. */
	CALM_HEARTBEAT_MS = 200,
	/* A VM is quiet after this time without an event and without a frame of its agent. Only
	 * its own threads can change anything about it, and they are followed. */
	QUIET_AFTER_MS = 10000,
	QUIET_HEARTBEAT_MS = 1000,
	QUIET_RESCAN_MS = 10000,
	/* A thread gets its name after it has begun: the names are read in each rescan until they
	 * have stayed so long, then less often. */
	NAMES_AFTER_MS = 10000,
	NAMES_MS = 10000,
	/* How often the host's log and the cgroups are read while the VM has no events: a vCPU that
	 * does not run is not throttled. */
	ASK_MS = 1000,
};

/* Nothing that QEMU says is read later than this: the loop never sleeps so long. */
static const uint64_t note_late_ns = 5000000000;

static void __attribute__((format(printf, 2, 3)))
say(const struct collector *c, const char *format, ...)
{
	char line[512];
	va_list args;

	va_start(args, format);
	vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	c->sink.say(c->sink.context, line);
}

/* The host's TSC when CLOCK_REALTIME was `realtime_ns`, not long ago; of any other time: now. */
static uint64_t tsc_at(const struct collector *c, uint64_t realtime_ns)
{
	struct clock_sample now = {0};
	uint64_t ago_ns;

	if (clock_sample_take(&now))
		return clock_tsc_read();
	ago_ns = now.realtime_ns - realtime_ns;
	if (realtime_ns > now.realtime_ns || ago_ns > note_late_ns)
		return now.tsc;
	return now.tsc -
	       (uint64_t)((double)ago_ns / 1e9 * (double)host_stream_hello(c->host)->clock_hz);
}

/* Puts a note into the host's stream. */
static void note_write_at(struct collector *c, enum note_kind kind, uint64_t tsc, const char *text)
{
	struct message_note note = {.vm = c->number, .kind = kind, .host_tsc = tsc};

	snprintf(note.text, sizeof(note.text), "%s", text);
	host_stream_note(c->host, &note);
}

static void note_write(struct collector *c, enum note_kind kind, const char *text)
{
	note_write_at(c, kind, clock_tsc_read(), text);
}

void collector_note(void *context, enum note_kind kind, const char *text)
{
	struct collector *c = context;

	note_write(c, kind, text);
	say(c, "%s", text);
}

static void end(struct collector *c, const char *why)
{
	if (c->ended || c->stopped)
		return;
	c->ended = true;
	if (c->vm)
		note_write(c, NOTE_VM_GONE, why);
	c->sink.ended(c->sink.context, why);
}

/* ---- the VM's side ---- */

static void poll_freed(uv_handle_t *handle)
{
	free(handle);
}

static void poll_close(uv_poll_t **poll)
{
	if (*poll)
		uv_close((uv_handle_t *)*poll, poll_freed);
	*poll = NULL;
}

static uv_poll_t *poll_open(struct collector *c, int fd, uv_poll_cb callback)
{
	uv_poll_t *poll = calloc(1, sizeof(*poll));

	if (!poll)
		return NULL;
	if (uv_poll_init(c->loop, poll, fd)) {
		free(poll);
		return NULL;
	}
	poll->data = c;
	uv_poll_start(poll, UV_READABLE, callback);
	return poll;
}

static void vm_lines_hidden(struct collector *c)
{
	const uint64_t n = log_limit_hidden(&c->vm_lines, uv_now(c->loop));

	if (n)
		say(c, "%" PRIu64 " more lines from QEMU's monitor were not shown", n);
}

/* The recording gets all of them: pauses and migrations end what is known of the clocks. */
static void on_vm_note(void *context, enum note_kind kind, uint64_t realtime_ns, const char *text)
{
	struct collector *c = context;

	note_write_at(c, kind, tsc_at(c, realtime_ns), text);
	vm_lines_hidden(c);
	if (log_limit_admit(&c->vm_lines, uv_now(c->loop)))
		say(c, "%s", text);
}

static void on_qmp(uv_poll_t *poll, int status, int events)
{
	struct collector *c = poll->data;

	(void)status, (void)events;
	/* libuv must let go of the descriptor before it is closed: close the handle first. */
	uv_poll_stop(poll);
	if (!vm_qmp_events(c->vm, on_vm_note, c)) {
		uv_poll_start(poll, UV_READABLE, on_qmp);
		return;
	}
	poll_close(&c->qmp_poll);
	say(c, "QEMU closed its monitor; pauses can no longer be named");
}

/* "QEMU 4711 has exited" */
static void gone_text(const struct collector *c, char *out, size_t out_bytes)
{
	snprintf(out, out_bytes, "%s %d has exited", vm_identity_vmm(vm_identity(c->vm)),
		 vm_info(c->vm)->qemu_pid);
}

static void on_exit_seen(uv_poll_t *poll, int status, int events)
{
	struct collector *c = poll->data;
	char why[96];

	(void)status, (void)events;
	poll_close(&c->exit_poll);
	gone_text(c, why, sizeof(why));
	end(c, why);
}

/* Returns false if the VM has the threads that it had. */
static bool threads_rescan(struct collector *c)
{
	const uint64_t now_ms = uv_now(c->loop);
	int changed;
	char why[96];

	if (now_ms - c->changed_ms >= NAMES_AFTER_MS && now_ms - c->scanned_ms < NAMES_MS &&
	    vm_threads_stay(c->vm))
		return false;
	c->scanned_ms = now_ms;
	changed = vm_rescan(c->vm);
	if (changed < 0) {
		gone_text(c, why, sizeof(why));
		end(c, why);
	} else if (changed) {
		c->changed_ms = now_ms;
		snprintf(why, sizeof(why), "%zu threads, %zu of them vCPUs",
			 vm_info(c->vm)->n_threads, vm_n_vcpus(c->vm));
		note_write(c, NOTE_THREADS, why);
		host_stream_follow(c->host, vm_info(c->vm));
	}
	return true;
}

static void tasks_check(struct collector *c)
{
	struct host_stream_stats stats;

	if (!c->tasks)
		return;
	if (!c->vm && watched_tasks_ended(c->tasks))
		end(c, "the threads have ended");
	host_stream_stats_get(c->host, &stats);
	if (stats.unwatched && !c->said_unwatched)
		say(c, "the command has more processes than can be watched: events of the rest are "
		       "missing");
	c->said_unwatched |= stats.unwatched != 0;
}

static void clocks_drain(struct collector *c, uint64_t now_ms)
{
	int err = c->clocks ? vm_clocks_drain(c->clocks, now_ms) : 0;

	if (err && !c->said_clocks)
		say(c, "reading KVM's clock parameters: %s; changes may be missing",
		    strerror(-err));
	else if (c->clocks && vm_clocks_left_out(c->clocks) && !c->said_clocks)
		say(c, "KVM changes this VM's clock more than 500 times a second: not every change "
		       "is recorded");
	c->said_clocks |= err != 0 || (c->clocks && vm_clocks_left_out(c->clocks));
}

/*
 * What the kernel complains of goes into the stream; the rest of its log is nobody's business. Of
 * what it said before we came only the split locks count: it warns of each thread once.
 */
static void log_read(struct collector *c, bool before)
{
	struct message_kernel_log *m = &c->log_lines;
	size_t kept = 0;

	if (!c->log || kernel_log_read(c->log, uv_now(c->loop), m) <= 0)
		return;
	for (size_t i = 0; i < m->n_lines; i++) {
		const char *text = m->lines[i].text;

		if (before ? strstr(text, "split_lock trap") != NULL : kernel_log_is_stall(text))
			m->lines[kept++] = m->lines[i];
	}
	m->n_lines = kept;
	if (kept)
		host_stream_kernel_log(c->host, m);
}

static void on_quota(void *context, const struct message_cpu_quota *reading)
{
	struct collector *c = context;

	host_stream_cpu_quota(c->host, reading);
}

static void quotas_follow(struct collector *c)
{
	if (c->cgroups && cgroups_follow(c->cgroups, vm_info(c->vm)) && !c->said_quotas) {
		c->said_quotas = true;
		say(c,
		    "%s %d's threads are in more cgroups than are watched: CPU quotas of the "
		    "rest are not known",
		    vm_identity_vmm(vm_identity(c->vm)), vm_info(c->vm)->qemu_pid);
	}
}

/* The collector of a VM that has ended runs on if others use its host stream. By then another
 * process can have the process id of the VMM, and another agent can find the channel. */
static void vm_check(struct collector *c)
{
	if (c->ended) {
		collector_channel_close(c);
		return;
	}
	if (c->vm && threads_rescan(c))
		quotas_follow(c);
}

static void on_timer(uv_timer_t *timer);

/* All collectors of a loop work at the same moments: it wakes up once for all of them. */
static void timer_start(struct collector *c, uint64_t period_ms)
{
	uv_timer_start(&c->timer, on_timer, period_ms - uv_now(c->loop) % period_ms, 0);
}

static void host_drain(struct collector *c, uint64_t now_ms)
{
	const int err = host_stream_drain(c->host, now_ms);

	if (err && !c->said_drain)
		say(c, "reading the host's events: %s; they are counted as lost", strerror(-err));
	c->said_drain |= err != 0;
	c->drained = host_stream_emitted(c->host) - c->host_events;
	if (!c->drained)
		return;
	c->host_events += c->drained;
	c->active_ms = now_ms;
}

/* The rings of a capture of its own are too small to wait for a heartbeat. */
static bool is_calm(const struct collector *c)
{
	return c->shared && c->drained <= CALM_EVENTS && !c->held;
}

/* Whether a heartbeat is due: one in each period, whose begins all collectors share, or when the
 * names of stacks have come for which the last one could promise less. */
static bool beat_is_due(const struct collector *c, uint64_t now_ms, uint64_t period_ms)
{
	return now_ms / period_ms != c->heartbeat_ms / period_ms ||
	       (c->held && !host_stream_holds(c->host));
}

/* Whether there were events, or frames of the agent, since the last heartbeat. */
static bool has_news(const struct collector *c)
{
	return c->active_ms >= c->heartbeat_ms;
}

static void beat(struct collector *c, uint64_t now_ms)
{
	const bool asks = has_news(c) || c->beside || now_ms - c->asked_ms >= ASK_MS;

	c->heartbeat_ms = now_ms;
	if (!c->beside) {
		c->held = host_stream_holds(c->host);
		host_stream_heartbeat(c->host);
	}
	if (!asks)
		return;
	c->asked_ms = now_ms;
	if (!c->beside)
		log_read(c, false);
	if (c->cgroups && !c->ended)
		cgroups_read(c->cgroups, clock_tsc_read, on_quota, c);
}

static uint64_t heartbeat_period_ms(const struct collector *c, bool quiet)
{
	if (quiet)
		return QUIET_HEARTBEAT_MS;
	return is_calm(c) && !has_news(c) ? CALM_HEARTBEAT_MS : HEARTBEAT_MS;
}

static void on_work(struct turn_task *task)
{
	struct collector *c = (struct collector *)((char *)task - offsetof(struct collector, work));
	const uint64_t now_ms = uv_now(c->loop);
	const bool owns = !c->beside, idle = owns && host_stream_is_idle(c->host);
	bool quiet, beats;

	c->drained = 0;
	if (owns && !idle)
		host_drain(c, now_ms);
	/* The events of a borrowed stream are not only this VM's. */
	quiet = c->vm && !c->tasks && owns && now_ms - c->active_ms >= QUIET_AFTER_MS;
	beats = beat_is_due(c, now_ms, heartbeat_period_ms(c, quiet));
	if (idle && beats)
		host_drain(c, now_ms);
	if (!c->ended)
		clocks_drain(c, now_ms);
	if (beats)
		beat(c, now_ms);
	timer_start(c, is_calm(c) ? HEARTBEAT_MS : DRAIN_MS);
	if (c->has_channel && !c->link && !c->ended && now_ms >= c->channel.next_ms)
		collector_channel_try(c);
	if (now_ms - c->rescan_ms >= (quiet ? QUIET_RESCAN_MS : RESCAN_MS)) {
		c->rescan_ms = now_ms;
		vm_lines_hidden(c);
		vm_check(c);
		tasks_check(c);
	}
}

static void on_timer(uv_timer_t *timer)
{
	struct collector *c = timer->data;

	turns_add(c->loop, &c->work);
}

static void host_frame(void *context, uint64_t tsc, struct frame_item *frame)
{
	struct collector *c = context;

	c->sink.frame(c->sink.context, VS_SOURCE_HOST, tsc, frame);
}

static void losses_say(const struct collector *c)
{
	char lost[448];

	host_stream_losses(c->host, !strcmp(vm_info(c->vm)->accelerator, "kvm"), lost,
			   sizeof(lost));
	if (*lost)
		say(c, "this kernel lacks %s", lost);
}

static int vm_follow(struct collector *c, char *why, size_t why_bytes)
{
	int err = host_stream_follow(c->host, vm_info(c->vm));

	if (err)
		snprintf(why, why_bytes, "threads of %s %d cannot be followed: %s",
			 vm_identity_vmm(vm_identity(c->vm)), vm_info(c->vm)->qemu_pid,
			 strerror(-err));
	return err;
}

static int host_open(struct collector *c, const struct collector_options *options, char *why,
		     size_t why_bytes)
{
	struct host_stream_options host = {.wait_threshold_ns = options->wait_threshold_ns,
					   .sample_hz = options->sample_hz,
					   .look = options->look,
					   .look_when = options->look_when,
					   .level = options->level,
					   .backend = options->backend,
					   .events = options->events,
					   .shared = options->shared,
					   .names = options->names,
					   .origins = options->origins,
					   .maker = options->maker,
					   .tsc_hz = options->tsc_hz,
					   .frame = host_frame,
					   .context = c};
	int err;

	if (c->beside) {
		c->host = c->beside->host;
		return vm_follow(c, why, why_bytes);
	}
	if (c->tasks)
		host.watches = watched_tasks_list(c->tasks, &host.n_watches);
	err = host_stream_open(&host, &c->host, why, why_bytes);
	if (err)
		return err;
	if (!c->vm && !host_stream_has_events(c->host)) {
		snprintf(why, why_bytes, "nothing can be recorded: %s%s%s",
			 host_stream_events_failed(c->host),
			 *host_stream_notice(c->host) ? "; " : "", host_stream_notice(c->host));
		return -EOPNOTSUPP;
	}
	if (*host_stream_notice(c->host))
		say(c, "%s", host_stream_notice(c->host));
	if (*host_stream_look_failed(c->host))
		say(c, "%s", host_stream_look_failed(c->host));
	if (*host_stream_events_failed(c->host))
		say(c, "%s", host_stream_events_failed(c->host));
	if (!c->vm)
		return 0;
	err = vm_follow(c, why, why_bytes);
	/* The daemon's VMs share one capture: doctor says it once. */
	if (!err && !options->shared)
		losses_say(c);
	return err;
}

/* Writes VM_INFO again, with the protection. */
static int protection_note(struct collector *c, enum vm_protection protection)
{
	if (protection == VM_PROTECTION_NONE)
		return 0;
	vm_protect(c->vm, protection);
	say(c,
	    "the guest is protected from this host (%s): its memory is not read, round trips "
	    "convert its times, and verdicts that join both sides are at most likely",
	    vm_protection_title(protection));
	return host_stream_follow(c->host, vm_info(c->vm));
}

/* A VM without them is recorded all the same: echo round trips map its clock, less exactly. */
static int clocks_open(struct collector *c, enum backend_choice backend)
{
	const struct message_vm_info *info = vm_info(c->vm);
	char why[256] = "";

	if (strcmp(info->accelerator, "kvm") != 0)
		return 0;
	vm_clocks_open(c->host, backend, info->qemu_pid, c->number, &c->clocks, why, sizeof(why));
	if (why[0])
		say(c, "%s", why);
	return c->clocks ? protection_note(c, vm_clocks_protection(c->clocks)) : 0;
}

/* What QEMU says now, and its exit. */
static void vm_watch(struct collector *c)
{
	if (vm_qmp_fd(c->vm) >= 0)
		c->qmp_poll = poll_open(c, vm_qmp_fd(c->vm), on_qmp);
	if (vm_qmp_released(c->vm))
		say(c, "QEMU's monitor was asked and given back, for Proxmox needs it: pauses from "
		       "now on cannot be named");
	if (vm_migrates(c->vm))
		on_vm_note(c, NOTE_MIGRATION, 0,
			   "QEMU migrates the VM already (QMP query-migrate)");
	if (vm_paused(c->vm))
		on_vm_note(c, NOTE_VM_PAUSED, 0, "the VM is paused already (QMP query-status)");
	/* Rescans notice an exit too, a second later (kernels before 5.3). */
	c->pidfd = (int)syscall(SYS_pidfd_open, vm_info(c->vm)->qemu_pid, 0);
	if (c->pidfd >= 0)
		c->exit_poll = poll_open(c, c->pidfd, on_exit_seen);
}

int collector_open(uv_loop_t *loop, const struct collector_options *options,
		   const struct collector_sink *sink, struct collector **out, char *why,
		   size_t why_bytes)
{
	const struct vm_options vm = {.number = options->number ? options->number : COLLECTOR_VM,
				      .pid = options->pid,
				      .qmp_path = options->qmp_path};
	const bool has_vm = options->vm || options->pid || options->qmp_path || !options->tasks;
	struct collector *c = calloc(1, sizeof(*c));
	int err = 0;

	if (!c) {
		vm_close(options->vm);
		snprintf(why, why_bytes, "out of memory");
		return -ENOMEM;
	}
	c->loop = loop;
	c->sink = *sink;
	c->pidfd = -1;
	c->vm = options->vm;
	c->number = vm.number;
	c->beside = options->beside;
	c->tasks = c->beside ? NULL : options->tasks;
	if (options->channel)
		collector_channel_plan(c, options);
	if (options->channel && !options->channel_can_wait) {
		err = collector_channel_address(c);
		snprintf(why, why_bytes, "%s", c->channel.why);
	}
	if (!err && has_vm && !c->vm)
		err = vm_open(&vm, &c->vm, why, why_bytes);
	if (!err)
		err = host_open(c, options, why, why_bytes);
	if (!err && c->vm) {
		err = clocks_open(c, options->backend);
		if (err)
			snprintf(why, why_bytes, "the clocks of the VM cannot be recorded: %s",
				 strerror(-err));
	}
	if (err)
		goto fail;
	if (options->channel)
		collector_channel_try(c);
	if (!c->beside && !kernel_log_open(&c->log))
		log_read(c, true);
	c->cgroups = cgroups_new(NULL);
	uv_update_time(loop); /* attaching took a while */
	c->changed_ms = uv_now(loop);
	if (c->vm)
		quotas_follow(c);
	uv_timer_init(loop, &c->timer);
	c->timer.data = c;
	c->work.run = on_work;
	c->timer_open = true;
	c->shared = options->shared != NULL;
	c->active_ms = uv_now(loop);
	timer_start(c, DRAIN_MS);
	if (c->vm)
		vm_watch(c);
	*out = c;
	return 0;
fail:
	collector_close(c);
	return err;
}

void collector_adopt(struct collector *c, int fd)
{
	if (c->link && !c->stopped)
		guest_link_adopt(c->link, fd);
	else
		close(fd);
}

int collector_level(struct collector *c, enum capture_level level)
{
	int err = host_stream_level(c->host, level);

	if (!err)
		note_write(c, NOTE_LEVEL,
			   level == CAPTURE_SUMMARY ? "level is summary from here on"
						    : "level is detail from here on");
	return err;
}

void collector_stop(struct collector *c)
{
	if (c->stopped)
		return;
	if (c->host && !c->beside)
		host_stream_finish(c->host, uv_now(c->loop));
	if (c->host)
		clocks_drain(c, uv_now(c->loop));
	if (c->host && !c->beside)
		host_stream_heartbeat(c->host);
	c->stopped = true;
	turns_drop(c->loop, &c->work);
	collector_channel_close(c);
	if (c->timer_open)
		uv_timer_stop(&c->timer);
	poll_close(&c->qmp_poll);
	poll_close(&c->exit_poll);
}

static void timer_closed(uv_handle_t *handle)
{
	free(handle->data);
}

void collector_close(struct collector *c)
{
	if (!c)
		return;
	collector_stop(c);
	vm_clocks_close(c->clocks);
	if (!c->beside)
		host_stream_close(c->host);
	vm_close(c->vm);
	cgroups_free(c->cgroups);
	kernel_log_close(c->log);
	echo_sync_free(c->echo);
	if (c->pidfd >= 0)
		close(c->pidfd);
	if (c->timer_open)
		uv_close((uv_handle_t *)&c->timer, timer_closed);
	else
		free(c);
}

pid_t collector_pid(const struct collector *c)
{
	return c->vm ? vm_info(c->vm)->qemu_pid : 0;
}

const char *collector_vmm_version(const struct collector *c)
{
	return c->vm ? vm_version(c->vm) : "";
}

uint64_t collector_host_events(const struct collector *c)
{
	return host_stream_emitted(c->host);
}
