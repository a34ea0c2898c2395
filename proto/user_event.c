// SPDX-License-Identifier: GPL-2.0-only
#include "proto/user_event.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/event_fields.h"

/* ---- the registry ---- */

struct known {
	uint32_t source;
	struct message_user_event event;
};

struct user_events {
	size_t n;
	/* Each allocated by itself: a description stays where it is. */
	struct known *known[USER_EVENTS_KNOWN_MAX];
};

struct user_events *user_events_new(void)
{
	return calloc(1, sizeof(struct user_events));
}

void user_events_free(struct user_events *r)
{
	if (!r)
		return;
	for (size_t i = 0; i < r->n; i++)
		free(r->known[i]);
	free(r);
}

static struct known *known_find(const struct user_events *r, uint32_t source, uint32_t id)
{
	for (size_t i = r->n; i-- > 0;) {
		if (r->known[i]->source == source && r->known[i]->event.id == id)
			return r->known[i];
	}
	return NULL;
}

/* Whether both describe the same event; its state may differ. */
static bool is_same(const struct message_user_event *a, const struct message_user_event *b)
{
	if (a->kind != b->kind || a->n_fields != b->n_fields || strcmp(a->system, b->system) ||
	    strcmp(a->name, b->name) || strcmp(a->path, b->path) || strcmp(a->spec, b->spec))
		return false;
	for (size_t i = 0; i < a->n_fields; i++) {
		if (a->fields[i].type != b->fields[i].type ||
		    a->fields[i].bytes != b->fields[i].bytes ||
		    strcmp(a->fields[i].name, b->fields[i].name))
			return false;
	}
	return true;
}

static size_t known_of(const struct user_events *r, uint32_t source)
{
	size_t n = 0;

	for (size_t i = 0; i < r->n; i++)
		n += r->known[i]->source == source;
	return n;
}

static int event_learn(struct user_events *r, uint32_t source, const struct message_user_event *e)
{
	struct known *k = known_find(r, source, e->id);

	if (k && is_same(&k->event, e)) {
		k->event.flags = e->flags;
		k->event.limited = e->limited;
		memcpy(k->event.why, e->why, sizeof(k->event.why));
		return 0;
	}
	/* A sender that began anew may use an id for another event: the newest counts. */
	if (r->n == USER_EVENTS_KNOWN_MAX || known_of(r, source) == USER_EVENTS_OF_STREAM_MAX)
		return 0;
	k = malloc(sizeof(*k));
	if (!k)
		return -ENOMEM;
	*k = (struct known){source, *e};
	r->known[r->n++] = k;
	return 0;
}

int user_events_learn(struct user_events *r, uint32_t source, const struct message_user_events *m)
{
	int err = 0;

	for (size_t i = 0; i < m->n && !err; i++)
		err = event_learn(r, source, &m->events[i]);
	return err;
}

const struct message_user_event *user_events_find(const struct user_events *r, uint32_t source,
						  uint32_t id)
{
	const struct known *k = known_find(r, source, id);

	return k ? &k->event : NULL;
}

const struct message_user_event *user_events_at(const struct user_events *r, size_t i,
						uint32_t *source)
{
	if (i >= r->n)
		return NULL;
	*source = r->known[i]->source;
	return &r->known[i]->event;
}

size_t user_event_n_shown(const struct message_user_event *e)
{
	return e->n_fields - (e->n_fields && e->flags & USER_STACKS);
}

bool user_event_field(const struct message_user_event *e, const char *name, size_t *index)
{
	for (size_t i = 0; i < e->n_fields; i++) {
		if (!strcmp(e->fields[i].name, name)) {
			*index = i;
			return true;
		}
	}
	return false;
}

/* ---- hits ---- */

/* At most one hit per CPU waits, and a record of another hit of its CPU ends it. */
enum { WAITING_MAX = 1024 };

struct user_hits {
	const struct user_events *known;
	user_hit_taker take;
	void *context;
	size_t n;
	struct user_hit waiting[WAITING_MAX];
};

struct user_hits *user_hits_new(const struct user_events *known, user_hit_taker take, void *context)
{
	struct user_hits *h = calloc(1, sizeof(*h));

	if (!h)
		return NULL;
	h->known = known;
	h->take = take;
	h->context = context;
	return h;
}

void user_hits_free(struct user_hits *h)
{
	free(h);
}

static size_t values_wanted(const struct user_hit *hit)
{
	return hit->event ? user_event_n_values(hit->event) : 2;
}

static void waiting_end(struct user_hits *h, size_t i)
{
	h->take(h->context, &h->waiting[i]);
	h->n--;
	memmove(&h->waiting[i], &h->waiting[i + 1], (h->n - i) * sizeof(h->waiting[0]));
}

/* Returns the index of the hit of this CPU that waits, h->n if there is none. */
static size_t waiting_find(const struct user_hits *h, uint32_t source, uint16_t cpu)
{
	size_t i = 0;

	while (i < h->n && (h->waiting[i].source != source || h->waiting[i].head.cpu != cpu))
		i++;
	return i;
}

static void head_take(struct user_hits *h, uint32_t source, const struct vs_event *e, int64_t t_ns,
		      uint32_t err_ns)
{
	struct user_hit hit = {
		.source = source,
		.event = user_events_find(h->known, source, ev_user_id(e)),
		.head = *e,
		.t_ns = t_ns,
		.err_ns = err_ns,
	};

	if (e->type == VS_EVENT_USER) {
		const size_t wanted = values_wanted(&hit);

		hit.n_values = wanted < 2 ? wanted : 2;
		hit.values[0] = ev_user_first(e);
		hit.values[1] = ev_user_second(e);
		if (wanted > 2) {
			if (h->n == WAITING_MAX)
				waiting_end(h, 0);
			h->waiting[h->n++] = hit;
			return;
		}
	}
	h->take(h->context, &hit);
}

static void more_take(struct user_hits *h, size_t i, const struct vs_event *e)
{
	struct user_hit *hit = &h->waiting[i];
	const size_t wanted = values_wanted(hit);

	if (e->seq != hit->head.seq + hit->n_values / 2 ||
	    ev_user_more_part(e) != hit->n_values / 2 ||
	    ev_user_more_id(e) != ev_user_id(&hit->head)) {
		waiting_end(h, i);
		return;
	}
	hit->values[hit->n_values++] = ev_user_more_first(e);
	if (hit->n_values < wanted)
		hit->values[hit->n_values++] = ev_user_more_second(e);
	if (hit->n_values == wanted)
		waiting_end(h, i);
}

void user_hits_take(struct user_hits *h, uint32_t source, const struct vs_event *e, int64_t t_ns,
		    uint32_t err_ns)
{
	size_t i;

	if (e->type != VS_EVENT_USER && e->type != VS_EVENT_USER_MORE &&
	    e->type != VS_EVENT_USER_LIMITED && e->type != VS_EVENT_LOST)
		return;
	i = waiting_find(h, source, e->cpu);
	if (e->type == VS_EVENT_USER_MORE) {
		if (i < h->n) /* or else its head is lost */
			more_take(h, i, e);
		return;
	}
	if (i < h->n)
		waiting_end(h, i);
	if (e->type != VS_EVENT_LOST)
		head_take(h, source, e, t_ns, err_ns);
}

void user_hits_flush(struct user_hits *h)
{
	while (h->n)
		waiting_end(h, 0);
}

/* Sets *first to the index of the field's first value. Returns the field, or NULL if not all of its
 * values arrived. */
static const struct message_user_field *field_of(const struct user_hit *hit, size_t field,
						 size_t *first)
{
	const struct message_user_field *f;

	if (!hit->event || field >= hit->event->n_fields)
		return NULL;
	*first = 0;
	for (size_t i = 0; i < field; i++)
		*first += user_field_n_values(&hit->event->fields[i]);
	f = &hit->event->fields[field];
	return *first + user_field_n_values(f) <= hit->n_values ? f : NULL;
}

bool user_hit_number(const struct user_hit *hit, size_t field, uint64_t *value)
{
	size_t at;
	const struct message_user_field *f = field_of(hit, field, &at);

	if (!f || f->type == USER_TEXT)
		return false;
	*value = hit->values[at];
	return true;
}

const char *user_hit_text(const struct user_hit *hit, size_t field, char *out, size_t out_bytes)
{
	size_t at, bytes;
	const struct message_user_field *f = field_of(hit, field, &at);

	if (!f) {
		snprintf(out, out_bytes, "?");
	} else if (f->type == USER_TEXT) {
		bytes = f->bytes < out_bytes ? f->bytes : out_bytes - 1;
		memcpy(out, &hit->values[at], bytes);
		out[bytes] = 0;
	} else if (f->type == USER_HEX) {
		snprintf(out, out_bytes, "0x%" PRIx64, hit->values[at]);
	} else if (f->type == USER_SIGNED) {
		snprintf(out, out_bytes, "%" PRId64, (int64_t)hit->values[at]);
	} else {
		snprintf(out, out_bytes, "%" PRIu64, hit->values[at]);
	}
	return out;
}
