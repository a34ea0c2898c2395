/* SPDX-License-Identifier: GPL-2.0-only */
/* What looks like a QEMU with N vCPUs to a collector, and does nothing: fake-vmm NAME N. Ends with
 * its standard input. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

static void *vcpu(void *index)
{
	char name[16];

	snprintf(name, sizeof(name), "CPU %d/TCG", (int)(long)index);
	prctl(PR_SET_NAME, name);
	for (;;)
		usleep(10000);
	return NULL;
}

int main(int argc, char **argv)
{
	long n = argc > 2 ? strtol(argv[2], NULL, 10) : 1;
	pthread_t thread;
	char byte;

	if (argc < 3 || n < 1 || n > 64) {
		fprintf(stderr, "usage: fake-vmm NAME N\n");
		return 2;
	}
	prctl(PR_SET_NAME, "qemu-system-x86");
	for (long i = 0; i < n; i++) {
		if (pthread_create(&thread, NULL, vcpu, (void *)i))
			return 1;
	}
	puts("ready");
	fflush(stdout);
	while (read(0, &byte, 1) > 0)
		;
	return 0;
}
