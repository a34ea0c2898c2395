/* SPDX-License-Identifier: GPL-2.0-only */
#include "bpf/isolation/namer.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "bpf/isolation/bad_files.h"
#include "bpf/isolation/helper.h"
#include "bpf/isolation/opener.h"
#include "bpf/isolation/packet.h"
#include "clock/sample.h"
#include "proto/text.h"

enum {
	OPEN_MAX = 256,
	HANG_MS = 12000, /* more than twice the time that an opener gives its naming process */
	/* The opener hangs only if we looked this often in that time: we may have been stopped
	   ourselves. */
	HANG_POLLS = 20,
	/* Killed openers that the kernel has not ended yet. With so many, none is started. */
	STUCK_MAX = 4,
	KILL_WAIT_MS = 100,
	BACKOFF_MS = 100,
	BACKOFF_MAX_MS = 30000,
	YOUNG_MS = 10000,
	SOCKET_BYTES = 208 * 1024, /* holds about twelve stacks */
};

struct question {
	uint64_t id; /* 0: free */
	namer_taker take;
	void *context;
	uint64_t tag;
};

struct namer {
	int badfd, socket;
	struct bad_files *bad;
	pid_t opener; /* 0: none */
	pid_t stuck[STUCK_MAX];
	uint64_t last_id;
	struct question questions[OPEN_MAX];
	size_t n_questions;
	uint64_t now_ms, heard_ms, born_ms, retry_ms, backoff_ms;
	uint64_t cpu_ns, past_cpu_ns; /* CPU time of this opener, and of all earlier ones */
	unsigned int polls;           /* since its last answer */
	/* Buffers: too large for the stack. */
	struct {
		struct naming_request head;
		uint8_t rest[NAMING_ADDRESSES_MAX * sizeof(uint64_t) + NAMING_DATA_MAX];
	} request;
	struct {
		struct naming_answer head;
		struct message_stack_frame frames[VS_STACK_FRAMES_MAX];
	} answer;
};

struct namer *namer_new(void)
{
	struct namer *n = calloc(1, sizeof(*n));

	if (!n)
		return NULL;
	n->socket = -1;
	n->badfd = bad_files_create();
	n->bad = n->badfd < 0 ? NULL : bad_files_map(n->badfd);
	if (!n->bad) {
		namer_free(n);
		return NULL;
	}
	return n;
}

/* ---- the opener's process ---- */

static void opener_end(struct namer *n)
{
	const int pidfd = (int)syscall(SYS_pidfd_open, n->opener, 0);
	struct pollfd gone = {.fd = pidfd, .events = POLLIN};

	/* The kernel then kills the naming process, too (PR_SET_PDEATHSIG). */
	kill(n->opener, SIGKILL);
	if (pidfd >= 0) {
		poll(&gone, 1, KILL_WAIT_MS);
		close(pidfd);
	}
	if (waitpid(n->opener, NULL, pidfd >= 0 ? WNOHANG : 0) != n->opener) {
		for (size_t i = 0; i < STUCK_MAX; i++) {
			if (!n->stuck[i]) {
				n->stuck[i] = n->opener;
				break;
			}
		}
	}
	n->opener = 0;
	n->past_cpu_ns += n->cpu_ns;
	n->cpu_ns = 0;
	close(n->socket);
	n->socket = -1;
}

void namer_free(struct namer *n)
{
	if (!n)
		return;
	if (n->opener)
		opener_end(n);
	bad_files_unmap(n->bad);
	if (n->badfd >= 0)
		close(n->badfd);
	free(n);
}

static int opener_start(struct namer *n)
{
	const int bytes = SOCKET_BYTES;
	int pair[2], err;

	/* This process was started as an opener, but its main() does not handle that: do not start
	 * another without end. */
	if (!strcmp(program_invocation_name, OPENER_NAME))
		return -ELOOP;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		return -errno;
	setsockopt(pair[0], SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes));
	setsockopt(pair[1], SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes));
	err = fcntl(pair[0], F_SETFL, O_NONBLOCK) ? -errno : 0;
	if (!err)
		err = helper_spawn(OPENER_NAME, (int[]){pair[1], n->badfd}, 2, &n->opener);
	close(pair[1]);
	if (err) {
		n->opener = 0;
		close(pair[0]);
		return err;
	}
	n->socket = pair[0];
	n->born_ms = n->heard_ms = n->now_ms;
	n->polls = 0;
	return 0;
}

static int opener_ready(struct namer *n)
{
	if (n->opener)
		return 0;
	for (size_t i = 0; i < STUCK_MAX; i++) {
		if (n->stuck[i] && waitpid(n->stuck[i], NULL, WNOHANG) == n->stuck[i])
			n->stuck[i] = 0;
	}
	if (n->stuck[STUCK_MAX - 1])
		return -EBUSY;
	return n->now_ms < n->retry_ms ? -EBUSY : opener_start(n);
}

static void question_end(struct namer *n, struct question *q, enum naming_outcome outcome,
			 size_t n_frames)
{
	const struct question was = *q;

	*q = (struct question){0};
	n->n_questions--;
	was.take(was.context, was.tag, outcome, n->answer.frames, n_frames);
}

/* The opener died or hangs. Blames the file that it was opening, and ends all open questions
 * without an answer. */
static void opener_lost(struct namer *n)
{
	const uint64_t last_id = n->last_id;

	opener_end(n);
	bad_files_blame(n->bad);
	if (n->now_ms - n->born_ms > YOUNG_MS || !n->backoff_ms)
		n->backoff_ms = BACKOFF_MS;
	else if (n->backoff_ms < BACKOFF_MAX_MS)
		n->backoff_ms *= 2;
	n->retry_ms = n->now_ms + n->backoff_ms;
	for (size_t i = 0; i < OPEN_MAX; i++) {
		if (n->questions[i].id && n->questions[i].id <= last_id)
			question_end(n, &n->questions[i], NAMING_WITHOUT, 0);
	}
}

/* ---- questions ---- */

static size_t request_fill(struct namer *n, const struct namer_question *question)
{
	struct naming_request *r = &n->request.head;
	uint8_t *at = n->request.rest;

	*r = (struct naming_request){.id = n->last_id + 1,
				     .pid = question->pid,
				     .n_addresses = (uint32_t)question->n_addresses};
	if (question->n_addresses)
		memcpy(at, question->addresses, question->n_addresses * sizeof(uint64_t));
	at += question->n_addresses * sizeof(uint64_t);
	for (size_t i = 0; i < 2; i++) {
		if (question->data_bytes[i])
			memcpy(at, question->data[i], question->data_bytes[i]);
		at += question->data_bytes[i];
		r->data_bytes += (uint32_t)question->data_bytes[i];
	}
	return (size_t)(at - (uint8_t *)&n->request);
}

int namer_ask(struct namer *n, const struct namer_question *question, namer_taker take,
	      void *context, uint64_t tag)
{
	size_t at = 0, bytes;
	int err;

	n->now_ms = clock_monotonic_ms();
	if (question->n_addresses > NAMING_ADDRESSES_MAX ||
	    question->data_bytes[0] > NAMING_DATA_MAX ||
	    question->data_bytes[1] > NAMING_DATA_MAX - question->data_bytes[0])
		return -EINVAL;
	while (at < OPEN_MAX && n->questions[at].id)
		at++;
	if (at == OPEN_MAX)
		return -EAGAIN;
	err = opener_ready(n);
	if (err)
		return err;
	bytes = request_fill(n, question);
	err = packet_send(n->socket, &n->request, bytes, -1);
	if (err == -EAGAIN)
		return err;
	if (err) {
		opener_lost(n);
		return -EBUSY;
	}
	if (!n->n_questions++) { /* until now, no answer was due */
		n->heard_ms = n->now_ms;
		n->polls = 0;
	}
	n->questions[at] =
		(struct question){.id = ++n->last_id, .take = take, .context = context, .tag = tag};
	return 0;
}

static void answer_drop(void *context, uint64_t tag, enum naming_outcome outcome,
			const struct message_stack_frame *frames, size_t n)
{
	(void)context, (void)tag, (void)outcome, (void)frames, (void)n;
}

void namer_forget(struct namer *n, const void *context, uint64_t tag)
{
	for (size_t i = 0; i < OPEN_MAX; i++) {
		struct question *q = &n->questions[i];

		if (!q->id || q->context != context || (tag != UINT64_MAX && q->tag != tag))
			continue;
		/* Stays open: an answer that does not come shows that the opener hangs. */
		q->take = answer_drop;
	}
}

/* The opener is trusted, but it passes on what the naming process wrote. */
static bool answer_is_sound(const struct namer *n, long len)
{
	const struct naming_answer *a = &n->answer.head;

	return len >= (long)sizeof(*a) && a->n_frames <= VS_STACK_FRAMES_MAX &&
	       a->outcome <= NAMING_UNAVAILABLE &&
	       len == (long)(sizeof(*a) + a->n_frames * sizeof(n->answer.frames[0]));
}

static void answer_take(struct namer *n)
{
	const struct naming_answer *a = &n->answer.head;
	size_t at = 0;

	n->cpu_ns = a->cpu_ns;
	for (size_t i = 0; i < a->n_frames; i++) {
		struct message_stack_frame *f = &n->answer.frames[i];
		struct message_stack_frame was = *f;

		was.symbol[sizeof(was.symbol) - 1] = was.module[sizeof(was.module) - 1] = 0;
		text_copy(f->symbol, sizeof(f->symbol), was.symbol);
		text_copy(f->module, sizeof(f->module), was.module);
		f->kernel = false;
	}
	while (at < OPEN_MAX && n->questions[at].id != a->id)
		at++;
	if (a->id && at < OPEN_MAX) /* else nobody waits for this answer any more */
		question_end(n, &n->questions[at], (enum naming_outcome)a->outcome, a->n_frames);
}

void namer_poll(struct namer *n)
{
	n->now_ms = clock_monotonic_ms();
	/* A taker may ask the next question: the loop has a limit. */
	for (size_t i = 0; n->opener && i < OPEN_MAX; i++) {
		const long len = packet_receive(n->socket, &n->answer, sizeof(n->answer), NULL);

		if (len == -EAGAIN)
			break;
		if (!answer_is_sound(n, len)) {
			opener_lost(n);
			return;
		}
		n->heard_ms = n->now_ms;
		n->polls = 0;
		answer_take(n);
	}
	if (n->opener && n->n_questions && ++n->polls >= HANG_POLLS &&
	    n->now_ms - n->heard_ms >= HANG_MS)
		opener_lost(n);
}

int namer_descriptor(const struct namer *n)
{
	return n->socket;
}

uint64_t namer_cpu_ns(const struct namer *n)
{
	return n->past_cpu_ns + n->cpu_ns;
}

pid_t namer_opener(const struct namer *n)
{
	return n->opener;
}
