/* SPDX-License-Identifier: GPL-2.0-only */
/* What looks like a QEMU with N vCPUs to a collector, and does nothing: fake-vmm NAME N. Ends with
 * its standard input. With a third argument the vCPUs sleep until a byte comes to a UDP port of the
 * loopback, whose number it prints behind "ready". */
#include <arpa/inet.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

static int door = -1;

static int door_open(void)
{
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof(in);

	door = socket(AF_INET, SOCK_DGRAM, 0);
	if (door < 0 || bind(door, (struct sockaddr *)&in, sizeof(in)) ||
	    getsockname(door, (struct sockaddr *)&in, &len))
		return -1;
	return ntohs(in.sin_port);
}

static void *vcpu(void *index)
{
	char name[16];

	snprintf(name, sizeof(name), "CPU %d/TCG", (int)(long)index);
	prctl(PR_SET_NAME, name);
	for (;;) {
		char byte;

		if (door < 0)
			usleep(10000);
		else
			(void)!recv(door, &byte, 1, 0);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	long n = argc > 2 ? strtol(argv[2], NULL, 10) : 1;
	pthread_t thread;
	const int port = argc > 3 ? door_open() : 0;
	char byte;

	if (argc < 3 || port < 0 || n < 1 || n > 64) {
		fprintf(stderr, "usage: fake-vmm NAME N [port]\n");
		return 2;
	}
	prctl(PR_SET_NAME, "qemu-system-x86");
	for (long i = 0; i < n; i++) {
		if (pthread_create(&thread, NULL, vcpu, (void *)i))
			return 1;
	}
	printf("ready %d\n", port);
	fflush(stdout);
	while (read(0, &byte, 1) > 0)
		;
	return 0;
}
