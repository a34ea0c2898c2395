/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Causes events of this kernel's scheduler until its standard input ends. The rate can be changed
 * at any time.
 *
 *	bench_load          ping-pong pairs, one on each CPU
 *	bench_load FOLDER   a mixed load at irregular times: the pairs, timers, packets on the
 *	                    loopback device (softirqs), writes with fsync to a file in FOLDER
 *
 * Each line of standard input sets the rate: a number of round trips per second for each pair, or
 * "flood" for as many as possible. The first rate is 0.
 */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/bench/child.h"

enum {
	CHILDREN_MAX = 256,
	PERIOD_NS = 1000000, /* a pair makes the due round trips once in this time */
	BEHIND_MAX_NS = 20 * PERIOD_NS,
	FLOOD = UINT32_MAX,
	FLOOD_ROUNDS = 1000, /* round trips before the rate is read again */
	TIMER_MIN_NS = 200000,
	TIMER_MAX_NS = 4000000,
	PACKETS_MAX = 6, /* packets in one burst */
	PACKET_BYTES = 200,
	FILE_BYTES = 16 << 20,
	WRITE_BYTES_MAX = 64 << 10,
	WRITE_PAUSE_MIN_NS = 5000000,
	WRITE_PAUSE_MAX_NS = 40000000,
};

struct load {
	_Atomic uint32_t *rate; /* round trips per second of each pair, shared; or FLOOD */
	const char *folder;     /* NULL: no mixed load */
	pid_t children[CHILDREN_MAX];
	size_t n_children;
};

static int64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void pause_ns(int64_t ns)
{
	const struct timespec t = {ns / 1000000000, ns % 1000000000};

	nanosleep(&t, NULL);
}

/* Returns a random number from min to max - 1. Each process has another sequence. */
static int64_t dice(int64_t min, int64_t max)
{
	static uint64_t state;

	if (!state)
		state = 88172645463325252u ^ ((uint64_t)getpid() << 20);
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return min + (int64_t)(state % (uint64_t)(max - min));
}

static void echo_bytes(int from, int to)
{
	char byte;

	while (read(from, &byte, 1) == 1 && write(to, &byte, 1) == 1)
		;
}

/* Plays one side of the pair on this CPU in an endless loop. */
static void ping(struct load *l, unsigned int cpu)
{
	int64_t begin, last = now_ns(), due_ns = 0;
	int there[2], back[2];
	char byte = 0;
	cpu_set_t set;
	pid_t child;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set) || pipe(there) || pipe(back))
		return;
	child = child_fork();
	if (child < 0)
		return;
	if (!child) {
		close(there[1]);
		echo_bytes(there[0], back[1]);
		return;
	}
	close(there[0]);
	for (;;) {
		const uint32_t rate = atomic_load(l->rate);
		int64_t rounds = FLOOD_ROUNDS;

		begin = now_ns();
		if (rate == FLOOD) {
			due_ns = 0;
		} else {
			/* The unit is round trips times a second, so that no fraction is lost. */
			due_ns += (begin - last < BEHIND_MAX_NS ? begin - last : BEHIND_MAX_NS) *
				  (int64_t)rate;
			rounds = due_ns / 1000000000;
			due_ns %= 1000000000;
		}
		last = begin;
		while (rounds-- > 0)
			if (write(there[1], &byte, 1) != 1 || read(back[0], &byte, 1) != 1)
				return;
		if (rate != FLOOD)
			pause_ns(l->folder ? dice(PERIOD_NS / 4, 2 * PERIOD_NS) : PERIOD_NS);
	}
}

static void timers(struct load *l, unsigned int number)
{
	(void)l, (void)number;
	for (;;)
		pause_ns(dice(TIMER_MIN_NS, TIMER_MAX_NS));
}

/* Sends packets to itself: each packet causes a softirq. */
static void packets(struct load *l, unsigned int number)
{
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
	const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	socklen_t len = sizeof(to);
	char bytes[PACKET_BYTES] = {0};

	(void)l, (void)number;
	if (bind(fd, (struct sockaddr *)&to, sizeof(to)) ||
	    getsockname(fd, (struct sockaddr *)&to, &len))
		return;
	for (;;) {
		for (int64_t n = dice(1, PACKETS_MAX + 1); n > 0; n--)
			if (sendto(fd, bytes, sizeof(bytes), 0, (struct sockaddr *)&to, len) < 0)
				return;
		while (recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT) > 0)
			;
		pause_ns(dice(TIMER_MIN_NS, TIMER_MAX_NS));
	}
}

static void writes(struct load *l, unsigned int number)
{
	static char bytes[WRITE_BYTES_MAX];
	const int fd = open(l->folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

	(void)number;
	for (;;) {
		const size_t n = (size_t)dice(1, WRITE_BYTES_MAX);

		if (pwrite(fd, bytes, n, dice(0, FILE_BYTES)) != (ssize_t)n || fsync(fd))
			return;
		pause_ns(dice(WRITE_PAUSE_MIN_NS, WRITE_PAUSE_MAX_NS));
	}
}

/* Starts a child that plays this part until it is killed. Returns 0 or -errno. */
static int part_start(struct load *l, void (*part)(struct load *, unsigned int),
		      unsigned int number)
{
	pid_t pid;

	if (l->n_children == CHILDREN_MAX)
		return -E2BIG;
	pid = child_fork();
	if (pid < 0)
		return -errno;
	if (!pid) {
		part(l, number);
		_exit(1); /* a part returns only after an error */
	}
	l->children[l->n_children++] = pid;
	return 0;
}

static int load_start(struct load *l)
{
	const long n_cpus = sysconf(_SC_NPROCESSORS_ONLN);
	int err = 0;

	for (unsigned int cpu = 0; !err && cpu < n_cpus; cpu++) {
		err = part_start(l, ping, cpu);
		if (!err && l->folder)
			err = part_start(l, timers, cpu);
	}
	if (!err && l->folder)
		err = part_start(l, packets, 0);
	if (!err && l->folder)
		err = part_start(l, writes, 0);
	return err;
}

int main(int argc, char **argv)
{
	struct load l = {.folder = argc == 2 ? argv[1] : NULL};
	char line[32];
	int err;

	if (argc > 2) {
		fprintf(stderr, "usage: bench_load [FOLDER]\n");
		return 2;
	}
	l.rate = mmap(NULL, sizeof(*l.rate), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	if (l.rate == MAP_FAILED)
		return 1;
	err = load_start(&l);
	while (!err && fgets(line, sizeof(line), stdin))
		atomic_store(l.rate,
			     !strcmp(line, "flood\n") ? FLOOD : (uint32_t)strtoul(line, NULL, 10));
	for (size_t i = 0; i < l.n_children; i++) {
		int status;

		/* If a child has ended by itself, its part of the load was missing. */
		if (waitpid(l.children[i], &status, WNOHANG) == l.children[i])
			err = -ECHILD;
		else
			kill(l.children[i], SIGKILL);
	}
	if (err)
		fprintf(stderr, "bench_load: %s\n",
			err == -ECHILD ? "a part of the load could not be played" : strerror(-err));
	return err ? 1 : 0;
}
