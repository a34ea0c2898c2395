/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/model/worker.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>

#include "host-collector/util/relay.h"

enum { CHUNK_BYTES = 24576 };

/* X(callback, condition): callbacks whose argument can be copied as it is, and when a copy is
 * wanted. */
#define COPIED(X)                                                                                  \
	X(guest_span, true)                                                                        \
	X(guest_instant, event_set_has(&a->guest_types, emitted->event.type))                      \
	X(guest_interrupt, true)                                                                   \
	X(host_instant, event_set_has(&a->host_types, emitted->event.type))                        \
	X(guest_steal, true)

struct item {
	enum {
#define X(callback, ...) ITEM_##callback,
		COPIED(X)
#undef X
			ITEM_vcpu_span,
		ITEM_holder, /* of the next vcpu_span */
		ITEM_guest_clock,
		ITEM_advance,
	} kind;
	union {
#define X(callback, ...) struct callback callback;
		COPIED(X)
#undef X
		struct vcpu_span vcpu_span;
		struct vcpu_holder holder;
		struct guest_clock_reading guest_clock;
		struct host_ns advance;
	};
};

/* Items of different sizes, one behind the other: the other thread reads each byte from this
 * thread's cache, so the room that small items do not need would cost time. */
struct chunk {
	size_t bytes; /* in use */
	_Alignas(struct item) uint8_t items[CHUNK_BYTES + sizeof(struct item)];
};

struct worker {
	struct audiences audiences;
	bool paused;
	struct event_set host_types, guest_types; /* of instants: what any observer requests */
	/* The copied spans' holders of pCPUs, and how many of them there were. The model changes
	 * its own ring while the observers read. */
	struct crowd_ring crowd;
	uint64_t n_holders;
	pthread_t thread;
	struct relay relay;
	struct chunk chunks[RELAY_CHUNKS];
};

/* The size of an item with this member. */
#define ITEM_BYTES(member)                                                                         \
	((offsetof(struct item, member) + sizeof(((struct item *)0)->member) +                     \
	  _Alignof(struct item) - 1) /                                                             \
	 _Alignof(struct item) * _Alignof(struct item))

/* Returns the item's size. */
static size_t item_emit(struct worker *a, const struct item *item)
{
	const struct audiences *to = &a->audiences;

	switch (item->kind) {
#define X(callback, ...)                                                                           \
	case ITEM_##callback:                                                                      \
		EMIT(to, callback, &item->callback);                                               \
		return ITEM_BYTES(callback);
		COPIED(X)
#undef X
	case ITEM_vcpu_span:
		EMIT(to, vcpu_span, &item->vcpu_span);
		return ITEM_BYTES(vcpu_span);
	case ITEM_holder:
		crowd_add(&a->crowd, &item->holder);
		return ITEM_BYTES(holder);
	case ITEM_guest_clock:
		EMIT(to, guest_clock, &item->guest_clock);
		return ITEM_BYTES(guest_clock);
	case ITEM_advance:
		EMIT(to, advance, item->advance);
		return ITEM_BYTES(advance);
	}
	return CHUNK_BYTES; /* there is no other kind */
}

static void *items_emit(void *context)
{
	struct worker *a = context;
	size_t index;

	while (relay_await(&a->relay, &index)) {
		struct chunk *c = &a->chunks[index];

		for (size_t at = 0; at < c->bytes;)
			at += item_emit(a, (const struct item *)&c->items[at]);
		c->bytes = 0;
		relay_return(&a->relay);
	}
	return NULL;
}

/* ---- callbacks of the model ---- */

/* Returns the place of the next item. */
static struct item *item_begin(struct worker *a)
{
	struct chunk *c = &a->chunks[relay_filled(&a->relay)];

	return (struct item *)&c->items[c->bytes];
}

/* Completes an item of this size. */
static inline void item_end(struct worker *a, size_t bytes)
{
	struct chunk *c = &a->chunks[relay_filled(&a->relay)];

	c->bytes += bytes;
	if (c->bytes >= CHUNK_BYTES)
		relay_publish(&a->relay);
}

#define X(what, wanted)                                                                            \
	static void on_##what(void *context, const struct what *emitted)                           \
	{                                                                                          \
		struct worker *a = context;                                                        \
		struct item *item = item_begin(a);                                                 \
                                                                                                   \
		if (!(wanted))                                                                     \
			return;                                                                    \
		if (a->paused) {                                                                   \
			EMIT(&a->audiences, what, emitted);                                        \
			return;                                                                    \
		}                                                                                  \
		item->kind = ITEM_##what;                                                          \
		item->what = *emitted;                                                             \
		item_end(a, ITEM_BYTES(what));                                                     \
	}
COPIED(X)
#undef X

/* Copies the holders that the span refers to; the copy refers to the copied ones. */
static void on_vcpu_span(void *context, const struct vcpu_span *emitted)
{
	struct worker *a = context;
	const uint64_t first = a->n_holders;
	uint32_t n = 0; /* unknown, unless they are kept */
	struct item *item;

	if (a->paused) {
		EMIT(&a->audiences, vcpu_span, emitted);
		return;
	}
	/* The ring loses the oldest first: if the first is kept, all are. */
	if (emitted->n_crowd && crowd_at(emitted->crowd, emitted->crowd_first))
		n = emitted->n_crowd;
	for (uint32_t i = 0; i < n; i++) {
		item = item_begin(a);
		item->kind = ITEM_holder;
		item->holder = *crowd_at(emitted->crowd, emitted->crowd_first + i);
		item_end(a, ITEM_BYTES(holder));
	}
	a->n_holders += n;
	item = item_begin(a);
	item->kind = ITEM_vcpu_span;
	item->vcpu_span = *emitted;
	item->vcpu_span.crowd = &a->crowd;
	item->vcpu_span.crowd_first = first;
	item->vcpu_span.n_crowd = n;
	item_end(a, ITEM_BYTES(vcpu_span));
}

static void on_guest_clock(void *context, const struct guest_clock_reading *emitted)
{
	struct worker *a = context;
	struct item *item = item_begin(a);

	if (a->paused) {
		EMIT(&a->audiences, guest_clock, emitted);
		return;
	}
	item->kind = ITEM_guest_clock;
	item->guest_clock = *emitted;
	item_end(a, ITEM_BYTES(guest_clock));
}

static void on_advance(void *context, struct host_ns now)
{
	struct worker *a = context;
	struct item *item = item_begin(a);

	if (a->paused) {
		EMIT(&a->audiences, advance, now);
		return;
	}
	item->kind = ITEM_advance;
	item->advance = now;
	item_end(a, ITEM_BYTES(advance));
}

void worker_await(struct worker *a)
{
	if (a->paused)
		return;
	if (a->chunks[relay_filled(&a->relay)].bytes)
		relay_publish(&a->relay);
	relay_settle(&a->relay);
}

/* Rare, and not whole in itself: its cells are the caller's. */
static void on_exits_counted(void *context, const struct message_exit_summary *m)
{
	struct worker *a = context;

	worker_await(a);
	EMIT(&a->audiences, exits_counted, m);
}

/* ---- */

int worker_new(struct worker **out)
{
	struct worker *a = calloc(1, sizeof(*a));
	int err;

	if (!a)
		return -ENOMEM;
	relay_init(&a->relay);
	err = -pthread_create(&a->thread, NULL, items_emit, a);
	if (err) {
		relay_fini(&a->relay);
		free(a);
		return err;
	}
	*out = a;
	return 0;
}

void worker_free(struct worker *a)
{
	if (!a)
		return;
	worker_pause(a);
	relay_end(&a->relay);
	pthread_join(a->thread, NULL);
	relay_fini(&a->relay);
	audiences_fini(&a->audiences);
	free(a);
}

int worker_observe(struct worker *a, const struct model_observer *observer,
		   struct model_observer *from)
{
	const struct audiences *has = &a->audiences;

	*from = (struct model_observer){.context = a};
#define X(callback)                                                                                \
	if (observer->callback && !has->callback.n)                                                \
		from->callback = on_##callback;
	MODEL_CALLBACKS(X)
#undef X
	worker_await(a);
	if (observer->host_instant)
		event_set_add(&a->host_types, &observer->host_types);
	if (observer->guest_instant)
		event_set_add(&a->guest_types, &observer->guest_types);
	return audiences_add(&a->audiences, observer);
}

const struct event_set *worker_host_types(const struct worker *a)
{
	return &a->host_types;
}

const struct event_set *worker_guest_types(const struct worker *a)
{
	return &a->guest_types;
}

void worker_pause(struct worker *a)
{
	worker_await(a);
	a->paused = true;
}

void worker_resume(struct worker *a)
{
	a->paused = false;
}
