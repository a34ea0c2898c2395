/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/decode/worker.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "clock/sample.h"
#include "host-collector/decode/gate.h"
#include "host-collector/decode/ring.h"
#include "bpf/isolation/confine.h"

enum {
	TICK_MS = 50,
	READ_BYTES = 16 * 1024,
	/* A frame costs its sender these parts of what it becomes when decompressed, at least. */
	RAW_PER_BYTE = 16,
	BURST_MS = 1000, /* of the budget may be used at once */
	HELD_MS = 5,     /* without reading, when the budget is used up */
	LINGER_MS = 200, /* at the gate, when nobody waits */
	GATE_SPARE = 8,  /* descriptors beyond those that wait: one that makes another leave */
};

struct worker {
	struct ring *ring;
	struct peer_kind kind; /* of all connections */
	struct tls_psk psk;
	struct gate *gate;  /* NULL: the channel does not listen, or has its agent */
	struct peer *agent; /* NULL: not there yet */
	struct guest_session_stats strangers; /* who were at the gate */
	struct frame_unpacker *unpacker;
	struct batch_decoder *decoder;
	struct record_stats stats, sent;
	bool fresh; /* the next HELLO introduces an agent */
	bool malformed_logged;
	int64_t allowance; /* bytes that may still be read; negative: wait */
	uint64_t allowance_ms, cpu_base_ns, cpu_base_ms;
	uint64_t tick_ms, awaited_ms; /* when somebody last waited at the gate */
	struct guest_record record;   /* large, so not on the stack */
	uint8_t buffer[READ_BYTES];
};

static void beat(struct worker *w)
{
	atomic_fetch_add_explicit(&w->ring->beat, 1, memory_order_relaxed);
}

static void wake(void)
{
	const uint64_t one = 1;

	(void)!write(WORKER_WAKE, &one, sizeof(one));
}

/* Hands the record over; waits while the collector has not made room, and nothing is read
 * meanwhile: the guest's own queue then drops, and counts. */
static void record_give(struct worker *w)
{
	uint64_t since = 0;

	while (ring_put(w->ring, &w->record)) {
		if (!since)
			since = clock_monotonic_ms();
		wake();
		beat(w);
		poll(NULL, 0, 2);
	}
	if (since)
		w->stats.blocked_ms += clock_monotonic_ms() - since;
}

/* ---- what the session says ---- */

static int batch_take(struct worker *w, const uint8_t *payload, size_t len)
{
	struct record_batch *out = &w->record.batch;
	struct batch b;
	int err = batch_decode(w->decoder, payload, len, &b);

	if (err)
		return err;
	out->cpu = b.cpu;
	out->time_err = b.time_err;
	out->watermark = b.watermark;
	out->emitted = b.emitted;
	out->dropped_kernel = b.dropped_kernel;
	out->dropped_user = b.dropped_user;
	out->tsc_cpu = b.tsc_cpu;
	out->chord_begin = b.chord_begin;
	out->chord_end = b.chord_end;
	out->n_events = b.n_events;
	memcpy(out->events, b.events, b.n_events * sizeof(b.events[0]));
	return 0;
}

static int message_take(struct worker *w, uint8_t kind, const uint8_t *payload, size_t len)
{
	const struct message_layout *message = frame_kind_row(kind)->message;

	/* The fixed part travels whole: nothing of the record before shall. */
	memset(record_message(&w->record), 0, message_tail(message).at);
	return message_unpack(message, payload, len, record_message(&w->record));
}

static void head_set(struct worker *w, uint16_t kind)
{
	w->record.head = (struct record_head){.kind = kind};
}

static void head_set_of(struct worker *w, uint16_t kind, const struct frame_view *frame)
{
	head_set(w, kind);
	w->record.head.frame_seq = frame->header.frame_seq;
	w->record.head.session_id = frame->header.session_id;
}

static void on_note(void *context, enum note_kind kind, const char *text)
{
	struct worker *w = context;

	head_set(w, RECORD_NOTE);
	w->record.note = (struct message_note){.kind = kind};
	snprintf(w->record.note.text, sizeof(w->record.note.text), "%s", text);
	record_give(w);
}

static void malformed(struct worker *w)
{
	w->stats.malformed++;
	if (w->malformed_logged)
		return;
	w->malformed_logged = true;
	on_note(w, NOTE_PROTOCOL, "frames whose content makes no sense; dropped, counted");
}

/* What a newer agent says beyond what is known here goes along, before what is known. */
static void unknown_take(struct worker *w, const struct frame_view *frame, const uint8_t *payload,
			 size_t len)
{
	const long n = unknown_extract(frame->header.kind, payload, len, w->record.unknown.bytes,
				       sizeof(w->record.unknown.bytes));

	if (n == -E2BIG)
		w->stats.unknown_dropped++;
	if (n <= 0)
		return;
	w->record.unknown.n = (size_t)n;
	head_set_of(w, RECORD_UNKNOWN, frame);
	record_give(w);
}

static void on_frame(void *context, const struct frame_view *frame, uint64_t arrival_tsc)
{
	struct worker *w = context;
	const uint8_t kind = frame->header.kind;
	const uint8_t *payload;
	size_t len;

	if (!(frame_kind_senders(kind) & FRAME_BY_AGENT)) {
		head_set_of(w, RECORD_UNKNOWN_FRAME, frame);
		w->record.unknown_frame.kind = kind;
		record_give(w);
		return;
	}
	if (frame_unpack(w->unpacker, frame, &payload, &len)) {
		malformed(w);
		return;
	}
	w->allowance -= (int64_t)(len / RAW_PER_BYTE);
	unknown_take(w, frame, payload, len);
	if (kind == FRAME_BATCH ? batch_take(w, payload, len)
				: message_take(w, kind, payload, len)) {
		malformed(w);
		return;
	}
	head_set_of(w, kind, frame);
	w->record.head.fresh = w->fresh && kind == FRAME_HELLO;
	w->record.head.arrival_tsc = arrival_tsc;
	w->fresh &= kind != FRAME_HELLO;
	record_give(w);
}

static void on_observation(void *context, const struct message_echo_observation *observation)
{
	struct worker *w = context;

	head_set(w, RECORD_OBSERVATION);
	w->record.observation = *observation;
	record_give(w);
}

static void on_hello(void *context, const struct message_hello *hello)
{
	struct worker *w = context;

	(void)hello;
	w->fresh = true; /* its frame follows */
}

static void on_heartbeat(void *context, const struct message_heartbeat *heartbeat)
{
	(void)context, (void)heartbeat;
}

/* ---- the loop ---- */

/* Of all connections; what is no count is the agent's. */
static void session_stats_get(struct worker *w, struct guest_session_stats *out)
{
	const struct guest_session_stats none = {0};

	*out = w->strangers;
	if (w->gate)
		gate_stats_add(w->gate, out);
	if (w->agent)
		peer_stats_add(w->agent, out);
	else
		guest_session_stats_add(out, &none);
}

static void stats_send(struct worker *w)
{
	struct record_stats *s = &w->stats;

	session_stats_get(w, &s->session);
	s->cpu_ns = clock_read_ns(CLOCK_PROCESS_CPUTIME_ID);
	w->sent.cpu_ns = s->cpu_ns; /* that alone is no news */
	if (!memcmp(s, &w->sent, sizeof(*s)))
		return;
	w->sent = *s;
	head_set(w, RECORD_STATS);
	w->record.stats = *s;
	record_give(w);
}

static void down(struct worker *w, int error)
{
	stats_send(w); /* what came after the last tick */
	head_set(w, RECORD_DOWN);
	w->record.down.error = error;
	record_give(w);
	wake();
}

static void tick(struct worker *w, uint64_t now)
{
	w->tick_ms = now;
	if (w->gate)
		gate_tick(w->gate, now);
	else
		guest_session_tick(w->agent->session, now);
	stats_send(w);
}

/* May it read now? Fills up what the guest may use, of bytes and of this process's time. */
static bool within_budget(struct worker *w, uint64_t now)
{
	const struct ring_config *c = &w->ring->config;
	uint64_t cpu_ns, used_ns;
	int64_t most = (int64_t)(c->bytes_per_s * BURST_MS / 1000);

	if (c->bytes_per_s) {
		w->allowance += (int64_t)(c->bytes_per_s * (now - w->allowance_ms) / 1000);
		if (now != w->allowance_ms)
			w->allowance_ms = now;
		if (w->allowance > most)
			w->allowance = most;
		if (w->allowance < 0)
			return false;
	}
	if (!c->cpu_permille)
		return true;
	cpu_ns = clock_read_ns(CLOCK_PROCESS_CPUTIME_ID);
	used_ns = cpu_ns - w->cpu_base_ns;
	if (used_ns > (now - w->cpu_base_ms + TICK_MS) * c->cpu_permille * 1000)
		return false;
	if (now - w->cpu_base_ms >= BURST_MS) {
		w->cpu_base_ms = now;
		w->cpu_base_ns = cpu_ns;
	}
	return true;
}

/* -1: goes on; else an exit code. */
static int readable(struct worker *w)
{
	/* A whole record of TLS: none stays behind, unseen by poll(). */
	ssize_t n = peer_read(w->agent, w->buffer, sizeof(w->buffer));
	uint64_t tsc = clock_tsc_read();

	if (n == -EAGAIN || n == -EINTR)
		return -1;
	if (n <= 0) {
		down(w, (int)-n);
		return WORKER_DONE;
	}
	w->allowance -= n;
	return guest_session_receive(w->agent->session, w->buffer, (size_t)n, tsc,
				     clock_monotonic_ms())
		       ? WORKER_TROUBLE
		       : -1;
}

/* The agent has been chosen: all other connections are closed. */
static void gate_close(struct worker *w)
{
	gate_stats_add(w->gate, &w->strangers);
	gate_free(w->gate);
	w->gate = NULL;
	close(WORKER_CHANNEL);
	explicit_bzero(&w->psk, sizeof(w->psk));
}

/* One turn at the gate. -1: goes on; else an exit code. */
static int gate_serve(struct worker *w, uint64_t now, int wait_ms)
{
	const int err = gate_turn(w->gate, now, wait_ms);

	if (gate_waiting(w->gate))
		w->awaited_ms = now;
	if (err == -ENOMEM)
		return WORKER_TROUBLE;
	if (w->agent) {
		gate_close(w);
		return -1;
	}
	if (!err && now - w->awaited_ms < LINGER_MS)
		return -1;
	down(w, 0);
	return WORKER_DONE;
}

/* One turn with the agent. -1: goes on; else an exit code. */
static int agent_serve(struct worker *w, bool reads, int wait_ms)
{
	/* With an agent only. NOLINTNEXTLINE(clang-analyzer-*) */
	struct pollfd channel = {.fd = reads ? w->agent->fd : -1, .events = POLLIN};

	poll(&channel, 1, wait_ms);
	return channel.revents ? readable(w) : -1;
}

static int run(struct worker *w)
{
	int result = -1;

	if (w->agent)
		result = guest_session_start(w->agent->session, clock_monotonic_ms())
				 ? WORKER_TROUBLE
				 : -1;
	w->allowance_ms = w->cpu_base_ms = w->tick_ms = w->awaited_ms = clock_monotonic_ms();
	while (result < 0) {
		uint64_t now = clock_monotonic_ms(), due = w->tick_ms + TICK_MS;
		bool reads = within_budget(w, now);
		const int wait_ms = now >= due ? 0 : reads ? (int)(due - now) : HELD_MS;
		uint32_t head = atomic_load_explicit(&w->ring->head, memory_order_relaxed);

		if (!w->gate)
			result = agent_serve(w, reads, wait_ms);
		else if (reads)
			result = gate_serve(w, now, wait_ms);
		else
			poll(NULL, 0, wait_ms);
		beat(w);
		if (!reads)
			w->stats.held_ms += clock_monotonic_ms() - now;
		now = clock_monotonic_ms();
		if (result < 0 && now >= w->tick_ms + TICK_MS)
			tick(w, now);
		if (w->gate && w->agent) /* which a tick can bring about */
			gate_close(w);
		if (atomic_load_explicit(&w->ring->head, memory_order_relaxed) != head)
			wake();
	}
	return result;
}

bool worker_is_meant(int argc, char **argv)
{
	return argc > 0 && !strcmp(argv[0], WORKER_NAME);
}

/* Makes what the connections need, the last thing before the confinement. 0 or -errno; -EIO: GnuTLS
 * does not allow what we need. */
static int connections_prepare(struct worker *w)
{
	const struct ring_config *config = &w->ring->config;
	size_t most = GATE_WAITING_MAX;
	struct tls *trial = NULL;
	struct rlimit files;
	int err;

	w->psk = config->psk;
	explicit_bzero(&w->ring->config.psk, sizeof(w->ring->config.psk));
	w->kind = (struct peer_kind){.hello = &config->hello,
				     .request = &config->request,
				     .psk = &w->psk,
				     .to = {.frame = on_frame,
					    .observation = on_observation,
					    .hello = on_hello,
					    .heartbeat = on_heartbeat,
					    .note = on_note,
					    .context = w}};
	if (!config->listens)
		return peer_open(WORKER_CHANNEL, &w->kind, &w->agent, &w->agent);
	if (!getrlimit(RLIMIT_NOFILE, &files) &&
	    files.rlim_max < GATE_WAITING_MAX + WORKER_N + GATE_SPARE)
		most = files.rlim_max > WORKER_N + GATE_SPARE
			       ? (size_t)files.rlim_max - WORKER_N - GATE_SPARE
			       : 1;
	w->gate = gate_new(WORKER_CHANNEL, most, &w->kind, &w->agent);
	if (!w->gate)
		return -ENOMEM;
	if (!w->psk.key_bytes)
		return 0;
	/* Said once, instead of at each connection. */
	err = tls_server_new(WORKER_CHANNEL, &w->psk, &trial);
	tls_free(trial);
	return err;
}

int worker_main(void)
{
	struct worker *w = calloc(1, sizeof(*w));
	struct confinement limits = {.keep = WORKER_N};
	char text[VS_TEXT_MAX];
	const char *step = "";
	int result = WORKER_TROUBLE, err;

	if (!w)
		return WORKER_TROUBLE;
	w->ring = ring_map(WORKER_RING);
	if (!w->ring)
		goto out;
	w->unpacker = frame_unpacker_new();
	w->decoder = batch_decoder_new();
	err = w->unpacker && w->decoder ? connections_prepare(w) : -ENOMEM;
	if (err == -EIO) {
		on_note(w, NOTE_CHANNEL_DOWN, "TLS cannot be set up (GnuTLS)");
		wake();
	}
	if (err)
		goto out;
	limits.sockets = w->gate ? GATE_WAITING_MAX + GATE_SPARE : 0;
	limits.memory_bytes = w->ring->config.memory_bytes;
	limits.parent = w->ring->config.collector;
	err = confine(&limits, &step);
	if (err) {
		snprintf(text, sizeof(text), "the decoder cannot be confined: %s: %s", step,
			 strerror(-err));
		on_note(w, NOTE_CHANNEL_DOWN, text);
		wake();
		result = WORKER_UNCONFINED;
		goto out;
	}
	result = run(w);
out:
	if (w->ring) {
		gate_free(w->gate);
		peer_close(w->agent);
		batch_decoder_free(w->decoder);
		frame_unpacker_free(w->unpacker);
		ring_unmap(w->ring);
	}
	explicit_bzero(&w->psk, sizeof(w->psk));
	free(w);
	return result;
}
