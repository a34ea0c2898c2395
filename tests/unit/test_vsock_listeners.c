/* SPDX-License-Identifier: GPL-2.0-only */
/* Tests one vsock port for several VMs: each guest's agent is connected to the link of its own
 * VM. Unix sockets replace vsock, which not every machine has; the name of the client is the CID.
 * The links and their decoders are real. */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#include "host-collector/decode/worker.h"
#include "host-collector/link/link.h"
#include "host-collector/link/vsock_listeners.h"
#include "proto/log_limit.h"
#include "tests/unit/loop_run.h"

enum { PORT = 7431, VMS = 2, FIRST_CID = 3, PATIENCE_MS = 10000 };

struct rig {
	uv_loop_t loop;
	uv_timer_t limit;
	struct vsock_listeners *listeners;
	struct guest_link *links[VMS]; /* of the guests FIRST_CID and up */
	size_t hellos[VMS], lines;
	char said[512]; /* the last line */
};

/* ---- the stand-in for vsock ---- */

static int listen_error; /* of the next attempts */

static socklen_t name_make(struct sockaddr_un *address, const char *format, unsigned int a,
			   unsigned int b)
{
	char name[64];

	memset(address, 0, sizeof(*address));
	address->sun_family = AF_UNIX;
	snprintf(name, sizeof(name), format, getpid(), a, b);
	memcpy(address->sun_path + 1, name, strlen(name));
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(name));
}

static int stand_in_listen(uint32_t port)
{
	struct sockaddr_un address;
	socklen_t len = name_make(&address, "vsock-%u-port-%u", port, 0);
	int fd;

	if (listen_error)
		return listen_error;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&address, len), 0);
	assert_int_equal(listen(fd, 128), 0);
	return fd;
}

static int stand_in_accept(int listener, uint32_t *cid)
{
	struct sockaddr_un peer = {0};
	socklen_t len = sizeof(peer);
	int fd = accept4(listener, (struct sockaddr *)&peer, &len, SOCK_NONBLOCK);
	unsigned int pid, number;

	if (fd < 0)
		return -errno;
	assert_int_equal(sscanf(peer.sun_path + 1, "vsock-%u-cid-%u-%u", &pid, cid, &number), 3);
	return fd;
}

static const struct vsock_carrier stand_in = {stand_in_listen, stand_in_accept};

/* A connection of guest `cid`. */
static int guest_dial(uint32_t cid)
{
	static unsigned int number;
	struct sockaddr_un address;
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
	socklen_t len = name_make(&address, "vsock-%u-cid-%u-%u", cid, number++);

	assert_int_equal(bind(fd, (struct sockaddr *)&address, len), 0);
	len = name_make(&address, "vsock-%u-port-%u", PORT, 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&address, len), 0);
	return fd;
}

static void agent_hello(int fd)
{
	static const struct message_hello hello = {.protocol_min = 1,
						   .protocol_max = 1,
						   .role = STREAM_ROLE_GUEST,
						   .clock = STREAM_CLOCK_GUEST_TSC,
						   .clock_hz = 2000000000};
	struct byte_buffer payload = {0}, wire = {0};
	struct frame_writer *writer = frame_writer_new(0x1111);

	assert_int_equal(message_hello_pack(&hello, &payload), 0);
	assert_int_equal(frame_write(writer, FRAME_HELLO, payload.data, payload.len, &wire), 0);
	assert_int_equal(write(fd, wire.data, wire.len), (ssize_t)wire.len);
	frame_writer_free(writer);
	byte_buffer_fini(&payload);
	byte_buffer_fini(&wire);
}

/* ---- the rig ---- */

struct vm {
	struct rig *rig;
	size_t index;
};

static void on_frame(void *context, struct frame_item *frame, uint64_t arrival_tsc)
{
	(void)context, (void)frame, (void)arrival_tsc;
}

static void on_observation(void *context, const struct message_echo_observation *o)
{
	(void)context, (void)o;
}

static void on_hello(void *context, const struct message_hello *hello)
{
	const struct vm *vm = context;

	(void)hello;
	vm->rig->hellos[vm->index]++;
}

static void on_heartbeat(void *context, const struct message_heartbeat *h)
{
	(void)context, (void)h;
}

static void on_note(void *context, enum note_kind kind, const char *text)
{
	(void)context, (void)kind, (void)text;
}

static bool on_take(void *context, uint32_t port, uint32_t cid, int fd)
{
	struct rig *r = context;

	assert_int_equal(port, PORT);
	if (cid < FIRST_CID || cid >= FIRST_CID + VMS)
		return false;
	guest_link_adopt(r->links[cid - FIRST_CID], fd);
	return true;
}

static void on_say(void *context, const char *line)
{
	struct rig *r = context;

	r->lines++;
	snprintf(r->said, sizeof(r->said), "%s", line);
}

static void link_open(struct rig *r, size_t index)
{
	static const struct message_hello ours = {.protocol_min = 1,
						  .protocol_max = 1,
						  .role = STREAM_ROLE_HOST,
						  .clock = STREAM_CLOCK_HOST_TSC,
						  .clock_hz = 1000000000};
	static struct vm vms[VMS];
	struct link_events events = {on_frame,     on_observation, on_hello,
				     on_heartbeat, on_note,        &vms[index]};
	struct link_address address;
	char text[64], why[256];

	vms[index] = (struct vm){r, index};
	snprintf(text, sizeof(text), "vsock:%zu:%d", FIRST_CID + index, PORT);
	assert_int_equal(link_address_parse(text, &address, why, sizeof(why)), 0);
	address.handed = true;
	assert_int_equal(
		guest_link_open(&r->loop, &address, &ours, NULL, &events, &r->links[index]), 0);
}

static int rig_setup(void **state)
{
	struct rig *r = calloc(1, sizeof(*r));
	const struct vsock_listeners_events events = {on_take, on_say, r};

	listen_error = 0;
	uv_loop_init(&r->loop);
	uv_timer_init(&r->loop, &r->limit);
	for (size_t i = 0; i < VMS; i++)
		link_open(r, i);
	r->listeners = vsock_listeners_new(&r->loop, &stand_in, &events);
	*state = r;
	return r->listeners ? 0 : -1;
}

static int rig_teardown(void **state)
{
	struct rig *r = *state;

	vsock_listeners_free(r->listeners);
	for (size_t i = 0; i < VMS; i++)
		guest_link_close(r->links[i]);
	uv_close((uv_handle_t *)&r->limit, NULL);
	uv_run(&r->loop, UV_RUN_DEFAULT);
	assert_int_equal(uv_loop_close(&r->loop), 0);
	free(r);
	return 0;
}

static void run_ms(struct rig *r, uint64_t ms)
{
	static const uint32_t ports[] = {PORT, PORT}; /* as two VMs want it */

	for (uint64_t at = 0; at < ms; at += 10) {
		vsock_listeners_keep(r->listeners, ports, 2);
		loop_run_ms(&r->loop, &r->limit, 10);
	}
}

static void run_until(struct rig *r, const size_t *value, size_t want)
{
	for (int ms = 0; ms < PATIENCE_MS && *value < want; ms += 10)
		run_ms(r, 10);
	assert_int_equal(*value, want);
}

static bool is_closed(int fd)
{
	char bytes[4096];
	ssize_t n = recv(fd, bytes, sizeof(bytes), 0);

	return !n || (n < 0 && errno == ECONNRESET);
}

/* ---- properties ---- */

static void test_each_guest_reaches_its_own_vm(void **state)
{
	struct rig *r = *state;
	struct guest_link_stats stats;
	int fds[VMS];

	run_ms(r, 20);
	for (size_t i = VMS; i-- > 0;) {
		fds[i] = guest_dial((uint32_t)(FIRST_CID + i));
		agent_hello(fds[i]);
		run_until(r, &r->hellos[i], 1);
		for (size_t j = 0; j < VMS; j++)
			assert_int_equal(r->hellos[j], j >= i);
	}
	for (size_t i = 0; i < VMS; i++) {
		guest_link_stats_get(r->links[i], &stats);
		assert_int_equal(stats.state, LINK_TALKING);
		close(fds[i]);
	}
	/* And again. */
	run_ms(r, 200);
	fds[0] = guest_dial(FIRST_CID);
	agent_hello(fds[0]);
	run_until(r, &r->hellos[0], 2);
	close(fds[0]);
}

/* Any user of a guest can dial. */
static void test_silent_ones_do_not_keep_the_agent_out(void **state)
{
	enum { SILENT = 100 };
	struct rig *r = *state;
	int silent[SILENT], agent;

	run_ms(r, 20);
	for (int i = 0; i < SILENT; i++)
		silent[i] = guest_dial(FIRST_CID);
	agent = guest_dial(FIRST_CID);
	agent_hello(agent);
	run_until(r, &r->hellos[0], 1);
	/* Who comes while the agent is there does not take its place. */
	close(silent[0]);
	silent[0] = guest_dial(FIRST_CID);
	agent_hello(silent[0]);
	run_ms(r, 200);
	assert_true(is_closed(silent[0]));
	assert_int_equal(r->hellos[0], 1);
	assert_false(is_closed(agent));
	close(agent);
	for (int i = 0; i < SILENT; i++)
		close(silent[i]);
}

static void test_other_guests_are_refused_in_few_lines(void **state)
{
	enum { OTHERS = 100 };
	struct rig *r = *state;
	uint64_t begin_ms;
	int agent;

	run_ms(r, 20);
	begin_ms = uv_now(&r->loop);
	for (int i = 0; i < OTHERS; i++) {
		int fd = guest_dial(77);

		for (int ms = 0; ms < PATIENCE_MS && !is_closed(fd); ms += 10)
			run_ms(r, 10);
		assert_true(is_closed(fd));
		close(fd);
	}
	assert_true(r->lines <=
		    (LOG_LIMIT_LINES + 1) * (1 + (uv_now(&r->loop) - begin_ms) / LOG_LIMIT_MS));
	assert_string_equal(
		r->said, "vsock port 7431: refused a connection from CID 77: no VM here is for it");
	agent = guest_dial(FIRST_CID + 1);
	agent_hello(agent);
	run_until(r, &r->hellos[1], 1);
	assert_int_equal(r->hellos[0], 0);
	close(agent);
}

static void test_a_port_in_use_is_tried_again(void **state)
{
	struct rig *r = *state;
	int agent, again;

	listen_error = -EADDRINUSE;
	run_ms(r, 100);
	assert_int_equal(vsock_listeners_error(r->listeners, PORT), -EADDRINUSE);
	assert_int_equal(r->lines, 1);
	assert_string_equal(r->said,
			    "vsock port 7431: another process listens there; trying again");
	listen_error = 0;
	for (int ms = 0; ms < PATIENCE_MS && vsock_listeners_error(r->listeners, PORT); ms += 10)
		run_ms(r, 10);
	agent = guest_dial(FIRST_CID);
	agent_hello(agent);
	run_until(r, &r->hellos[0], 1);
	assert_int_equal(r->lines, 1);
	close(agent);
	/* Nobody wants it any more. */
	vsock_listeners_keep(r->listeners, NULL, 0);
	loop_run_ms(&r->loop, &r->limit, 10);
	again = stand_in_listen(PORT); /* it is free */
	assert_true(again >= 0);
	close(again);
}

#define RIG(test) cmocka_unit_test_setup_teardown(test, rig_setup, rig_teardown)

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		RIG(test_each_guest_reaches_its_own_vm),
		RIG(test_silent_ones_do_not_keep_the_agent_out),
		RIG(test_other_guests_are_refused_in_few_lines),
		RIG(test_a_port_in_use_is_tried_again),
	};

	if (worker_is_meant(argc, argv))
		_exit(worker_main());
	signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
