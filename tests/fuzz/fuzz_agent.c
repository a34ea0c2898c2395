// SPDX-License-Identifier: GPL-2.0-only
/* Fuzzes the guest's side of the protocol: whatever a host sends, the session of the agent stays
 * bounded, and no Config gets more than the owner allows. The first byte chooses the owner's
 * limits. */
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "guest-agent/configurer.h"
#include "guest-agent/event_policy.h"
#include "guest-agent/session.h"
#include "proto/query/event_schema.h"
#include "proto/user_event_kind.h"

/* What the agent does with the texts of an event before it asks its kernel. */
static void event_read(const struct message_config_event *e)
{
	static const struct event_schema schema = {
		.n_fields = 2,
		.fields = {{.name = "sector", .type = EXPR_UNSIGNED},
			   {.name = "comm", .type = EXPR_TEXT}}};
	struct event_spec_text filter = {.at = 0};
	struct expr_error error;
	struct event_policy policy;
	char why[EVENT_POLICY_WHY];
	struct expr expr;

	event_policy_default(&policy);
	if (event_policy_allows(&policy, e, 0, why))
		FUZZ_CHECK(e->kind == USER_TRACEPOINT && !strpbrk(e->system, "/.*% \n") &&
			   !strpbrk(e->name, "/.*% \n"));
	memcpy(filter.text, e->filter, sizeof(filter.text));
	if (!event_spec_expr(&schema, &filter, &expr, &error))
		FUZZ_CHECK(expr.n <= EXPR_NODES_MAX);
}

struct bounds {
	struct limits limits;
	unsigned applied;
};

static void on_apply(void *context, struct message_config_reply *reply)
{
	struct bounds *b = context;
	const struct message_config *c = &reply->in_force;

	b->applied++;
	FUZZ_CHECK(!(c->classes & ~(b->limits.classes | 1u << EVENT_CLASS_SWITCHES)));
	FUZZ_CHECK(c->sample_hz <= b->limits.sample_hz_max);
	FUZZ_CHECK(!c->look_period_ns || c->look_period_ns * b->limits.sample_hz_max >= 1000000000);
	FUZZ_CHECK(c->level == GUEST_LEVEL_SUMMARY ||
		   (c->level == GUEST_LEVEL_DETAIL && !c->handler_over_ns));
	FUZZ_CHECK(c->handler_over_ns >= b->limits.handler_over_ns &&
		   c->handler_over_ns <= CONFIG_HANDLER_OVER_MAX_NS);
	FUZZ_CHECK(c->n_tasks <= VS_CONFIG_TASKS_MAX && reply->n_limits <= VS_CONFIG_LIMITS_MAX);
	FUZZ_CHECK(c->n_events <= VS_CONFIG_EVENTS_MAX);
	FUZZ_CHECK(!b->limits.no_host_config || !c->n_events);
	for (size_t i = 0; i < c->n_events; i++)
		event_read(&c->events[i]);
	for (size_t i = 0; i < c->n_tasks; i++)
		FUZZ_CHECK(c->tasks[i][0] && strlen(c->tasks[i]) < sizeof(c->tasks[i]));
}

static void feed(const uint8_t *data, size_t len)
{
	static struct frame_writer *writer;
	struct bounds b = {.limits = {.no_host_config = data[0] & 1,
				      .classes = data[0] >> 1 & EVENT_CLASSES_ALL,
				      .sample_hz_max = data[0] & 2 ? 100 : 0,
				      .handler_over_ns = data[0] & 8 ? 20000 : 0,
				      .fields = data[0] & 4 ? CONFIG_FIELDS_ALL : 0}};
	const struct configurer_options options = {
		.limits = b.limits, .cpu_permille = 200, .apply = on_apply, .context = &b};
	struct session_options session = {.seed = 1};
	struct configurer_now now = {.ms = 1};
	const struct message_config *asked;
	struct byte_buffer out = {0};
	struct configurer c;
	struct session *s;
	unsigned steps = 0;

	if (!writer)
		writer = frame_writer_new(0);
	session.writer = writer;
	s = session_new(&session);
	FUZZ_CHECK(writer && s);
	configurer_init(&c, &options);
	session_begin(s);
	for (size_t at = 1; at < len; at += 997, steps++) {
		const size_t n = len - at < 997 ? len - at : 997;

		FUZZ_CHECK(!session_receive(s, data + at, n, at));
		asked = session_config_take(s);
		if (asked)
			configurer_ask(&c, asked);
		now.ms += 100;
		now.host = session_state(s) == SESSION_OPEN;
		now.session = session_number(s);
		configurer_step(&c, &now);
		for (int i = 0; session_echo_due(s, at); i++) {
			FUZZ_CHECK(i < SESSION_ECHOES_MAX);
			out.len = 0;
			FUZZ_CHECK(!session_echo(s, at, at, &out));
		}
	}
	FUZZ_CHECK(b.applied <= 2 * (steps / 10 + 1));
	session_free(s);
	byte_buffer_fini(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	uint8_t *repaired;

	if (len < 2)
		return 0;
	feed(data, len);
	repaired = malloc(len);
	FUZZ_CHECK(repaired);
	memcpy(repaired, data, len);
	fuzz_repair(repaired, len);
	feed(repaired, len);
	free(repaired);
	return 0;
}
