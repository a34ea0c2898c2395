/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/record/stack_writer.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bpf/symbols/kernel_symbols.h"
#include "clock/sample.h"
#include "host-collector/record/unwind.h"
#include "proto/codec.h"
#include "proto/event_fields.h"
#include "proto/message.h"

enum {
	PER_SECOND = 200,
	SAMPLES_PER_SECOND = 1000,
	SHORTS_PER_SECOND = 100,
	BURST = 64,
	WAITING_MAX = 2 * BURST, /* of which samples take no more than half */
	KEPT = 4,                /* of those that have waited, for the next */
	KERNEL_MAX = 64,
	COPIED_MAX = 16 * 1024,
	PATIENCE_MS = 300, /* for names */
	/* Distinct stacks remembered; when full, all are forgotten and get new ids. */
	KNOWN_SLOTS = 16384,
	KNOWN_MAX = KNOWN_SLOTS / 2,
	RECENT_SLOTS = 256, /* a power of two */
	RECENT_MS = 30000,  /* its process may map other files */
};

enum raw_state { RAW_NEW, RAW_ASKED, RAW_READY };

struct raw {
	enum raw_state state;
	struct capture_stack stack;
	uint64_t err_ticks, offered_ms;
	uint64_t tag;                     /* of the question */
	uint64_t time;                    /* of its event; 0: not known yet */
	uint64_t hash;                    /* of the record's content */
	uint32_t id;                      /* of its stack; 0: not known yet */
	bool gone;                        /* its process */
	bool unnamed;                     /* the namer did not answer, or not for all of it */
	struct message_stack_frame *user; /* what the namer said */
	size_t n_user;
	uint64_t kernel[KERNEL_MAX];
	uint8_t copied[COPIED_MAX];
};

struct known {
	uint64_t hash; /* of the STACK message's content; 0: free */
	uint32_t id;
};

/* A record that was named a short time ago. An idle vCPU's thread waits at the same place with the
 * same stack, again and again. */
struct recent {
	uint64_t hash; /* of the record's content; 0: free */
	uint64_t named_ms;
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
	struct byte_buffer payload;
	struct message_stack message;
	/* The first n_raw are in use, some more may be allocated. One by one: they change places,
	 * and hold pointers into themselves. */
	struct raw *raw[WAITING_MAX];
	size_t n_raw;
	uint64_t last_tag;
	struct bucket waits, shorts, samples, hits;
	struct known *known;
	size_t n_known;
	struct recent recent[RECENT_SLOTS]; /* by hash */
	uint32_t last_id, seq;
	struct vs_event events[WAITING_MAX];
	struct stack_writer_stats stats;
};

/* Frees those from `first` on. They are allocated when they are needed: most VMs have few. */
static void raws_free(struct stack_writer *s, size_t first)
{
	for (size_t i = first; i < WAITING_MAX && s->raw[i]; i++) {
		free(s->raw[i]->user);
		free(s->raw[i]);
		s->raw[i] = NULL;
	}
}

/* One more that is in use; NULL: no memory. */
static struct raw *raw_add(struct stack_writer *s)
{
	struct raw *raw = s->raw[s->n_raw];

	if (!raw)
		raw = s->raw[s->n_raw] = calloc(1, sizeof(*raw));
	s->n_raw += raw != NULL;
	return raw;
}

struct stack_writer *stack_writer_new(uint64_t host_hz, struct stack_names *shared,
				      bool *kernel_names)
{
	struct stack_writer *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->host_hz = host_hz;
	s->waits.tokens = s->shorts.tokens = s->samples.tokens = s->hits.tokens = BURST;
	s->own_names = !shared;
	s->names = shared ? shared : stack_names_new();
	if (s->names)
		stack_names_join(s->names);
	s->known = calloc(KNOWN_SLOTS, sizeof(*s->known));
	if (!s->names || !s->known) {
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
	if (s->names) {
		namer_forget(s->names->namer, s, UINT64_MAX);
		stack_names_leave(s->names);
	}
	if (s->own_names)
		stack_names_free(s->names);
	byte_buffer_fini(&s->payload);
	raws_free(s, 0);
	free(s->known);
	free(s);
}

void stack_writer_stats_get(const struct stack_writer *s, struct stack_writer_stats *out)
{
	*out = s->stats;
}

static void expected(void *context, uint64_t tag, enum naming_outcome outcome,
		     const struct message_stack_frame *frames, size_t n)
{
	(void)context, (void)tag, (void)outcome, (void)frames, (void)n;
}

void stack_writer_expect(struct stack_writer *s, pid_t tgid)
{
	const struct namer_question nothing = {.pid = tgid};

	/* Should it fail, the first stack tries again. */
	namer_ask(s->names->namer, &nothing, expected, s, 0);
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

/* Is there room and time for one more? A long wait's stack explains a stall; a sample, a short wait
 * and a hit are each one of many. */
static bool is_welcome(struct stack_writer *s, enum vs_stack_role role, uint64_t now_ms)
{
	if (role == VS_STACK_SHORT)
		return s->n_raw < BURST && token_take(&s->shorts, SHORTS_PER_SECOND, now_ms);
	if (role == VS_STACK_SAMPLE || role == VS_STACK_LOOK)
		return s->n_raw < BURST && token_take(&s->samples, SAMPLES_PER_SECOND, now_ms);
	if (role == VS_STACK_HIT)
		return s->n_raw < BURST && token_take(&s->hits, SAMPLES_PER_SECOND, now_ms);
	return s->n_raw < WAITING_MAX && token_take(&s->waits, PER_SECOND, now_ms);
}

static uint64_t word_mix(uint64_t hash, uint64_t word)
{
	hash = (hash ^ word) * 0x9e3779b97f4a7c15;
	return hash ^ hash >> 32;
}

/* Four hashes side by side, as each step of one has to wait for the step before. */
static uint64_t words_mix(uint64_t hash, const void *data, size_t len)
{
	uint64_t words[4] = {0}, hashes[4] = {hash, hash + 1, hash + 2, hash + 3};
	const uint8_t *bytes = data;

	for (; len >= sizeof(words); bytes += sizeof(words), len -= sizeof(words)) {
		memcpy(words, bytes, sizeof(words));
		for (size_t i = 0; i < 4; i++)
			hashes[i] = word_mix(hashes[i], words[i]);
	}
	memset(words, 0, sizeof(words));
	if (len)
		memcpy(words, bytes, len);
	for (size_t i = 0; i < 4; i++)
		hash = word_mix(hash, word_mix(hashes[i], words[i]));
	return hash;
}

/* The thread whose stack it is; 0: an interrupt's. */
static int32_t stack_owner(const struct capture_stack *stack)
{
	return stack->tgid ? stack->tid : 0;
}

/* Returns a hash of everything on which the names depend. */
static uint64_t record_hash(const struct capture_stack *stack)
{
	const uint64_t head[] = {(uint64_t)(uint32_t)stack_owner(stack) << 32 |
					 (uint32_t)stack->tgid,
				 stack->n_kernel, stack->has_user, stack->user.copied_bytes};
	uint64_t hash = words_mix(0, head, sizeof(head));

	hash = words_mix(hash, stack->kernel, stack->n_kernel * sizeof(*stack->kernel));
	if (stack->has_user) {
		hash = words_mix(hash, stack->user.regs, sizeof(stack->user.regs));
		hash = words_mix(hash, stack->user.copied, stack->user.copied_bytes);
	}
	return hash ? hash : 1;
}

/* Cuts the stack of a waker to the frames of the interrupt in which the wake-up happened, and takes
 * its process away. The interrupted task woke nobody, and it is another one each time. */
static struct capture_stack interrupted_cut(const struct stack_writer *s,
					    const struct capture_stack *stack)
{
	struct capture_stack cut = *stack;
	size_t own;

	if (stack->role != VS_STACK_WAKER || !s->names->kallsyms)
		return cut;
	own = kallsyms_interrupt_frames(s->names->kallsyms, stack->kernel, stack->n_kernel);
	if (!own)
		return cut;
	cut.n_kernel = own;
	cut.has_user = false;
	cut.tgid = 0;
	return cut;
}

/* The stack of an equal record; 0: it is not known. */
static uint32_t recent_find(const struct stack_writer *s, uint64_t hash, uint64_t now_ms)
{
	const struct recent *r = &s->recent[hash % RECENT_SLOTS];

	return r->hash == hash && now_ms - r->named_ms < RECENT_MS ? r->id : 0;
}

uint32_t stack_writer_find(const struct stack_writer *s, const struct capture_stack *stack,
			   uint64_t now_ms)
{
	const struct capture_stack cut = interrupted_cut(s, stack);

	return recent_find(s, record_hash(&cut), now_ms);
}

void stack_writer_offer(struct stack_writer *s, const struct capture_stack *offered,
			uint64_t err_ticks, uint64_t now_ms)
{
	const struct capture_stack cut = interrupted_cut(s, offered), *stack = &cut;
	struct raw *raw;

	s->stats.seen++;
	raw = is_welcome(s, stack->role, now_ms) ? raw_add(s) : NULL;
	if (!raw) {
		s->stats.skipped++;
		return;
	}
	raw->stack = *stack;
	raw->err_ticks = err_ticks;
	raw->offered_ms = now_ms;
	raw->time = 0;
	raw->gone = raw->unnamed = false;
	free(raw->user);
	raw->user = NULL;
	raw->n_user = 0;
	raw->id = stack->known;
	if (!raw->id) {
		raw->hash = record_hash(stack);
		raw->id = recent_find(s, raw->hash, now_ms);
	}
	raw->state = stack->has_user && !raw->id ? RAW_NEW : RAW_READY;
	if (raw->id)
		return;
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

/* Adds the user frames that the namer found, or else the place at which the thread was. */
static void user_frames_add(struct stack_writer *s, const struct raw *raw)
{
	struct message_stack *m = &s->message;
	const size_t room = VS_STACK_FRAMES_MAX - m->n_frames;
	const size_t n = raw->n_user < room ? raw->n_user : room;

	if (n)
		memcpy(m->frames + m->n_frames, raw->user, n * sizeof(m->frames[0]));
	m->n_frames += n;
	if (n || !room || raw->gone)
		return;
	m->frames[m->n_frames++] = (struct message_stack_frame){
		.offset = raw->stack.user.regs[sizeof(raw->stack.user.regs) / 8 - 1]};
}

static void stack_name(struct stack_writer *s, const struct raw *raw)
{
	const struct capture_stack *stack = &raw->stack;
	struct message_stack *m = &s->message;

	m->pid = stack_owner(stack);
	m->n_frames = 0;
	for (size_t i = 0; i < stack->n_kernel; i++)
		kernel_frame_name(s, stack->kernel[i], !i, &m->frames[m->n_frames++]);
	if (stack->has_user)
		user_frames_add(s, raw);
}

/* ---- names of user stacks ---- */

static void on_names(void *context, uint64_t tag, enum naming_outcome outcome,
		     const struct message_stack_frame *frames, size_t n)
{
	struct stack_writer *s = context;
	struct raw *raw = NULL;

	for (size_t i = 0; i < s->n_raw && !raw; i++) {
		if (s->raw[i]->state == RAW_ASKED && s->raw[i]->tag == tag)
			raw = s->raw[i];
	}
	if (!raw)
		return;
	raw->state = RAW_READY;
	raw->gone = outcome == NAMING_GONE;
	raw->unnamed = outcome != NAMING_DONE;
	s->stats.bare += outcome == NAMING_WITHOUT || outcome == NAMING_UNAVAILABLE;
	raw->user = n ? malloc(n * sizeof(*frames)) : NULL;
	raw->unnamed |= !raw->user;
	if (!raw->user)
		return;
	memcpy(raw->user, frames, n * sizeof(*frames));
	raw->n_user = n;
}

static void names_ask(struct stack_writer *s, struct raw *raw)
{
	const struct namer_question question = unwind_question(raw->stack.tgid, &raw->stack.user);
	int err;

	raw->tag = ++s->last_tag;
	err = namer_ask(s->names->namer, &question, on_names, s, raw->tag);
	if (!err)
		raw->state = RAW_ASKED;
	else if (err != -EAGAIN)
		raw->state = RAW_READY;
	raw->unnamed = raw->state == RAW_READY;
	s->stats.bare += raw->unnamed;
}

/* Is it to be written now, with names or without? */
static bool raw_ready(struct stack_writer *s, struct raw *raw, uint64_t now_ms)
{
	if (raw->state == RAW_NEW)
		names_ask(s, raw);
	if (raw->state != RAW_READY && now_ms - raw->offered_ms >= PATIENCE_MS) {
		namer_forget(s->names->namer, s, raw->tag);
		raw->state = RAW_READY;
		raw->unnamed = true;
		s->stats.bare++;
	}
	return raw->state == RAW_READY;
}

uint64_t stack_writer_hold(const struct stack_writer *s)
{
	uint64_t hold = UINT64_MAX;

	for (size_t i = 0; i < s->n_raw; i++) {
		if (s->raw[i]->time < hold)
			hold = s->raw[i]->time;
	}
	return hold;
}

void stack_writer_settle(struct stack_writer *s, int ms)
{
	const uint64_t begin_ns = clock_monotonic_ns();
	size_t waiting;

	do {
		struct pollfd fd = {.fd = namer_descriptor(s->names->namer), .events = POLLIN};

		poll(&fd, 1, 5);
		namer_poll(s->names->namer);
		waiting = 0;
		for (size_t i = 0; i < s->n_raw; i++) {
			if (s->raw[i]->state == RAW_NEW)
				names_ask(s, s->raw[i]);
			waiting += s->raw[i]->state != RAW_READY;
		}
	} while (waiting && clock_monotonic_ns() - begin_ns < (uint64_t)ms * 1000000);
	for (size_t i = 0; i < s->n_raw && waiting; i++) {
		s->stats.bare += s->raw[i]->state != RAW_READY;
		s->raw[i]->unnamed |= s->raw[i]->state != RAW_READY;
		s->raw[i]->state = RAW_READY;
	}
	namer_forget(s->names->namer, s, UINT64_MAX);
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
		memset(s->recent, 0, sizeof(s->recent));
		s->n_known = 0;
		slot = hash % KNOWN_SLOTS;
	}
	*id = ++s->last_id;
	s->known[slot] = (struct known){hash, *id};
	s->n_known++;
	s->stats.distinct++;
	return 0;
}

/* The id of the record's stack, for which it is named if need be. 0: it has no frames. 0 or
 * -errno. */
static int raw_identify(struct stack_writer *s, const struct raw *raw, uint64_t now_ms,
			struct frame_writer *w, struct byte_buffer *out, uint32_t *id)
{
	int err;

	*id = raw->id;
	if (*id)
		return 0;
	stack_name(s, raw);
	if (!s->message.n_frames)
		return 0;
	err = stack_identify(s, w, out, id);
	if (!err && !raw->unnamed)
		s->recent[raw->hash % RECENT_SLOTS] =
			(struct recent){.hash = raw->hash, .named_ms = now_ms, .id = *id};
	return err;
}

/*
 * A time inside the wait, just before its end (see VS_EVENT_STACK). The wait's length was measured
 * on another clock than the TSC, whose rates differ by up to 0.06 %; and the event must not be
 * older than what was promised already. For a hit, just before the hit.
 */
static uint64_t event_time(const struct stack_writer *s, const struct raw *raw, uint64_t promised)
{
	const bool is_hit = raw->stack.role == VS_STACK_HIT;
	double wait = is_hit ? 0 : (double)raw->stack.wait_ns * (double)s->host_hz / 1e9;
	double margin = (double)s->host_hz * 20e-6 + wait / 1000 + (double)raw->err_ticks;
	double begin = (double)(int64_t)(raw->stack.time - promised); /* mostly before it */
	const bool waited = raw->stack.role == VS_STACK_WAITER || raw->stack.role == VS_STACK_SHORT;
	double end = waited ? begin + wait : begin;

	if (!is_hit && margin > wait)
		margin = wait;
	return end > margin ? promised + (uint64_t)(end - margin) : promised;
}

static int event_compare(const void *a, const void *b)
{
	const struct vs_event *x = a, *y = b;

	return (x->time > y->time) - (x->time < y->time);
}

/* Sets the time that the event of this stack will have, whenever it is written. */
static uint64_t time_keep(const struct stack_writer *s, struct raw *raw, uint64_t promised)
{
	if (!raw->time)
		raw->time = event_time(s, raw, promised);
	return raw->time > promised ? raw->time : promised;
}

static void batch_fill(struct stack_writer *s, size_t n, uint64_t promise, struct batch *batch)
{
	*batch = (struct batch){.cpu = VS_CPU_COLLECTOR, .n_events = n, .events = s->events};
	qsort(s->events, n, sizeof(s->events[0]), event_compare);
	for (size_t i = 0; i < n; i++)
		s->events[i].seq = s->seq++;
	batch->watermark = promise;
	batch->emitted = s->stats.named;
}

int stack_writer_flush(struct stack_writer *s, struct frame_writer *w, uint64_t promised,
		       uint64_t promise, uint64_t now_ms, struct byte_buffer *out,
		       struct batch *batch)
{
	size_t n = 0, kept = 0;
	uint64_t hold;
	int err = 0;

	batch->n_events = 0;
	if (!s->n_raw) {
		raws_free(s, KEPT);
		return 0; /* if others wait for answers, they fetch them */
	}
	namer_poll(s->names->namer);
	for (size_t i = 0; i < s->n_raw && !err; i++) {
		struct raw *raw = s->raw[i];
		const uint64_t time = time_keep(s, raw, promised);
		uint32_t id;

		if (!raw_ready(s, raw, now_ms)) {
			s->raw[i] = s->raw[kept];
			s->raw[kept++] = raw;
			continue;
		}
		err = raw_identify(s, raw, now_ms, w, out, &id);
		if (err)
			break;
		if (!id) {
			s->stats.empty++;
			continue;
		}
		s->events[n] = (struct vs_event){
			.time = time,
			.cpu = VS_CPU_COLLECTOR,
			.type = VS_EVENT_STACK,
			.pid = raw->stack.tid,
			.pid2 = raw->stack.explains,
		};
		ev_set_stack_id(&s->events[n], id);
		ev_set_stack_role(&s->events[n], raw->stack.role);
		ev_set_stack_wait_ns(&s->events[n++], raw->stack.wait_ns);
	}
	s->n_raw = kept;
	if (n) {
		s->stats.named += n;
		hold = stack_writer_hold(s);
		if (!err)
			batch_fill(s, n, promise < hold ? promise : hold, batch);
	}
	return err;
}
