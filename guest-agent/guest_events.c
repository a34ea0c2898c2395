// SPDX-License-Identifier: GPL-2.0-only
#include "guest-agent/guest_events.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bpf/chosen/chosen_events.h"
#include "guest-agent/pointer_hash.h"
#include "proto/event_fields.h"

enum { MASKS = 1024 }; /* a power of two; more than events change before their hits are drained */

/* Which values of an event's hits are pointers (bits), and which may be. */
struct mask {
	uint32_t id;
	uint16_t pointers, suspects;
};

struct item {
	struct message_config_event asked;
	struct message_user_event description;
	bool attached;
	struct capture_event_state state; /* as of the last check */
	uint64_t recent;                  /* hits between the last two checks */
};

struct guest_events {
	struct event_policy policy;
	struct guest_events_source source;
	struct pointer_hash hash;
	size_t n;
	struct item items[VS_CONFIG_EVENTS_MAX];
	struct item before[VS_CONFIG_EVENTS_MAX]; /* in guest_events_set() */
	uint64_t past_hits;                       /* of events that are no longer captured */
	uint64_t checked_ms, sent_ms, sent_session;
	unsigned int flooded; /* checks in a row */
	bool changed;
	struct message_user_events message;
	struct mask masks[MASKS];
};

static int capture_add(void *context, const struct capture_event *event, uint32_t *id)
{
	return capture_event_add(context, event, id);
}

static int capture_state(void *context, uint32_t id, uint64_t now_ms,
			 struct capture_event_state *out)
{
	return capture_event_state_get(context, id, now_ms, out);
}

static void capture_remove(void *context, uint32_t id)
{
	capture_event_remove(context, id);
}

int guest_events_new(const struct event_policy *policy, struct capture *c,
		     struct guest_events **out)
{
	const struct guest_events_source source = {capture_add, capture_state, capture_remove, c};

	capture_events_limit(c, policy->rate);
	return guest_events_new_from(policy, &source, out);
}

int guest_events_new_from(const struct event_policy *policy,
			  const struct guest_events_source *source, struct guest_events **out)
{
	struct guest_events *g = calloc(1, sizeof(*g));

	if (!g)
		return -ENOMEM;
	g->policy = *policy;
	g->source = *source;
	if (pointer_hash_init(&g->hash)) {
		free(g);
		return -EIO;
	}
	*out = g;
	return 0;
}

void guest_events_free(struct guest_events *g)
{
	free(g);
}

/* ---- pointers ---- */

static void mask_set(struct guest_events *g, struct message_user_event *e)
{
	struct mask *m = &g->masks[e->id % MASKS];
	size_t at = 0;

	*m = (struct mask){.id = e->id};
	for (size_t i = 0; i < e->n_fields; i++) {
		const struct message_user_field *f = &e->fields[i];

		if (f->type == USER_HEX)
			m->pointers |= (uint16_t)(1u << at);
		else if (f->type == USER_UNSIGNED && f->bytes == 8)
			m->suspects |= (uint16_t)(1u << at);
		at += user_field_n_values(f);
	}
	if (m->pointers)
		e->flags |= USER_HASHED;
}

static uint64_t value_hash(const struct guest_events *g, const struct mask *m, size_t i,
			   uint64_t value)
{
	if (m->pointers >> i & 1 || (m->suspects >> i & 1 && pointer_hash_suspects(value)))
		return pointer_hash(&g->hash, value);
	return value;
}

void guest_events_hash(void *context, struct vs_event *events, size_t n)
{
	const struct guest_events *g = context;

	for (size_t k = 0; k < n; k++) {
		struct vs_event *e = &events[k];
		const struct mask *m;
		uint32_t id;
		size_t i;

		if (e->type == VS_EVENT_USER) {
			id = ev_user_id(e);
			i = 0;
		} else if (e->type == VS_EVENT_USER_MORE) {
			id = ev_user_more_id(e);
			i = 2 * (size_t)ev_user_more_part(e);
		} else {
			continue;
		}
		m = &g->masks[id % MASKS];
		if (m->id != id || i + 1 >= VS_USER_VALUES_MAX) { /* nobody knows what this is */
			ev_set_user_values(e, 0, 0);
			continue;
		}
		ev_set_user_values(e, value_hash(g, m, i, ev_user_first(e)),
				   value_hash(g, m, i + 1, ev_user_second(e)));
	}
}

/* ---- which events ---- */

static void item_fail(struct item *item, size_t i, const char *why)
{
	struct message_user_event *d = &item->description;

	*d = (struct message_user_event){
		.id = VS_USER_ID_MAX - (uint32_t)i,
		.kind = (enum user_event_kind)item->asked.kind,
		.flags = USER_FAILED | USER_UNTRACED,
	};
	memcpy(d->system, item->asked.system, sizeof(d->system));
	memcpy(d->name, item->asked.name, sizeof(d->name));
	memcpy(d->spec, item->asked.spec, sizeof(d->spec));
	snprintf(d->why, sizeof(d->why), "%s", why);
}

static const char *attach_error(int err)
{
	if (err == -ENOTSUP)
		return "the agent captures through perf, which cannot take it";
	if (err == -ENOSYS)
		return "the guest's kernel cannot probe its functions (CONFIG_KPROBES)";
	if (err == -ENOENT)
		return "the guest's kernel does not let it be attached";
	return strerror(-err);
}

static void item_begin(struct guest_events *g, struct item *item, size_t i)
{
	const struct chosen_limits limits = {.no_texts = !g->policy.texts,
					     .no_pointers_compared = true};
	const struct message_config_event *e = &item->asked;
	struct event_spec *spec = calloc(1, sizeof(*spec));
	struct chosen_event *chosen = calloc(1, sizeof(*chosen));
	struct expr_error error = {0};
	int err = spec && chosen ? 0 : -ENOMEM;

	if (!err) {
		spec->kind = e->kind == USER_TRACEPOINT ? EVENT_TRACEPOINT
			     : e->kind == USER_KPROBE   ? EVENT_KPROBE
							: EVENT_KRETPROBE;
		snprintf(spec->system, sizeof(spec->system), "%s",
			 e->kind == USER_TRACEPOINT ? e->system : "");
		snprintf(spec->name, sizeof(spec->name), "%s", e->name);
		snprintf(spec->filter.text, sizeof(spec->filter.text), "%s", e->filter);
		snprintf(spec->fields.text, sizeof(spec->fields.text), "%s", e->fields);
		err = chosen_kernel_event(spec, &limits, chosen, &error);
	}
	if (!err) {
		chosen->capture.untraced = true;
		chosen->capture.rate = g->policy.rate;
		chosen->description.flags |= USER_UNTRACED;
		memcpy(chosen->description.spec, e->spec, sizeof(chosen->description.spec));
		err = g->source.add(g->source.context, &chosen->capture, &chosen->description.id);
	}
	if (!err) {
		item->description = chosen->description;
		item->attached = true;
		mask_set(g, &item->description);
	} else {
		item_fail(item, i, *error.text ? error.text : attach_error(err));
	}
	free(chosen);
	free(spec);
}

/* Detaches the event and keeps its number of hits. */
static void item_end(struct guest_events *g, struct item *item)
{
	struct capture_event_state state = item->state;

	if (!item->attached)
		return;
	g->source.state(g->source.context, item->description.id, g->checked_ms, &state);
	item->state = state;
	item->description.limited = state.limited;
	g->past_hits += state.kept + state.limited;
	g->source.remove(g->source.context, item->description.id);
	item->attached = false;
}

static void item_detach(struct guest_events *g, struct item *item, const char *why)
{
	item_end(g, item);
	item->description.flags |= USER_DETACHED;
	snprintf(item->description.why, sizeof(item->description.why), "%s", why);
	g->changed = true;
}

static struct item *item_same(struct item *items, size_t n, const struct message_config_event *e)
{
	for (size_t i = 0; i < n; i++) {
		if (items[i].attached && !memcmp(&items[i].asked, e, sizeof(*e)))
			return &items[i];
	}
	return NULL;
}

void guest_events_set(struct guest_events *g, const struct message_config *asked)
{
	const size_t n_before = g->n;
	char why[EVENT_POLICY_WHY];
	size_t allowed = 0;

	memcpy(g->before, g->items, n_before * sizeof(g->items[0]));
	memset(g->items, 0, sizeof(g->items));
	g->n = asked->n_events < VS_CONFIG_EVENTS_MAX ? asked->n_events : VS_CONFIG_EVENTS_MAX;
	for (size_t i = 0; i < g->n; i++) {
		struct item *same = item_same(g->before, n_before, &asked->events[i]);

		if (same) {
			g->items[i] = *same;
			same->attached = false;
		}
		g->items[i].asked = asked->events[i];
	}
	/* What is gone leaves its room to what is new. */
	for (size_t i = 0; i < n_before; i++)
		item_end(g, &g->before[i]);
	for (size_t i = 0; i < g->n; i++) {
		struct item *item = &g->items[i];

		if (item->attached) {
			allowed++;
		} else if (!event_policy_allows(&g->policy, &item->asked, allowed, why)) {
			item_fail(item, i, why);
		} else {
			item_begin(g, item, i);
			allowed += item->attached;
		}
	}
	g->flooded = 0;
	g->changed = true;
}

void guest_events_stop(struct guest_events *g, const char *why)
{
	for (size_t i = 0; i < g->n; i++) {
		if (g->items[i].attached)
			item_detach(g, &g->items[i], why);
	}
}

uint64_t guest_events_hits(const struct guest_events *g)
{
	uint64_t hits = g->past_hits;

	for (size_t i = 0; i < g->n; i++) {
		if (g->items[i].attached)
			hits += g->items[i].state.kept + g->items[i].state.limited;
	}
	return hits;
}

/* ---- over time ---- */

static void flood_end(struct guest_events *g)
{
	struct item *most = NULL;
	char why[VS_TEXT_MAX];

	for (size_t i = 0; i < g->n; i++) {
		if (g->items[i].attached && (!most || g->items[i].recent > most->recent))
			most = &g->items[i];
	}
	g->flooded = 0;
	if (!most)
		return;
	snprintf(why, sizeof(why),
		 "too many hits: the guest's owner allows %u per second and CPU (rate =)",
		 g->policy.rate);
	item_detach(g, most, why);
}

static void limits_check(struct guest_events *g, uint64_t now_ms)
{
	uint64_t kept = 0, limited = 0;

	for (size_t i = 0; i < g->n; i++) {
		struct item *item = &g->items[i];
		struct capture_event_state now;

		if (!item->attached ||
		    g->source.state(g->source.context, item->description.id, now_ms, &now))
			continue;
		kept += now.kept - item->state.kept;
		limited += now.limited - item->state.limited;
		item->recent = now.kept + now.limited - item->state.kept - item->state.limited;
		g->changed |= now.limited != item->state.limited;
		item->description.limited = now.limited;
		item->state = now;
		if (now.detached) /* by the capture's own rule */
			item_detach(g, item, "too many hits");
	}
	if (limited <= kept)
		g->flooded = 0;
	else if (++g->flooded >= GUEST_EVENTS_FLOODED)
		flood_end(g);
}

const struct message_user_events *guest_events_step(struct guest_events *g, uint64_t now_ms,
						    uint64_t session)
{
	if (now_ms - g->checked_ms >= GUEST_EVENTS_CHECK_MS) {
		g->checked_ms = now_ms;
		limits_check(g, now_ms);
	}
	if (!g->n || (!g->changed && session == g->sent_session &&
		      now_ms - g->sent_ms < GUEST_EVENTS_AGAIN_MS))
		return NULL;
	g->changed = false;
	g->sent_session = session;
	g->sent_ms = now_ms;
	g->message.n = g->n;
	for (size_t i = 0; i < g->n; i++)
		g->message.events[i] = g->items[i].description;
	return &g->message;
}
