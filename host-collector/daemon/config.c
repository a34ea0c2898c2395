/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/daemon/config.h"

#include <errno.h>
#include <ini.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host-collector/daemon/config_check.h"
#include "host-collector/daemon/config_keys.h"

void vm_config_default(struct vm_config *out)
{
	struct decoder_budget budget = {0};

	decoder_budget_fill(&budget);
	memset(out, 0,
	       sizeof(*out)); /* a reload compares configurations with memcmp(), padding included */
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

int vm_config_set(struct vm_config *vm, const char *key, const char *value, char *why,
		  size_t why_bytes)
{
	return config_key_set(CONFIG_VM, vm, key, value, why, why_bytes);
}

/* ---- the file ---- */

struct reading {
	struct daemon_config *config;
	struct vm_config *vm;         /* of the section that is parsed */
	struct pair_definition *pair; /* of the section that is parsed */
	char section[80];
	char *why;
	size_t why_bytes;
};

/* Returns 1, or 0 with the reason in `why`. */
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

/* Returns 1, or 0 with the reason in `why`. */
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
		return !config_key_set(CONFIG_PAIR, r->pair, name, value, r->why, r->why_bytes);
	return r->vm ? !vm_config_set(r->vm, name, value, r->why, r->why_bytes)
		     : !config_key_set(CONFIG_DAEMON, r->config, name, value, r->why, r->why_bytes);
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
