/* SPDX-License-Identifier: GPL-2.0-only */
#include "bpf/isolation/opener.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "bpf/isolation/bad_files.h"
#include "bpf/isolation/confine.h"
#include "bpf/isolation/packet.h"
#include "bpf/isolation/processes.h"
#include "clock/sample.h"

enum {
	STACK_CPU_MS = 1000, /* CPU time that the naming process may use for one stack */
	WAIT_MS = 20,
	/* Waits in which it may be blocked. Waits for a CPU do not count. */
	BLOCKED_WAITS = 3000 / WAIT_MS,
	KILL_WAIT_MS = 1000,
	STUCK_MAX = 4, /* killed naming processes that the kernel has not ended yet */
	BACKOFF_MS = 100,
	BACKOFF_MAX_MS = 30000,
	YOUNG_MS = 10000,
};

struct opener {
	const struct naming_body *body;
	struct bad_files *bad;
	struct naming_place *place;
	pid_t namer; /* 0: none */
	int pidfd, socket;
	uint64_t born_ms, retry_ms, backoff_ms;
	pid_t stuck[STUCK_MAX]; /* killed, but not ended yet; 0: none */
	bool unconfined;
	struct processes *processes;
	/* Buffers: too large for the stack. */
	struct {
		struct naming_request head;
		uint8_t rest[NAMING_ADDRESSES_MAX * sizeof(uint64_t) + NAMING_DATA_MAX];
	} request;
	struct {
		struct naming_task head;
		uint8_t rest[NAMING_ADDRESSES_MAX * sizeof(uint64_t) + NAMING_DATA_MAX];
	} task;
	struct {
		struct naming_answer head;
		struct message_stack_frame frames[VS_STACK_FRAMES_MAX];
	} answer;
	struct naming_modules modules;
	union {
		struct naming_head head;
		struct naming_frames frames;
		struct naming_build_id build_id;
	} said; /* what the naming process wrote last */
};

/* ---- the namer ---- */

static void namer_forget(struct opener *o)
{
	if (o->socket >= 0)
		close(o->socket);
	if (o->pidfd >= 0)
		close(o->pidfd);
	o->socket = o->pidfd = -1;
	o->namer = 0;
}

/* Kills the naming process. Returns its exit code, or -1 if it did not exit by itself. */
static int namer_end(struct opener *o)
{
	struct pollfd gone = {.fd = o->pidfd, .events = POLLIN};
	int status = 0;
	bool reaped;

	kill(o->namer, SIGKILL); /* does not change the code of one that has exited */
	if (o->pidfd >= 0)
		poll(&gone, 1, KILL_WAIT_MS);
	reaped = waitpid(o->namer, &status, o->pidfd >= 0 ? WNOHANG : 0) == o->namer;
	for (size_t i = 0; i < STUCK_MAX && !reaped; i++) {
		if (!o->stuck[i]) {
			o->stuck[i] = o->namer;
			break;
		}
	}
	namer_forget(o);
	return reaped && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* The naming process died or hung while it worked on `p` (NULL: on no process). Blames the file
 * that it was reading. */
static void namer_mourn(struct opener *o, const struct process *p)
{
	const uint32_t at = atomic_load_explicit(&o->place->module, memory_order_relaxed);
	const uint64_t now = clock_monotonic_ms();
	struct file_id process;

	if (now - o->born_ms > YOUNG_MS || !o->backoff_ms)
		o->backoff_ms = BACKOFF_MS;
	else if (o->backoff_ms < BACKOFF_MAX_MS)
		o->backoff_ms *= 2;
	o->retry_ms = now + o->backoff_ms;
	if (!p)
		return;
	if (at < p->n && p->modules[at].id.inode) {
		bad_files_add(o->bad, &p->modules[at].id, p->modules[at].owner);
		return;
	}
	process = bad_files_process(p->pid, p->start_time);
	bad_files_add(o->bad, &process, 0);
}

/* Returns only in the caller. The naming process inherits nothing but the socket and the place. */
static int namer_start(struct opener *o)
{
	const pid_t self = getpid();
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		return -errno;
	atomic_store_explicit(&o->place->module, NAMING_NO_MODULE, memory_order_relaxed);
	o->namer = fork();
	if (!o->namer) {
		bad_files_unmap(o->bad);
		if (dup2(pair[1], OPENER_ASKER) < 0)
			_exit(NAMING_UNCONFINED);
		_exit(naming_serve(o->body, OPENER_ASKER, o->place, self));
	}
	close(pair[1]);
	if (o->namer < 0) {
		o->namer = 0;
		close(pair[0]);
		return -EAGAIN;
	}
	o->socket = pair[0];
	o->pidfd = (int)syscall(SYS_pidfd_open, o->namer, 0);
	o->born_ms = clock_monotonic_ms();
	return 0;
}

/* Starts a naming process if there is none and a start is allowed now. Returns true if there is
 * one. */
static bool namer_ready(struct opener *o)
{
	struct pollfd socket = {.fd = o->socket};

	if (o->namer && poll(&socket, 1, 0) > 0) {
		const int code = namer_end(o);

		o->unconfined |= code == NAMING_UNCONFINED;
		if (code != NAMING_FULL)
			namer_mourn(o, NULL);
	}
	if (o->namer)
		return true;
	for (size_t i = 0; i < STUCK_MAX; i++) {
		if (o->stuck[i] && waitpid(o->stuck[i], NULL, WNOHANG) == o->stuck[i])
			o->stuck[i] = 0;
	}
	/* The last place stays free for the one that is started here. */
	return !o->unconfined && !o->stuck[STUCK_MAX - 1] && clock_monotonic_ms() >= o->retry_ms &&
	       !namer_start(o);
}

/* ---- requests of the naming process ---- */

static int modules_send(struct opener *o, struct process *p, uint32_t list)
{
	struct naming_modules *m = &o->modules;

	if (list == p->list)
		processes_look_again(o->processes, p);
	m->head = (struct naming_head){NAMING_MODULES, p->list};
	m->n = (uint32_t)p->n;
	for (size_t i = 0; i < p->n; i++)
		m->of[i] = p->modules[i].seen;
	return packet_send(o->socket, m, sizeof(*m) - sizeof(m->of) + p->n * sizeof(m->of[0]), -1);
}

static int file_send(struct opener *o, int fd, const struct file_id *id)
{
	const struct naming_file file = {
		.head = {NAMING_FILE, fd < 0 ? (uint32_t)-fd : 0},
		.id = fd < 0 ? (struct file_id){0} : *id,
	};
	const int err = packet_send(o->socket, &file, sizeof(file), fd < 0 ? -1 : fd);

	if (fd >= 0)
		close(fd);
	return err;
}

static int module_send(struct opener *o, struct process *p, uint32_t index)
{
	struct module *m = index < p->n ? &p->modules[index] : NULL;
	const struct file_id process = o->bad->current;
	struct file_id unopened;
	int fd;

	if (!m)
		return file_send(o, -EINVAL, NULL);
	unopened = bad_files_unopened(m->device, m->inode);
	if (bad_files_has(o->bad, &unopened, 0))
		return file_send(o, -EPERM, NULL);
	/* If open() does not return, the asker kills this process and blames this file. */
	o->bad->current = unopened;
	fd = module_open(p->pid, m);
	o->bad->current = process;
	if (fd >= 0 && bad_files_has(o->bad, &m->id, m->owner)) {
		close(fd);
		fd = -EPERM;
	}
	return file_send(o, fd, &m->id);
}

static int debug_send(struct opener *o, size_t bytes)
{
	struct file_id id;
	int fd = module_open_debug(o->said.build_id.bytes, bytes, &id);

	return file_send(o, fd, &id);
}

/* Waits for a message of the naming process. Returns the number of bytes in o->said, or -errno if
 * the process ended, hangs, or takes too long. */
static long namer_hear(struct opener *o, unsigned int *blocked, uint64_t begin_cpu_ms,
		       clockid_t cpu)
{
	struct pollfd fds[] = {{.fd = o->socket, .events = POLLIN}, {.fd = OPENER_ASKER}};

	for (;;) {
		if (poll(fds, 2, WAIT_MS) < 0 && errno != EINTR)
			return -errno;
		if (fds[1].revents & (POLLHUP | POLLERR))
			_exit(NAMING_OVER);
		if (fds[0].revents & POLLIN)
			return packet_receive(o->socket, &o->said, sizeof(o->said), NULL);
		if (fds[0].revents)
			return 0;
		*blocked += modules_process_state(o->namer) != 'R';
		if (clock_read_ns(cpu) / 1000000 - begin_cpu_ms > STACK_CPU_MS ||
		    *blocked > BLOCKED_WAITS)
			return -ETIMEDOUT;
	}
}

/* Serves the naming process until it has named the stack. Returns the number of frames, or -errno
 * if the process must be ended. */
static long namer_serve(struct opener *o, struct process *p)
{
	unsigned int blocked = 0;
	clockid_t cpu;
	uint64_t begin_cpu_ms;

	if (clock_getcpuclockid(o->namer, &cpu))
		return -ESRCH;
	begin_cpu_ms = clock_read_ns(cpu) / 1000000;
	for (;;) {
		const long len = namer_hear(o, &blocked, begin_cpu_ms, cpu);
		const uint32_t argument = o->said.head.argument;
		int err;

		if (len < (long)sizeof(struct naming_head))
			return len < 0 ? len : -EPIPE;
		switch (o->said.head.kind) {
		case NAMING_GET_MODULES:
			err = modules_send(o, p, argument);
			break;
		case NAMING_GET_FILE:
			err = module_send(o, p, argument);
			break;
		case NAMING_GET_DEBUG:
			err = len == (long)sizeof(o->said.build_id) ? debug_send(o, argument)
								    : -EPROTO;
			break;
		case NAMING_FRAMES:
			if (argument > VS_STACK_FRAMES_MAX ||
			    (size_t)len !=
				    sizeof(o->said.head) + argument * sizeof(o->said.frames.of[0]))
				return -EPROTO;
			return argument;
		default:
			return -EPROTO;
		}
		if (err)
			return err;
	}
}

static int task_send(struct opener *o, const struct process *p)
{
	const struct naming_request *r = &o->request.head;
	const size_t bytes = r->n_addresses * sizeof(uint64_t) + r->data_bytes;

	o->task.head = (struct naming_task){.head = {NAMING_TASK, 0},
					    .pid = p->pid,
					    .start_time = p->start_time,
					    .n_addresses = r->n_addresses,
					    .data_bytes = r->data_bytes};
	memcpy(o->task.rest, o->request.rest, bytes);
	return packet_send(o->socket, &o->task, sizeof(o->task.head) + bytes, -1);
}

/* Like namer_serve(), but starts a new naming process if the old one used up its memory. */
static long stack_name(struct opener *o, struct process *p)
{
	long n = -EAGAIN;

	for (int attempt = 0; attempt < 2; attempt++) {
		int code;

		if (!namer_ready(o))
			return -EAGAIN;
		n = task_send(o, p);
		if (!n)
			n = namer_serve(o, p);
		if (n >= 0)
			return n;
		code = namer_end(o);
		o->unconfined |= code == NAMING_UNCONFINED;
		if (code == NAMING_FULL)
			continue;
		namer_mourn(o, o->unconfined ? NULL : p);
		break;
	}
	return n;
}

/* ---- requests ---- */

/* Fills a frame with the module and the offset in it, which are known without reading a file. */
static void frame_place(const struct process *p, uint64_t address, bool is_leaf,
			struct message_stack_frame *frame)
{
	const uint64_t inside = is_leaf ? address : address - 1;
	const long at = modules_find(p->modules, p->n, inside);
	const struct naming_module *m = at < 0 ? NULL : &p->modules[at].seen;

	*frame = (struct message_stack_frame){.offset = address};
	if (!m)
		return;
	memcpy(frame->module, m->name, sizeof(frame->module));
	frame->offset = address - m->code_begin + m->code_offset;
}

static uint64_t timeval_ns(const struct timeval *t)
{
	return (uint64_t)t->tv_sec * 1000000000 + (uint64_t)t->tv_usec * 1000;
}

/* Returns the CPU time of this process, the namer, and the namers before it. */
static uint64_t cpu_ns(const struct opener *o)
{
	struct rusage past = {0};
	clockid_t namer;

	getrusage(RUSAGE_CHILDREN, &past);
	return clock_read_ns(CLOCK_PROCESS_CPUTIME_ID) + timeval_ns(&past.ru_utime) +
	       timeval_ns(&past.ru_stime) +
	       (o->namer && !clock_getcpuclockid(o->namer, &namer) ? clock_read_ns(namer) : 0);
}

/* Names a stack; the frames are then in o->answer. */
static enum naming_outcome request_answer(struct opener *o, uint64_t start_time, uint32_t *n_frames)
{
	const struct naming_request *r = &o->request.head;
	const uint64_t *addresses = (const uint64_t *)o->request.rest;
	struct process *p = processes_get(o->processes, r->pid, start_time);
	long n;

	if (!p)
		return NAMING_GONE;
	n = stack_name(o, p);
	if (n >= 0) {
		memcpy(o->answer.frames, o->said.frames.of, (size_t)n * sizeof(*o->answer.frames));
		*n_frames = (uint32_t)n;
		return NAMING_DONE;
	}
	*n_frames = r->n_addresses;
	for (size_t i = 0; i < r->n_addresses; i++)
		frame_place(p, addresses[i], !i, &o->answer.frames[i]);
	return o->unconfined ? NAMING_UNAVAILABLE : NAMING_WITHOUT;
}

static void request_serve(struct opener *o)
{
	const struct naming_request *r = &o->request.head;
	struct naming_answer *answer = &o->answer.head;
	const uint64_t start_time = modules_start_time(r->pid);
	const struct file_id process = bad_files_process(r->pid, start_time);

	*answer = (struct naming_answer){.id = r->id, .outcome = NAMING_GONE};
	if (start_time && bad_files_has(o->bad, &process, 0)) {
		answer->outcome = NAMING_WITHOUT;
	} else if (start_time) {
		/* If a call does not return, the asker kills this process and blames the file. */
		o->bad->current = process;
		answer->outcome = request_answer(o, start_time, &answer->n_frames);
		o->bad->current = (struct file_id){0};
	}
	answer->cpu_ns = cpu_ns(o);
	if (packet_send(OPENER_ASKER, &o->answer,
			sizeof(*answer) + answer->n_frames * sizeof(o->answer.frames[0]), -1))
		_exit(NAMING_OVER);
}

bool opener_is_meant(int argc, char **argv)
{
	return argc > 0 && !strcmp(argv[0], OPENER_NAME);
}

/* The asker may run at a real-time priority. Work on a hostile file must not. */
static void priority_drop(void)
{
	sched_setscheduler(0, SCHED_OTHER, &(struct sched_param){0});
}

static struct opener *opener_new(const struct naming_body *body)
{
	struct opener *o = calloc(1, sizeof(*o));
	void *place;

	if (!o)
		return NULL;
	o->body = body;
	o->pidfd = o->socket = -1;
	o->bad = bad_files_map(OPENER_BAD_FILES);
	place = mmap(NULL, sizeof(*o->place), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
		     -1, 0);
	o->processes = processes_new();
	if (!o->bad || !o->processes || place == MAP_FAILED) {
		free(o);
		return NULL;
	}
	o->place = place;
	return o;
}

int opener_main(const struct naming_body *body)
{
	struct opener *o = opener_new(body);

	priority_drop();
	if (!o || confine_follow_parent(getppid()))
		return 1; /* `o` goes with the process. NOLINT(clang-analyzer-*) */
	for (;;) {
		const struct naming_request *r = &o->request.head;
		const long len =
			packet_receive(OPENER_ASKER, &o->request, sizeof(o->request), NULL);

		if (len < (long)sizeof(*r) || r->n_addresses > NAMING_ADDRESSES_MAX ||
		    r->data_bytes > NAMING_DATA_MAX ||
		    len != (long)(sizeof(*r) + r->n_addresses * sizeof(uint64_t) + r->data_bytes))
			return NAMING_OVER;
		request_serve(o);
	}
}
