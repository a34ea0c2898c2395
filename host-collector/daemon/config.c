/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/daemon/config.h"

#include <errno.h>
#include <ini.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host-collector/daemon/config_check.h"
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
	/* A trigger's (daemon/trigger.h). */
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
	{"figures_every", KEY_DURATION, DAEMON(figures_every_ns)},
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

void vm_config_default(struct vm_config *out)
{
	struct decoder_budget budget = {0};

	decoder_budget_fill(&budget);
	memset(out, 0, sizeof(*out)); /* a reload compares them, padding too */
	out->level = CAPTURE_DETAIL;
	out->detail_rate = 300000;
	out->flight = true;
	out->flight_ns = 30ull * 1000000000;
	out->flight_bytes = 16 << 20;
	out->stall_ns = 100ull * 1000000;
	trigger_limits_default(out->triggers);
	out->bytes_per_s = budget.bytes_per_s;
	out->memory_bytes = budget.memory_bytes;
	out->cpu_permille = budget.cpu_permille;
}

void daemon_config_default(struct daemon_config *out)
{
	memset(out, 0, sizeof(*out));
	snprintf(out->control, sizeof(out->control), DAEMON_CONTROL_PATH);
	snprintf(out->libvirt, sizeof(out->libvirt), "auto");
	snprintf(out->libvirt_attach, sizeof(out->libvirt_attach), "no");
	snprintf(out->discover, sizeof(out->discover), "libvirt");
	snprintf(out->discover_users, sizeof(out->discover_users), "root,libvirt-qemu");
	out->discover_per_user = DAEMON_VMS_MAX / 2;
	snprintf(out->directory, sizeof(out->directory), "/var/lib/vcpuscope");
	out->disk_budget_bytes = 10ull << 30;
	out->disk_reserve_bytes = 1ull << 30;
	out->file_bytes = 256 << 20;
	out->file_ns = 3600ull * 1000000000;
	out->incidents_budget_bytes = 1ull << 30;
	out->incident_gap_ns = 60ull * 1000000000;
	out->report_jobs = 2;
	out->outbox = true;
	out->outbox_budget_bytes = 512 << 20;
	out->outbox_keep_ns = 24ull * 3600 * 1000000000;
	out->outbox_rate = 600;
	out->figures_every_ns = UINT64_MAX;
	out->metrics_vm = true;
	snprintf(out->ship_user, sizeof(out->ship_user), "vcpuscope-ship");
	out->ship_timeout_ns = 60ull * 1000000000;
}

uint64_t daemon_config_figures_ns(const struct daemon_config *c)
{
	if (c->figures_every_ns != UINT64_MAX)
		return c->figures_every_ns;
	return *c->ship ? 300ull * 1000000000 : 0;
}

void daemon_config_fini(struct daemon_config *c)
{
	free(c->vms);
	c->vms = NULL;
	c->n_vms = 0;
}

int daemon_config_copy(const struct daemon_config *from, struct daemon_config *out)
{
	*out = *from;
	out->vms = NULL;
	if (!from->n_vms)
		return 0;
	out->vms = malloc(from->n_vms * sizeof(*out->vms));
	out->n_vms = out->vms ? from->n_vms : 0;
	if (!out->vms)
		return -ENOMEM;
	memcpy(out->vms, from->vms, from->n_vms * sizeof(*out->vms));
	return 0;
}

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

static int key_set(const struct key *keys, size_t n, void *to, const char *name, const char *value,
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

int vm_config_set(struct vm_config *vm, const char *key, const char *value, char *why,
		  size_t why_bytes)
{
	return key_set(vm_keys, COUNT(vm_keys), vm, key, value, why, why_bytes);
}

/* ---- the file ---- */

struct reading {
	struct daemon_config *config;
	struct vm_config *vm;         /* of the section */
	struct pair_definition *pair; /* of the section */
	char section[80];
	char *why;
	size_t why_bytes;
};

/* 1 or, with `why`, 0. */
static int pair_enter(struct reading *r, const char *name)
{
	struct daemon_config *c = r->config;

	for (size_t i = 0; i < c->n_pairs; i++) {
		if (strcmp(c->pairs[i].name, name))
			continue;
		snprintf(r->why, r->why_bytes, "[pair %s]: twice; give each pair one section",
			 name);
		return 0;
	}
	if (c->n_pairs == PAIR_WATCH_MAX) {
		snprintf(r->why, r->why_bytes, "[pair %s]: more than %d pairs", name,
			 PAIR_WATCH_MAX);
		return 0;
	}
	r->pair = &c->pairs[c->n_pairs++];
	snprintf(r->pair->name, sizeof(r->pair->name), "%s", name);
	return 1;
}

/* 1 or, with `why`, 0. */
static int section_enter(struct reading *r, const char *section)
{
	struct daemon_config *c = r->config;
	struct vm_config *vms;

	if (strlen(section) >= sizeof(r->section)) {
		snprintf(r->why, r->why_bytes, "[%.40s..]: the section's name is too long",
			 section);
		return 0;
	}
	snprintf(r->section, sizeof(r->section), "%s", section);
	r->vm = NULL;
	r->pair = NULL;
	if (!strcmp(section, "daemon"))
		return 1;
	if (!strncmp(section, "pair ", 5) && config_name_is_good(section + 5))
		return pair_enter(r, section + 5);
	if (strncmp(section, "vm ", 3) || !config_name_is_good(section + 3)) {
		snprintf(r->why, r->why_bytes,
			 "[%.40s]: no such section: there are [daemon], [vm NAME] and [pair NAME], "
			 "NAME of letters, digits, . _ -",
			 section);
		return 0;
	}
	if (c->n_vms == DAEMON_VMS_MAX) {
		snprintf(r->why, r->why_bytes, "[%s]: more than %d VMs", section, DAEMON_VMS_MAX);
		return 0;
	}
	for (size_t i = 0; i < c->n_vms; i++) {
		if (strcmp(c->vms[i].name, section + 3))
			continue;
		snprintf(r->why, r->why_bytes, "[%s]: twice; give each VM one section", section);
		return 0;
	}
	vms = realloc(c->vms, (c->n_vms + 1) * sizeof(*vms));
	if (!vms) {
		snprintf(r->why, r->why_bytes, "[%s]: out of memory", section);
		return 0;
	}
	c->vms = vms;
	r->vm = &c->vms[c->n_vms++];
	vm_config_default(r->vm);
	snprintf(r->vm->name, sizeof(r->vm->name), "%s", section + 3);
	return 1;
}

static int on_key(void *context, const char *section, const char *name, const char *value)
{
	struct reading *r = context;

	if (*r->why)
		return 0; /* only the first error is reported */
	if (strcmp(r->section, section) && !section_enter(r, section))
		return 0;
	if (!*section) {
		snprintf(r->why, r->why_bytes, "%.40s: begin with [daemon] or [vm NAME]", name);
		return 0;
	}
	if (r->pair)
		return !key_set(pair_keys, COUNT(pair_keys), r->pair, name, value, r->why,
				r->why_bytes);
	return r->vm ? !vm_config_set(r->vm, name, value, r->why, r->why_bytes)
		     : !key_set(daemon_keys, COUNT(daemon_keys), r->config, name, value, r->why,
				r->why_bytes);
}

int daemon_config_read(const char *path, struct daemon_config *out, char *why, size_t why_bytes)
{
	char inner[320] = "";
	struct reading r = {.config = out, .why = inner, .why_bytes = sizeof(inner)};
	FILE *file = fopen(path, "re");
	int line, err;

	daemon_config_default(out);
	if (!file) {
		err = -errno;
		snprintf(why, why_bytes, "%s: %s", path, strerror(-err));
		return err;
	}
	line = ini_parse_file(file, on_key, &r);
	fclose(file);
	if (line) {
		snprintf(why, why_bytes, "%s:%d: %s", path, line > 0 ? line : 0,
			 *inner ? inner : "neither [section] nor KEY = VALUE");
		return -EINVAL;
	}
	err = daemon_config_check(out, inner, sizeof(inner));
	if (err)
		snprintf(why, why_bytes, "%s: %s", path, inner);
	return err;
}
