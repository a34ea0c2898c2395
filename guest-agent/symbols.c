// SPDX-License-Identifier: GPL-2.0-only
#include "guest-agent/symbols.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bpf/symbols/kernel_symbols.h"
#include "bpf/isolation/namer.h"

enum { WAITING_MAX = 64 };

/* A process's stack that waits for its names. */
struct waiting {
	bool used;
	uint32_t id;
	pid_t tgid;
	size_t n;
	uint64_t addresses[VS_STACK_FRAMES_MAX];
};

struct symbols {
	struct kallsyms *kernel; /* NULL: hidden */
	struct namer *namer;
	bool unavailable;
	symbols_taker take;
	void *context;
	size_t n_waiting;
	struct waiting waiting[WAITING_MAX];
	struct message_stack message; /* large, so not on the stack */
};

struct symbols *symbols_new(symbols_taker take, void *context)
{
	struct symbols *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->take = take;
	s->context = context;
	s->namer = namer_new();
	if (!s->namer || kallsyms_load(NULL, &s->kernel) == -ENOMEM) {
		symbols_free(s);
		return NULL;
	}
	return s;
}

void symbols_free(struct symbols *s)
{
	if (!s)
		return;
	kallsyms_free(s->kernel);
	namer_free(s->namer);
	free(s);
}

bool symbols_kernel(const struct symbols *s)
{
	return s->kernel != NULL;
}

static void text_set(char out[VS_TEXT_MAX], const char *text)
{
	snprintf(out, VS_TEXT_MAX, "%s", text);
}

static void kernel_name(const struct symbols *s, uint64_t address, struct message_stack_frame *f)
{
	struct kallsyms_symbol symbol;

	f->offset = address;
	f->kernel = true;
	if (!s->kernel || !kallsyms_lookup(s->kernel, address, &symbol))
		return;
	text_set(f->symbol, symbol.name);
	text_set(f->module, *symbol.module ? symbol.module : "kernel");
	f->offset = symbol.offset;
}

/* Returns the number of innermost frames that lead from the scheduler to the program that took the
 * stack. */
static size_t plumbing(const struct message_stack *m)
{
	for (size_t i = 0; i < m->n_frames && i < 10; i++) {
		if (!strcmp(m->frames[i].symbol, "__schedule"))
			return i + 1 < m->n_frames ? i + 1 : 0;
	}
	return 0;
}

static void kernel_stack_name(const struct symbols *s, const struct capture_guest_stack *stack,
			      struct message_stack *out)
{
	size_t skipped;

	for (size_t i = 0; i < out->n_frames; i++)
		kernel_name(s, stack->frames[i], &out->frames[i]);
	skipped = stack->role == VS_STACK_WAITER ? plumbing(out) : 0;
	out->n_frames -= skipped;
	memmove(out->frames, out->frames + skipped, out->n_frames * sizeof(out->frames[0]));
}

/* Names, or what is known without: at least the addresses. */
static void waiting_end(struct symbols *s, struct waiting *w,
			const struct message_stack_frame *frames, size_t n)
{
	struct message_stack *m = &s->message;

	m->id = w->id;
	m->pid = w->tgid;
	m->n_frames = n ? n : w->n;
	for (size_t i = 0; i < m->n_frames; i++)
		m->frames[i] =
			n ? frames[i] : (struct message_stack_frame){.offset = w->addresses[i]};
	w->used = false;
	s->n_waiting--;
	s->take(s->context, m);
}

static void on_names(void *context, uint64_t tag, enum naming_outcome outcome,
		     const struct message_stack_frame *frames, size_t n)
{
	struct symbols *s = context;

	s->unavailable |= outcome == NAMING_UNAVAILABLE;
	waiting_end(s, &s->waiting[tag], frames, n);
}

static void user_stack_name(struct symbols *s, const struct capture_guest_stack *stack)
{
	struct namer_question question = {.pid = stack->tgid};
	struct waiting *w = NULL;

	for (size_t i = 0; i < WAITING_MAX && !w; i++) {
		if (!s->waiting[i].used)
			w = &s->waiting[i];
	}
	if (!w)
		return; /* nobody asked symbols_room() */
	w->used = true;
	s->n_waiting++;
	w->id = stack->id;
	w->tgid = stack->tgid;
	w->n = stack->n < VS_STACK_FRAMES_MAX ? stack->n : VS_STACK_FRAMES_MAX;
	memcpy(w->addresses, stack->frames, w->n * sizeof(w->addresses[0]));
	question.addresses = w->addresses;
	question.n_addresses = w->n;
	if (namer_ask(s->namer, &question, on_names, s, (uint64_t)(w - s->waiting)))
		waiting_end(s, w, NULL, 0);
}

void symbols_name(struct symbols *s, const struct capture_guest_stack *stack)
{
	struct message_stack *m = &s->message;

	if (stack->tgid) {
		user_stack_name(s, stack);
		return;
	}
	m->id = stack->id;
	m->pid = 0;
	m->n_frames = stack->n < VS_STACK_FRAMES_MAX ? stack->n : VS_STACK_FRAMES_MAX;
	memset(m->frames, 0, m->n_frames * sizeof(m->frames[0]));
	kernel_stack_name(s, stack, m);
	s->take(s->context, m);
}

bool symbols_room(const struct symbols *s)
{
	return s->n_waiting < WAITING_MAX;
}

bool symbols_user(const struct symbols *s)
{
	return !s->unavailable;
}

void symbols_poll(struct symbols *s)
{
	namer_poll(s->namer);
}

void symbols_finish(struct symbols *s, int ms)
{
	for (int waited = 0; s->n_waiting && waited < ms; waited += 5) {
		struct pollfd fd = {.fd = namer_descriptor(s->namer), .events = POLLIN};

		poll(&fd, 1, 5);
		namer_poll(s->namer);
	}
	namer_forget(s->namer, s, UINT64_MAX);
	for (size_t i = 0; i < WAITING_MAX; i++) {
		if (s->waiting[i].used)
			waiting_end(s, &s->waiting[i], NULL, 0);
	}
}

uint64_t symbols_cpu_ns(const struct symbols *s)
{
	return namer_cpu_ns(s->namer);
}
