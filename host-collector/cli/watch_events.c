/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/cli/watch_events.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "host-collector/analyze/event/event_list.h"
#include "host-collector/util/escape.h"
#include "proto/event_fields.h"
#include "proto/recording.h"
#include "proto/user_event.h"

struct watch_events {
	struct user_hits *hits;
	bool json;
	const struct event_texts *hidden;
	FILE *out;
	bool begun;
	int64_t begin_ns; /* of the first hit, which has time 0 */
	uint64_t printed;
};

static const char *side_of(const struct user_hit *hit)
{
	return hit->source == VS_SOURCE_HOST ? "host" : "guest";
}

static void json_write(const struct watch_events *w, const struct user_hit *hit)
{
	const struct message_user_event *e = hit->event;
	char value[VS_USER_TEXT_MAX + 1], name[sizeof(e->system) + sizeof(e->name) + 8];
	uint64_t number;

	snprintf(name, sizeof(name), "%s:%s:%s", side_of(hit), e->system, e->name);
	fprintf(w->out, "{\"t_ns\":%" PRId64 ",\"error_ns\":", hit->t_ns);
	if (hit->err_ns == UINT32_MAX)
		fputs("null", w->out);
	else
		fprintf(w->out, "%" PRIu32, hit->err_ns);
	fprintf(w->out, ",\"side\":\"%s\",\"event\":", side_of(hit));
	event_json_text(name, w->out);
	fprintf(w->out, ",\"cpu\":%u,\"tid\":%" PRId32 ",\"fields\":{", hit->head.cpu,
		hit->head.pid);
	for (size_t i = 0; i < user_event_n_shown(e); i++) {
		fputs(i ? "," : "", w->out);
		event_json_text(e->fields[i].name, w->out);
		fputc(':', w->out);
		if (!user_hit_number(hit, i, &number))
			event_json_text(user_hit_text(hit, i, value, sizeof(value)), w->out);
		else if (e->fields[i].type == USER_SIGNED)
			fprintf(w->out, "%" PRId64, (int64_t)number);
		else
			fprintf(w->out, "%" PRIu64, number);
	}
	fputs("}}\n", w->out);
}

static void text_write(struct watch_events *w, const struct user_hit *hit)
{
	const struct message_user_event *e = hit->event;
	char value[VS_USER_TEXT_MAX + 1];
	int64_t t;

	if (!w->begun) {
		w->begun = true;
		w->begin_ns = hit->t_ns;
	}
	t = hit->t_ns - w->begin_ns;
	fprintf(w->out, "%s%5" PRId64 ".%09" PRId64 " ", t < 0 ? "-" : "",
		(t < 0 ? -t : t) / 1000000000, (t < 0 ? -t : t) % 1000000000);
	if (hit->err_ns == UINT32_MAX)
		fputs("+-inf     ", w->out);
	else
		fprintf(w->out, "+-%4" PRIu32 " us ", hit->err_ns / 1000);
	fprintf(w->out, "%-5s [%03u] %6" PRId32 "  %s:%s:", side_of(hit), hit->head.cpu,
		hit->head.pid, side_of(hit), escape(e->system).text);
	fputs(escape(e->name).text, w->out);
	for (size_t i = 0; i < user_event_n_shown(e); i++) {
		fprintf(w->out, " %s=", escape(e->fields[i].name).text);
		fputs(escape(user_hit_text(hit, i, value, sizeof(value))).text, w->out);
	}
	fputc('\n', w->out);
}

static bool is_hidden(const struct watch_events *w, const struct user_hit *hit)
{
	for (size_t i = 0; i < w->hidden->n; i++) {
		if (!strcmp(w->hidden->items[i], hit->event->spec))
			return true;
	}
	return false;
}

static void on_hit(void *context, const struct user_hit *hit)
{
	struct watch_events *w = context;

	/* Hits above the limit are counted in the description, and `say` reports a detached event.
	 */
	if (!hit->event || hit->head.type != VS_EVENT_USER || is_hidden(w, hit))
		return;
	if (w->json)
		json_write(w, hit);
	else
		text_write(w, hit);
	w->printed++;
}

static void on_host(void *context, const struct host_instant *i)
{
	struct watch_events *w = context;

	user_hits_take(w->hits, VS_SOURCE_HOST, &i->event, i->t.ns, i->err_ns);
}

static void on_guest(void *context, const struct guest_instant *i)
{
	struct watch_events *w = context;

	user_hits_take(w->hits, i->vm, &i->event, i->t.ns, i->err_ns);
}

struct watch_events *watch_events_new(struct model *m, bool json, const struct event_texts *hidden,
				      FILE *out)
{
	struct watch_events *w = calloc(1, sizeof(*w));
	struct model_observer observer = {
		.host_instant = on_host,
		.guest_instant = on_guest,
		.context = w,
		.host_types = EVENT_SET(VS_EVENT_USER, VS_EVENT_USER_MORE, VS_EVENT_LOST),
		.guest_types = EVENT_SET(VS_EVENT_USER, VS_EVENT_USER_MORE, VS_EVENT_LOST)};

	if (!w)
		return NULL;
	w->json = json;
	w->hidden = hidden;
	w->out = out;
	w->hits = user_hits_new(model_user_events(m), on_hit, w);
	if (w->hits && !model_observe(m, &observer))
		return w;
	watch_events_free(w);
	return NULL;
}

void watch_events_free(struct watch_events *w)
{
	if (!w)
		return;
	user_hits_free(w->hits);
	free(w);
}

void watch_events_finish(struct watch_events *w)
{
	user_hits_flush(w->hits);
}

uint64_t watch_events_printed(struct watch_events *w)
{
	const uint64_t n = w->printed;

	w->printed = 0;
	return n;
}
