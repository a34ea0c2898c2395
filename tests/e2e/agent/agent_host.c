// SPDX-License-Identifier: GPL-2.0-only
#include "tests/e2e/agent/agent_host.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "clock/sample.h"

static uint64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

int agent_host_init(struct agent_host *h)
{
	memset(h, 0, sizeof(*h));
	snprintf(h->path, sizeof(h->path), "/tmp/vcpuscope-test.%d.sock", (int)getpid());
	snprintf(h->log_path, sizeof(h->log_path), "/tmp/vcpuscope-test.%d.log", (int)getpid());
	h->listener = h->fd = -1;
	frame_reader_init(&h->reader);
	h->unpacker = frame_unpacker_new();
	h->decoder = batch_decoder_new();
	h->echo_round_trip_min = UINT64_MAX;
	signal(SIGPIPE, SIG_IGN);
	return h->unpacker && h->decoder ? 0 : -ENOMEM;
}

void agent_host_fini(struct agent_host *h)
{
	if (h->agent > 0) {
		kill(h->agent, SIGKILL);
		waitpid(h->agent, NULL, 0);
	}
	agent_host_hang_up(h);
	agent_host_unlisten(h);
	frame_reader_fini(&h->reader);
	frame_unpacker_free(h->unpacker);
	batch_decoder_free(h->decoder);
	frame_writer_free(h->writer);
	unlink(h->log_path);
}

int agent_host_listen(struct agent_host *h)
{
	struct sockaddr_un un = {.sun_family = AF_UNIX};

	snprintf(un.sun_path, sizeof(un.sun_path), "%s", h->path);
	unlink(h->path);
	h->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (h->listener < 0 || bind(h->listener, (struct sockaddr *)&un, sizeof(un)) < 0 ||
	    listen(h->listener, 1) < 0)
		return -errno;
	return 0;
}

void agent_host_unlisten(struct agent_host *h)
{
	if (h->listener >= 0)
		close(h->listener);
	h->listener = -1;
	unlink(h->path);
}

int agent_host_spawn(struct agent_host *h, const char *program, const char *argument,
		     const char *argument2)
{
	char connect_to[128];

	snprintf(connect_to, sizeof(connect_to), "unix:%s", h->path);
	h->agent = fork();
	if (h->agent < 0)
		return -errno;
	if (!h->agent) {
		int log = open(h->log_path, O_WRONLY | O_CREAT | O_TRUNC, 0600);

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		dup2(log, STDERR_FILENO);
		execl(program, program, "--connect", connect_to, argument, argument2, NULL);
		_exit(127);
	}
	return 0;
}

static void batch_book(struct agent_host *h, const struct batch *batch)
{
	struct host_cpu *cpu;

	if (batch->cpu >= HOST_CPUS_MAX)
		return;
	cpu = &h->cpus[batch->cpu];
	for (size_t i = 0; i < batch->n_events; i++) {
		const struct vs_event *event = &batch->events[i];
		/* Neighbours in time may have changed places; their numbers are near. */
		int64_t ahead = (int32_t)(event->seq - (uint32_t)cpu->next);

		if (event->time < cpu->watermark)
			cpu->late++;
		if (event->type == VS_EVENT_TASK_NAME && event->pid == 2)
			h->kthreadd_named++;
		if (ahead > 0)
			cpu->gaps += (uint64_t)ahead;
		else if (ahead < 0)
			cpu->gaps--; /* counted as a gap a moment ago */
		if (event->type == VS_EVENT_LOST) {
			cpu->lost += event->arg0;
			cpu->next = cpu->next + (uint64_t)ahead + event->arg0;
			continue;
		}
		cpu->received++;
		if (ahead >= 0)
			cpu->next += (uint64_t)ahead + 1;
	}
	if (batch->n_events && batch->events[0].time < h->promise)
		h->heartbeat_violations++;
	cpu->watermark = batch->watermark;
	cpu->emitted = batch->emitted;
	cpu->dropped_kernel = batch->dropped_kernel;
	cpu->dropped_user = batch->dropped_user;
}

static void echo_book(struct agent_host *h, const struct message_echo_reply *reply)
{
	uint64_t now = clock_tsc_read(), round_trip = now - h->echo_sent_tsc;

	if (reply->id != h->echo_id)
		return;
	h->echoes++;
	if (reply->received < h->echo_sent_tsc || reply->sent < reply->received ||
	    reply->sent > now)
		h->echo_disorder++;
	if (round_trip < h->echo_round_trip_min)
		h->echo_round_trip_min = round_trip;
	if (round_trip > h->echo_round_trip_max)
		h->echo_round_trip_max = round_trip;
}

static void log_book(struct agent_host *h, const struct message_kernel_log *log)
{
	for (size_t i = 0; h->log_wanted && i < log->n_lines; i++) {
		if (!strstr(log->lines[i].text, h->log_wanted))
			continue;
		h->log_seen = true;
		h->log_line = log->lines[i];
	}
}

static void frame_book(struct agent_host *h, const struct frame_view *frame)
{
	static struct message_kernel_log log;
	struct message_echo_reply reply;
	const uint8_t *payload;
	struct batch batch;
	int64_t order;
	size_t len;

	order = frame_order_check(&h->order, &frame->header);
	if (order < 0)
		h->replayed_frames++;
	else
		h->lost_frames += (uint64_t)order;
	if (frame_unpack(h->unpacker, frame, &payload, &len))
		return;
	switch (frame->header.kind) {
	case FRAME_HELLO:
		h->hellos += message_hello_unpack(payload, len, &h->hello) == 0;
		h->agent_session = frame->header.session_id;
		break;
	case FRAME_BATCH:
		h->batches++;
		h->batch_bytes += frame->len;
		if (batch_decode(h->decoder, payload, len, &batch) == 0)
			batch_book(h, &batch);
		break;
	case FRAME_HEARTBEAT:
		h->heartbeats += message_heartbeat_unpack(payload, len, &h->heartbeat) == 0;
		h->promise = h->heartbeat.time;
		break;
	case FRAME_ECHO_REPLY:
		if (message_echo_reply_unpack(payload, len, &reply) == 0)
			echo_book(h, &reply);
		break;
	case FRAME_KERNEL_LOG:
		if (message_kernel_log_unpack(payload, len, &log) == 0)
			log_book(h, &log);
		break;
	}
}

int agent_host_send_bytes(struct agent_host *h, const void *data, size_t len)
{
	return write(h->fd, data, len) == (ssize_t)len ? 0 : -EIO;
}

static int payload_send(struct agent_host *h, enum frame_kind kind, struct byte_buffer *payload)
{
	struct byte_buffer out = {0};
	int err = frame_write(h->writer, kind, payload->data, payload->len, &out);

	if (!err)
		err = agent_host_send_bytes(h, out.data, out.len);
	byte_buffer_fini(&out);
	byte_buffer_fini(payload);
	return err;
}

static void host_greet(struct agent_host *h)
{
	static struct message_hello hello;
	struct byte_buffer payload = {0};

	frame_writer_free(h->writer);
	h->writer = frame_writer_new(++h->sessions);
	hello = (struct message_hello){
		.protocol_min = VS_PROTOCOL_MIN,
		.protocol_max = VS_PROTOCOL_MAX,
		.role = STREAM_ROLE_HOST,
		.clock = STREAM_CLOCK_HOST_TSC,
		.clock_hz = 1000000000,
		.program_version = "test",
	};
	message_hello_pack(&hello, &payload);
	payload_send(h, FRAME_HELLO, &payload);
}

int agent_host_connect(struct agent_host *h, const char *path)
{
	struct sockaddr_un un = {.sun_family = AF_UNIX};

	snprintf(un.sun_path, sizeof(un.sun_path), "%s", path);
	h->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (h->fd < 0 || connect(h->fd, (struct sockaddr *)&un, sizeof(un)) < 0 ||
	    fcntl(h->fd, F_SETFL, O_NONBLOCK) < 0)
		return -errno;
	host_greet(h);
	return 0;
}

int agent_host_send_echo(struct agent_host *h)
{
	struct message_echo_request request = {.id = ++h->echo_id};
	struct byte_buffer payload = {0};

	message_echo_request_pack(&request, &payload);
	h->echo_sent_tsc = clock_tsc_read();
	return payload_send(h, FRAME_ECHO_REQUEST, &payload);
}

void agent_host_hang_up(struct agent_host *h)
{
	if (h->fd >= 0)
		close(h->fd);
	h->fd = -1;
	frame_reader_fini(&h->reader);
	frame_reader_init(&h->reader);
}

/* False when the agent closed. */
static bool host_read(struct agent_host *h)
{
	static uint8_t bytes[256 * 1024];
	struct frame_view frame;
	ssize_t n = read(h->fd, bytes, sizeof(bytes));

	if (n < 0 && errno == EAGAIN)
		return true;
	if (n <= 0)
		return false;
	h->bytes += (uint64_t)n;
	frame_reader_push(&h->reader, bytes, (size_t)n);
	while (frame_reader_next(&h->reader, &frame) > 0)
		frame_book(h, &frame);
	return true;
}

bool agent_host_serve(struct agent_host *h, unsigned int ms)
{
	uint64_t until = now_ms() + ms;

	for (uint64_t now = now_ms(); now < until; now = now_ms()) {
		struct pollfd fd = {.events = POLLIN};

		fd.fd = h->fd >= 0 ? h->fd : h->listener; /* -1: only time passes */
		if (poll(&fd, 1, (int)(until - now)) <= 0)
			continue;
		if (h->fd < 0) {
			h->fd = accept4(h->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
			if (h->fd >= 0)
				host_greet(h);
		} else if (!host_read(h)) {
			agent_host_hang_up(h);
			return false;
		}
	}
	return true;
}

int agent_host_stop_agent(struct agent_host *h)
{
	int status = 0;

	kill(h->agent, SIGTERM);
	if (h->fd >= 0)
		agent_host_serve(h, 3000);
	if (waitpid(h->agent, &status, 0) < 0)
		return -errno;
	h->agent = 0;
	return status;
}

struct agent_host_sums agent_host_sums(const struct agent_host *h)
{
	struct agent_host_sums s = {0};

	for (size_t i = 0; i < HOST_CPUS_MAX; i++) {
		s.received += h->cpus[i].received;
		s.lost += h->cpus[i].lost;
		s.gaps += h->cpus[i].gaps;
		s.emitted += h->cpus[i].emitted;
		s.dropped_kernel += h->cpus[i].dropped_kernel;
		s.dropped_user += h->cpus[i].dropped_user;
		s.late += h->cpus[i].late;
	}
	return s;
}

double agent_host_agent_cpu_s(const struct agent_host *h)
{
	struct timespec t;
	clockid_t clock;

	if (clock_getcpuclockid(h->agent, &clock) || clock_gettime(clock, &t))
		return 0;
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

uint64_t agent_host_agent_rss_peak(const struct agent_host *h)
{
	unsigned long kib = 0;
	char path[64], line[256];
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)h->agent);
	file = fopen(path, "re");
	if (!file)
		return 0;
	while (fgets(line, sizeof(line), file) && sscanf(line, "VmHWM: %lu kB", &kib) != 1)
		;
	fclose(file);
	return (uint64_t)kib * 1024;
}

static void pingpong_bounce(int from, int to, unsigned int pause_us, bool begins)
{
	char byte = 0;

	if (begins && write(to, &byte, 1) != 1)
		_exit(1);
	while (read(from, &byte, 1) == 1) {
		if (begins && pause_us)
			usleep(pause_us);
		if (write(to, &byte, 1) != 1)
			break;
	}
	_exit(0);
}

int pingpong_start(pid_t *child, unsigned int cpu, unsigned int pause_us)
{
	int there[2], back[2];
	cpu_set_t set;

	*child = fork();
	if (*child < 0)
		return -errno;
	if (*child)
		return 0;
	setpgid(0, 0);
	prctl(PR_SET_PDEATHSIG, SIGKILL); /* a test that failed does not stop us */
	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	sched_setaffinity(0, sizeof(set), &set);
	if (pipe(there) < 0 || pipe(back) < 0)
		_exit(1);
	if (fork() == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		pingpong_bounce(there[0], back[1], 0, false);
	}
	pingpong_bounce(back[0], there[1], pause_us, true);
	_exit(0);
}

void pingpong_stop(pid_t child)
{
	kill(-child, SIGKILL);
	waitpid(child, NULL, 0);
}
