/* SPDX-License-Identifier: GPL-2.0-only */
/* Tests the link on real sockets: it finds a present agent, waits for an absent one, connects
 * again, explains a port that another client uses, and accepts any bytes without harm. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#include "host-collector/decode/worker.h"
#include "host-collector/link/link.h"
#include "host-collector/link/socket_file.h"
#include "proto/log_limit.h"
#include "tests/unit/loop_run.h"
#include "tests/unit/strangers.h"

struct rig {
	uv_loop_t loop;
	uv_timer_t limit;
	struct guest_link *link;
	char folder[64], path[96];
	int listener, peer; /* the agent's end */
	struct frame_writer *agent;
	struct frame_reader heard; /* by the agent */
	struct byte_buffer wire, payload;
	size_t frames, hellos, observations, notes;
	struct message_echo_observation last;
	char note[VS_TEXT_MAX], before[VS_TEXT_MAX]; /* the last, and the one before */
};

static void on_frame(void *context, struct frame_item *frame, uint64_t arrival_tsc)
{
	(void)frame;
	assert_true(arrival_tsc > 0);
	((struct rig *)context)->frames++;
}

static void on_observation(void *context, const struct message_echo_observation *o)
{
	struct rig *r = context;

	r->observations++;
	r->last = *o;
}

static void on_hello(void *context, const struct message_hello *hello)
{
	(void)hello;
	((struct rig *)context)->hellos++;
}

static void on_heartbeat(void *context, const struct message_heartbeat *h)
{
	(void)context, (void)h;
}

static void on_note(void *context, enum note_kind kind, const char *text)
{
	struct rig *r = context;

	(void)kind;
	r->notes++;
	memcpy(r->before, r->note, sizeof(r->before));
	snprintf(r->note, sizeof(r->note), "%s", text);
}

static int rig_setup(void **state)
{
	struct rig *r = calloc(1, sizeof(*r));

	uv_loop_init(&r->loop);
	uv_timer_init(&r->loop, &r->limit);
	snprintf(r->folder, sizeof(r->folder), "/tmp/test_link.XXXXXX");
	if (!mkdtemp(r->folder))
		return -1;
	snprintf(r->path, sizeof(r->path), "%s/port", r->folder);
	r->listener = r->peer = -1;
	r->agent = frame_writer_new(0x1111);
	frame_reader_init(&r->heard);
	*state = r;
	return 0;
}

static int rig_teardown(void **state)
{
	struct rig *r = *state;

	guest_link_close(r->link);
	uv_close((uv_handle_t *)&r->limit, NULL);
	uv_run(&r->loop, UV_RUN_DEFAULT);
	assert_int_equal(uv_loop_close(&r->loop), 0); /* nothing was left open */
	if (r->listener >= 0)
		close(r->listener);
	if (r->peer >= 0)
		close(r->peer);
	unlink(r->path);
	rmdir(r->folder);
	frame_writer_free(r->agent);
	frame_reader_fini(&r->heard);
	byte_buffer_fini(&r->wire);
	byte_buffer_fini(&r->payload);
	free(r);
	return 0;
}

static void run_ms(struct rig *r, uint64_t ms)
{
	loop_run_ms(&r->loop, &r->limit, ms);
}

enum { PATIENCE_MS = 10000 }; /* for what takes a few ms on an idle machine */

static void link_to(struct rig *r, const char *prefix)
{
	static struct message_hello ours = {.protocol_min = 1,
					    .protocol_max = 1,
					    .role = STREAM_ROLE_HOST,
					    .clock = STREAM_CLOCK_HOST_TSC,
					    .clock_hz = 1000000000};
	const struct link_events events = {on_frame,     on_observation, on_hello,
					   on_heartbeat, on_note,        r};
	struct link_address address;
	char text[128], why[256];

	snprintf(text, sizeof(text), "%s%s%s", prefix, r->path,
		 strcmp(prefix, "hybrid-connect:") ? "" : ":5000");
	assert_int_equal(link_address_parse(text, &address, why, sizeof(why)), 0);
	address.vmm_pid = getpid(); /* this test is the VMM, too */
	assert_int_equal(guest_link_open(&r->loop, &address, &ours, NULL, &events, &r->link), 0);
}

static enum link_state state_of(struct rig *r)
{
	struct guest_link_stats stats;

	guest_link_stats_get(r->link, &stats);
	return stats.state;
}

/* Runs until `*value` is at least `want`. */
static void run_until(struct rig *r, const size_t *value, size_t want)
{
	for (int ms = 0; ms < PATIENCE_MS && *value < want; ms += 10)
		run_ms(r, 10);
	assert_true(*value >= want);
}

static void run_until_state(struct rig *r, enum link_state state)
{
	for (int ms = 0; ms < PATIENCE_MS && state_of(r) != state; ms += 10)
		run_ms(r, 10);
	assert_int_equal(state_of(r), state);
}

/* ---- the agent's end ---- */

static struct sockaddr_un port_address(struct rig *r)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};

	memcpy(address.sun_path, r->path, strlen(r->path) + 1);
	return address;
}

static void port_listen(struct rig *r)
{
	struct sockaddr_un address = port_address(r);

	unlink(r->path);
	r->listener = socket(AF_UNIX, SOCK_STREAM, 0);
	assert_int_equal(bind(r->listener, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(listen(r->listener, 4), 0);
}

static void port_accept(struct rig *r)
{
	r->peer = accept4(r->listener, NULL, NULL, SOCK_NONBLOCK);
	assert_true(r->peer >= 0);
}

static void agent_say(struct rig *r, enum frame_kind kind)
{
	r->wire.len = 0;
	assert_int_equal(frame_write(r->agent, kind, r->payload.data, r->payload.len, &r->wire), 0);
	r->payload.len = 0;
	assert_int_equal(write(r->peer, r->wire.data, r->wire.len), (ssize_t)r->wire.len);
}

static void agent_hello(struct rig *r)
{
	static struct message_hello hello = {.protocol_min = 1,
					     .protocol_max = 1,
					     .role = STREAM_ROLE_GUEST,
					     .clock = STREAM_CLOCK_GUEST_TSC,
					     .clock_hz = 2000000000,
					     .program_version = "9.9",
					     .kernel_release = "6.1"};

	message_hello_pack(&hello, &r->payload);
	agent_say(r, FRAME_HELLO);
}

/* Frames of `kind` that the agent has heard since the last call. Answers echo requests. */
static size_t agent_heard(struct rig *r, enum frame_kind kind, bool answer)
{
	struct frame_unpacker *unpacker = frame_unpacker_new();
	struct frame_view frame;
	uint8_t bytes[4096];
	size_t n = 0;
	ssize_t got;

	while ((got = read(r->peer, bytes, sizeof(bytes))) > 0)
		frame_reader_push(&r->heard, bytes, (size_t)got);
	while (frame_reader_next(&r->heard, &frame)) {
		struct message_echo_request request;
		const uint8_t *payload;
		size_t len;

		n += frame.header.kind == kind;
		if (!answer || frame.header.kind != FRAME_ECHO_REQUEST)
			continue;
		assert_int_equal(frame_unpack(unpacker, &frame, &payload, &len), 0);
		assert_int_equal(message_echo_request_unpack(payload, len, &request), 0);
		message_echo_reply_pack(&(struct message_echo_reply){request.id, 10, 20},
					&r->payload);
		agent_say(r, FRAME_ECHO_REPLY);
	}
	frame_unpacker_free(unpacker);
	return n;
}

static void run_until_heard(struct rig *r, enum frame_kind kind, bool answer)
{
	for (int ms = 0; ms < PATIENCE_MS; ms += 10) {
		if (agent_heard(r, kind, answer))
			return;
		run_ms(r, 10);
	}
	fail_msg("no frame of kind %d was heard", kind);
}

/* ---- properties ---- */

static void test_waits_for_a_port_then_talks(void **state)
{
	struct rig *r = *state;

	link_to(r, "");
	run_ms(r, 150);
	assert_int_equal(state_of(r), LINK_DOWN);
	assert_int_equal(r->notes, 1); /* said once, not at each attempt */
	run_ms(r, 300);
	assert_int_equal(r->notes, 1);
	port_listen(r);
	run_until_state(r, LINK_SILENT);
	port_accept(r);
	run_until_heard(r, FRAME_HELLO, false);
	agent_hello(r);
	run_until_state(r, LINK_TALKING);
	assert_int_equal(r->hellos, 1);
	assert_non_null(strstr(r->note, "agent 9.9 on guest kernel 6.1"));
	run_until_heard(r, FRAME_ECHO_REQUEST, true);
	run_until(r, &r->observations, 1);
	assert_true(r->last.host_sent && r->last.host_received > r->last.host_sent);
	assert_int_equal(r->last.guest_received, 10);
}

/* The link has dialled again: another run of the agent answers. */
static void agent_returns(struct rig *r)
{
	run_until_state(r, LINK_SILENT);
	port_accept(r);
	frame_reader_fini(&r->heard);
	frame_reader_init(&r->heard);
	run_until_heard(r, FRAME_HELLO, false);
	frame_writer_free(r->agent);
	r->agent = frame_writer_new(0x2222);
	agent_hello(r);
	run_until_state(r, LINK_TALKING);
}

static void test_comes_back_after_a_break(void **state)
{
	struct rig *r = *state;

	port_listen(r);
	link_to(r, "unix:");
	run_until_state(r, LINK_SILENT);
	port_accept(r);
	agent_hello(r);
	run_until_state(r, LINK_TALKING);
	close(r->peer);
	run_until_state(r, LINK_DOWN);
	assert_non_null(strstr(r->note, "is down: "));
	agent_returns(r);
	assert_int_equal(r->hellos, 2);
}

/* The VMM is asked for a port of its guest, whatever it answers. */
static void test_asks_a_vmm_for_a_port(void **state)
{
	static const char *const refusals[] = {"", "NO\n", "OK \n", "OK 7", "\n"};
	const size_t n = sizeof(refusals) / sizeof(refusals[0]);
	struct rig *r = *state;

	port_listen(r);
	fcntl(r->listener, F_SETFL, O_NONBLOCK);
	link_to(r, "hybrid-connect:");
	for (size_t i = 0; i <= n; i++) {
		char asked[32] = "";
		ssize_t got = -1;

		r->peer = -1;
		for (int ms = 0; ms < PATIENCE_MS && r->peer < 0; ms += 10) {
			run_ms(r, 10);
			r->peer = accept4(r->listener, NULL, NULL, SOCK_NONBLOCK);
		}
		for (int ms = 0; ms < PATIENCE_MS && got <= 0; ms += 10) {
			run_ms(r, 10);
			got = recv(r->peer, asked, sizeof(asked) - 1, 0);
		}
		assert_string_equal(asked, "CONNECT 5000\n");
		assert_int_equal(state_of(r), LINK_DOWN);
		if (i == n)
			break;
		assert_int_equal(write(r->peer, refusals[i], strlen(refusals[i])),
				 (ssize_t)strlen(refusals[i]));
		close(r->peer);
	}
	assert_int_equal(write(r->peer, "OK 10", 5), 5);
	run_ms(r, 30);
	assert_int_equal(state_of(r), LINK_DOWN);
	/* What follows the line is the agent's. */
	assert_int_equal(write(r->peer, "73\n", 3), 3);
	agent_hello(r);
	run_until_state(r, LINK_TALKING);
	assert_int_equal(r->hellos, 1);
}

static void test_listens_for_agents_that_dial(void **state)
{
	struct rig *r = *state;
	struct sockaddr_un address = port_address(r);

	for (int round = 0; round < 2; round++) {
		if (!round)
			link_to(r, "listen:unix:");
		run_ms(r, 20);
		r->peer = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
		assert_int_equal(connect(r->peer, (struct sockaddr *)&address, sizeof(address)), 0);
		agent_hello(r);
		run_until_state(r, LINK_TALKING);
		assert_int_equal(r->hellos, round + 1);
		if (round)
			break;
		close(r->peer);
		run_until_state(r, LINK_DOWN);
		frame_writer_free(r->agent);
		r->agent = frame_writer_new(0x2222);
	}
}

/* Dials as an agent does: again, if the backlog is full. */
static void agent_dial(struct rig *r)
{
	struct sockaddr_un address = port_address(r);
	int err = -1;

	r->peer = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
	for (int ms = 0; ms < PATIENCE_MS && err; ms += 10) {
		err = connect(r->peer, (struct sockaddr *)&address, sizeof(address));
		run_ms(r, 10);
	}
	assert_int_equal(err, 0);
	agent_hello(r);
}

/* On a plain port the first that introduces itself is the agent; others may do what they like. */
static void test_strangers_do_not_keep_the_agent_out(void **state)
{
	enum { STRANGERS = 1000, HEARD_MAX_MS = 4000 };
	static const enum stranger_kind kinds[] = {STRANGERS_SILENT, STRANGERS_GARBAGE,
						   STRANGERS_FLEETING};
	struct rig *r = *state;
	struct sockaddr_un address = port_address(r);

	link_to(r, "listen:unix:");
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		pid_t pid;
		uint64_t begin;

		run_ms(r, 20);
		pid = strangers_start((struct sockaddr *)&address, sizeof(address), STRANGERS,
				      kinds[i]);
		assert_true(pid > 0);
		run_ms(r, 200);
		begin = uv_hrtime();
		agent_dial(r);
		run_until(r, &r->hellos, i + 1);
		begin = (uv_hrtime() - begin) / 1000000;
		print_message("strangers of kind %d: heard after %llu ms\n", kinds[i],
			      (unsigned long long)begin);
		assert_true(begin < HEARD_MAX_MS);
		assert_int_equal(state_of(r), LINK_TALKING);
		strangers_stop(pid);
		close(r->peer);
		for (int ms = 0; ms < PATIENCE_MS && state_of(r) == LINK_TALKING; ms += 10)
			run_ms(r, 10);
		frame_writer_free(r->agent);
		r->agent = frame_writer_new(0x2222 + i);
	}
	r->peer = -1;
}

/* It may be QEMU's end of a port in which no agent runs yet. */
static void test_a_lone_silent_one_is_kept(void **state)
{
	enum { PROVE_MS = 5000 };
	struct rig *r = *state;
	struct sockaddr_un address = port_address(r);
	char bytes[4096];
	int first, second;

	link_to(r, "listen:unix:");
	run_ms(r, 20);
	first = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
	assert_int_equal(connect(first, (struct sockaddr *)&address, sizeof(address)), 0);
	run_ms(r, PROVE_MS + 200);
	assert_true(recv(first, bytes, sizeof(bytes), 0) > 0); /* it was greeted */
	assert_int_equal(recv(first, bytes, sizeof(bytes), 0), -1);
	assert_int_equal(errno, EAGAIN);
	second = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
	assert_int_equal(connect(second, (struct sockaddr *)&address, sizeof(address)), 0);
	for (int ms = 0; ms < PATIENCE_MS && recv(first, bytes, sizeof(bytes), 0) < 0; ms += 10)
		run_ms(r, 10);
	assert_int_equal(recv(first, bytes, sizeof(bytes), 0), 0);
	/* Another process closed it and says so: the line may come later. */
	for (int ms = 0; ms < PATIENCE_MS && !strstr(r->note, "no HELLO of an agent"); ms += 10)
		run_ms(r, 10);
	assert_non_null(strstr(r->note, "no HELLO of an agent for 5 s (connections closed: 1)"));
	r->peer = second;
	agent_hello(r);
	run_until_state(r, LINK_TALKING);
	close(first);
}

/* The address is in use when the link opens, and free later. */
static void test_an_address_in_use_is_tried_again(void **state)
{
	struct rig *r = *state;
	struct guest_link_stats stats;

	port_listen(r);
	link_to(r, "listen:unix:");
	run_ms(r, 200);
	guest_link_stats_get(r->link, &stats);
	assert_int_equal(stats.state, LINK_DOWN);
	assert_string_equal(stats.trouble, "another process listens there");
	assert_int_equal(r->notes, 1);
	assert_non_null(strstr(r->note, "another process listens there; trying again"));
	close(r->listener);
	r->listener = -1;
	agent_dial(r);
	run_until_state(r, LINK_TALKING);
	guest_link_stats_get(r->link, &stats);
	assert_string_equal(stats.trouble, "");
}

static void test_busy_port_is_explained(void **state)
{
	struct rig *r = *state;
	struct sockaddr_un address = port_address(r);
	int other = socket(AF_UNIX, SOCK_STREAM, 0);

	port_listen(r);
	assert_int_equal(connect(other, (struct sockaddr *)&address, sizeof(address)), 0);
	port_accept(r); /* the other client; ours waits in the backlog, as with QEMU */
	link_to(r, "");
	run_until(r, &r->notes, 1);
	run_ms(r, 200);
	assert_int_equal(state_of(r), LINK_SILENT);
	assert_int_equal(r->notes, 1);
	assert_non_null(strstr(r->note, "another client holds it"));
	close(other);
}

static void test_silent_port_is_explained(void **state)
{
	struct rig *r = *state;

	port_listen(r);
	link_to(r, "");
	run_ms(r, 100);
	port_accept(r);
	run_until(r, &r->notes, 1);
	assert_int_equal(r->notes, 1);
	assert_non_null(strstr(r->note, "no agent runs in the guest"));
}

static void test_flood_of_garbage_is_survived(void **state)
{
	struct rig *r = *state;
	struct guest_link_stats stats;
	uint8_t garbage[65536];
	int writes = 0;

	srand(5);
	for (size_t i = 0; i < sizeof(garbage); i++)
		garbage[i] = (uint8_t)rand();
	port_listen(r);
	link_to(r, "");
	run_until_state(r, LINK_SILENT);
	port_accept(r);
	do { /* as long as it takes on a busy machine */
		(void)!write(r->peer, garbage, sizeof(garbage));
		run_ms(r, 5);
		guest_link_stats_get(r->link, &stats);
	} while (++writes < 4000 && stats.decoder.session.skipped_bytes <= 1000000);
	fcntl(r->peer, F_SETFL, 0);
	agent_hello(r); /* still understood */
	run_until_state(r, LINK_TALKING);
	run_ms(r, 100);
	guest_link_stats_get(r->link, &stats);
	assert_int_equal(stats.state, LINK_TALKING);
	assert_true(stats.decoder.session.skipped_bytes > 1000000);
	assert_int_equal(r->hellos, 1);
}

/* A decoder that is killed or stops costs its connection; the next one is said to come, and comes.
 */
static void test_a_dead_decoder_is_replaced(void **state)
{
	static const int signals[] = {SIGKILL, SIGSTOP};
	struct rig *r = *state;
	struct guest_link_stats stats;

	port_listen(r);
	link_to(r, "");
	run_until_state(r, LINK_SILENT);
	port_accept(r);
	agent_hello(r);
	run_until_state(r, LINK_TALKING);
	for (size_t i = 0; i < 2; i++) {
		guest_link_stats_get(r->link, &stats);
		assert_true(stats.decoder_pid > 0);
		assert_int_equal(stats.decoder_deaths, i);
		assert_int_equal(kill(stats.decoder_pid, signals[i]), 0);
		run_until_state(r, LINK_DOWN);
		assert_non_null(strstr(r->note, i ? "it hung" : "killed by signal 9"));
		close(r->peer);
		agent_returns(r);
		assert_int_equal(r->hellos, i + 2);
	}
}

/* What the decoder could still do, had a guest taken it over. */
static void test_a_decoder_holds_nothing_else(void **state)
{
	struct rig *r = *state;
	struct guest_link_stats stats;
	char path[64], line[256];
	size_t seen = 0;
	FILE *file;

	port_listen(r);
	link_to(r, "");
	run_until_state(r, LINK_SILENT);
	port_accept(r);
	run_until_heard(r, FRAME_HELLO, false); /* it is confined before it says anything */
	guest_link_stats_get(r->link, &stats);
	snprintf(path, sizeof(path), "/proc/%d/status", stats.decoder_pid);
	assert_non_null(file = fopen(path, "re"));
	while (fgets(line, sizeof(line), file)) {
		unsigned long long set;
		int value;

		if (sscanf(line, "CapPrm: %llx", &set) == 1 ||
		    sscanf(line, "CapEff: %llx", &set) == 1) {
			assert_true(set == 0);
			seen++;
		} else if (sscanf(line, "Uid: %d", &value) == 1) {
			assert_int_not_equal(value, 0);
			seen++;
		}
#ifndef __SANITIZE_ADDRESS__
		else if (sscanf(line, "Seccomp: %d", &value) == 1)
			assert_int_equal(value, 2);
#endif
	}
	fclose(file);
	assert_int_equal(seen, 3);
	for (int fd = WORKER_N; fd < 64; fd++) {
		snprintf(path, sizeof(path), "/proc/%d/fd/%d", stats.decoder_pid, fd);
		assert_int_equal(readlink(path, line, sizeof(line)), -1);
	}
}

/* What is at the path before: only a socket that nobody serves may be gone afterwards. */
static void test_only_a_dead_socket_is_removed(void **state)
{
	struct rig *r = *state;
	struct sockaddr_un address = port_address(r);
	char other[128], why[256], text[128];
	struct link_address listening;
	struct stat before, after;
	int fds[3], fd;

	snprintf(other, sizeof(other), "%s.other", r->path);
	fd = open(other, O_CREAT | O_WRONLY, 0600);
	assert_int_equal(write(fd, "x", 1), 1);
	close(fd);
	snprintf(text, sizeof(text), "listen:unix:%s", r->path);
	assert_int_equal(link_address_parse(text, &listening, why, sizeof(why)), 0);
	for (int kind = 0; kind < 4; kind++) {
		if (kind == 0)
			assert_int_equal(link(other, r->path), 0);
		else if (kind == 1)
			assert_int_equal(symlink(other, r->path), 0);
		else if (kind == 2)
			assert_int_equal(mkfifo(r->path, 0600), 0);
		else
			assert_int_equal(mkdir(r->path, 0700), 0);
		assert_int_equal(lstat(r->path, &before), 0);
		assert_int_equal(socket_file_clear(r->path), -EEXIST);
		assert_int_equal(link_address_open(&listening), -EEXIST);
		link_address_unlink(&listening);
		assert_int_equal(lstat(r->path, &after), 0);
		assert_int_equal(before.st_ino, after.st_ino);
		assert_int_equal(kind == 3 ? rmdir(r->path) : unlink(r->path), 0);
	}
	assert_int_equal(unlink(other), 0);
	/* One that is served stays, also while its backlog is full. */
	port_listen(r);
	assert_int_equal(listen(r->listener, 0), 0);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(socket_file_clear(r->path), -EADDRINUSE);
		fds[i] = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
		(void)!connect(fds[i], (struct sockaddr *)&address, sizeof(address));
	}
	for (int i = 0; i < 3; i++)
		close(fds[i]);
	close(r->listener);
	r->listener = -1;
	assert_int_equal(lstat(r->path, &after), 0);
	assert_int_equal(socket_file_clear(r->path), 0);
	assert_int_equal(lstat(r->path, &after), -1);
	assert_int_equal(socket_file_clear(r->path), 0);
}

static void test_addresses(void **state)
{
	static const struct {
		const char *text;
		int err;
		bool listens, tcp;
		const char *says;
	} cases[] = {
		{"/run/x.sock", 0, false, false, ""},
		{"unix:x.sock", 0, false, false, ""},
		{"listen:unix:/run/x", 0, true, false, ""},
		{"tcp:127.0.0.1:9000", 0, false, true, ""},
		{"listen:tcp:*:9000", 0, true, true, ""},
		{"tcp:127.0.0.1", -EINVAL, false, false, "want tcp:HOST:PORT"},
		{"tcp::9000", -EINVAL, false, false, "want tcp:HOST:PORT"},
		{"tcp:127.0.0.1:none", -EINVAL, false, false, "tcp:127.0.0.1:none"},
		{"vsock:7431", 0, true, false, ""},
		{"listen:vsock:3:7431", 0, true, false, ""},
		{"vsock:2:7431", -EINVAL, false, false, "want vsock:PORT"},
		{"vsock:3:", -EINVAL, false, false, "want vsock:PORT"},
		{"vsock:0", -EINVAL, false, false, "want vsock:PORT"},
		{"vsock:99999999999", -EINVAL, false, false, "want vsock:PORT"},
		{"", -EINVAL, false, false, "path of a Unix socket"},
		{"unix:", -EINVAL, false, false, "path of a Unix socket"},
	};
	struct link_address address;
	char long_path[200], why[300];

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		why[0] = 0;
		assert_int_equal(link_address_parse(cases[i].text, &address, why, sizeof(why)),
				 cases[i].err);
		if (!strstr(why, cases[i].says))
			fail_msg("`%s` says `%s`", cases[i].text, why);
		if (cases[i].err)
			continue;
		assert_int_equal(address.listens, cases[i].listens);
		assert_int_equal(address.tcp, cases[i].tcp);
	}
	memset(long_path, 'x', sizeof(long_path) - 1);
	long_path[sizeof(long_path) - 1] = 0;
	assert_int_equal(link_address_parse(long_path, &address, why, sizeof(why)), -EINVAL);
}

/* HELLOs of ever new sessions and answers to what nobody asked, for 2 s: few lines, whatever their
 * kind, and a count of the others. */
static void test_a_flood_of_lines_is_limited(void **state)
{
	struct rig *r = *state;
	static struct message_config_reply reply;
	uint64_t end;

	port_listen(r);
	link_to(r, "");
	run_until_state(r, LINK_SILENT);
	port_accept(r);
	agent_hello(r);
	run_until_state(r, LINK_TALKING);
	reply.n_limits = VS_CONFIG_LIMITS_MAX;
	for (size_t i = 0; i < VS_CONFIG_LIMITS_MAX; i++)
		snprintf(reply.limits[i].text, sizeof(reply.limits[i].text), "line %zu", i);
	end = uv_now(&r->loop) + 2000;
	for (uint64_t i = 0; uv_now(&r->loop) < end; i++) {
		struct byte_buffer wire = {0};

		frame_writer_free(r->agent);
		r->agent = frame_writer_new(0x3000 + i);
		assert_int_equal(message_config_reply_pack(&reply, &r->payload), 0);
		frame_write(r->agent, FRAME_CONFIG_REPLY, r->payload.data, r->payload.len, &wire);
		r->payload.len = 0;
		if (write(r->peer, wire.data, wire.len) != (ssize_t)wire.len)
			fail_msg("the flood is not read");
		byte_buffer_fini(&wire);
		agent_hello(r);
		run_ms(r, 2);
	}
	run_ms(r, 200);
	assert_true(r->frames > 100);
	assert_in_range(r->notes, LOG_LIMIT_LINES, 2 * LOG_LIMIT_LINES + 4);
	guest_link_close(r->link);
	r->link = NULL;
	/* The count, then how the channel stands. */
	assert_non_null(strstr(r->before, "more lines were not shown"));
	assert_non_null(strstr(r->note, "agent 9.9 on guest kernel 6.1"));
}

#define RIG(test) cmocka_unit_test_setup_teardown(test, rig_setup, rig_teardown)

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		RIG(test_waits_for_a_port_then_talks),
		RIG(test_asks_a_vmm_for_a_port),
		RIG(test_comes_back_after_a_break),
		RIG(test_listens_for_agents_that_dial),
		RIG(test_busy_port_is_explained),
		RIG(test_silent_port_is_explained),
		RIG(test_flood_of_garbage_is_survived),
		RIG(test_a_dead_decoder_is_replaced),
		RIG(test_a_decoder_holds_nothing_else),
		RIG(test_strangers_do_not_keep_the_agent_out),
		RIG(test_a_lone_silent_one_is_kept),
		RIG(test_an_address_in_use_is_tried_again),
		RIG(test_a_flood_of_lines_is_limited),
		RIG(test_only_a_dead_socket_is_removed),
		cmocka_unit_test(test_addresses),
	};

	if (worker_is_meant(argc, argv))
		_exit(worker_main());
	signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
