// SPDX-License-Identifier: GPL-2.0-only
/* Fuzzes the daemon's control socket, its requests and the configuration in them: every line
 * gets one answer of one line, "ok" or a readable "error". The daemon is simulated
 * (control_daemon.c); the socket and its loop are real. */
#include "fuzz.h"

#include <errno.h>
#include <json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "host-collector/daemon/control.h"
#include "host-collector/daemon/daemon.h"
#include "tests/fuzz/control_daemon.h"

enum { ANSWERS_MAX = 4 << 20 };

static char path[64];
static uv_loop_t loop;
static char answers[ANSWERS_MAX];
static size_t answers_bytes;

static void socket_remove(void)
{
	unlink(path);
}

static void server_start(void)
{
	struct control *control;
	char why[256];

	snprintf(path, sizeof(path), "/tmp/vcpuscope-fuzz-control-%d", getpid());
	FUZZ_CHECK(!uv_loop_init(&loop));
	FUZZ_CHECK(!control_open(&loop, path, control_daemon(), &control, why, sizeof(why)));
	atexit(socket_remove);
}

static int client_connect(void)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	memcpy(address.sun_path, path, strlen(path));
	FUZZ_CHECK(fd >= 0 && !connect(fd, (struct sockaddr *)&address, sizeof(address)));
	return fd;
}

/* Sends it all and reads what comes until the daemon has closed. */
static void talk(const uint8_t *data, size_t len)
{
	int fd = client_connect();
	ssize_t n = 1;

	answers_bytes = 0;
	while (n) {
		if (len && (n = send(fd, data, len, MSG_NOSIGNAL)) > 0) {
			data += n;
			len -= (size_t)n;
		}
		if (!len || (n < 0 && errno != EAGAIN)) {
			shutdown(fd, SHUT_WR);
			len = 0;
		}
		uv_run(&loop, UV_RUN_NOWAIT);
		while ((n = recv(fd, answers + answers_bytes, sizeof(answers) - answers_bytes, 0)) >
		       0)
			answers_bytes += (size_t)n;
		FUZZ_CHECK(answers_bytes < sizeof(answers));
		if (n < 0 && errno != EAGAIN) /* it left unread what we sent */
			break;
	}
	close(fd);
	uv_run(&loop, UV_RUN_NOWAIT);
}

/* One that asks and does not read is dropped; LeakSanitizer sees what was left behind. */
static void client_that_does_not_read(void)
{
	static char lines[128 * 1024];
	int fd = client_connect(), turns = 0;
	ssize_t n = 0;

	memset(lines, '\n', sizeof(lines));
	do {
		n = send(fd, lines, sizeof(lines), MSG_NOSIGNAL);
		uv_run(&loop, UV_RUN_NOWAIT);
	} while ((n >= 0 || errno == EAGAIN) && ++turns < 1000);
	FUZZ_CHECK(n < 0 && (errno == EPIPE || errno == ECONNRESET));
	close(fd);
	uv_run(&loop, UV_RUN_NOWAIT);
}

static void answer_check(const char *line)
{
	struct json_object *answer = json_tokener_parse(line), *ok, *error;
	const char *text;

	FUZZ_CHECK(json_object_is_type(answer, json_type_object));
	FUZZ_CHECK(json_object_object_get_ex(answer, "ok", &ok));
	if (!json_object_get_boolean(ok)) {
		FUZZ_CHECK(json_object_object_get_ex(answer, "error", &error));
		text = json_object_get_string(error);
		FUZZ_CHECK(*text);
	}
	for (const char *c = line; *c; c++)
		FUZZ_CHECK((unsigned char)*c >= ' ' && *c != 0x7f);
	json_object_put(answer);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	size_t lines = 0, answered = 0, longest = 0, line = 0;

	if (!*path) {
		server_start();
		client_that_does_not_read();
	}
	for (size_t i = 0; i < len; i++) {
		line = data[i] == '\n' ? 0 : line + 1;
		longest = line > longest ? line : longest;
		lines += data[i] == '\n';
	}
	talk(data, len);
	for (char *at = answers, *end;
	     (end = memchr(at, '\n', (size_t)(answers + answers_bytes - at))); at = end + 1) {
		*end = 0;
		answer_check(at);
		answered++;
	}
	FUZZ_CHECK(answered <= lines && (answered == lines || longest >= CONTROL_REQUEST_MAX));
	return 0;
}
