/* SPDX-License-Identifier: GPL-2.0-only */
/* Tests the border between a decoder and the collector: the operations that a confined process
 * cannot do, arbitrary writes to the ring (which do not harm the reader), and the transfer of
 * frames. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "bpf/isolation/confine.h"
#include "host-collector/decode/framer.h"
#include "host-collector/decode/ring.h"

/* ---- confinement ---- */

static void try_socket(void)
{
	(void)!socket(AF_UNIX, SOCK_STREAM, 0);
}

static void try_open(void)
{
	(void)!open("/etc/passwd", O_RDONLY);
}

static void try_fork(void)
{
	(void)!fork();
}

static void try_exec(void)
{
	char *const argv[] = {NULL};

	execve("/bin/true", argv, argv);
}

static void try_code(void)
{
	(void)!mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

static void try_file_memory(void)
{
	(void)!mmap(NULL, 4096, PROT_READ, MAP_SHARED, 0, 0);
}

static void try_kill(void)
{
	kill(getppid(), 0);
}

static void try_dup(void)
{
	(void)!dup(0);
}

static void try_truncate(void)
{
	(void)!ftruncate(0, 0);
}

static void try_nothing(void)
{
	void *memory = malloc(1 << 20);

	memset(memory, 1, 1 << 20);
	free(memory);
	(void)!write(1, "", 0);
}

/* Runs `try` in a confined process: its wait status. */
static int confined(void (*try)(void))
{
	const struct confinement limits = {.keep = 3, .memory_bytes = 8 << 20, .parent = getpid()};
	pid_t pid = fork();
	const char *step;
	int status;

	if (!pid) {
		if (confine(&limits, &step))
			_exit(99);
		try();
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

static void test_a_confined_process_dies_of_what_it_may_not(void **state)
{
	static void (*const forbidden[])(void) = {
		try_socket,      try_open, try_fork, try_exec,     try_code,
		try_file_memory, try_kill, try_dup,  try_truncate,
	};

	(void)state;
#ifdef __SANITIZE_ADDRESS__
	print_message("the sanitizers need what the filter forbids\n");
	skip();
#endif
	assert_int_equal(confined(try_nothing), 0);
	for (size_t i = 0; i < sizeof(forbidden) / sizeof(forbidden[0]); i++) {
		int status = confined(forbidden[i]);

		if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGSYS)
			fail_msg("attempt %zu ended with status %#x", i, status);
	}
}

static void try_much_memory(void)
{
	_exit(malloc(64 << 20) ? 1 : 0);
}

static void test_memory_is_bounded(void **state)
{
	(void)state;
#ifdef __SANITIZE_ADDRESS__
	print_message("the sanitizers need more memory than the bound\n");
	skip();
#endif
	assert_int_equal(confined(try_much_memory), 0);
}

/* ---- the ring ---- */

struct rig {
	int fd;
	struct ring *writer, *reader_side;
	struct ring_reader *reader;
};

static int rig_setup(void **state)
{
	struct rig *r = calloc(1, sizeof(*r));

	r->fd = ring_create();
	r->writer = ring_map(r->fd);
	r->reader_side = ring_map(r->fd);
	r->reader = ring_reader_new(r->reader_side);
	*state = r;
	return r->writer && r->reader ? 0 : -1;
}

static int rig_teardown(void **state)
{
	struct rig *r = *state;

	ring_reader_free(r->reader);
	ring_unmap(r->writer);
	ring_unmap(r->reader_side);
	close(r->fd);
	free(r);
	return 0;
}

static void batch_make(struct guest_record *record, uint32_t n, uint64_t salt)
{
	record->head = (struct record_head){.kind = FRAME_BATCH, .arrival_tsc = salt};
	record->batch.cpu = 3;
	record->batch.n_events = n;
	for (uint32_t i = 0; i < n; i++)
		record->batch.events[i] = (struct vs_event){.time = salt + i,
							    .seq = i,
							    .cpu = 3,
							    .type = VS_EVENT_SCHED_WAKEUP,
							    .pid = (int32_t)i,
							    .arg0 = salt};
}

static void test_records_arrive_whole_and_in_order(void **state)
{
	static struct guest_record record;
	struct rig *r = *state;
	const struct guest_record *got;
	uint64_t put = 0, taken = 0;
	size_t full = 0;

	srand(7);
	while (taken < 2000) {
		while (put < 2000 && rand() % 8) {
			batch_make(&record, (uint32_t)((put * 37) % (VS_BATCH_EVENTS_MAX + 1)),
				   put);
			if (ring_put(r->writer, &record)) {
				full++;
				break;
			}
			put++;
		}
		for (unsigned int slots = 100; ring_take(r->reader, &slots, &got) > 0; taken++) {
			assert_int_equal(got->head.arrival_tsc, taken);
			assert_int_equal(got->batch.n_events,
					 (taken * 37) % (VS_BATCH_EVENTS_MAX + 1));
			if (got->batch.n_events)
				assert_int_equal(got->batch.events[got->batch.n_events - 1].time,
						 taken + got->batch.n_events - 1);
		}
	}
	assert_true(full > 0); /* it was full at times, and nothing was lost */
}

/* Nothing lies behind the array of which only the used part travels. */
static void test_a_heartbeat_arrives_with_all_its_fields(void **state)
{
	static struct guest_record record;
	struct rig *r = *state;
	const struct guest_record *got;
	unsigned int slots = RING_SLOTS;

	batch_make(&record, VS_BATCH_EVENTS_MAX, 99);
	assert_int_equal(ring_put(r->writer, &record), 0);
	assert_int_equal(ring_take(r->reader, &slots, &got), 1);
	memset(&record, 0, sizeof(record));
	record.head.kind = FRAME_HEARTBEAT;
	record.heartbeat.time = 5;
	record.heartbeat.watchdog = 21;
	record.heartbeat.steal.known = true;
	record.heartbeat.steal.n_cpus = 2;
	record.heartbeat.steal.cpus[1].cpu = 1;
	record.heartbeat.steal.cpus[1].steal_ns = 7;
	assert_int_equal(ring_put(r->writer, &record), 0);
	assert_int_equal(ring_take(r->reader, &slots, &got), 1);
	assert_int_equal(got->heartbeat.time, 5);
	assert_int_equal(got->heartbeat.watchdog, 21);
	assert_int_equal(got->heartbeat.steal.n_cpus, 2);
	assert_int_equal(got->heartbeat.steal.cpus[1].steal_ns, 7);
}

static void test_the_memory_cannot_shrink(void **state)
{
	struct rig *r = *state;

	assert_int_equal(ftruncate(r->fd, 4096), -1);
	assert_int_equal(errno, EPERM);
}

static void test_a_mad_writer_is_found_out(void **state)
{
	static const uint16_t kinds[] = {
		FRAME_HELLO,       FRAME_BATCH,    FRAME_BATCH,        FRAME_HEARTBEAT,
		FRAME_ECHO_REPLY,  FRAME_BATCH,    FRAME_CLOCK_SAMPLE, FRAME_KERNEL_LOG,
		FRAME_GUEST_STACK, RECORD_STATS,   RECORD_OBSERVATION, RECORD_NOTE,
		RECORD_DOWN,       RECORD_UNKNOWN, FRAME_CONFIG_REPLY, RECORD_UNKNOWN_FRAME};
	static struct guest_record record;
	struct rig *r = *state;
	const struct guest_record *got;
	size_t refused = 0, taken = 0;

	srand(11);
	for (int round = 0; round < 3000; round++) {
		uint32_t head = atomic_load(&r->writer->head);
		unsigned int slots = RING_SLOTS;
		int result;

		if (round % 3 == 0) { /* claims what it did not write */
			atomic_store(&r->writer->head, head + (uint32_t)rand());
		} else { /* a true record, then bytes of it changed */
			batch_make(&record, (uint32_t)rand() % 300, 5);
			record.head.kind =
				kinds[(size_t)rand() % (sizeof(kinds) / sizeof(kinds[0]))];
			if (record.head.kind != FRAME_BATCH)
				memset(&record.hello, 0, sizeof(record.hello));
			ring_put(r->writer, &record);
			for (int i = rand() % 6; i > 0; i--)
				((uint8_t *)&r->writer->slots[head % RING_SLOTS])[rand() % 64] =
					(uint8_t)rand();
		}
		while ((result = ring_take(r->reader, &slots, &got)) > 0)
			taken++;
		if (result < 0) { /* a collector ends the decoder here; begin anew */
			refused++;
			ring_reader_free(r->reader);
			atomic_store(&r->writer->head, 0);
			atomic_store(&r->writer->tail, 0);
			r->reader = ring_reader_new(r->reader_side);
		}
	}
	assert_true(refused > 100);
	assert_true(taken > 100);
}

static void test_counts_and_texts_are_bounded(void **state)
{
	static const uint16_t foreign[] = {0,
					   FRAME_CONFIG,
					   FRAME_VM_INFO,
					   FRAME_KIND_LIMIT,
					   UINT8_MAX,
					   RECORD_UNKNOWN_FRAME + 1,
					   256 + FRAME_HEARTBEAT + 8,
					   UINT16_MAX};
	static struct guest_record record;
	uint8_t byte = 0xff;
	size_t bytes;

	(void)state;
	batch_make(&record, 5, 0);
	bytes = record_bytes(&record);
	assert_int_equal(record_check(&record, bytes), 0);
	assert_int_equal(record_check(&record, bytes - 1), -EPROTO);
	assert_int_equal(record_check(&record, bytes + 40), -EPROTO);
	record.batch.n_events = VS_BATCH_EVENTS_MAX + 1;
	assert_int_equal(record_check(&record, bytes), -EPROTO);
	record.batch.n_events = 5;
	record.batch.cpu = VS_CPUS_MAX;
	assert_int_equal(record_check(&record, bytes), -EPROTO);

	memset(&record, 0, sizeof(record));
	record.head.kind = FRAME_HELLO;
	memset(record.hello.boot_id, 'x', sizeof(record.hello.boot_id));
	memcpy(&record.hello.dmesg.known, &byte, 1);
	assert_int_equal(record_check(&record, record_bytes(&record)), 0);
	assert_int_equal(strlen(record.hello.boot_id), sizeof(record.hello.boot_id) - 1);
	memcpy(&byte, &record.hello.dmesg.known, 1);
	assert_int_equal(byte, 1);
	record.hello.n_cpus = SIZE_MAX / sizeof(record.hello.cpus[0]);
	assert_int_equal(record_check(&record, bytes), -EPROTO);
	/* A kind that only the collector sends, two that nobody has, and none at all. */
	for (size_t i = 0; i < sizeof(foreign) / sizeof(foreign[0]); i++) {
		record.head.kind = foreign[i];
		assert_int_equal(record_check(&record, sizeof(record)), -EPROTO);
		assert_int_equal(record_check(&record, record_bytes(&record)), -EPROTO);
	}
}

/* ---- frames ---- */

/* The bytes of a record's frame. */
static int frame_of(struct framer *f, struct guest_record *r, struct frame_view *out)
{
	struct frame_item item;
	const int err = framer_item(f, r, &item);

	return err ? err : frame_item_frame(&item, out);
}

static void test_a_batch_becomes_the_frame_it_was(void **state)
{
	static struct guest_record record;
	struct framer *framer = framer_new();
	struct frame_writer *writer = frame_writer_new(0x77);
	struct batch_encoder *encoder = batch_encoder_new();
	struct byte_buffer payload = {0}, wire = {0};
	struct batch b = {.cpu = 3, .n_events = 400, .events = record.batch.events};
	struct frame_view frame;

	(void)state;
	batch_make(&record, 400, 1000);
	record.head.session_id = 0x77;
	assert_int_equal(batch_encode(encoder, &b, &payload), 0);
	assert_int_equal(frame_write(writer, FRAME_BATCH, payload.data, payload.len, &wire), 0);
	assert_int_equal(frame_of(framer, &record, &frame), 0);
	assert_int_equal(frame.len, wire.len);
	assert_memory_equal(frame.bytes, wire.data, wire.len);

	/* A type of a newer agent goes through; times that run back do not. */
	record.batch.events[7].type = VS_EVENT_TYPE_LIMIT;
	assert_int_equal(frame_of(framer, &record, &frame), 0);
	record.batch.events[7].type = VS_EVENT_NONE;
	assert_int_equal(frame_of(framer, &record, &frame), -EINVAL);
	record.batch.events[7].type = VS_EVENT_SCHED_WAKEUP;
	record.batch.events[7].time = 1;
	assert_int_equal(frame_of(framer, &record, &frame), -EINVAL);
	record.batch.events[7].time = record.batch.events[6].time;
	assert_int_equal(frame_of(framer, &record, &frame), 0);
	record.batch.events[7].cpu++;
	assert_int_equal(frame_of(framer, &record, &frame), -EINVAL);
	record.batch.events[7].cpu--;
	record.batch.chord_begin = 2;
	record.batch.chord_end = 1;
	assert_int_equal(frame_of(framer, &record, &frame), -EINVAL);
	record.batch.chord_end = 2;
	assert_int_equal(frame_of(framer, &record, &frame), 0);
	record.head.kind = RECORD_STATS;
	assert_int_equal(frame_of(framer, &record, &frame), -EINVAL);
	/* Of a frame of unknown kind its place stays; kinds that are known cannot come that way. */
	record.head.kind = RECORD_UNKNOWN_FRAME;
	for (uint32_t kind = 0; kind < 300; kind++) {
		const bool unknown = kind && kind < 256 && !frame_kind_senders((uint8_t)kind);

		record.unknown_frame.kind = kind;
		assert_int_equal(record_check(&record, record_bytes(&record)), 0);
		assert_int_equal(frame_of(framer, &record, &frame), unknown ? 0 : -EINVAL);
		assert_true(!unknown || (frame.header.kind == kind && !frame.header.payload_bytes &&
					 frame.header.frame_seq == record.head.frame_seq));
	}
	byte_buffer_fini(&payload);
	byte_buffer_fini(&wire);
	batch_encoder_free(encoder);
	frame_writer_free(writer);
	framer_free(framer);
}

#define RIG(test) cmocka_unit_test_setup_teardown(test, rig_setup, rig_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_confined_process_dies_of_what_it_may_not),
		cmocka_unit_test(test_memory_is_bounded),
		RIG(test_records_arrive_whole_and_in_order),
		RIG(test_a_heartbeat_arrives_with_all_its_fields),
		RIG(test_the_memory_cannot_shrink),
		RIG(test_a_mad_writer_is_found_out),
		cmocka_unit_test(test_counts_and_texts_are_bounded),
		cmocka_unit_test(test_a_batch_becomes_the_frame_it_was),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
