/* SPDX-License-Identifier: GPL-2.0-only */
#include "tests/e2e/daemon/sim_load.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "clock/sample.h"

void sim_load_init(struct sim_load *l, struct frame_writer *writer, struct send_queue *queue,
		   uint64_t rate, uint64_t now_ms)
{
	*l = (struct sim_load){.writer = writer, .queue = queue, .rate = rate, .begin_ms = now_ms};
	l->cpus = l->own;
	l->encoder = batch_encoder_new();
	if (!l->encoder)
		l->error = -ENOMEM;
}

void sim_load_fini(struct sim_load *l)
{
	batch_encoder_free(l->encoder);
	byte_buffer_fini(&l->payload);
	byte_buffer_fini(&l->frame);
}

int sim_load_tally(struct sim_load *l, const char *path)
{
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600), err = 0;
	void *map = MAP_FAILED;

	if (fd < 0)
		return -errno;
	if (!ftruncate(fd, sizeof(l->own)))
		map = mmap(NULL, sizeof(l->own), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (map == MAP_FAILED)
		err = -errno;
	else
		l->cpus = map;
	close(fd);
	return err;
}

/* What l->payload holds, as a frame of this kind, into the queue. */
static void frame_queue(struct sim_load *l, enum frame_kind kind, const struct send_item *item)
{
	l->frame.len = 0;
	if (!l->error)
		l->error = frame_write(l->writer, kind, l->payload.data, l->payload.len, &l->frame);
	if (!l->error)
		send_queue_push(l->queue, item, l->frame.data, l->frame.len);
	l->payload.len = 0;
}

/* One batch of n events of this CPU, into the queue. */
static void batch_make(struct sim_load *l, uint16_t c, size_t n, uint64_t tsc)
{
	struct sim_cpu *cpu = &l->cpus[c];
	struct batch b = {.cpu = c, .n_events = n, .events = l->events, .watermark = tsc};

	if (l->error)
		return;
	for (size_t i = 0; i < n; i++)
		l->events[i] = (struct vs_event){.time = tsc - (n - i) * 1000,
						 .seq = cpu->seq++,
						 .cpu = c,
						 .type = VS_EVENT_SCHED_SWITCH,
						 .pid = (int32_t)(100 + i % 5),
						 .pid2 = (int32_t)(100 + (i + 1) % 5)};
	cpu->emitted += n;
	b.emitted = cpu->emitted;
	b.dropped_user = cpu->dropped;
	l->error = batch_encode(l->encoder, &b, &l->payload);
	frame_queue(l, FRAME_BATCH, &(struct send_item){SEND_BULK, c, (uint32_t)n});
}

void sim_load_make(struct sim_load *l, uint64_t now_ms, uint64_t tsc)
{
	uint64_t due = (now_ms - l->begin_ms) * l->rate / 1000 - l->made;

	if (due > (uint64_t)SIM_CPUS * VS_BATCH_EVENTS_MAX)
		due = (uint64_t)SIM_CPUS * VS_BATCH_EVENTS_MAX;
	l->made += due;
	for (uint16_t c = 0; c < SIM_CPUS; c++)
		batch_make(l, c, due / SIM_CPUS + (c < due % SIM_CPUS), tsc);
}

void sim_load_end(struct sim_load *l, uint64_t tsc)
{
	for (uint16_t c = 0; c < SIM_CPUS; c++)
		batch_make(l, c, 1, tsc);
}

struct sim_cpu sim_load_sum(const struct sim_load *l)
{
	struct sim_cpu sum = {0};

	for (int c = 0; c < SIM_CPUS; c++) {
		sum.emitted += l->cpus[c].emitted;
		sum.dropped += l->cpus[c].dropped;
	}
	return sum;
}

void sim_load_heartbeat(struct sim_load *l, uint64_t tsc)
{
	static struct message_heartbeat beat;
	struct sim_cpu sum = sim_load_sum(l);

	beat.time = tsc;
	beat.emitted = sum.emitted;
	beat.dropped_user = sum.dropped;
	beat.delivered = beat.emitted - beat.dropped_user;
	if (!l->error)
		l->error = message_heartbeat_pack(&beat, &l->payload);
	frame_queue(l, FRAME_HEARTBEAT, &(struct send_item){.class = SEND_CONTROL});
}

void sim_load_dropped(struct sim_load *l, const struct send_item *item)
{
	if (item->class == SEND_BULK)
		l->cpus[item->cpu].dropped += item->events;
}

int sim_load_hello(struct message_hello *hello)
{
	*hello = (struct message_hello){.protocol_min = VS_PROTOCOL_MIN,
					.protocol_max = VS_PROTOCOL_MAX,
					.role = STREAM_ROLE_GUEST,
					.clock = STREAM_CLOCK_GUEST_TSC,
					.program_version = "sim",
					.kernel_release = "none",
					.n_cpus = SIM_CPUS};
	snprintf(hello->boot_id, sizeof(hello->boot_id), "%d", (int)getpid());
	for (uint32_t c = 0; c < SIM_CPUS; c++)
		hello->cpus[c] = (struct message_cpu){c, c};
	return clock_tsc_hz(&hello->clock_hz);
}
