/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/model/worker.h"

#include <errno.h>
#include <stdlib.h>

#include "host-collector/util/relay.h"

enum { CHUNK_ITEMS = 256 };

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

struct chunk {
	size_t n;
	struct item items[CHUNK_ITEMS];
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

static void item_emit(struct worker *a, const struct item *item)
{
	const struct audiences *to = &a->audiences;

	switch (item->kind) {
#define X(callback, ...)                                                                           \
	case ITEM_##callback:                                                                      \
		EMIT(to, callback, &item->callback);                                               \
		break;
		COPIED(X)
#undef X
	case ITEM_vcpu_span:
		EMIT(to, vcpu_span, &item->vcpu_span);
		break;
	case ITEM_holder:
		crowd_add(&a->crowd, &item->holder);
		break;
	case ITEM_guest_clock:
		EMIT(to, guest_clock, &item->guest_clock);
		break;
	case ITEM_advance:
		EMIT(to, advance, item->advance);
		break;
	}
}

static void *items_emit(void *context)
{
	struct worker *a = context;
	size_t index;

	while (relay_await(&a->relay, &index)) {
		struct chunk *c = &a->chunks[index];

		for (size_t i = 0; i < c->n; i++)
			item_emit(a, &c->items[i]);
		c->n = 0;
		relay_return(&a->relay);
	}
	return NULL;
}

/* ---- callbacks of the model ---- */

/* Returns the place of the next item. */
static struct item *item_begin(struct worker *a)
{
	struct chunk *c = &a->chunks[relay_filled(&a->relay)];

	return &c->items[c->n];
}

static void item_end(struct worker *a)
{
	struct chunk *c = &a->chunks[relay_filled(&a->relay)];

	if (++c->n == CHUNK_ITEMS)
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
		item_end(a);                                                                       \
	}
COPIED(X)
#undef X

/* Copies the holders that the span refers to; the copy refers to the copied ones. */
static void on_vcpu_span(void *context, const struct vcpu_span *emitted)
{
	struct worker *a = context;
	struct vcpu_span span = *emitted;
	struct item *item;

	if (a->paused) {
		EMIT(&a->audiences, vcpu_span, emitted);
		return;
	}
	span.crowd = &a->crowd;
	span.crowd_first = a->n_holders;
	span.n_crowd = 0; /* unknown, unless they are kept */
	/* The ring loses the oldest first: if the first is kept, all are. */
	if (crowd_at(emitted->crowd, emitted->crowd_first))
		span.n_crowd = emitted->n_crowd;
	for (uint32_t i = 0; i < span.n_crowd; i++) {
		item = item_begin(a);
		item->kind = ITEM_holder;
		item->holder = *crowd_at(emitted->crowd, emitted->crowd_first + i);
		item_end(a);
	}
	a->n_holders += span.n_crowd;
	item = item_begin(a);
	item->kind = ITEM_vcpu_span;
	item->vcpu_span = span;
	item_end(a);
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
	item_end(a);
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
	item_end(a);
}

void worker_await(struct worker *a)
{
	if (a->paused)
		return;
	if (a->chunks[relay_filled(&a->relay)].n)
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
