/* SPDX-License-Identifier: GPL-2.0-only */
#include "tests/e2e/hostile/attack.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "proto/bytes.h"

uint64_t attack_now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

void attack_sleep_ms(unsigned int ms)
{
	usleep(ms * 1000);
}

uint64_t attack_random(struct attack *a)
{
	a->random = a->random * 6364136223846793005 + 1442695040888963407;
	return a->random >> 11;
}

void attack_connect(struct attack *a)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	bool done = false;

	snprintf(address.sun_path, sizeof(address.sun_path), "%s", a->path);
	a->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	for (int i = 0; i < 500 && !done; i++) { /* a listener serves one and lets one wait */
		done = !connect(a->fd, (struct sockaddr *)&address, sizeof(address));
		if (!done && errno != EAGAIN)
			break;
		if (!done)
			attack_sleep_ms(10);
	}
	if (!done) {
		fprintf(stderr, "hostile: %s: %s\n", a->path, strerror(errno));
		exit(1);
	}
	a->session = attack_random(a);
	a->seq = 0;
	frame_writer_free(a->writer);
	a->writer = frame_writer_new(a->session);
}

void attack_close(struct attack *a)
{
	close(a->fd);
	a->fd = -1;
}

bool attack_send(struct attack *a, const void *bytes, size_t len)
{
	char drain[4096];
	size_t at = 0;

	while (at < len) {
		struct pollfd p = {.fd = a->fd, .events = POLLIN | POLLOUT};
		ssize_t n;

		while (recv(a->fd, drain, sizeof(drain), MSG_DONTWAIT) > 0)
			;
		n = send(a->fd, (const char *)bytes + at, len - at, MSG_NOSIGNAL | MSG_DONTWAIT);
		if (n > 0) {
			at += (size_t)n;
			continue;
		}
		if (errno != EAGAIN || attack_now_ms() >= a->until_ms)
			return false;
		p.events = POLLOUT;
		poll(&p, 1, 50);
	}
	return true;
}

bool attack_frame(struct attack *a, enum frame_kind kind)
{
	a->wire.len = 0;
	if (frame_write(a->writer, kind, a->payload.data, a->payload.len, &a->wire))
		return false;
	frame_restamp(a->wire.data, a->session, a->seq++);
	a->payload.len = 0;
	return attack_send(a, a->wire.data, a->wire.len);
}

struct frame_header attack_header(struct attack *a, uint8_t kind, const void *payload, size_t len)
{
	return (struct frame_header){
		.version = VS_FRAME_VERSION,
		.kind = kind,
		.payload_bytes = (uint32_t)len,
		.raw_bytes = (uint32_t)len,
		.session_id = a->session,
		.frame_seq = a->seq++,
		.payload_crc = frame_crc32c(0, payload, len),
	};
}

bool attack_raw_frame(struct attack *a, const struct frame_header *h, const void *payload,
		      size_t len)
{
	uint8_t bytes[VS_FRAME_HEADER_BYTES];

	memcpy(bytes, "VCSF", 4);
	bytes[4] = h->version;
	bytes[5] = h->kind;
	bytes[6] = (uint8_t)h->flags;
	bytes[7] = (uint8_t)(h->flags >> 8);
	bytes_put32(bytes + 8, h->payload_bytes);
	bytes_put32(bytes + 12, h->raw_bytes);
	bytes_put64(bytes + 16, h->session_id);
	bytes_put32(bytes + 24, h->frame_seq);
	bytes_put32(bytes + 28, h->payload_crc);
	bytes_put32(bytes + 32, frame_crc32c(0, bytes, 32));
	return attack_send(a, bytes, sizeof(bytes)) && attack_send(a, payload, len);
}

void hello_make(struct message_hello *out)
{
	memset(out, 0, sizeof(*out));
	out->protocol_min = out->protocol_max = 1;
	out->role = STREAM_ROLE_GUEST;
	out->clock = STREAM_CLOCK_GUEST_TSC;
	out->clock_hz = 2000000000;
	strcpy(out->program_version, "6.6.6");
	strcpy(out->kernel_release, "6.1.0-hostile");
	strcpy(out->boot_id, "00000000-0000-0000-0000-000000000000");
	out->n_cpus = 1;
}

bool attack_hello(struct attack *a)
{
	static struct message_hello hello;

	hello_make(&hello);
	a->payload.len = 0;
	message_hello_pack(&hello, &a->payload);
	return attack_frame(a, FRAME_HELLO);
}

void events_make(struct vs_event *events, size_t n, uint16_t cpu, uint64_t time, uint32_t seq)
{
	for (size_t i = 0; i < n; i++)
		events[i] = (struct vs_event){.time = time + i * 1000,
					      .seq = seq + (uint32_t)i,
					      .cpu = cpu,
					      .type = VS_EVENT_SCHED_WAKEUP,
					      .pid = (int32_t)(100 + i % 7),
					      .arg1 = 120};
}

bool attack_batch(struct attack *a, struct vs_event *events, size_t n, uint16_t cpu)
{
	const struct batch b = {.cpu = cpu, .n_events = n, .events = events, .emitted = n};

	a->payload.len = 0;
	if (batch_encode(a->encoder, &b, &a->payload))
		return false;
	return attack_frame(a, FRAME_BATCH);
}

bool attack_sign_of_life(struct attack *a)
{
	const struct message_clock_sample sample = {.tsc = 1, .monotonic_ns = 2, .raw_ns = 3};

	a->payload.len = 0;
	message_clock_sample_pack(&sample, &a->payload);
	return attack_frame(a, FRAME_CLOCK_SAMPLE);
}
