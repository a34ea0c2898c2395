/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Runs commands inside the machine of a bed over a virtio-serial port.
 *
 *   bed-control serve PORT           in the machine; one command at a time
 *   bed-control call SOCKET COMMAND  on its host: writes the output of the command to stdout, and
 *                                    ends with its exit status
 *
 * A request is "run ID COMMAND_BYTES INPUT_BYTES\n", the command for sh, and its standard input.
 * The reply is any number of "out ID BYTES\n" + bytes (stdout and stderr in the order of their
 * output), then "exit ID STATUS\n". The port does not show when a caller has ended, so the reply to
 * an earlier caller may still arrive. A caller skips it by its ID.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { COMMAND_MAX = 64 * 1024, INPUT_MAX = 256 * 1024 * 1024, CHUNK = 32 * 1024, LINE_BYTES = 96 };

/* A port whose host is absent polls as hung up at once: look again after this. */
enum { ABSENT_SLEEP_US = 50 * 1000 };

/* Reads exactly len bytes; on a port, waits through the host's absence. 0 or -errno. */
static int read_all(int fd, void *buffer, size_t len, bool port)
{
	uint8_t *at = buffer;

	while (len) {
		ssize_t n = read(fd, at, len);

		if (n > 0) {
			at += n;
			len -= (size_t)n;
		} else if (n < 0 && errno == EAGAIN) {
			poll(&(struct pollfd){.fd = fd, .events = POLLIN}, 1, -1);
		} else if (n == 0 && port) {
			usleep(ABSENT_SLEEP_US);
		} else if (n == 0) {
			return -ECONNRESET;
		} else if (errno != EINTR) {
			return -errno;
		}
	}
	return 0;
}

/* Writes all; a port without a host swallows nothing and fails with -EPIPE. 0 or -errno. */
static int write_all(int fd, const void *buffer, size_t len)
{
	const uint8_t *at = buffer;

	while (len) {
		ssize_t n = write(fd, at, len < CHUNK ? len : CHUNK);

		if (n > 0) {
			at += n;
			len -= (size_t)n;
		} else if (n < 0 && errno == EAGAIN) {
			struct pollfd p = {.fd = fd, .events = POLLOUT};

			poll(&p, 1, -1);
			if (p.revents & POLLHUP)
				return -EPIPE;
		} else if (n < 0 && errno != EINTR) {
			return -errno;
		}
	}
	return 0;
}

static int read_line(int fd, char line[LINE_BYTES], bool port)
{
	for (size_t n = 0; n < LINE_BYTES; n++) {
		int err = read_all(fd, &line[n], 1, port);

		if (err)
			return err;
		if (line[n] == '\n') {
			line[n] = '\0';
			return 0;
		}
	}
	return -EBADMSG;
}

struct child {
	pid_t pid;
	int exit;          /* a pidfd: readable once it ended, so that waiting costs no timer */
	int input, output; /* our ends of its pipes */
};

static int child_start(const char *command, struct child *c)
{
	int in[2], out[2];

	if (pipe2(in, O_CLOEXEC) || pipe2(out, O_CLOEXEC))
		return -errno;
	c->pid = fork();
	if (c->pid < 0)
		return -errno;
	if (!c->pid) {
		setsid();
		dup2(in[0], 0);
		dup2(out[1], 1);
		dup2(out[1], 2);
		execl("/bin/sh", "sh", "-c", command, NULL);
		_exit(127);
	}
	close(in[0]);
	close(out[1]);
	c->exit = (int)syscall(SYS_pidfd_open, c->pid, 0);
	c->input = in[1];
	c->output = out[0];
	fcntl(c->input, F_SETFL, O_NONBLOCK);
	return 0;
}

/* One chunk of the child's output to the caller. False at its end. */
static bool child_forward(struct child *c, int port, unsigned id, bool *host)
{
	static uint8_t chunk[CHUNK];
	char line[LINE_BYTES];
	ssize_t n = read(c->output, chunk, sizeof(chunk));

	if (n <= 0)
		return false;
	if (*host) {
		int head = snprintf(line, sizeof(line), "out %u %zd\n", id, n);

		*host = !write_all(port, line, (size_t)head) && !write_all(port, chunk, (size_t)n);
	}
	return true;
}

/*
 * Pumps input and output until the shell has ended and its output is drained; returns its status.
 * What it left running may keep the pipe open: that does not hold the reply.
 */
static int child_pump(struct child *c, int port, unsigned id, const uint8_t *input, size_t len)
{
	bool open = true, host = true;
	int status = 0;

	while (open) {
		struct pollfd p[] = {{.fd = c->output, .events = POLLIN},
				     {.fd = c->input, .events = POLLOUT},
				     {.fd = c->exit, .events = POLLIN}};

		poll(p, 3, -1);
		if (p[1].revents & POLLOUT && len) {
			ssize_t n = write(c->input, input, len < CHUNK ? len : CHUNK);

			if (n > 0) {
				input += n;
				len -= (size_t)n;
			}
		}
		if (c->input >= 0 && (!len || p[1].revents & POLLERR)) {
			close(c->input);
			c->input = -1;
		}
		if (p[0].revents)
			open = child_forward(c, port, id, &host);
		else if (p[2].revents)
			open = false;
	}
	waitpid(c->pid, &status, 0);
	close(c->exit);
	close(c->output);
	if (c->input >= 0)
		close(c->input);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static int serve_one(int port)
{
	char line[LINE_BYTES], *command = NULL;
	uint8_t *input = NULL;
	size_t command_len, input_len;
	struct child child = {0};
	unsigned id;
	int err, status = 126;

	err = read_line(port, line, true);
	if (err)
		return err;
	if (sscanf(line, "run %u %zu %zu", &id, &command_len, &input_len) != 3 ||
	    command_len > COMMAND_MAX || input_len > INPUT_MAX)
		return -EBADMSG;
	command = calloc(1, command_len + 1);
	input = malloc(input_len + 1);
	if (!command || !input) {
		err = -ENOMEM;
		goto out;
	}
	err = read_all(port, command, command_len, true);
	if (!err)
		err = read_all(port, input, input_len, true);
	if (err)
		goto out;
	if (!child_start(command, &child))
		status = child_pump(&child, port, id, input, input_len);
	snprintf(line, sizeof(line), "exit %u %d\n", id, status);
	write_all(port, line, strlen(line));
out:
	free(command);
	free(input);
	return err;
}

static int serve(const char *path)
{
	int port = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC);

	if (port < 0) {
		fprintf(stderr, "bed-control: %s: %s\n", path, strerror(errno));
		return 1;
	}
	for (;;) {
		int err = serve_one(port);

		if (err == -ENOMEM || err == -EBADMSG)
			fprintf(stderr, "bed-control: request dropped: %s\n", strerror(-err));
		else if (err)
			return 1;
	}
}

static int connect_unix(const char *path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || strlen(path) >= sizeof(address.sun_path))
		return -1;
	strcpy(address.sun_path, path);
	if (connect(fd, (struct sockaddr *)&address, sizeof(address))) {
		close(fd);
		return -1;
	}
	return fd;
}

static int call(const char *path, const char *command)
{
	static uint8_t chunk[CHUNK];
	unsigned id = (unsigned)getpid() ^ (unsigned)time(NULL) << 12, got;
	char line[LINE_BYTES];
	size_t len;
	int status, fd = connect_unix(path), err = 0;

	if (fd < 0) {
		fprintf(stderr, "bed-control: %s: %s\n", path, strerror(errno));
		return 125;
	}
	snprintf(line, sizeof(line), "run %u %zu 0\n", id, strlen(command));
	err = write_all(fd, line, strlen(line));
	if (!err)
		err = write_all(fd, command, strlen(command));
	while (!err && !(err = read_line(fd, line, false))) {
		if (sscanf(line, "exit %u %d", &got, &status) == 2) {
			if (got == id) {
				close(fd);
				return status;
			}
		} else if (sscanf(line, "out %u %zu", &got, &len) == 2 && len <= CHUNK) {
			err = read_all(fd, chunk, len, false);
			if (!err && got == id)
				err = write_all(1, chunk, len);
		} else {
			err = -EBADMSG;
		}
	}
	close(fd);
	fprintf(stderr, "bed-control: %s: %s\n", path, strerror(-err));
	return 125;
}

int main(int argc, char **argv)
{
	if (argc == 3 && !strcmp(argv[1], "serve"))
		return serve(argv[2]);
	if (argc == 4 && !strcmp(argv[1], "call"))
		return call(argv[2], argv[3]);
	fprintf(stderr, "usage: bed-control serve PORT | call SOCKET COMMAND\n");
	return 2;
}
