// SPDX-License-Identifier: GPL-2.0-only
/* Tests addresses, and the life of a channel on a Unix socket: up, bytes, down, up again. */
#include <errno.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include <cmocka.h>

#include "guest-agent/channel.h"
#include "tests/unit/loop_run.h"

static const struct {
	const char *spec;
	int err, family;
} addresses[] = {
	{"port:org.vcpuscope.agent.0", 0, 0},
	{"port:", -EINVAL, 0},
	{"unix:/run/a.sock", 0, AF_UNIX},
	{"unix:", -EINVAL, 0},
	{"tcp:10.0.2.2:7431", 0, AF_INET},
	{"tcp:[fe80::1]:7431", 0, AF_INET6},
	{"tcp:fe80::1:7431", 0, AF_INET6},
	{"tcp:host.example:7431", -EINVAL, 0},
	{"tcp:10.0.2.2", -EINVAL, 0},
	{"tcp:10.0.2.2:0", -EINVAL, 0},
	{"tcp:10.0.2.2:65536", -EINVAL, 0},
	{"tcp:10.0.2.2:7431x", -EINVAL, 0},
	{"vsock:2:7431", 0, AF_VSOCK},
	{"vsock:2", -EINVAL, 0},
	{"vsock:2:0", -EINVAL, 0},
	{"vsock:2:-1", -EINVAL, 0},
	{"vsock:2:7431x", -EINVAL, 0},
	{"vsock:99999999999:7431", -EINVAL, 0},
	{"tls:10.0.2.2:7431", 0, AF_INET},
	{"tls:host.example:7431", -EINVAL, 0},
	{"auto", 0, AF_VSOCK},
	{"auto:x", -EINVAL, 0},
	{"pigeon:2:1", -EINVAL, 0},
	{"", -EINVAL, 0},
};

static void addresses_are_understood_or_refused_in_one_line(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(addresses) / sizeof(addresses[0]); i++) {
		struct channel_address address;
		char why[256] = "";

		if (channel_address_parse(addresses[i].spec, &address, why, sizeof(why)) !=
		    addresses[i].err)
			fail_msg("'%s': %s", addresses[i].spec, why);
		if (addresses[i].err)
			assert_true(why[0] && !strchr(why, '\n'));
		else
			assert_int_equal(address.sockaddr.ss_family, addresses[i].family);
	}
}

struct seen {
	int ups, downs, writables;
	size_t received;
};

static void on_up(void *context)
{
	((struct seen *)context)->ups++;
}

static void on_down(void *context)
{
	((struct seen *)context)->downs++;
}

static void on_received(void *context, const uint8_t *data, size_t len)
{
	(void)data;
	((struct seen *)context)->received += len;
}

static void on_writable(void *context)
{
	((struct seen *)context)->writables++;
}

static void on_timeout(uv_timer_t *timer)
{
	*(bool *)timer->data = true;
}

/* Runs the loop until *value >= wanted; fails after 5 s. */
static void run_until(uv_loop_t *loop, const int *value, int wanted)
{
	bool timed_out = false;
	uv_timer_t timer;

	uv_timer_init(loop, &timer);
	timer.data = &timed_out;
	uv_timer_start(&timer, on_timeout, 5000, 0);
	while (*value < wanted && !timed_out)
		uv_run(loop, UV_RUN_ONCE);
	uv_close((uv_handle_t *)&timer, NULL);
	uv_run(loop, UV_RUN_NOWAIT);
	assert_false(timed_out);
}

static int listen_on(const char *path)
{
	struct sockaddr_un un = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);

	snprintf(un.sun_path, sizeof(un.sun_path), "%s", path);
	unlink(path);
	assert_int_equal(bind(fd, (struct sockaddr *)&un, sizeof(un)), 0);
	assert_int_equal(listen(fd, 4), 0);
	return fd;
}

static void a_channel_comes_and_goes_with_its_host(void **state)
{
	static uint8_t bytes[65536];
	struct seen seen = {0};
	struct channel_events events = {on_up, on_down, on_received, on_writable, &seen};
	struct channel_address address;
	struct channel *channel;
	char path[64], spec[80], why[256];
	int listener, host;
	size_t n, total = 0;
	uv_loop_t loop;

	(void)state;
	snprintf(path, sizeof(path), "/tmp/test_channel.%d.sock", (int)getpid());
	snprintf(spec, sizeof(spec), "unix:%s", path);
	assert_int_equal(channel_address_parse(spec, &address, why, sizeof(why)), 0);
	assert_int_equal(uv_loop_init(&loop), 0);
	assert_int_equal(channel_open(&loop, &address, &events, &channel), 0);

	for (int i = 0; i < 3; i++)
		uv_run(&loop, UV_RUN_ONCE);
	assert_int_equal(seen.ups, 0);
	assert_int_equal(channel_error(channel), -ENOENT);
	assert_int_equal(channel_write(channel, bytes, 1), 0);

	listener = listen_on(path);
	run_until(&loop, &seen.ups, 1);
	host = accept(listener, NULL, NULL);
	assert_true(host >= 0);

	/* Fill it: what is taken is bounded by the kernel, and room is told. */
	while ((n = channel_write(channel, bytes, sizeof(bytes))))
		total += n;
	assert_in_range(total, 1, 16 << 20);
	while (total) {
		ssize_t got = read(host, bytes, sizeof(bytes));

		assert_true(got > 0);
		total -= (size_t)got;
	}
	run_until(&loop, &seen.writables, 1);

	close(host);
	run_until(&loop, &seen.downs, 1);
	assert_false(channel_is_up(channel));
	run_until(&loop, &seen.ups, 2);
	host = accept(listener, NULL, NULL);
	assert_int_equal(write(host, "hello", 5), 5);
	while (seen.received < 5)
		uv_run(&loop, UV_RUN_ONCE);

	channel_close(channel);
	uv_run(&loop, UV_RUN_DEFAULT);
	assert_int_equal(uv_loop_close(&loop), 0);
	close(host);
	close(listener);
	unlink(path);
}

/* A host that writes without a pause, for a second and a half: what is read has a rate. */
static void a_host_that_floods_waits(void **state)
{
	static uint8_t bytes[65536];
	struct seen seen = {0};
	struct channel_events events = {on_up, on_down, on_received, on_writable, &seen};
	struct channel_address address;
	struct channel *channel;
	char path[64], spec[80], why[256];
	size_t written = 0, first;
	int listener, host;
	uv_timer_t timer;
	uint64_t end;
	uv_loop_t loop;

	(void)state;
	snprintf(path, sizeof(path), "/tmp/test_channel_flood.%d.sock", (int)getpid());
	snprintf(spec, sizeof(spec), "unix:%s", path);
	assert_int_equal(channel_address_parse(spec, &address, why, sizeof(why)), 0);
	assert_int_equal(uv_loop_init(&loop), 0);
	listener = listen_on(path);
	assert_int_equal(channel_open(&loop, &address, &events, &channel), 0);
	uv_run(&loop, UV_RUN_NOWAIT);
	run_until(&loop, &seen.ups, 1);
	host = accept4(listener, NULL, NULL, SOCK_NONBLOCK);
	assert_true(host >= 0);
	uv_timer_init(&loop, &timer);
	for (end = uv_now(&loop) + 1500, first = 0; uv_now(&loop) < end;) {
		ssize_t n = write(host, bytes, sizeof(bytes));

		written += n > 0 ? (size_t)n : 0;
		loop_run_ms(&loop, &timer, 1);
		if (uv_now(&loop) < end - 1000)
			first = seen.received;
	}
	assert_true(first >= 1 << 20);                /* the beginning is free */
	assert_true(seen.received - first < 3 << 15); /* then 64 KiB/s */
	assert_true(seen.received > first);
	assert_true(written < 2 << 20); /* nor is it kept anywhere */

	uv_close((uv_handle_t *)&timer, NULL);
	channel_close(channel);
	uv_run(&loop, UV_RUN_DEFAULT);
	assert_int_equal(uv_loop_close(&loop), 0);
	close(host);
	close(listener);
	unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(addresses_are_understood_or_refused_in_one_line),
		cmocka_unit_test(a_channel_comes_and_goes_with_its_host),
		cmocka_unit_test(a_host_that_floods_waits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
