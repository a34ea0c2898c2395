/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/decode/decoder.h"

#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "host-collector/decode/gate.h"
#include "host-collector/decode/turns.h"
#include "host-collector/decode/worker.h"
#include "bpf/isolation/helper.h"

enum {
	SLOTS_AT_ONCE = 96, /* then others have their turn; a batch has 81 */
	HANG_MS = 3000,     /* a decoder beats every 50 ms */
	HANG_LOOKS = 20, /* and we must have looked so often: a stopped collector proves nothing */
	CPU_WINDOW_MS = 5000,
	CPU_EXCESS = 2, /* it holds itself to its budget; at twice that it is ended */
	KILL_WAIT_MS = 2000,
};

static const struct decoder_budget budget_default = {
	.bytes_per_s = 16 * 1024 * 1024, .memory_bytes = 32 * 1024 * 1024, .cpu_permille = 500};

struct decoder {
	uv_loop_t *loop;
	struct decoder_events events;
	struct decoder_budget budget;
	struct ring *ring;
	struct ring_reader *reader;
	pid_t pid;
	int pidfd, wakefd;
	int descriptor; /* by which connections are handed over; -1: it was started with one */
	uv_poll_t wake_poll, exit_poll;
	uv_timer_t kill_timer; /* after decoder_stop(), until its process has ended */
	struct turn_task draining;
	int open_handles;
	bool stopped, down_seen;
	char down_why[64];
	uint32_t beat, looks;
	uint64_t beat_ms, cpu_ms, cpu_ns;
};

void decoder_budget_fill(struct decoder_budget *b)
{
	if (!b->bytes_per_s)
		b->bytes_per_s = budget_default.bytes_per_s;
	if (!b->memory_bytes)
		b->memory_bytes = budget_default.memory_bytes;
	if (!b->cpu_permille)
		b->cpu_permille = budget_default.cpu_permille;
}

/* ---- its end ---- */

static void handle_closed(uv_handle_t *handle)
{
	struct decoder *d = handle->data;

	if (--d->open_handles)
		return;
	ring_reader_free(d->reader);
	ring_unmap(d->ring);
	free(d);
}

/* Kills it, and reaps it if it is dead already. Returns false if it is not. */
static bool process_end(struct decoder *d, int *status)
{
	if (d->pid <= 0)
		return true;
	kill(d->pid, SIGKILL);
	if (waitpid(d->pid, status, WNOHANG) != d->pid)
		return false;
	d->pid = 0;
	return true;
}

static void exit_poll_close(struct decoder *d)
{
	uv_close((uv_handle_t *)&d->exit_poll, handle_closed);
	close(d->pidfd);
}

static void on_kill_late(uv_timer_t *timer)
{
	struct decoder *d = timer->data;

	uv_close((uv_handle_t *)timer, handle_closed);
	exit_poll_close(d);
}

static void on_killed(uv_poll_t *poll, int status, int events)
{
	struct decoder *d = poll->data;
	int result;

	(void)status, (void)events;
	process_end(d, &result);
	uv_close((uv_handle_t *)&d->kill_timer, handle_closed);
	exit_poll_close(d);
}

/* Its process may need a CPU to die, for which others wait, too. The loop goes on meanwhile. */
static void exit_await(struct decoder *d)
{
	uv_timer_init(d->loop, &d->kill_timer); /* it cannot fail, nor can a timer's start */
	d->kill_timer.data = d;
	d->open_handles++;
	uv_timer_start(&d->kill_timer, on_kill_late, KILL_WAIT_MS, 0);
	if (uv_poll_start(&d->exit_poll, UV_READABLE, on_killed))
		uv_timer_start(&d->kill_timer, on_kill_late, 0, 0);
}

void decoder_stop(struct decoder *d)
{
	int status;

	if (!d || d->stopped)
		return;
	d->stopped = true;
	turns_drop(d->loop, &d->draining);
	uv_close((uv_handle_t *)&d->wake_poll, handle_closed);
	close(d->wakefd);
	if (process_end(d, &status))
		exit_poll_close(d);
	else
		exit_await(d);
	if (d->descriptor >= 0)
		close(d->descriptor);
	d->descriptor = -1;
}

static void over(struct decoder *d, bool died, const char *why)
{
	const struct decoder_events events = d->events;
	char text[96];

	snprintf(text, sizeof(text), "%s", why); /* it may lie in d */
	decoder_stop(d);
	events.ended(events.context, died, text);
}

/* ---- what it says ---- */

/* False if it is over. */
static bool ring_drain(struct decoder *d, unsigned int slots)
{
	const struct guest_record *record;
	int got;

	while ((got = ring_take(d->reader, &slots, &record)) > 0 && !d->stopped) {
		if (record->head.kind == RECORD_DOWN) {
			d->down_seen = true;
			snprintf(d->down_why, sizeof(d->down_why), "%s",
				 record->down.error ? strerror(record->down.error)
						    : "closed by the other end");
			continue;
		}
		d->events.record(d->events.context, &d->reader->record);
	}
	if (d->stopped)
		return false;
	if (got < 0) {
		over(d, true, "it wrote what is no record");
		return false;
	}
	if (!slots) { /* there may be more */
		const uint64_t one = 1;

		(void)!write(d->wakefd, &one, sizeof(one));
	}
	return true;
}

static void on_draining(struct turn_task *task)
{
	struct decoder *d = (struct decoder *)((char *)task - offsetof(struct decoder, draining));

	ring_drain(d, SLOTS_AT_ONCE);
}

static void on_wake(uv_poll_t *poll, int status, int events)
{
	struct decoder *d = poll->data;
	uint64_t count;

	(void)status, (void)events;
	(void)!read(d->wakefd, &count, sizeof(count));
	turns_add(d->loop, &d->draining);
}

static void on_exit_seen(uv_poll_t *poll, int status, int events)
{
	struct decoder *d = poll->data;
	char why[96];
	int result = 0;

	(void)status, (void)events;
	/* It writes no more: what is in the ring is its last word. */
	if (!ring_drain(d, RING_SLOTS))
		return;
	if (!process_end(d, &result))
		snprintf(why, sizeof(why), "it cannot be waited for");
	else if (WIFSIGNALED(result))
		snprintf(why, sizeof(why), "killed by signal %d (%s)", WTERMSIG(result),
			 WTERMSIG(result) == SIGSYS ? "a forbidden system call"
						    : strsignal(WTERMSIG(result)));
	else if (WEXITSTATUS(result) == WORKER_DONE && d->down_seen)
		snprintf(why, sizeof(why), "%s", d->down_why);
	else
		snprintf(why, sizeof(why), "it gave up (exit code %d)", WEXITSTATUS(result));
	over(d, !WIFEXITED(result) || WEXITSTATUS(result) != WORKER_DONE || !d->down_seen, why);
}

static uint64_t cpu_ns(const struct decoder *d)
{
	struct timespec t = {0};
	clockid_t clock;

	if (clock_getcpuclockid(d->pid, &clock) || clock_gettime(clock, &t))
		return 0;
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

void decoder_tick(struct decoder *d, uint64_t now_ms)
{
	uint32_t beat = atomic_load_explicit(&d->ring->beat, memory_order_relaxed);
	uint64_t used;

	if (d->stopped)
		return;
	if (beat != d->beat) {
		d->beat = beat;
		d->beat_ms = now_ms;
		d->looks = 0;
	} else if (++d->looks >= HANG_LOOKS && now_ms - d->beat_ms >= HANG_MS) {
		over(d, true, "it hung");
		return;
	}
	if (now_ms - d->cpu_ms < CPU_WINDOW_MS)
		return;
	used = cpu_ns(d);
	if (used - d->cpu_ns > (now_ms - d->cpu_ms) * d->budget.cpu_permille * 1000 * CPU_EXCESS) {
		over(d, true, "it used more than twice its CPU budget");
		return;
	}
	d->cpu_ms = now_ms;
	d->cpu_ns = used;
}

int decoder_hand(struct decoder *d, int fd)
{
	if (d->stopped || d->descriptor < 0) {
		close(fd);
		return -EPIPE;
	}
	return gate_hand(d->descriptor, fd);
}

pid_t decoder_pid(const struct decoder *d)
{
	return d->pid;
}

/* ---- its beginning ---- */

static int handles_start(struct decoder *d)
{
	int err = uv_poll_init(d->loop, &d->wake_poll, d->wakefd);

	if (err)
		return err;
	d->open_handles = 1;
	d->wake_poll.data = d->exit_poll.data = d;
	err = uv_poll_init(d->loop, &d->exit_poll, d->pidfd);
	if (err)
		return err;
	d->open_handles = 2;
	err = uv_poll_start(&d->wake_poll, UV_READABLE, on_wake);
	return err ? err : uv_poll_start(&d->exit_poll, UV_READABLE, on_exit_seen);
}

static void start_undo(struct decoder *d)
{
	if (d->pid > 0) {
		kill(d->pid, SIGKILL);
		waitpid(d->pid, NULL, 0);
	}
	if (d->wakefd >= 0)
		close(d->wakefd);
	if (d->pidfd >= 0)
		close(d->pidfd);
	if (d->descriptor >= 0)
		close(d->descriptor);
	ring_reader_free(d->reader);
	d->reader = NULL;
	ring_unmap(d->ring);
	d->ring = NULL;
	if (!d->open_handles) {
		free(d);
		return;
	}
	if (d->open_handles == 2)
		uv_close((uv_handle_t *)&d->exit_poll, handle_closed);
	uv_close((uv_handle_t *)&d->wake_poll, handle_closed);
}

/* A pair of sockets: the decoder's, ours. 0 or -errno. */
static int listener_make(int *decoders, int *ours)
{
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair))
		return -errno;
	*decoders = pair[0];
	*ours = pair[1];
	return 0;
}

int decoder_start(uv_loop_t *loop, int fd, const struct message_hello *hello,
		  const struct message_config *request, const struct tls_psk *psk,
		  const struct decoder_budget *budget, const struct decoder_events *events,
		  struct decoder **out)
{
	struct decoder *d = calloc(1, sizeof(*d));
	int ringfd = -1, err = -ENOMEM;
	bool listens;

	if (!d)
		goto out;
	d->loop = loop;
	d->draining.run = on_draining;
	d->events = *events;
	d->pidfd = d->wakefd = d->descriptor = -1;
	d->budget = *budget;
	decoder_budget_fill(&d->budget);
	d->beat_ms = d->cpu_ms = uv_now(loop);
	listens = fd < 0;
	if (listens) {
		err = listener_make(&fd, &d->descriptor);
		if (err)
			goto out;
	}
	ringfd = ring_create();
	if (ringfd < 0) {
		err = ringfd;
		goto out;
	}
	d->ring = ring_map(ringfd);
	d->reader = d->ring ? ring_reader_new(d->ring) : NULL;
	d->wakefd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	err = d->wakefd < 0 ? -errno : d->reader ? 0 : -ENOMEM;
	if (err)
		goto out;
	/* It takes errno to be 0 after a call that failed. NOLINTNEXTLINE(clang-analyzer-*) */
	d->ring->config = (struct ring_config){.hello = *hello,
					       .request = *request,
					       .bytes_per_s = d->budget.bytes_per_s,
					       .cpu_permille = d->budget.cpu_permille,
					       .memory_bytes = d->budget.memory_bytes,
					       .collector = getpid(),
					       .psk = *psk,
					       .listens = listens};
	err = helper_spawn(WORKER_NAME, (int[]){fd, ringfd, d->wakefd}, 3, &d->pid);
	if (err)
		goto out;
	d->pidfd = (int)syscall(SYS_pidfd_open, d->pid, 0);
	err = d->pidfd < 0 ? -errno : handles_start(d);
out:
	if (fd >= 0)
		close(fd);
	if (ringfd >= 0)
		close(ringfd);
	if (err && d)
		start_undo(d);
	else
		*out = d;
	return err;
}
