/* SPDX-License-Identifier: GPL-2.0-only */
/* Batches that no agent sends: columns of different lengths, impossible times and numbers. Some
 * are built with protobuf-c; the others are well-formed and have false values. */
#include <string.h>

#include "tests/e2e/hostile/attack.h"
#include "wire.pb-c.h"

static struct vs_event events[VS_BATCH_EVENTS_MAX];

enum malformed {
	CPU_1024,
	CPU_HUGE,
	EVENTS_8193,
	TYPE_0,
	TYPE_64,
	TYPE_HUGE,
	TIME_LOW_SHORT,
	TIME_HIGH_MISSING,
	COLUMN_LONG,
	COLUMN_TWICE,
	COLUMN_FOREIGN,
	COLUMN_PREDICT,
	JUMP_DESCENDS,
	JUMP_OUTSIDE,
	JUMP_UNPAIRED,
	TIME_OVERFLOWS,
	DELTA_OVERFLOWS,
	COLUMNS_2000,
	N_MALFORMED,
};

static const char *const malformed_names[] = {
	[CPU_1024] = "CPU 1024",
	[CPU_HUGE] = "CPU 2^32-1",
	[EVENTS_8193] = "8193 events",
	[TYPE_0] = "type 0",
	[TYPE_64] = "type 64",
	[TYPE_HUGE] = "type 2^32-1",
	[TIME_LOW_SHORT] = "a time column one short",
	[TIME_HIGH_MISSING] = "no high times",
	[COLUMN_LONG] = "a column one long",
	[COLUMN_TWICE] = "a type's columns twice",
	[COLUMN_FOREIGN] = "columns of a type that has no events",
	[COLUMN_PREDICT] = "an unknown prediction",
	[JUMP_DESCENDS] = "jumps that descend",
	[JUMP_OUTSIDE] = "a jump outside",
	[JUMP_UNPAIRED] = "a jump without its place",
	[TIME_OVERFLOWS] = "a time beyond 2^64",
	[DELTA_OVERFLOWS] = "a delta beyond 2^64",
	[COLUMNS_2000] = "2000 empty columns",
};

static void play_malformed(struct attack *a, unsigned int variant)
{
	static uint32_t types[VS_BATCH_EVENTS_MAX + 1];
	static uint64_t high[VS_BATCH_EVENTS_MAX + 1];
	static uint8_t low[VS_BATCH_EVENTS_MAX + 1];
	static int32_t pids[11];
	static Vcpuscope__Wire__Column columns[2000], *list[2000];
	Vcpuscope__Wire__Batch m = VCPUSCOPE__WIRE__BATCH__INIT;
	uint32_t places[] = {5, 3};
	int32_t jumps[] = {1, 1};
	size_t n = 10;

	for (size_t i = 0; i <= VS_BATCH_EVENTS_MAX; i++)
		types[i] = VS_EVENT_SCHED_WAKEUP;
	memset(high, 0, sizeof(high));
	for (size_t i = 0; i < 2000; i++) {
		vcpuscope__wire__column__init(&columns[i]);
		columns[i].type = VS_EVENT_SCHED_WAKEUP;
		list[i] = &columns[i];
	}
	columns[0].pid = pids;
	m.columns = list;
	m.n_columns = 1;
	if (variant == EVENTS_8193)
		n = VS_BATCH_EVENTS_MAX + 1;
	m.type = types;
	m.time_high = high;
	m.time_low.data = low;
	m.n_type = m.n_time_high = m.time_low.len = n;
	m.seq_jump_index = places;
	m.seq_jump = jumps;
	m.base_time = 1000000;
	m.emitted = n;
	switch ((enum malformed)variant) {
	case CPU_1024:
		m.cpu = 1024;
		break;
	case CPU_HUGE:
		m.cpu = UINT32_MAX;
		break;
	case TYPE_0:
		types[4] = 0;
		break;
	case TYPE_64:
		types[4] = 64;
		break;
	case TYPE_HUGE:
		types[4] = UINT32_MAX;
		break;
	case TIME_LOW_SHORT:
		m.time_low.len--;
		break;
	case TIME_HIGH_MISSING:
		m.n_time_high = 0;
		break;
	case COLUMN_LONG:
		columns[0].n_pid = 11;
		break;
	case COLUMN_TWICE:
		m.n_columns = 2;
		break;
	case COLUMN_FOREIGN:
		columns[0].type = VS_EVENT_SCHED_SWITCH;
		columns[0].n_pid = 3;
		break;
	case COLUMN_PREDICT:
		columns[0].predict = 0x80;
		break;
	case JUMP_DESCENDS:
		m.n_seq_jump = m.n_seq_jump_index = 2;
		break;
	case JUMP_OUTSIDE:
		places[0] = 10;
		m.n_seq_jump = m.n_seq_jump_index = 1;
		break;
	case JUMP_UNPAIRED:
		m.n_seq_jump = 1;
		break;
	case TIME_OVERFLOWS:
		m.base_time = UINT64_MAX;
		low[3] = 1;
		break;
	case DELTA_OVERFLOWS:
		high[3] = UINT64_MAX;
		break;
	case COLUMNS_2000:
		m.n_columns = 2000;
		break;
	default:
		break;
	}
	attack_hello(a);
	a->payload.len = 0;
	byte_buffer_reserve(&a->payload, vcpuscope__wire__batch__get_packed_size(&m));
	a->payload.len = vcpuscope__wire__batch__pack(&m, a->payload.data);
	low[3] = 0;
	attack_frame(a, FRAME_BATCH);
	attack_sign_of_life(a);
}

/* ---- well-formed lies ---- */

static void lie_backwards(struct attack *a)
{
	for (uint64_t i = 0; i < 100; i++) {
		events_make(events, 50, 0, 1ull << 40 >> (i % 30), (uint32_t)(i * 50));
		attack_batch(a, events, 50, 0);
	}
}

static void lie_end_of_time(struct attack *a)
{
	for (uint32_t i = 0; i < 20; i++) {
		events_make(events, 10, 0, UINT64_MAX - 10000, i * 10);
		attack_batch(a, events, 10, 0);
	}
}

static void lie_time_0(struct attack *a)
{
	for (uint32_t i = 0; i < 100; i++) {
		events_make(events, 10, 0, 0, i * 10);
		attack_batch(a, events, 10, 0);
	}
}

static void lie_lost_all(struct attack *a)
{
	static const uint64_t claims[] = {1,          INT32_MAX, 1ull << 31, UINT32_MAX,
					  1ull << 32, INT64_MAX, 1ull << 63, UINT64_MAX};

	for (uint32_t i = 0; i < 8; i++) {
		events_make(events, 3, 0, 1000000 * (i + 1), i * 3);
		events[1].type = VS_EVENT_LOST;
		events[1].arg0 = claims[i];
		events[1].arg1 = UINT64_MAX;
		attack_batch(a, events, 3, 0);
	}
}

static void lie_numbers_jump(struct attack *a)
{
	for (uint32_t i = 0; i < 100; i++) {
		events_make(events, 20, 0, 1000000 * (i + 1), 0);
		for (size_t k = 0; k < 20; k++)
			events[k].seq = (uint32_t)attack_random(a);
		attack_batch(a, events, 20, 0);
	}
}

static void lie_all_cpus(struct attack *a)
{
	for (uint16_t cpu = 0; cpu < VS_CPUS_MAX; cpu++) {
		events_make(events, 5, cpu, 1000000, 0);
		attack_batch(a, events, 5, cpu);
	}
}

static void lie_unknown_types(struct attack *a)
{
	batch_encoder_relay(a->encoder);
	events_make(events, 64, 0, 1000000, 0);
	for (size_t i = 0; i < 63; i++)
		events[i].type = (uint16_t)(i + 1);
	attack_batch(a, events, 63, 0);
}

static void lie_hosts_events(struct attack *a)
{
	events_make(events, 200, 0, 1000000, 0);
	for (size_t i = 0; i < 200; i++) {
		events[i].type = (uint16_t)(VS_EVENT_KVM_ENTRY + i % 24);
		events[i].arg0 = attack_random(a);
		events[i].arg1 = attack_random(a);
	}
	attack_batch(a, events, 200, 0);
}

static void lie_pids(struct attack *a)
{
	static const int32_t pids[] = {0, -1, 1, INT32_MIN, INT32_MAX};

	events_make(events, 1000, 0, 1000000, 0);
	for (size_t i = 0; i < 1000; i++) {
		events[i].type = VS_EVENT_SCHED_SWITCH;
		events[i].pid = pids[i % 5];
		events[i].pid2 = pids[i / 5 % 5];
		events[i].arg0 = attack_random(a);
	}
	attack_batch(a, events, 1000, 0);
}

static void lie_unpaired(struct attack *a)
{
	events_make(events, 4000, 0, 1000000, 0);
	for (size_t i = 0; i < 4000; i++) {
		events[i].type = i % 2 ? VS_EVENT_IRQ_ENTRY : VS_EVENT_SOFTIRQ_ENTRY;
		events[i].arg0 = i;
	}
	attack_batch(a, events, 4000, 0);
}

static void lie_totals(struct attack *a)
{
	struct batch b = {.n_events = 5, .events = events};

	for (uint32_t i = 0; i < 40; i++) {
		events_make(events, 5, 0, 1000000 * (i + 1), i * 5);
		b.emitted = i % 2 ? UINT64_MAX : i;
		b.dropped_kernel = UINT64_MAX - i;
		b.dropped_user = attack_random(a);
		b.watermark = i % 3 ? UINT64_MAX : 0;
		b.time_err = i % 5 ? UINT64_MAX : 0;
		a->payload.len = 0;
		batch_encode(a->encoder, &b, &a->payload);
		attack_frame(a, FRAME_BATCH);
	}
}

static void lie_same_again(struct attack *a)
{
	for (int i = 0; i < 300; i++) { /* new frames, the same events */
		events_make(events, 100, 0, 1000000, 0);
		attack_batch(a, events, 100, 0);
	}
}

static void lie_empty(struct attack *a)
{
	for (int i = 0; i < 2000; i++)
		attack_batch(a, events, 0, 0);
}

static const struct {
	const char *name;
	void (*play)(struct attack *a);
} well_formed[] = {
	{"a clock that goes backwards", lie_backwards},
	{"the end of time", lie_end_of_time},
	{"time 0", lie_time_0},
	{"everything was lost", lie_lost_all},
	{"numbers that jump", lie_numbers_jump},
	{"1024 CPUs", lie_all_cpus},
	{"every type there may ever be", lie_unknown_types},
	{"events of a host", lie_hosts_events},
	{"pids that cannot be", lie_pids},
	{"4000 interrupts in each other", lie_unpaired},
	{"totals that cannot be", lie_totals},
	{"the same events in new frames", lie_same_again},
	{"2000 empty batches", lie_empty},
};
enum { N_WELL_FORMED = sizeof(well_formed) / sizeof(well_formed[0]) };

static void play_well_formed(struct attack *a, unsigned int variant)
{
	attack_hello(a);
	well_formed[variant].play(a);
	attack_sign_of_life(a);
}

bool batch_case(size_t i, struct attack_case *out)
{
	if (i < N_MALFORMED)
		*out = (struct attack_case){
			"batch", malformed_names[i], play_malformed, (unsigned int)i,
			/* an unknown type is a newer agent's */
			i == TYPE_64 || i == TYPE_HUGE ? EXPECT_ACCEPTED | EXPECT_NOT_REFUSED
						       : EXPECT_REFUSED};
	else if (i < N_MALFORMED + N_WELL_FORMED)
		*out = (struct attack_case){"lie", well_formed[i - N_MALFORMED].name,
					    play_well_formed, (unsigned int)(i - N_MALFORMED),
					    EXPECT_ACCEPTED};
	return i < N_MALFORMED + N_WELL_FORMED;
}
