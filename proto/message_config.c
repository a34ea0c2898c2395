// SPDX-License-Identifier: GPL-2.0-only
/* Packs and unpacks Config and ConfigReply (message_config.h). */
#include "proto/message.h"

#include <errno.h>
#include <string.h>

#include "proto/message_wire.h"
#include "proto/text.h"

const char *event_class_name(uint32_t class)
{
	static const char *const names[] = {
#define X(number, NAME, name, ...) [EVENT_CLASS_##NAME] = (name),
		VS_EVENT_CLASSES(X)
#undef X
	};

	return names[class];
}

static int config_to_wire(const struct message_config *m, WIRE(Config) * w,
			  char *tasks[VS_CONFIG_TASKS_MAX])
{
	if (m->n_tasks > VS_CONFIG_TASKS_MAX)
		return -E2BIG;
	w->id = m->id;
	w->asks = m->asks;
	w->classes = m->classes;
	w->level = m->level;
	w->handler_over_ns = m->handler_over_ns;
	w->sample_hz = m->sample_hz;
	w->n_tasks = m->n_tasks;
	w->tasks = tasks;
	for (size_t i = 0; i < m->n_tasks; i++)
		tasks[i] = (char *)m->tasks[i];
	return 0;
}

static int config_from_wire(const WIRE(Config) * w, struct message_config *m)
{
	if (w->n_tasks > VS_CONFIG_TASKS_MAX)
		return -E2BIG;
	m->id = w->id;
	m->asks = w->asks;
	m->classes = w->classes;
	m->level = w->level;
	m->handler_over_ns = w->handler_over_ns;
	m->sample_hz = w->sample_hz;
	m->n_tasks = w->n_tasks;
	for (size_t i = 0; i < w->n_tasks; i++)
		text_copy(m->tasks[i], sizeof(m->tasks[i]), w->tasks[i]);
	return 0;
}

int message_config_pack(const struct message_config *m, struct byte_buffer *out)
{
	WIRE(Config) w = VCPUSCOPE__WIRE__CONFIG__INIT;
	char *tasks[VS_CONFIG_TASKS_MAX];
	int err = config_to_wire(m, &w, tasks);

	return err ? err : wire_pack(&w.base, out);
}

int message_config_unpack(const uint8_t *payload, size_t len, struct message_config *m)
{
	struct arena a;
	WIRE(Config) * w;
	int err = wire_unpack(&a, &vcpuscope__wire__config__descriptor, payload, len, &w);

	if (!err)
		err = config_from_wire(w, m);
	arena_fini(&a);
	return err;
}

int message_config_reply_pack(const struct message_config_reply *m, struct byte_buffer *out)
{
	WIRE(ConfigReply) w = VCPUSCOPE__WIRE__CONFIG_REPLY__INIT;
	WIRE(Config) in_force = VCPUSCOPE__WIRE__CONFIG__INIT;
	WIRE(ConfigLimit) limits[VS_CONFIG_LIMITS_MAX], *list[VS_CONFIG_LIMITS_MAX];
	char *tasks[VS_CONFIG_TASKS_MAX];
	int err = config_to_wire(&m->in_force, &in_force, tasks);

	if (err || m->n_limits > VS_CONFIG_LIMITS_MAX)
		return -E2BIG;
	w.id = m->id;
	w.time = m->time;
	w.in_force = &in_force;
	w.n_limits = m->n_limits;
	w.limits = list;
	for (size_t i = 0; i < m->n_limits; i++) {
		vcpuscope__wire__config_limit__init(&limits[i]);
		limits[i].field = m->limits[i].field;
		limits[i].reason = m->limits[i].reason;
		limits[i].text = (char *)m->limits[i].text;
		list[i] = &limits[i];
	}
	return wire_pack(&w.base, out);
}

int message_config_reply_unpack(const uint8_t *payload, size_t len, struct message_config_reply *m)
{
	struct arena a;
	WIRE(ConfigReply) * w;
	int err = wire_unpack(&a, &vcpuscope__wire__config_reply__descriptor, payload, len, &w);

	if (!err && !w->in_force)
		err = -EBADMSG;
	if (!err && w->n_limits > VS_CONFIG_LIMITS_MAX)
		err = -E2BIG;
	if (!err)
		err = config_from_wire(w->in_force, &m->in_force);
	if (err)
		goto out;
	m->id = w->id;
	m->time = w->time;
	m->n_limits = w->n_limits;
	for (size_t i = 0; i < w->n_limits; i++) {
		m->limits[i].field = w->limits[i]->field;
		m->limits[i].reason = w->limits[i]->reason;
		text_copy(m->limits[i].text, sizeof(m->limits[i].text), w->limits[i]->text);
	}
out:
	arena_fini(&a);
	return err;
}
