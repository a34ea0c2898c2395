/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What looks like a QEMU with one vCPU to a collector, and whose vCPU thread waits in short pieces
 * when it is told to. The thread reads commands from standard input, one a line:
 *
 *	compute MS 0		computes
 *	userfault N US		touches N pages, which another thread provides US later
 *	disk N US		touches N pages of a file, each of which takes US to read
 *	map MS US		maps and unmaps a page again and again, while another thread holds
 *				the lock of the memory map, each time for long, US apart
 *
 * and answers each with a line: its begin and end by CLOCK_MONOTONIC_RAW, and for how much of that
 * it was not on a CPU, in ns. It ends with its standard input.
 */
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "tests/e2e/storms/slow_file.h"

enum { PAGE = 4096, HELD_BYTES = 64 << 20 };

static int64_t now_ns(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return t.tv_sec * 1000000000ll + t.tv_nsec;
}

static void sleep_us(long us)
{
	const struct timespec t = {us / 1000000, us % 1000000 * 1000};

	nanosleep(&t, NULL);
}

static void compute(long ms, long unused)
{
	const int64_t end = now_ns(CLOCK_MONOTONIC_RAW) + ms * 1000000ll;

	(void)unused;
	while (now_ns(CLOCK_MONOTONIC_RAW) < end)
		;
}

static bool touch(volatile const uint8_t *pages, long n)
{
	uint8_t sum = 0;

	for (long i = 0; i < n; i++)
		sum = (uint8_t)(sum + pages[i * PAGE]);
	return sum == 0;
}

static cpu_set_t all_cpus;

/* Another thread of this process, away from the vCPU's CPU if there is another. */
static void helper_begin(const char *name)
{
	cpu_set_t others = all_cpus, mine;

	prctl(PR_SET_NAME, name);
	sched_getaffinity(0, sizeof(mine), &mine); /* the vCPU thread's, which made it */
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		if (CPU_ISSET(cpu, &mine))
			CPU_CLR(cpu, &others);
	}
	if (CPU_COUNT(&others))
		sched_setaffinity(0, sizeof(others), &others);
}

/* ---- userfault ---- */

struct provider {
	int fd;
	long us;
};

static void *provide(void *context)
{
	const struct provider *p = context;
	static uint8_t zeros[PAGE] __attribute__((aligned(PAGE)));
	struct uffd_msg message;

	helper_begin("page-provider");
	while (read(p->fd, &message, sizeof(message)) == sizeof(message)) {
		struct uffdio_copy copy = {.dst = message.arg.pagefault.address & -(uint64_t)PAGE,
					   .src = (uintptr_t)zeros,
					   .len = PAGE};

		sleep_us(p->us);
		if (ioctl(p->fd, UFFDIO_COPY, &copy))
			break;
	}
	return NULL;
}

static void userfault(long n, long us)
{
	struct provider p = {.fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC), .us = us};
	struct uffdio_api api = {.api = UFFD_API};
	void *pages = mmap(NULL, (size_t)n * PAGE, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct uffdio_register range = {
		.range = {.start = (uintptr_t)pages, .len = (uint64_t)n * PAGE},
		.mode = UFFDIO_REGISTER_MODE_MISSING};
	pthread_t thread;

	if (p.fd < 0 || pages == MAP_FAILED || ioctl(p.fd, UFFDIO_API, &api) ||
	    ioctl(p.fd, UFFDIO_REGISTER, &range) || pthread_create(&thread, NULL, provide, &p))
		exit(1);
	touch(pages, n);
	pthread_cancel(thread);
	pthread_join(thread, NULL);
	close(p.fd);
	munmap(pages, (size_t)n * PAGE);
}

/* ---- disk ---- */

static void disk(long n, long us)
{
	int fd = slow_file_open((size_t)n * PAGE, us);
	void *pages =
		fd < 0 ? MAP_FAILED : mmap(NULL, (size_t)n * PAGE, PROT_READ, MAP_PRIVATE, fd, 0);

	if (pages == MAP_FAILED)
		exit(1);
	madvise(pages, (size_t)n * PAGE, MADV_RANDOM); /* one page at a time */
	touch(pages, n);
	munmap(pages, (size_t)n * PAGE);
	close(fd);
	slow_file_close();
}

/* ---- the lock of the memory map ---- */

static atomic_bool holding;

static void *hold(void *context)
{
	const long us = *(long *)context;

	helper_begin("mapper");
	while (holding) {
		void *all = mmap(NULL, HELD_BYTES, PROT_READ | PROT_WRITE,
				 MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

		if (all != MAP_FAILED)
			munmap(all, HELD_BYTES);
		sleep_us(us);
	}
	return NULL;
}

static void map(long ms, long us)
{
	const int64_t end_ns = now_ns(CLOCK_MONOTONIC_RAW) + ms * 1000000ll;
	pthread_t thread;

	holding = true;
	if (pthread_create(&thread, NULL, hold, &us))
		exit(1);
	while (now_ns(CLOCK_MONOTONIC_RAW) < end_ns) {
		uint8_t *page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE,
				     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		if (page == MAP_FAILED)
			exit(1);
		*page = 1;
		munmap(page, PAGE);
	}
	holding = false;
	pthread_join(thread, NULL);
}

/* ---- */

static const struct {
	const char *name;
	void (*act)(long n, long us);
} acts[] = {{"compute", compute}, {"userfault", userfault}, {"disk", disk}, {"map", map}};

static void obey(const char *name, long n, long us)
{
	int64_t begin, end, ran;

	for (size_t i = 0; i < sizeof(acts) / sizeof(acts[0]); i++) {
		if (strcmp(acts[i].name, name))
			continue;
		ran = now_ns(CLOCK_THREAD_CPUTIME_ID);
		begin = now_ns(CLOCK_MONOTONIC_RAW);
		acts[i].act(n, us);
		end = now_ns(CLOCK_MONOTONIC_RAW);
		ran = now_ns(CLOCK_THREAD_CPUTIME_ID) - ran;
		printf("%lld %lld %lld\n", (long long)begin, (long long)end,
		       (long long)(end - begin - ran));
		fflush(stdout);
	}
}

static void *vcpu(void *unused)
{
	char line[64], name[16];
	long n, us;

	prctl(PR_SET_NAME, "CPU 0/KVM");
	printf("%ld\n", (long)syscall(SYS_gettid));
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin)) {
		if (sscanf(line, "%15s %ld %ld", name, &n, &us) == 3 && n > 0)
			obey(name, n, us);
	}
	return unused;
}

int main(void)
{
	pthread_t thread;

	prctl(PR_SET_NAME, "qemu-system-x86");
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	sched_getaffinity(0, sizeof(all_cpus), &all_cpus);
	if (pthread_create(&thread, NULL, vcpu, NULL))
		return 1;
	pthread_join(thread, NULL);
	return 0;
}
