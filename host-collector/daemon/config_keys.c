/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/daemon/config_keys.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "host-collector/daemon/config.h"
#include "proto/program/suggest.h"
#include "proto/program/value.h"

enum key_type {
	KEY_TEXT,
	KEY_NUMBER,
	KEY_BYTES,
	KEY_DURATION,
	KEY_FLAG,
	KEY_NAME,
	KEY_OWNER,
	KEY_MANAGER,
	KEY_LEVEL,
	KEY_BACKEND,
	/* Of a trigger (daemon/trigger.h); `no` is 0. */
	KEY_LIMIT_TIME,
	KEY_LIMIT_PERCENT,
	KEY_LIMIT_FLAG,
};

struct key {
	const char *name;
	enum key_type type;
	size_t offset;
};

#define DAEMON(field) offsetof(struct daemon_config, field)
static const struct key daemon_keys[] = {
	{"control", KEY_TEXT, DAEMON(control)},
	{"metrics", KEY_TEXT, DAEMON(metrics)},
	{"metrics_file", KEY_TEXT, DAEMON(metrics_file)},
	{"metrics_vm", KEY_FLAG, DAEMON(metrics_vm)},
	{"page", KEY_TEXT, DAEMON(page)},
	{"page_token", KEY_TEXT, DAEMON(page_token)},
	{"page_hosts", KEY_TEXT, DAEMON(page_hosts)},
	{"agents", KEY_TEXT, DAEMON(agents)},
	{"libvirt", KEY_TEXT, DAEMON(libvirt)},
	{"libvirt_attach", KEY_NAME, DAEMON(libvirt_attach)},
	{"discover", KEY_TEXT, DAEMON(discover)},
	{"discover_users", KEY_TEXT, DAEMON(discover_users)},
	{"discover_per_user", KEY_NUMBER, DAEMON(discover_per_user)},
	{"directory", KEY_TEXT, DAEMON(directory)},
	{"disk_budget", KEY_BYTES, DAEMON(disk_budget_bytes)},
	{"disk_reserve", KEY_BYTES, DAEMON(disk_reserve_bytes)},
	{"file_size", KEY_BYTES, DAEMON(file_bytes)},
	{"file_time", KEY_DURATION, DAEMON(file_ns)},
	{"incidents_budget", KEY_BYTES, DAEMON(incidents_budget_bytes)},
	{"incident_gap", KEY_DURATION, DAEMON(incident_gap_ns)},
	{"report_jobs", KEY_NUMBER, DAEMON(report_jobs)},
	{"on_incident", KEY_TEXT, DAEMON(on_incident)},
	{"outbox", KEY_FLAG, DAEMON(outbox)},
	{"outbox_guest_text", KEY_FLAG, DAEMON(outbox_guest_text)},
	{"outbox_budget", KEY_BYTES, DAEMON(outbox_budget_bytes)},
	{"outbox_keep", KEY_DURATION, DAEMON(outbox_keep_ns)},
	{"outbox_rate", KEY_NUMBER, DAEMON(outbox_rate)},
	{"figures_every", KEY_LIMIT_TIME, DAEMON(figures_every_ns)},
	{"labels", KEY_TEXT, DAEMON(labels)},
	{"ship", KEY_TEXT, DAEMON(ship)},
	{"ship_user", KEY_NAME, DAEMON(ship_user)},
	{"ship_timeout", KEY_DURATION, DAEMON(ship_timeout_ns)},
	{"ship_evidence", KEY_FLAG, DAEMON(ship_evidence)},
};

#define VM(field) offsetof(struct vm_config, field)
static const struct key vm_keys[] = {
	{"pid", KEY_NUMBER, VM(pid)},
	{"qmp", KEY_TEXT, VM(qmp)},
	{"channel", KEY_TEXT, VM(channel)},
	{"record", KEY_FLAG, VM(record)},
	{"level", KEY_LEVEL, VM(level)},
	{"backend", KEY_BACKEND, VM(backend)},
	{"stacks_over", KEY_DURATION, VM(stacks_over_ns)},
	{"events", KEY_TEXT, VM(events)},
	{"guest_level", KEY_LEVEL, VM(guest_level)},
	{"guest_handlers_over", KEY_DURATION, VM(guest_handlers_over_ns)},
	{"detail_rate", KEY_NUMBER, VM(detail_rate)},
	{"flight", KEY_FLAG, VM(flight)},
	{"flight_time", KEY_DURATION, VM(flight_ns)},
	{"flight_size", KEY_BYTES, VM(flight_bytes)},
	{"stall", KEY_DURATION, VM(stall_ns)},
	{"owner", KEY_OWNER, VM(owner)},
	{"manager", KEY_MANAGER, VM(manager)},
#define X(NAME, name, limit, ...) {name, KEY_##limit, VM(triggers[TRIGGER_##NAME])},
	TRIGGERS(X)
#undef X
		{"psk", KEY_TEXT, VM(psk)},
	{"psk_identity", KEY_NAME, VM(psk_identity)},
	{"insecure_plain_tcp", KEY_FLAG, VM(insecure_plain_tcp)},
	{"channel_rate", KEY_BYTES, VM(bytes_per_s)},
	{"decoder_memory", KEY_BYTES, VM(memory_bytes)},
	{"decoder_cpu_permille", KEY_NUMBER, VM(cpu_permille)},
};

#define PAIR(field) offsetof(struct pair_definition, field)
static const struct key pair_keys[] = {
	{"from", KEY_TEXT, PAIR(from)},
	{"to", KEY_TEXT, PAIR(to)},
	{"key", KEY_TEXT, PAIR(key)},
	{"than", KEY_DURATION, PAIR(than_ns)},
};
_Static_assert((int)PAIR_EVENT_BYTES == (int)DAEMON_PATH_MAX,
	       "KEY_TEXT sets DAEMON_PATH_MAX bytes");

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static const struct {
	const struct key *keys;
	size_t n;
} sections[] = {
	[CONFIG_DAEMON] = {daemon_keys, COUNT(daemon_keys)},
	[CONFIG_VM] = {vm_keys, COUNT(vm_keys)},
	[CONFIG_PAIR] = {pair_keys, COUNT(pair_keys)},
};

static int limit_time_parse(const char *text, uint64_t *out)
{
	*out = 0;
	return strcmp(text, "no") ? duration_parse(text, out) : 0;
}

static int limit_percent_parse(const char *text, uint64_t *out)
{
	*out = 0;
	if (!strcmp(text, "no"))
		return 0;
	return percent_parse(text, out) || !*out ? -EINVAL : 0;
}

static int limit_flag_parse(const char *text, uint64_t *out)
{
	bool flag = false;
	int err = flag_parse(text, &flag);

	*out = flag;
	return err;
}

static int level_parse(const char *text, enum capture_level *out)
{
	*out = strcmp(text, "summary") ? CAPTURE_DETAIL : CAPTURE_SUMMARY;
	return *out == CAPTURE_SUMMARY || !strcmp(text, "detail") ? 0 : -EINVAL;
}

static int text_take(const char *text, char *out, size_t out_bytes)
{
	if (strlen(text) >= out_bytes)
		return -EINVAL;
	snprintf(out, out_bytes, "%s", text);
	return 0;
}

enum config_value config_key_value(enum config_section section, const char *name)
{
	const struct key *k = sections[section].keys;
	const struct key *end = k + sections[section].n;

	while (k < end && strcmp(k->name, name))
		k++;
	if (k == end)
		return CONFIG_VALUE_UNKNOWN;
	switch (k->type) {
	case KEY_NUMBER:
	case KEY_BYTES:
	case KEY_DURATION:
	case KEY_FLAG:
	case KEY_LEVEL:
	case KEY_BACKEND:
	case KEY_LIMIT_TIME:
	case KEY_LIMIT_PERCENT:
	case KEY_LIMIT_FLAG:
		return CONFIG_VALUE_PLAIN;
	default:
		return CONFIG_VALUE_TEXT;
	}
}

int config_key_set(enum config_section section, void *to, const char *name, const char *value,
		   char *why, size_t why_bytes)
{
	static const char *const wants[] = {
		[KEY_TEXT] = "a text of at most 255 characters",
		[KEY_NUMBER] = "a number",
		[KEY_BYTES] = "a size such as 256M or 10G",
		[KEY_DURATION] = "a time such as 20ms, 10s or 60m",
		[KEY_FLAG] = "yes or no",
		[KEY_NAME] = "a text of at most 63 characters",
		[KEY_OWNER] = "a text of at most 127 characters",
		[KEY_MANAGER] = "a text of at most 31 characters",
		[KEY_LEVEL] = "detail or summary",
		[KEY_BACKEND] = "auto, bpf or perf",
		[KEY_LIMIT_TIME] = "a time such as 500ms or 2s, or no",
		[KEY_LIMIT_PERCENT] = "a share from 1% to 100%, or no",
		[KEY_LIMIT_FLAG] = "yes or no",
	};
	const struct key *keys = sections[section].keys;
	const size_t n = sections[section].n;
	struct suggest s;
	size_t i = 0;
	void *field;
	int err;

	suggest_begin(&s, name, strlen(name));
	for (; i < n && strcmp(keys[i].name, name); i++)
		suggest_try(&s, keys[i].name);
	if (i == n && s.best)
		snprintf(why, why_bytes, "%.40s: unknown key; did you mean %s?", name, s.best);
	else if (i == n)
		snprintf(why, why_bytes, "%.40s: unknown key; see docs/daemon.md", name);
	if (i == n)
		return -EINVAL;
	field = (char *)to + keys[i].offset;
	switch (keys[i].type) {
	case KEY_TEXT:
		err = text_take(value, field, DAEMON_PATH_MAX);
		break;
	case KEY_NUMBER:
		err = number_parse(value, field);
		break;
	case KEY_BYTES:
		err = size_parse(value, field);
		break;
	case KEY_DURATION:
		err = duration_parse(value, field);
		break;
	case KEY_NAME:
		err = text_take(value, field, DAEMON_NAME_MAX);
		break;
	case KEY_OWNER:
		err = text_take(value, field, sizeof(((struct vm_config *)0)->owner));
		break;
	case KEY_MANAGER:
		err = text_take(value, field, sizeof(((struct vm_config *)0)->manager));
		break;
	case KEY_FLAG:
		err = flag_parse(value, field);
		break;
	case KEY_BACKEND:
		err = backend_choice_parse(value, field);
		break;
	case KEY_LIMIT_TIME:
		err = limit_time_parse(value, field);
		break;
	case KEY_LIMIT_PERCENT:
		err = limit_percent_parse(value, field);
		break;
	case KEY_LIMIT_FLAG:
		err = limit_flag_parse(value, field);
		break;
	default:
		err = level_parse(value, field);
		break;
	}
	if (err)
		snprintf(why, why_bytes, "%s: `%.60s` is wrong: write %s", name, value,
			 wants[keys[i].type]);
	return err ? -EINVAL : 0;
}
