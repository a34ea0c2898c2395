/* SPDX-License-Identifier: GPL-2.0-only */
/* Tests KVM's tracepoints in the host capture. Needs root, BPF or perf, and /dev/kvm; skips the
 * tests that cannot run. The guest is one instruction in real mode, so the number of exits is known
 * exactly. */
#include "bpf/backend/capture_open.h"
#include "tests/unit/capture_log.h"

#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include "bpf/prog/follow.h"
#include "bpf/capture/tracepoint_format.h"
#include "tests/unit/kvm_guest.h"

enum { VM = 3, EXITS = 100, PORT = KVM_GUEST_PORT, BLOCK_BYTES = 4096, BLOCK_READS = 10 };

static enum backend_choice backend = CAPTURE_BY_BPF;
static int reader_error;

static int reader_fake(const char *system, const char *name, struct tracepoint_field *fields,
		       size_t n)
{
	assert_true(system && name);
	for (size_t i = 0; i < n; i++) {
		fields[i].offset = (unsigned int)(8 * i);
		fields[i].bytes = fields[i].name ? 8 : 0;
	}
	return reader_error;
}

static int reader_too_wide(const char *system, const char *name, struct tracepoint_field *fields,
			   size_t n)
{
	const int error = reader_fake(system, name, fields, n);

	fields[0].bytes = 16;
	return error;
}

/* Nothing exists until the reader is told so: a module that is loaded later. */
static int reader_late(const char *system, const char *name, struct tracepoint_field *fields,
		       size_t n)
{
	return reader_error ? reader_error : tracepoint_format_read(system, name, fields, n);
}

static void test_resolve(void **state)
{
	const struct event_tracepoint *row;
	struct vs_tracepoint out;
	size_t n = 0, n_exits = 0, n_injections = 0;

	(void)state;
	reader_error = 0;
	for (; (row = tracepoint_row(n)); n++) {
		assert_int_equal(tracepoint_resolve(row, reader_fake, &out), 0);
		assert_int_equal(out.type, row->type);
		assert_int_equal(row->constant, 0); /* the programs add none */
		assert_int_equal(tracepoint_resolve(row, reader_too_wide, &out), -EPROTO);
		assert_int_equal(tracepoint_resolve(row, reader_fake, &out), 0);
		if (row->type == VS_EVENT_KVM_EXIT) { /* two fields share arg0 */
			n_exits++;
			assert_true(out.always);
			assert_int_equal(out.arg0[0].bytes, 4);
			assert_int_equal(out.arg0[0].shift, 0);
			assert_int_equal(out.arg0[1].bytes, 4);
			assert_int_equal(out.arg0[1].shift, 32);
			assert_int_equal(out.arg0[1].offset, 8);
			assert_int_equal(out.arg1[0].bytes, 8);
			assert_int_equal(out.arg1[1].bytes, 0);
		} else if (row->type == VS_EVENT_KVM_INJECT) { /* one field with two names */
			n_injections++;
			assert_false(out.always);
			assert_int_equal(out.arg0[0].bytes, 4);
			assert_int_equal(out.arg0[1].bytes, 4);
			assert_int_equal(out.arg0[1].shift, 0);
		}
	}
	assert_true(n >= 20 && n < VS_TRACEPOINTS_MAX);
	assert_int_equal(n_exits, 1);
	assert_int_equal(n_injections, 1);
	reader_error = -ENOENT;
	assert_int_equal(tracepoint_resolve(tracepoint_row(0), reader_fake, &out), -ENOENT);
}

static struct capture *open_with(tracepoint_reader reader)
{
	const struct capture_options options = {
		.kind = CAPTURE_HOST, .backend = backend, .tracepoints = reader};
	struct capture *c;
	char why[256];

	if (capture_open(&options, &c, why, sizeof(why)))
		fail_msg("capture_open: %s", why);
	return c;
}

static size_t tracepoints(const struct capture *c)
{
	struct capture_host_stats stats;

	capture_host_stats_get(c, &stats);
	return stats.tracepoints;
}

static size_t count(const struct log *log, uint16_t type, pid_t tid, uint64_t arg0, uint64_t arg1)
{
	size_t found = 0;

	for (size_t i = 0; i < log->n; i++) {
		const struct vs_event *e = &log->events[i];

		found += e->type == type && e->pid == tid && e->arg0 == arg0 && e->arg1 == arg1;
	}
	return found;
}

/* Some builds of KVM never hit theirs: then nothing says how long an exit took. */
static bool entries_exist(struct kvm_guest *g)
{
	struct capture *c;
	struct log log = {0};
	bool found = false;

	reader_error = 0;
	c = open_with(reader_late);
	assert_int_equal(capture_add_thread(c, getpid(), getpid(), VM, true), 0);
	kvm_guest_exit(g);
	drain(c, &log);
	for (size_t i = 0; i < log.n; i++)
		found |= log.events[i].type == VS_EVENT_KVM_ENTRY;
	capture_close(c);
	free(log.events);
	return found;
}

struct counted {
	pid_t tid;
	struct capture_exit io;
	uint64_t in_buckets;
};

static void counted_take(void *context, const struct capture_exit *exit)
{
	struct counted *counted = context;
	const bool io = exit->reason == (exit->isa == 1 ? 30 : 0x7b);

	if (exit->tid != counted->tid || !io)
		return;
	counted->io = *exit;
	counted->in_buckets = 0;
	for (size_t i = 0; i < VS_EXIT_BUCKETS; i++)
		counted->in_buckets += exit->buckets[i];
}

/* At summary level the kernel counts what becomes no events. */
static void test_summary(void **state)
{
	struct kvm_guest guest = {0};
	const pid_t self = getpid();
	struct counted counted = {.tid = self};
	struct log log = {0};
	struct capture *c;
	size_t reported;

	(void)state;
	if (backend == CAPTURE_BY_PERF) {
		print_message("perf has no summary level\n");
		skip();
	}
	if (geteuid() || !kvm_guest_open(&guest) || !entries_exist(&guest)) {
		print_message("needs root and a KVM that tells of its entries\n");
		skip();
	}
	reader_error = 0;
	c = open_with(reader_late);
	assert_int_equal(capture_level_set(c, VM, CAPTURE_SUMMARY), 0);
	assert_int_equal(capture_add_thread(c, self, self, VM, true), 0);
	for (int i = 0; i < EXITS; i++)
		kvm_guest_exit(&guest);
	usleep(20000); /* the VMM sleeps: this exit becomes events */
	kvm_guest_exit(&guest);
	drain(c, &log);
	reported = count(&log, VS_EVENT_KVM_USERSPACE_EXIT, self, KVM_EXIT_IO, 0);
	assert_in_range(reported, 1, EXITS / 2); /* a busy machine preempts, and that is told */
	assert_int_equal(count(&log, VS_EVENT_KVM_PIO, self, PORT | 1ULL << 32, 1 | 1ULL << 32), 0);
	assert_int_equal(capture_exits(c, counted_take, &counted), 0);
	assert_int_equal(counted.io.vm, VM);
	assert_int_equal(counted.io.count + reported, EXITS); /* the last one is not over */
	assert_int_equal(counted.in_buckets, counted.io.count);
	assert_true(counted.io.kernel_ns > 0 && counted.io.vmm_ns > 0);
	assert_true(counted.io.max_ns <= counted.io.kernel_ns + counted.io.vmm_ns);
	/* A thread that is not followed any more is told once more, and forgotten. */
	assert_int_equal(capture_remove_thread(c, self), 0);
	assert_int_equal(capture_exits(c, counted_take, &counted), 0);
	counted.io.count = 0;
	assert_int_equal(capture_exits(c, counted_take, &counted), 0);
	assert_int_equal(counted.io.count, 0);
	capture_close(c);
	kvm_guest_close(&guest);
	free(log.events);
}

/* A module that comes later is attached to with the next VM; only followed threads are seen. */
static void test_exits(void **state)
{
	struct capture *c;
	struct kvm_guest guest = {0};
	struct log log = {0};
	const pid_t self = getpid();

	(void)state;
	if (geteuid() || !kvm_guest_open(&guest)) {
		print_message("needs root and /dev/kvm\n");
		skip();
	}
	reader_error = -ENOENT;
	c = open_with(reader_late);
	assert_int_equal(capture_add_thread(c, self, self, VM, true), 0);
	assert_int_equal(tracepoints(c), 0);
	kvm_guest_exit(&guest);
	assert_int_equal(capture_remove_thread(c, self), 0);

	reader_error = 0;
	assert_int_equal(capture_add_thread(c, self, self, VM, true), 0);
	assert_true(tracepoints(c) >= 3);
	for (int i = 0; i < EXITS; i++)
		kvm_guest_exit(&guest);
	assert_int_equal(capture_remove_thread(c, self), 0);
	kvm_guest_exit(&guest);
	drain(c, &log);
	assert_int_equal(count(&log, VS_EVENT_KVM_USERSPACE_EXIT, self, KVM_EXIT_IO, 0), EXITS);
	assert_int_equal(count(&log, VS_EVENT_KVM_PIO, self, PORT | 1ULL << 32, 1 | 1ULL << 32),
			 EXITS);

	/* The level is switched while the VM runs, and is that VM's own; perf has but one. */
	if (backend == CAPTURE_BY_PERF) {
		assert_int_equal(capture_level_set(c, VM, CAPTURE_SUMMARY), -EOPNOTSUPP);
		assert_int_equal(capture_level_set(c, VM, CAPTURE_DETAIL), 0);
		goto out;
	}
	assert_int_equal(capture_add_thread(c, self, self, VM, true), 0);
	assert_int_equal(capture_level_set(c, VM, CAPTURE_SUMMARY), 0);
	kvm_guest_exit(&guest);
	assert_int_equal(capture_level_set(c, VM, CAPTURE_DETAIL), 0);
	assert_int_equal(capture_level_set(c, VM + 1, CAPTURE_SUMMARY), 0);
	kvm_guest_exit(&guest);
	assert_int_equal(capture_level_set(c, VS_VMS_MAX, CAPTURE_SUMMARY), -EINVAL);
	drain(c, &log);
	assert_in_range(count(&log, VS_EVENT_KVM_USERSPACE_EXIT, self, KVM_EXIT_IO, 0), EXITS + 1,
			EXITS + 2); /* without entries all of them are told */
	assert_int_equal(count(&log, VS_EVENT_KVM_PIO, self, PORT | 1ULL << 32, 1 | 1ULL << 32),
			 EXITS + 1);
out:
	capture_close(c);
	kvm_guest_close(&guest);
	free(log.events);
}

/* How the request ended; its sector may have been written just before. */
static const struct vs_event *request_end(const struct log *log, const struct vs_event *begin)
{
	for (size_t i = 0; i < log->n; i++) {
		const struct vs_event *e = &log->events[i];

		if (e->type == VS_EVENT_BLOCK_COMPLETE && e->arg0 == begin->arg0 &&
		    e->time >= begin->time)
			return e;
	}
	return NULL;
}

/* A read around the page cache: issued by this thread, ended by an interrupt in whatever task. */
static void test_block(void **state)
{
	const int fd = open("/proc/self/exe", O_RDONLY | O_DIRECT | O_CLOEXEC);
	struct capture *c;
	struct log log = {0};
	const pid_t self = getpid();
	pid_t busy[BUSY_MAX];
	size_t reads = 0, n_busy;
	void *block = NULL;

	(void)state;
	if (geteuid() || fd < 0) {
		print_message("needs root and a program on a disk: O_DIRECT: %s\n",
			      strerror(errno));
		skip();
	}
	assert_int_equal(posix_memalign(&block, BLOCK_BYTES, BLOCK_BYTES), 0);
	c = open_with(tracepoint_format_read);
	assert_int_equal(capture_add_thread(c, self, self, VM, true), 0);
	n_busy = cpus_keep_busy(busy);
	for (int i = 0; i < BLOCK_READS; i++)
		assert_int_equal(pread(fd, block, BLOCK_BYTES, 0), BLOCK_BYTES);
	drain(c, &log);
	cpus_let_go(busy, n_busy);
	for (size_t i = 0; i < log.n; i++) {
		const struct vs_event *begin = &log.events[i], *end;

		/* A program just built is written first. */
		if (begin->type != VS_EVENT_BLOCK_ISSUE || begin->arg1 >> 32 != BLOCK_BYTES)
			continue;
		assert_int_equal(begin->pid, self);
		end = request_end(&log, begin);
		/* Some kernels' perf is blind in some tasks, and in what interrupts them. */
		if (!end && backend == CAPTURE_BY_PERF)
			continue;
		assert_non_null(end);
		assert_int_equal(end->pid2, self);
		assert_int_equal((uint32_t)end->arg1, (uint32_t)begin->arg1);
		assert_int_equal(end->arg1 >> 32, BLOCK_BYTES / 512);
		reads++;
	}
	assert_true(reads >= 1);
	capture_close(c);
	free(block);
	free(log.events);
	close(fd);
}

/* A mapped page whose file's pages were dropped from memory comes from the disk again. */
static void test_major_fault(void **state)
{
	char path[] = "test_capture_tracepoint.XXXXXX";
	const int fd = mkstemp(path);
	const char contents[BLOCK_BYTES] = {1};
	struct capture *c;
	struct log log = {0};
	const pid_t self = getpid();
	struct rusage before, after;
	volatile const char *page;
	size_t faults = 0;

	(void)state;
	assert_true(fd >= 0);
	unlink(path);
	assert_int_equal(write(fd, contents, sizeof(contents)), sizeof(contents));
	assert_int_equal(fsync(fd), 0);
	page = mmap(NULL, sizeof(contents), PROT_READ, MAP_SHARED, fd, 0);
	assert_ptr_not_equal(page, MAP_FAILED);
	if (geteuid()) {
		print_message("needs root\n");
		skip();
	}
	c = open_with(tracepoint_format_read);
	assert_int_equal(capture_add_thread(c, self, self, VM, true), 0);
	assert_int_equal(posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED), 0);
	getrusage(RUSAGE_THREAD, &before);
	assert_int_equal(page[0], 1);
	getrusage(RUSAGE_THREAD, &after);
	drain(c, &log);
	for (size_t i = 0; i < log.n; i++) {
		const struct vs_event *e = &log.events[i];

		faults += e->type == VS_EVENT_MAJOR_FAULT && e->pid == self &&
			  e->arg0 == (uintptr_t)page;
	}
	capture_close(c);
	munmap((void *)(uintptr_t)page, sizeof(contents));
	free(log.events);
	close(fd);
	if (after.ru_majflt == before.ru_majflt) {
		print_message("this file system keeps files in memory: no major fault\n");
		skip();
	}
	assert_int_equal(faults, 1);
}

/* [bpf|perf]: the way to capture, default bpf. */
/* Says why if not. A build may lack a way. */
static bool way_works(void)
{
	const struct capture_options options = {.kind = CAPTURE_HOST, .backend = backend};
	struct capture *c;
	char why[256];

	if (capture_open(&options, &c, why, sizeof(why))) {
		printf("skip: %s\n", why);
		return false;
	}
	capture_close(c);
	return true;
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_resolve),     cmocka_unit_test(test_exits),
		cmocka_unit_test(test_summary),     cmocka_unit_test(test_block),
		cmocka_unit_test(test_major_fault),
	};

	if (argc > 1 && backend_choice_parse(argv[1], &backend)) {
		fprintf(stderr, "%s: there are bpf and perf\n", argv[1]);
		return 2;
	}
	if (argc > 1 && !way_works())
		return 77;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
