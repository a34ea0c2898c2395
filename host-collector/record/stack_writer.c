/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/record/stack_writer.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bpf/kernel_symbols.h"
#include "host-collector/record/unwind.h"
#include "proto/codec.h"
#include "proto/message.h"

enum {
	PER_SECOND = 200,
	SAMPLES_PER_SECOND = 1000,
	BURST = 64,
	WAITING_MAX = 2 * BURST, /* of which samples take no more than half */
	KERNEL_MAX = 64,
	COPIED_MAX = 16 * 1024,
	/* Distinct stacks remembered; when full, all are forgotten and get new ids. */
	KNOWN_SLOTS = 16384,
	KNOWN_MAX = KNOWN_SLOTS / 2,
};

struct raw {
	struct capture_stack stack;
	uint64_t err_ticks;
	uint64_t kernel[KERNEL_MAX];
	uint8_t copied[COPIED_MAX];
};

struct known {
	uint64_t hash; /* of the STACK message's content; 0: free */
	uint32_t id;
};

struct bucket {
	double tokens;
	uint64_t refilled_ms;
};

struct stack_writer {
	uint64_t host_hz;
	struct stack_names *names;
	bool own_names;
	struct batch_encoder *encoder;
	struct byte_buffer payload;
	struct message_stack message;
	struct raw *raw;
	size_t n_raw;
	struct bucket waits, samples;
	struct known *known;
	size_t n_known;
	uint32_t last_id, seq;
	struct vs_event events[WAITING_MAX];
	struct stack_writer_stats stats;
};

struct stack_writer *stack_writer_new(uint64_t host_hz, struct stack_names *shared,
				      bool *kernel_names)
{
	struct stack_writer *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->host_hz = host_hz;
	s->waits.tokens = s->samples.tokens = BURST;
	s->own_names = !shared;
	s->names = shared ? shared : stack_names_new();
	if (s->names)
		stack_names_join(s->names);
	s->encoder = batch_encoder_new();
	s->raw = calloc(WAITING_MAX, sizeof(*s->raw));
	s->known = calloc(KNOWN_SLOTS, sizeof(*s->known));
	if (!s->names || !s->encoder || !s->raw || !s->known) {
		stack_writer_free(s);
		return NULL;
	}
	*kernel_names = s->names->kallsyms;
	return s;
}

void stack_writer_free(struct stack_writer *s)
{
	if (!s)
		return;
	if (s->names)
		stack_names_leave(s->names);
	if (s->own_names)
		stack_names_free(s->names);
	batch_encoder_free(s->encoder);
	byte_buffer_fini(&s->payload);
	free(s->raw);
	free(s->known);
	free(s);
}

void stack_writer_stats_get(const struct stack_writer *s, struct stack_writer_stats *out)
{
	*out = s->stats;
}

void stack_writer_expect(struct stack_writer *s, pid_t tgid)
{
	/* Should it fail, the first stack tries again. */
	unwinder_prepare(s->names->unwinder, tgid);
}

static bool token_take(struct bucket *b, unsigned per_second, uint64_t now_ms)
{
	if (now_ms > b->refilled_ms)
		b->tokens += (double)(now_ms - b->refilled_ms) * per_second / 1000;
	b->refilled_ms = now_ms;
	if (b->tokens > BURST)
		b->tokens = BURST;
	if (b->tokens < 1)
		return false;
	b->tokens--;
	return true;
}

/* Is there room and time for one more? A wait's stack explains a stall; a sample is one of many. */
static bool is_welcome(struct stack_writer *s, enum vs_stack_role role, uint64_t now_ms)
{
	if (role == VS_STACK_SAMPLE)
		return s->n_raw < BURST && token_take(&s->samples, SAMPLES_PER_SECOND, now_ms);
	return s->n_raw < WAITING_MAX && token_take(&s->waits, PER_SECOND, now_ms);
}

void stack_writer_offer(struct stack_writer *s, const struct capture_stack *stack,
			uint64_t err_ticks, uint64_t now_ms)
{
	struct raw *raw;

	s->stats.seen++;
	if (!is_welcome(s, stack->role, now_ms)) {
		s->stats.skipped++;
		return;
	}
	raw = &s->raw[s->n_raw++];
	raw->stack = *stack;
	raw->err_ticks = err_ticks;
	if (raw->stack.n_kernel > KERNEL_MAX)
		raw->stack.n_kernel = KERNEL_MAX;
	if (raw->stack.n_kernel)
		memcpy(raw->kernel, stack->kernel, raw->stack.n_kernel * sizeof(raw->kernel[0]));
	raw->stack.kernel = raw->kernel;
	if (!stack->has_user)
		return;
	if (raw->stack.user.copied_bytes > COPIED_MAX)
		raw->stack.user.copied_bytes = COPIED_MAX;
	if (raw->stack.user.copied_bytes)
		memcpy(raw->copied, stack->user.copied, raw->stack.user.copied_bytes);
	raw->stack.user.copied = raw->copied;
}

/* ---- naming ---- */

static void kernel_frame_name(const struct stack_writer *s, uint64_t address, bool is_leaf,
			      struct message_stack_frame *frame)
{
	/* As for user frames: a return address may lie behind its function. */
	uint64_t inside = is_leaf ? address : address - 1;
	struct kallsyms_symbol symbol;

	memset(frame, 0, sizeof(*frame));
	frame->kernel = true;
	snprintf(frame->module, sizeof(frame->module), "kernel");
	frame->offset = address;
	if (!s->names->kallsyms || !kallsyms_lookup(s->names->kallsyms, inside, &symbol))
		return;
	snprintf(frame->symbol, sizeof(frame->symbol), "%s", symbol.name);
	if (*symbol.module)
		snprintf(frame->module, sizeof(frame->module), "%s", symbol.module);
	frame->offset = symbol.offset + (address - inside);
}

static void stack_name(struct stack_writer *s, const struct raw *raw)
{
	const struct capture_stack *stack = &raw->stack;
	struct message_stack *m = &s->message;
	long user = 0;

	m->pid = stack->tid;
	m->n_frames = 0;
	for (size_t i = 0; i < stack->n_kernel; i++)
		kernel_frame_name(s, stack->kernel[i], !i, &m->frames[m->n_frames++]);
	if (stack->has_user)
		user = unwinder_run(s->names->unwinder, stack->tgid, &stack->user,
				    m->frames + m->n_frames, VS_STACK_FRAMES_MAX - m->n_frames);
	if (user > 0)
		m->n_frames += (size_t)user;
}

static uint64_t hash_add(uint64_t hash, const void *data, size_t len)
{
	const uint8_t *bytes = data;

	/* FNV-1a */
	for (size_t i = 0; i < len; i++)
		hash = (hash ^ bytes[i]) * 0x100000001b3ull;
	return hash;
}

static uint64_t message_hash(const struct message_stack *m)
{
	uint64_t hash = hash_add(0xcbf29ce484222325ull, &m->pid, sizeof(m->pid));

	for (size_t i = 0; i < m->n_frames; i++) {
		const struct message_stack_frame *f = &m->frames[i];

		hash = hash_add(hash, f->symbol, strlen(f->symbol) + 1);
		hash = hash_add(hash, f->module, strlen(f->module) + 1);
		hash = hash_add(hash, &f->offset, sizeof(f->offset));
	}
	return hash ? hash : 1;
}

/* The id of the stack in s->message; writes its frame if it has none yet. 0 or -errno. */
static int stack_identify(struct stack_writer *s, struct frame_writer *w, struct byte_buffer *out,
			  uint32_t *id)
{
	uint64_t hash = message_hash(&s->message);
	size_t slot = hash % KNOWN_SLOTS;
	int err;

	for (; s->known[slot].hash; slot = (slot + 1) % KNOWN_SLOTS) {
		if (s->known[slot].hash == hash) {
			*id = s->known[slot].id;
			return 0;
		}
	}
	s->message.id = s->last_id + 1;
	s->payload.len = 0;
	err = message_stack_pack(&s->message, &s->payload);
	if (!err)
		err = frame_write(w, FRAME_STACK, s->payload.data, s->payload.len, out);
	if (err)
		return err;
	if (s->n_known == KNOWN_MAX) {
		memset(s->known, 0, KNOWN_SLOTS * sizeof(*s->known));
		s->n_known = 0;
		slot = hash % KNOWN_SLOTS;
	}
	*id = ++s->last_id;
	s->known[slot] = (struct known){hash, *id};
	s->n_known++;
	s->stats.distinct++;
	return 0;
}

/*
 * A time inside the wait, just before its end (see VS_EVENT_STACK). The wait's length was measured
 * on another clock than the TSC, whose rates differ by up to 0.06 %; and the event must not be
 * older than what was promised already.
 */
static uint64_t event_time(const struct stack_writer *s, const struct raw *raw, uint64_t promised)
{
	double wait = (double)raw->stack.wait_ns * (double)s->host_hz / 1e9;
	double margin = (double)s->host_hz * 20e-6 + wait / 1000 + (double)raw->err_ticks;
	double begin = (double)(int64_t)(raw->stack.time - promised); /* mostly before it */
	double end = raw->stack.role == VS_STACK_WAITER ? begin + wait : begin;

	if (margin > wait)
		margin = wait;
	return end > margin ? promised + (uint64_t)(end - margin) : promised;
}

static int event_compare(const void *a, const void *b)
{
	const struct vs_event *x = a, *y = b;

	return (x->time > y->time) - (x->time < y->time);
}

static int batch_write(struct stack_writer *s, struct frame_writer *w, size_t n, uint64_t promise,
		       struct byte_buffer *out)
{
	struct batch batch = {.cpu = VS_CPU_COLLECTOR, .n_events = n, .events = s->events};
	int err;

	qsort(s->events, n, sizeof(s->events[0]), event_compare);
	for (size_t i = 0; i < n; i++)
		s->events[i].seq = s->seq++;
	batch.watermark = promise;
	batch.emitted = s->stats.named;
	s->payload.len = 0;
	err = batch_encode(s->encoder, &batch, &s->payload);
	if (!err)
		err = frame_write(w, FRAME_BATCH, s->payload.data, s->payload.len, out);
	return err;
}

int stack_writer_flush(struct stack_writer *s, struct frame_writer *w, uint64_t promised,
		       uint64_t promise, struct byte_buffer *out)
{
	size_t n = 0;
	int err = 0;

	for (size_t i = 0; i < s->n_raw && !err; i++) {
		const struct raw *raw = &s->raw[i];
		uint32_t id;

		stack_name(s, raw);
		if (!s->message.n_frames) {
			s->stats.empty++;
			continue;
		}
		err = stack_identify(s, w, out, &id);
		if (err)
			break;
		s->events[n++] = (struct vs_event){
			.time = event_time(s, raw, promised),
			.cpu = VS_CPU_COLLECTOR,
			.type = VS_EVENT_STACK,
			.pid = raw->stack.tid,
			.pid2 = raw->stack.explains,
			.arg0 = id,
			.arg1 = (uint64_t)raw->stack.role | raw->stack.wait_ns << 8,
		};
	}
	s->n_raw = 0;
	if (n) {
		s->stats.named += n;
		if (!err)
			err = batch_write(s, w, n, promise, out);
	}
	return err;
}
