/* SPDX-License-Identifier: GPL-2.0-only */
/* Tests the guest capture on the running kernel. Needs root, and BPF or perf; skips the tests
 * that cannot run. Other programs run at the same time, so the tests check only their own threads.
 */
#include "bpf/backend/capture_open.h"
#include "tests/unit/capture_log.h"

#include "bpf/capture/batcher.h"
#include "proto/message_config.h"
#include "proto/message_config_classes.h"
#include "proto/codec.h"

enum { RING_BYTES = 16 << 20 };

/* Both builds of the programs and perf go through all tests. */
static const struct variant *variant;

static struct capture *open_capture(size_t ring_bytes)
{
	const struct capture_options options = {.kind = CAPTURE_GUEST,
						.ring_bytes = ring_bytes,
						.backend = variant->backend,
						.raw_tracepoints = variant->raw_tracepoints};
	char why[256];
	struct capture *c;

	if (capture_open(&options, &c, why, sizeof(why)))
		fail_msg("capture_open: %s", why);
	return c;
}

static struct capture *open_default(void)
{
	return open_capture(RING_BYTES);
}

static void ping_pong(int from[2], int to[2], int rounds, bool first)
{
	char byte = 0;

	for (int i = 0; i < rounds; i++) {
		if (first && write(to[1], &byte, 1) != 1)
			_exit(1);
		if (read(from[0], &byte, 1) != 1)
			_exit(1);
		if (!first && write(to[1], &byte, 1) != 1)
			_exit(1);
	}
}

/* Interrupts of devices so far, on all CPUs. */
static unsigned long device_interrupts(void)
{
	FILE *f = fopen("/proc/interrupts", "re");
	unsigned long sum = 0;
	char line[4096];

	assert_non_null(f);
	while (fgets(line, sizeof(line), f)) {
		char *at = strchr(line, ':');

		if (!at || atoi(line) <= 0)
			continue;
		for (char *end = at + 1, *count = end;; count = end) {
			const unsigned long n = strtoul(count, &end, 10);

			if (end == count)
				break;
			sum += n;
		}
	}
	fclose(f);
	return sum;
}

static void every_event_type_is_seen(void **state)
{
	static const enum vs_event_type expected[] = {
		VS_EVENT_SCHED_SWITCH,  VS_EVENT_SCHED_WAKEUP, VS_EVENT_SCHED_WAKEUP_NEW,
		VS_EVENT_SCHED_MIGRATE, VS_EVENT_TASK_NAME,    VS_EVENT_TASK_EXIT,
		VS_EVENT_SOFTIRQ_ENTRY, VS_EVENT_SOFTIRQ_EXIT, VS_EVENT_VECTOR_ENTRY,
		VS_EVENT_VECTOR_EXIT,
	};
	bool seen[VS_EVENT_TYPE_LIMIT] = {0};
	struct capture *c = open_default();
	struct log *log = log_new();
	unsigned long interrupts;
	int cpus[2], fd;
	pid_t child, busy[BUSY_MAX];
	size_t n_busy;

	(void)state;
	two_cpus(cpus);
	n_busy = cpus_keep_busy(busy);
	interrupts = device_interrupts();
	child = fork();
	if (!child) {
		prctl(PR_SET_NAME, "vs-name-test-16+");
		for (int i = 0; i < 20; i++) {
			pin(cpus[i & 1]);
			sleep_ms(2);
		}
		/* For a block device's interrupt, if there is one. */
		fd = open("vs-irq-test", O_CREAT | O_WRONLY | O_EXCL, 0600);
		if (fd >= 0) {
			if (write(fd, "x", 1) == 1)
				fsync(fd);
			close(fd);
			unlink("vs-irq-test");
		}
		_exit(0);
	}
	drain_until_exit(c, log, child);
	drain_for(c, log, 200);
	interrupts = device_interrupts() - interrupts;
	cpus_let_go(busy, n_busy);
	drain(c, log);
	for (size_t i = 0; i < log->n; i++)
		seen[log->events[i].type] = true;
	for (size_t i = 0; i < sizeof(expected) / sizeof(*expected); i++) {
		if (!seen[expected[i]])
			fail_msg("no event of type %d", expected[i]);
	}
	assert_int_equal(seen[VS_EVENT_IRQ_ENTRY], seen[VS_EVENT_IRQ_EXIT]);
	if (interrupts)
		assert_true(seen[VS_EVENT_IRQ_ENTRY]);
	assert_string_equal(capture_left_out(c), "");
	assert_true(find_name(log, child, child, "vs-name-test-16"));
	assert_non_null(find(log, VS_EVENT_SCHED_WAKEUP_NEW, child));
	assert_non_null(find(log, VS_EVENT_TASK_EXIT, child));
	if (cpus[0] != cpus[1])
		assert_non_null(find(log, VS_EVENT_SCHED_MIGRATE, child));
	log_free(log);
	capture_close(c);
}

static void tasks_that_exist_already_are_named(void **state)
{
	struct capture *c;
	struct log *log = log_new();
	char comm[17] = "";

	(void)state;
	prctl(PR_GET_NAME, comm);
	c = open_capture(1); /* the smallest ring: names must not overrun it */
	drain(c, log);
	assert_true(find_name(log, getpid(), getpid(), comm));
	assert_true(find_name(log, 2, 2, "kthreadd"));
	log->n = 0;
	drain(c, log);
	assert_false(find_name(log, 2, 2, "kthreadd"));
	assert_int_equal(capture_name_tasks(c), 0); /* for a reader that came late */
	drain(c, log);
	assert_true(find_name(log, getpid(), getpid(), comm));
	assert_true(find_name(log, 2, 2, "kthreadd"));
	log_free(log);
	capture_close(c);
}

/* From the first event on: no entry without its exit, whenever the capture was opened. Returns how
 * many pairs there were. */
static size_t vectors_check(const struct log *log)
{
	uint64_t open[VS_CPU_COLLECTOR] = {0};
	size_t pairs = 0;

	for (size_t i = 0; i < log->n; i++) {
		const struct vs_event *e = &log->events[i];

		if (e->type == VS_EVENT_VECTOR_ENTRY) {
			assert_int_equal(open[e->cpu], 0);
			assert_in_range(e->arg0, VS_VECTOR_LOCAL_TIMER,
					VS_VECTOR_CALL_FUNCTION_SINGLE);
			open[e->cpu] = e->arg0;
		} else if (e->type == VS_EVENT_VECTOR_EXIT) {
			/* It may have entered before we looked. */
			if (open[e->cpu]) {
				assert_int_equal(open[e->cpu], e->arg0);
				pairs++;
			}
			open[e->cpu] = 0;
		} else if (e->type == VS_EVENT_SCHED_SWITCH) {
			assert_int_equal(open[e->cpu], 0);
		}
	}
	return pairs;
}

static void vectors_pair_up(void **state)
{
	pid_t busy[BUSY_MAX];
	const size_t n_busy = cpus_keep_busy(busy);
	size_t pairs = 0;

	(void)state;
	/* To attach a program patches the kernel's text, which interrupts every CPU: the capture
	 * itself provides the entries between two attachments. */
	for (int i = 0; i < 4; i++) {
		struct capture *c = open_default();
		struct log *log = log_new();

		drain_for(c, log, 50);
		pairs += vectors_check(log);
		log_free(log);
		capture_close(c);
	}
	assert_true(pairs > 0);
	cpus_let_go(busy, n_busy);
}

/* A class that is switched off ends with exits: a handler that was under way has its own. */
static void classes_end_without_open_handlers(void **state)
{
	struct message_config everything = {.classes = ~0ull}, quiet = {.classes = 0};
	struct capture *c = open_default();
	struct log *log = log_new();
	pid_t busy[BUSY_MAX];
	size_t n_busy, before;

	(void)state;
	if (!(capture_guest_fields(c) & 1u << CONFIG_CLASSES)) {
		capture_close(c);
		log_free(log);
		return; /* this way of capturing has no classes */
	}
	n_busy = cpus_keep_busy(busy);
	for (int i = 0; i < 200; i++) {
		assert_int_equal(capture_guest_set(c, &quiet), 0);
		drain_for(c, log, 1);
		assert_int_equal(capture_guest_set(c, &everything), 0);
		drain_for(c, log, 3);
	}
	assert_true(vectors_check(log) > 0);
	assert_int_equal(capture_guest_set(c, &quiet), 0);
	drain_for(c, log, 1200); /* exits end a second later */
	before = log->n;
	drain_for(c, log, 100);
	for (size_t i = before; i < log->n; i++)
		assert_true(log->events[i].type != VS_EVENT_VECTOR_EXIT &&
			    log->events[i].type != VS_EVENT_VECTOR_ENTRY &&
			    log->events[i].type != VS_EVENT_SOFTIRQ_EXIT);
	cpus_let_go(busy, n_busy);
	log_free(log);
	capture_close(c);
}

/* Two tasks pinned to one CPU hand a byte back and forth: the kernel must alternate them. */
static void ping_pong_gives_the_exact_switch_sequence(void **state)
{
	enum { ROUNDS = 500 };
	struct capture *c = open_default();
	struct log *log = log_new();
	int to[2], back[2], cpus[2];
	pid_t pids[2], on = 0;
	size_t turns = 0, sleeps = 0;

	(void)state;
	two_cpus(cpus);
	assert_int_equal(pipe(to), 0);
	assert_int_equal(pipe(back), 0);
	for (int i = 0; i < 2; i++) {
		pids[i] = fork();
		if (!pids[i]) {
			pin(cpus[0]);
			if (i)
				ping_pong(to, back, ROUNDS, false);
			else
				ping_pong(back, to, ROUNDS, true);
			_exit(0);
		}
	}
	for (int i = 0; i < 2; i++)
		drain_until_exit(c, log, pids[i]);
	/* Each comes in only where it is out, and goes out only where it is in. */
	for (size_t i = 0; i < log->n; i++) {
		const struct vs_event *e = &log->events[i];

		if (e->type != VS_EVENT_SCHED_SWITCH || e->cpu != cpus[0])
			continue;
		for (int k = 0; k < 2; k++)
			assert_int_equal(on == pids[k], e->pid == pids[k]);
		on = e->pid2;
		turns += e->pid2 == pids[1];
		sleeps += (e->pid == pids[0] || e->pid == pids[1]) &&
			  e->arg0 == VS_TASK_INTERRUPTIBLE;
	}
	/* No round without a turn of the second (its first may be the one it was born with), and
	 * none in which neither sleeps for the other's byte. */
	assert_true(turns >= ROUNDS - 1);
	assert_true(sleeps >= ROUNDS - 1);
	assert_int_equal(log->time_inversions, 0);
	assert_int_equal(log->wrong_cpu, 0);
	for (int i = 0; i < 2; i++) {
		close(to[i]);
		close(back[i]);
	}
	log_free(log);
	capture_close(c);
}

static void gaps_in_seq_are_the_drops(void **state)
{
	struct capture *c = open_capture(1);
	struct log *log = log_new();
	uint64_t dropped = 0;

	(void)state;
	drain(c, log);
	for (int round = 0; round < 5; round++) {
		for (int i = 0; i < 200; i++)
			usleep(50);
		drain(c, log);
	}
	/* A good event after the last loss, so that every loss shows as a gap. */
	for (size_t cpu = 0; cpu < capture_n_cpus(c); cpu++) {
		struct capture_cpu_stats stats;

		assert_int_equal(capture_cpu_stats(c, cpu, &stats), 0);
		dropped += stats.dropped;
		assert_true(stats.dropped >= log->gaps[cpu]);
		/* What follows the last event delivered: still in the ring, or lost since. */
		assert_true(stats.emitted - log->next_seq[cpu] >= stats.dropped - log->gaps[cpu]);
		assert_true(stats.emitted - log->next_seq[cpu] <=
			    stats.dropped - log->gaps[cpu] + 64);
	}
	assert_true(dropped > 0);
	assert_int_equal(log->time_inversions, 0);
	log_free(log);
	capture_close(c);
}

/* A capture whose stream is kept twice: as it is, and as a batcher tells it at level summary. */
struct twice {
	struct capture *capture;
	struct log *detail; /* every record */
	uint64_t reported, lost;
	uint32_t next_seq[VS_CPU_COLLECTOR];
	uint64_t newest[VS_CPU_COLLECTOR];
	size_t wakeups;
	struct batch_decoder *decoder;
	struct frame_unpacker *unpacker;
};

struct twice_sink {
	struct twice *t;
	const struct capture_sink *sink;
};

static void twice_events(void *context, uint16_t cpu, const struct vs_event *events, size_t n)
{
	const struct twice_sink *both = context;

	log_events(both->t->detail, cpu, events, n);
	both->sink->events(both->sink->context, cpu, events, n);
}

static long twice_drain(void *context, const struct capture_sink *sink)
{
	struct twice_sink both = {context, sink};
	const struct capture_sink tee = {.events = twice_events, .context = &both};

	return capture_drain(both.t->capture, &tee);
}

static int twice_stats(void *context, size_t cpu, struct capture_cpu_stats *out)
{
	return capture_cpu_stats(((struct twice *)context)->capture, cpu, out);
}

static int twice_sample(void *context, struct clock_sample *out)
{
	return capture_clock_sample(((struct twice *)context)->capture, out);
}

/* What a reader of the frames sees: numbers without holes, times in order, totals that add up. */
static void twice_read(struct twice *t, struct frame_view *view)
{
	const uint8_t *payload;
	struct batch batch;
	size_t len;

	assert_int_equal(frame_unpack(t->unpacker, view, &payload, &len), 0);
	assert_int_equal(batch_decode(t->decoder, payload, len, &batch), 0);
	for (size_t i = 0; i < batch.n_events; i++) {
		const struct vs_event *e = &batch.events[i];
		const bool lost = e->type == VS_EVENT_LOST;

		assert_int_equal(e->seq, t->next_seq[batch.cpu]);
		assert_true(e->time >= t->newest[batch.cpu]);
		t->next_seq[batch.cpu] += lost ? (uint32_t)e->arg0 : 1;
		t->newest[batch.cpu] = e->time;
		t->reported += !lost;
		t->lost += lost ? e->arg0 : 0;
		t->wakeups += e->type == VS_EVENT_SCHED_WAKEUP;
	}
	assert_int_equal(batch.emitted, t->next_seq[batch.cpu]);
}

static void twice_step(struct twice *t, struct batcher *b, struct frame_reader *reader)
{
	struct byte_buffer out = {0};
	struct frame_view view;

	assert_true(batcher_drain(b, &out, NULL) >= 0);
	assert_int_equal(frame_reader_push(reader, out.data, out.len), 0);
	while (frame_reader_next(reader, &view) > 0)
		twice_read(t, &view);
	byte_buffer_fini(&out);
}

/* What is told and twice what is counted are all that a drain of the same records brings; what
 * wakes somebody is told, and handlers beyond the threshold. */
static void summary_check(uint64_t over_ns)
{
	struct twice t = {.capture = open_default(),
			  .detail = log_new(),
			  .decoder = batch_decoder_new(),
			  .unpacker = frame_unpacker_new()};
	const struct batcher_source source = {.drain = twice_drain,
					      .cpu_stats = twice_stats,
					      .sample = twice_sample,
					      .n_cpus = capture_n_cpus(t.capture),
					      .lag_ns = capture_lag_ns(t.capture),
					      .context = &t};
	struct frame_writer *writer = frame_writer_new(1);
	struct batcher *b = batcher_new_from(&source, writer);
	const struct message_aggregated *aggregated = batcher_aggregated(b);
	uint64_t entered[VS_CPU_COLLECTOR] = {0}, counted = 0;
	size_t wakeups = 0, softirqs = 0, longer = 0;
	struct frame_reader reader;

	frame_reader_init(&reader);
	batcher_summarise(b, over_ns);
	for (int i = 0; i < 100; i++) {
		usleep(10000); /* its timer's softirq, and with it a wake-up */
		twice_step(&t, b, &reader);
	}
	for (size_t i = 0; i < t.detail->n; i++) {
		const struct vs_event *e = &t.detail->events[i];

		wakeups += e->type == VS_EVENT_SCHED_WAKEUP;
		if (e->type == VS_EVENT_SOFTIRQ_ENTRY)
			entered[e->cpu] = e->time;
		if (e->type != VS_EVENT_SOFTIRQ_EXIT || !entered[e->cpu])
			continue;
		softirqs++;
		longer += e->time - entered[e->cpu] >= over_ns;
		entered[e->cpu] = 0;
	}
	for (size_t i = 0; i < EVENT_CLASSES; i++) {
		counted += aggregated[i].count;
		assert_true(aggregated[i].max_ns < over_ns);
		assert_true(aggregated[i].total_ns <= aggregated[i].count * aggregated[i].max_ns);
	}
	print_message(
		"%zu records: %lu told, %lu handlers counted (%lu softirqs of %zu, %zu long)\n",
		t.detail->n, t.reported, counted, aggregated[EVENT_CLASS_SOFTIRQS].count, softirqs,
		longer);
	assert_int_equal(t.detail->n, t.reported + 2 * counted);
	assert_int_equal(t.wakeups, wakeups);
	/* Some take less than the one threshold, and some more than the other. */
	assert_true(over_ns > 100000 ? aggregated[EVENT_CLASS_SOFTIRQS].count > 0 : longer > 0);
	assert_true(aggregated[EVENT_CLASS_SOFTIRQS].count + longer <= softirqs);
	assert_int_equal(
		aggregated[EVENT_CLASS_SWITCHES].count + aggregated[EVENT_CLASS_WAKEUPS].count, 0);
	batcher_free(b);
	frame_writer_free(writer);
	frame_reader_fini(&reader);
	batch_decoder_free(t.decoder);
	frame_unpacker_free(t.unpacker);
	log_free(t.detail);
	capture_close(t.capture);
}

static void at_level_summary_short_handlers_are_counted(void **state)
{
	(void)state;
	summary_check(300000);
	summary_check(1000);
}

static void nothing_stays_in_the_kernel(void **state)
{
	(void)state;
	if (variant->backend == CAPTURE_BY_PERF)
		check_no_perf_event_stays(open_default);
	else
		check_nothing_stays(open_default);
}

static void without_rights_the_reason_is_said(void **state)
{
	int status;
	pid_t child;

	(void)state;
	child = fork();
	if (!child) {
		const struct capture_options options = {.kind = CAPTURE_GUEST,
							.backend = variant->backend};
		struct capture *c;
		char why[256];

		if (setresuid(65534, 65534, 65534))
			_exit(2);
		if (capture_open(&options, &c, why, sizeof(why)) != -EPERM)
			_exit(3);
		_exit(strstr(why, "run as root") ? 0 : 4);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

/* [typed|raw|perf [PATTERN]]: only one variant, only the tests of that name; none: those of BPF. */
int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_event_type_is_seen),
		cmocka_unit_test(tasks_that_exist_already_are_named),
		cmocka_unit_test(vectors_pair_up),
		cmocka_unit_test(classes_end_without_open_handlers),
		cmocka_unit_test(ping_pong_gives_the_exact_switch_sequence),
		cmocka_unit_test(gaps_in_seq_are_the_drops),
		cmocka_unit_test(at_level_summary_short_handlers_are_counted),
		cmocka_unit_test(nothing_stays_in_the_kernel),
		cmocka_unit_test(without_rights_the_reason_is_said),
	};
	int failed = 0, ran = 0;

	for (size_t i = 0; i < N_VARIANTS; i++) {
		if (argc > 1 ? strcmp(argv[1], variants[i].name)
			     : variants[i].backend != CAPTURE_BY_BPF)
			continue;
		variant = &variants[i];
		if (!variant_works(variant, CAPTURE_GUEST))
			continue;
		cmocka_set_test_filter(argc > 2 ? argv[2] : NULL);
		failed += cmocka_run_group_tests_name(variant->name, tests, NULL, NULL);
		ran++;
	}
	return ran ? failed : 77;
}
