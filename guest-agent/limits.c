// SPDX-License-Identifier: GPL-2.0-only
#include "guest-agent/limits.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "bpf/chosen/look_condition.h"

void limits_say(struct message_config_reply *reply, uint32_t field, enum config_reason reason,
		const char *format, ...)
{
	struct message_config_limit *limit = &reply->limits[reply->n_limits];
	va_list args;

	if (reply->n_limits == VS_CONFIG_LIMITS_MAX)
		return;
	reply->n_limits++;
	limit->field = field;
	limit->reason = reason;
	va_start(args, format);
	vsnprintf(limit->text, sizeof(limit->text), format, args);
	va_end(args);
}

const char *limits_text(const struct message_config_reply *reply, uint32_t field)
{
	for (size_t i = 0; i < reply->n_limits; i++) {
		if (reply->limits[i].field == field)
			return reply->limits[i].text;
	}
	return NULL;
}

void limits_default(const struct limits *l, struct message_config *out)
{
	memset(out, 0, sizeof(*out));
	out->asks = CONFIG_FIELDS_ALL;
	out->classes = l->classes | 1 << EVENT_CLASS_SWITCHES;
	out->level = l->handler_over_ns ? GUEST_LEVEL_SUMMARY : GUEST_LEVEL_DETAIL;
	out->handler_over_ns = l->handler_over_ns;
	out->sample_hz = l->sample_hz;
}

/* Names of the classes in `classes`, separated by commas. */
static void classes_name(uint64_t classes, char *out, size_t out_bytes)
{
	size_t at = 0;

	out[0] = '\0';
	for (unsigned i = 0; i < EVENT_CLASSES && at < out_bytes; i++)
		if (classes & 1ull << i)
			at += (size_t)snprintf(out + at, out_bytes - at, "%s%s", at ? "," : "",
					       event_class_name(i));
}

static void classes_apply(const struct limits *l, const struct message_config *asked,
			  struct message_config_reply *reply)
{
	const uint64_t own = reply->in_force.classes;
	/* The kernel's log is the agent's to leave out, whatever the capture can do. */
	const uint64_t changeable =
		l->fields & 1u << CONFIG_CLASSES ? UINT64_MAX : 1ull << EVENT_CLASS_KERNEL_LOG;
	const uint64_t wanted = asked->classes | 1ull << EVENT_CLASS_SWITCHES;
	const uint64_t disabled = wanted & ~own & EVENT_CLASSES_ALL;
	const uint64_t stays = own & ~wanted & ~changeable;
	char names[64];

	if (wanted & ~(uint64_t)EVENT_CLASSES_ALL)
		limits_say(reply, CONFIG_CLASSES, CONFIG_REASON_UNSUPPORTED,
			   "this agent knows no events of classes 0x%" PRIx64,
			   wanted & ~(uint64_t)EVENT_CLASSES_ALL);
	classes_name(disabled, names, sizeof(names));
	if (disabled)
		limits_say(reply, CONFIG_CLASSES, CONFIG_REASON_OWNER, "turned off here: %s",
			   names);
	classes_name(stays, names, sizeof(names));
	if (stays)
		limits_say(reply, CONFIG_CLASSES, CONFIG_REASON_UNSUPPORTED,
			   "cannot be left out here: %s", names);
	reply->in_force.classes = (own & wanted) | stays;
}

static void level_apply(const struct limits *l, const struct message_config *asked,
			struct message_config_reply *reply)
{
	struct message_config *in_force = &reply->in_force;

	if (asked->level == GUEST_LEVEL_SUMMARY) {
		in_force->level = GUEST_LEVEL_SUMMARY;
		if (!in_force->handler_over_ns)
			in_force->handler_over_ns = LIMITS_HANDLER_OVER_NS;
	} else if (asked->level != GUEST_LEVEL_DETAIL) {
		limits_say(reply, CONFIG_LEVEL, CONFIG_REASON_INVALID, "there is no level %" PRIu32,
			   asked->level);
	} else if (l->handler_over_ns) {
		limits_say(reply, CONFIG_LEVEL, CONFIG_REASON_OWNER,
			   "summary here (--handlers-over)");
	}
}

/* After the level: at level detail every handler is reported, whatever the threshold. */
static void handler_over_apply(const struct limits *l, const struct message_config *asked,
			       struct message_config_reply *reply)
{
	struct message_config *in_force = &reply->in_force;

	if (!asked->handler_over_ns || asked->handler_over_ns > CONFIG_HANDLER_OVER_MAX_NS)
		limits_say(reply, CONFIG_HANDLER_OVER, CONFIG_REASON_INVALID, "from 1 ns to 1 s");
	else if (in_force->level != GUEST_LEVEL_SUMMARY)
		limits_say(reply, CONFIG_HANDLER_OVER, CONFIG_REASON_INVALID,
			   "needs level summary");
	else if (asked->handler_over_ns < l->handler_over_ns)
		limits_say(reply, CONFIG_HANDLER_OVER, CONFIG_REASON_OWNER,
			   "at least %" PRIu64 " us here (--handlers-over)",
			   l->handler_over_ns / 1000);
	else
		in_force->handler_over_ns = asked->handler_over_ns;
}

static void sample_hz_apply(const struct limits *l, const struct message_config *asked,
			    struct message_config_reply *reply)
{
	const uint32_t most = l->sample_hz_max > l->sample_hz ? l->sample_hz_max : l->sample_hz;

	if (asked->sample_hz != reply->in_force.sample_hz &&
	    !(l->fields & 1u << CONFIG_SAMPLE_HZ) && most) {
		limits_say(reply, CONFIG_SAMPLE_HZ, CONFIG_REASON_UNSUPPORTED,
			   "no samples of stacks here (no BPF)");
		reply->in_force.sample_hz = 0;
		return;
	}
	reply->in_force.sample_hz = asked->sample_hz < most ? asked->sample_hz : most;
	if (asked->sample_hz > most)
		limits_say(reply, CONFIG_SAMPLE_HZ, CONFIG_REASON_OWNER,
			   "at most %" PRIu32 " here (--max-sample-hz)", most);
}

static void tasks_apply(const struct limits *l, const struct message_config *asked,
			struct message_config_reply *reply)
{
	struct message_config *in_force = &reply->in_force;
	bool empty = false;

	if (!asked->n_tasks)
		return;
	if (!(l->fields & 1u << CONFIG_TASKS)) {
		limits_say(reply, CONFIG_TASKS, CONFIG_REASON_UNSUPPORTED,
			   "tasks cannot be chosen here (no BPF)");
		return;
	}
	for (size_t i = 0; i < asked->n_tasks && i < VS_CONFIG_TASKS_MAX; i++) {
		if (asked->tasks[i][0])
			memcpy(in_force->tasks[in_force->n_tasks++], asked->tasks[i],
			       sizeof(asked->tasks[i]));
		else
			empty = true;
	}
	if (empty)
		limits_say(reply, CONFIG_TASKS, CONFIG_REASON_INVALID, "a task without a name");
}

/* guest_events.h says of each what became of it. */
static void events_apply(const struct limits *l, const struct message_config *asked,
			 struct message_config_reply *reply)
{
	struct message_config *in_force = &reply->in_force;

	(void)l;
	in_force->n_events =
		asked->n_events < VS_CONFIG_EVENTS_MAX ? asked->n_events : VS_CONFIG_EVENTS_MAX;
	memcpy(in_force->events, asked->events, in_force->n_events * sizeof(asked->events[0]));
}

/* The capture compiles the condition once more; here is where it can be refused. */
static bool look_condition_check(const struct limits *l, const struct message_config *asked,
				 struct message_config_reply *reply)
{
	struct capture_look look;
	struct expr_error error;
	int err = look_condition_compile(asked->look_when, EVENT_GUEST, !l->texts, &look, &error);

	if (!err)
		return true;
	limits_say(reply, CONFIG_LOOK, err == -EPERM ? CONFIG_REASON_OWNER : CONFIG_REASON_INVALID,
		   "character %zu of the condition: %s", error.at + 1,
		   err == -ENOMEM ? "out of memory" : error.text);
	return false;
}

static void look_apply(const struct limits *l, const struct message_config *asked,
		       struct message_config_reply *reply)
{
	const uint32_t most = l->sample_hz_max > l->sample_hz ? l->sample_hz_max : l->sample_hz;
	struct message_config *in_force = &reply->in_force;
	uint64_t least_ns;

	if (!asked->look_period_ns)
		return;
	if (asked->look_period_ns < CAPTURE_LOOK_PERIOD_MIN_NS ||
	    asked->look_period_ns > CAPTURE_LOOK_PERIOD_MAX_NS) {
		limits_say(reply, CONFIG_LOOK, CONFIG_REASON_INVALID, "from 1 ms to 1 s");
		return;
	}
	if (!most) {
		limits_say(reply, CONFIG_LOOK, CONFIG_REASON_OWNER,
			   "no stacks here (--max-sample-hz)");
		return;
	}
	if (!(l->fields & 1u << CONFIG_LOOK)) {
		limits_say(reply, CONFIG_LOOK, CONFIG_REASON_UNSUPPORTED, "no looks here (no BPF)");
		return;
	}
	if (!look_condition_check(l, asked, reply))
		return;
	least_ns = (1000000000 + most - 1) / most;
	in_force->look_period_ns = asked->look_period_ns;
	memcpy(in_force->look_when, asked->look_when, sizeof(in_force->look_when));
	if (asked->look_period_ns < least_ns) {
		in_force->look_period_ns = least_ns;
		limits_say(reply, CONFIG_LOOK, CONFIG_REASON_OWNER,
			   "at most %" PRIu32 " ticks per second here (--max-sample-hz)", most);
	}
}

static void (*const appliers[CONFIG_FIELDS])(const struct limits *l,
					     const struct message_config *asked,
					     struct message_config_reply *reply) = {
	[CONFIG_CLASSES] = classes_apply,
	[CONFIG_LEVEL] = level_apply,
	[CONFIG_HANDLER_OVER] = handler_over_apply,
	[CONFIG_SAMPLE_HZ] = sample_hz_apply,
	[CONFIG_TASKS] = tasks_apply,
	[CONFIG_EVENTS] = events_apply,
	[CONFIG_LOOK] = look_apply,
};

void limits_apply(const struct limits *l, const struct message_config *asked,
		  struct message_config_reply *reply)
{
	memset(reply, 0, sizeof(*reply));
	reply->id = asked->id;
	limits_default(l, &reply->in_force);
	reply->in_force.id = asked->id;
	for (uint32_t field = 0; field < 32; field++) {
		if (!(asked->asks & 1u << field))
			continue;
		if (field >= CONFIG_FIELDS)
			limits_say(reply, field, CONFIG_REASON_UNSUPPORTED,
				   "this agent does not know field %" PRIu32, field);
		else if (l->no_host_config)
			limits_say(reply, field, CONFIG_REASON_OWNER,
				   "the host may change nothing here (--no-host-config)");
		else
			appliers[field](l, asked, reply);
	}
}
