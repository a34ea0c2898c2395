/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What looks like a QEMU with one vCPU to a collector, and whose vCPU thread waits in short pieces
 * when it is told to. The thread reads commands from standard input, one a line:
 *
 * - compute MS 0: computes;
 * - userfault N US: touches N pages, which another thread provides US later;
 * - disk N US: touches N pages of a file, each of which takes US to read;
 * - swap-begin N US: swaps to a file of which each read takes US, and makes N pages to swap out;
 * - swap N US: touches N of these pages;
 * - swap-end 1 0: ends that swapping;
 * - map MS US: for MS, maps and unmaps a page again and again, while another thread maps and fills
 *   64 MiB, which holds the lock of the memory map, with pauses of US.
 *
 * and answers each with a line: its begin and end by CLOCK_MONOTONIC_RAW, and for how much of that
 * it was not on a CPU, in ns. It ends with its standard input.
 */
#include <fcntl.h>
#include <linux/loop.h>
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
#include <sys/swap.h>
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
	int fd = slow_file_open((size_t)n * PAGE, us, false);
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

/* ---- swap ---- */

/* The kernel reads eight pages at a time: of so many that lie one after the other, one is touched.
 */
enum { APART_PAGES = 16, HEADER_LAST_PAGE = 1024 + 4, HEADER_MAGIC_BYTES = 10 };

/* A loop device over `fd`: a descriptor, which keeps it; its name in `path`. */
static int loop_over(int fd, char path[32])
{
	const struct loop_config config = {
		.fd = (uint32_t)fd, .block_size = PAGE, .info = {.lo_flags = LO_FLAGS_AUTOCLEAR}};
	int control = open("/dev/loop-control", O_RDWR | O_CLOEXEC);
	int n = control < 0 ? -1 : ioctl(control, LOOP_CTL_GET_FREE), loop;

	close(control);
	snprintf(path, 32, "/dev/loop%d", n);
	loop = n < 0 ? -1 : open(path, O_RDWR | O_CLOEXEC);
	if (loop >= 0 && ioctl(loop, LOOP_CONFIGURE, &config))
		return -1;
	return loop;
}

static bool swap_header_write(int fd, uint32_t pages)
{
	uint8_t header[PAGE] = {0};
	const uint32_t version = 1, last = pages - 1;

	memcpy(header + HEADER_LAST_PAGE - 4, &version, 4);
	memcpy(header + HEADER_LAST_PAGE, &last, 4);
	memcpy(header + PAGE - HEADER_MAGIC_BYTES, "SWAPSPACE2", HEADER_MAGIC_BYTES);
	return pwrite(fd, header, PAGE, 0) == PAGE;
}

static struct {
	uint8_t *pages;
	size_t bytes;
	char path[32];
	int fd, loop;
} swapped;

static void swap_begin(long n, long us)
{
	swapped.bytes = (size_t)n * APART_PAGES * PAGE;
	/* Whoever serves the swap must not be swapped out. */
	if (mlockall(MCL_CURRENT))
		exit(1);
	swapped.fd = slow_file_open(swapped.bytes + PAGE, us, true);
	swapped.loop = swapped.fd < 0 ? -1 : loop_over(swapped.fd, swapped.path);
	if (swapped.loop < 0 || mlockall(MCL_CURRENT) ||
	    !swap_header_write(swapped.loop, (uint32_t)(n * APART_PAGES) + 1) ||
	    fsync(swapped.loop) || swapon(swapped.path, 0))
		exit(1);
	swapped.pages = mmap(NULL, swapped.bytes, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (swapped.pages == MAP_FAILED || madvise(swapped.pages, swapped.bytes, MADV_NOHUGEPAGE))
		exit(1);
	memset(swapped.pages, 1, swapped.bytes); /* a page of zeros would not be written */
}

static void swap_touch(long n, long unused)
{
	(void)unused;
	for (long i = 0; i < n; i++)
		touch(swapped.pages + i * APART_PAGES * PAGE, 1);
}

static void swap_end(long unused1, long unused2)
{
	(void)unused1;
	(void)unused2;
	munmap(swapped.pages, swapped.bytes);
	swapoff(swapped.path);
	close(swapped.loop);
	close(swapped.fd);
	slow_file_close();
	munlockall();
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
} acts[] = {
	{"compute", compute}, {"userfault", userfault}, {"disk", disk}, {"swap-begin", swap_begin},
	{"swap", swap_touch}, {"swap-end", swap_end},   {"map", map}};

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
