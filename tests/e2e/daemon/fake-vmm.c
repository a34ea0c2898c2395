/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Looks like a QEMU with N vCPUs to a collector, and does nothing. Ends with its standard input.
 *
 *   fake-vmm NAME N                 the vCPUs sleep, 10 ms at a time
 *   fake-vmm NAME N US              the same, US microseconds at a time
 *   fake-vmm NAME N port            the vCPUs sleep until a byte arrives at a UDP port of the
 *                                   loopback device; prints its number after "ready"
 *   fake-vmm NAME N port PATH       also carries its guest's vsock as Firecracker does: listens
 *                                   at PATH. A process that connects to PATH.guest is the guest,
 *                                   which connects to the host's port 7431
 *   fake-vmm NAME N port PATH PORT  the guest listens at PORT; the host connects through PATH
 */
#include <arpa/inet.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

static int accepting = -1;
static long sleep_us = 10000;

static int listener_open(void)
{
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof(in);

	accepting = socket(AF_INET, SOCK_DGRAM, 0);
	if (accepting < 0 || bind(accepting, (struct sockaddr *)&in, sizeof(in)) ||
	    getsockname(accepting, (struct sockaddr *)&in, &len))
		return -1;
	return ntohs(in.sin_port);
}

static void vcpu_sleep(void)
{
	const struct timespec pause = {.tv_sec = sleep_us / 1000000,
				       .tv_nsec = sleep_us % 1000000 * 1000};

	nanosleep(&pause, NULL);
}

static void *vcpu(void *index)
{
	char name[16];

	snprintf(name, sizeof(name), "CPU %d/TCG", (int)(long)index);
	prctl(PR_SET_NAME, name);
	for (;;) {
		char byte;

		if (accepting < 0)
			vcpu_sleep();
		else
			(void)!recv(accepting, &byte, 1, 0);
	}
	return NULL;
}

/* ---- vsock ---- */

static int unix_socket(const char *path, int (*use)(int, const struct sockaddr *, socklen_t))
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
	if (fd >= 0 && !use(fd, (struct sockaddr *)&address, sizeof(address)))
		return fd;
	if (fd >= 0)
		close(fd);
	return -1;
}

/* Bytes of one end to the other, until one closes. */
static void carry(int a, int b)
{
	struct pollfd ends[2] = {{.fd = a, .events = POLLIN}, {.fd = b, .events = POLLIN}};
	char bytes[65536];

	while (poll(ends, 2, -1) > 0) {
		for (int i = 0; i < 2; i++) {
			ssize_t n = ends[i].revents ? read(ends[i].fd, bytes, sizeof(bytes)) : -2;

			if (n != -2 &&
			    (n <= 0 || send(ends[!i].fd, bytes, (size_t)n, MSG_NOSIGNAL) != n))
				return;
		}
	}
}

struct device {
	const char *path;
	int listener; /* at path */
	long port;    /* at which the guest listens; 0: it does not */
};

/* "CONNECT PORT\n", to the byte: what follows is the guest's. True: it is this port. */
static bool connect_read(int fd, long port)
{
	char line[32], want[32];
	size_t n = 0;

	while (n < sizeof(line) - 1 && read(fd, line + n, 1) == 1 && line[n] != '\n')
		n++;
	line[n] = '\0';
	snprintf(want, sizeof(want), "CONNECT %ld", port);
	return !strcmp(line, want);
}

/* The host connects to the guest, again and again. */
static void *host_main(void *argument)
{
	static const char answer[] = "OK 1073741824\n";
	const struct device *device = argument;
	char guest[128];
	int listener;

	snprintf(guest, sizeof(guest), "%s.guest", device->path);
	listener = unix_socket(guest, bind);
	if (listener < 0 || listen(listener, 1))
		return NULL;
	for (;;) {
		int host = accept(device->listener, NULL, NULL), to;

		if (host < 0)
			return NULL;
		if (!connect_read(host, device->port)) {
			close(host);
			continue;
		}
		to = accept(listener, NULL, NULL);
		if (to >= 0 && send(host, answer, sizeof(answer) - 1, MSG_NOSIGNAL) > 0)
			carry(host, to);
		close(host);
		if (to >= 0)
			close(to);
	}
}

/* The guest connects to the host, again and again. */
static void *guest_main(void *argument)
{
	const struct device *device = argument;
	char guest[128], host[128];
	int listener;

	snprintf(guest, sizeof(guest), "%s.guest", device->path);
	snprintf(host, sizeof(host), "%s_7431", device->path);
	listener = unix_socket(guest, bind);
	if (listener < 0 || listen(listener, 1))
		return NULL;
	for (;;) {
		int from = accept(listener, NULL, NULL), to;

		if (from < 0)
			return NULL;
		to = unix_socket(host, connect);
		if (to >= 0)
			carry(from, to);
		close(from);
		if (to >= 0)
			close(to);
	}
}

static int vsock_start(const char *path, long port)
{
	static struct device device;
	pthread_t thread;

	device.path = path;
	device.port = port;
	device.listener = unix_socket(path, bind);
	return device.listener < 0 || listen(device.listener, 1) ||
	       pthread_create(&thread, NULL, port ? host_main : guest_main, &device);
}

/* What a QEMU contains, for the version in records. */
__attribute__((used)) static const char version[] = "QEMU emulator version 7.2.99 (fake 1:2)\n";

int main(int argc, char **argv)
{
	long n = argc > 2 ? strtol(argv[2], NULL, 10) : 1;
	pthread_t thread;
	const long us = argc > 3 ? strtol(argv[3], NULL, 10) : 0;
	const int port = argc > 3 && !us ? listener_open() : 0;
	char byte;

	if (argc < 3 || port < 0 || n < 1 || n > 64 || us < 0) {
		fprintf(stderr, "usage: fake-vmm NAME N [US | port [PATH [PORT]]]\n");
		return 2;
	}
	if (us)
		sleep_us = us;
	prctl(PR_SET_NAME, "qemu-system-x86");
	for (long i = 0; i < n; i++) {
		if (pthread_create(&thread, NULL, vcpu, (void *)i))
			return 1;
	}
	if (argc > 4 && vsock_start(argv[4], argc > 5 ? strtol(argv[5], NULL, 10) : 0))
		return 1;
	printf("ready %d\n", port);
	fflush(stdout);
	while (read(0, &byte, 1) > 0)
		;
	return 0;
}
