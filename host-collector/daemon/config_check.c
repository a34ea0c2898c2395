/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/daemon/config_check.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>

#include "host-collector/fleet/host_facts.h"
#include "host-collector/link/address.h"
#include "proto/query/event_spec.h"

enum { REPORT_JOBS_MAX = 64 };

bool config_name_is_good(const char *name)
{
	static const char good[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				   "0123456789._-";

	return *name && *name != '.' && strlen(name) < DAEMON_NAME_MAX &&
	       strspn(name, good) == strlen(name);
}

/* ---- a VM ---- */

/* A limit below a millisecond would fire all the time. */
static int triggers_check(const struct vm_config *vm, char *why, size_t why_bytes)
{
	for (int t = 0; t < TRIGGER_COUNT; t++) {
		if (trigger_limit_kind((enum trigger)t) != LIMIT_TIME || !vm->triggers[t] ||
		    vm->triggers[t] >= 1000000)
			continue;
		snprintf(why, why_bytes, "VM %s: %s: at least 1ms, or no", vm->name,
			 trigger_name((enum trigger)t));
		return -EINVAL;
	}
	return 0;
}

/* Checks only the form. Whether this kernel has the events is checked when the VM is attached. */
static int events_check(const struct vm_config *vm, char *why, size_t why_bytes)
{
	struct event_spec *specs = calloc(EVENT_SPECS_MAX, sizeof(*specs));
	struct expr_error error = {0};
	size_t n = 0;
	int err;

	if (!specs)
		return -ENOMEM;
	err = *vm->events ? event_specs_parse(vm->events, specs, EVENT_SPECS_MAX, &n, &error) : 0;
	free(specs);
	if (err)
		snprintf(why, why_bytes, "VM %s: events, at character %zu: %s", vm->name,
			 error.at + 1, error.text);
	return err;
}

int vm_config_check(const struct vm_config *vm, char *why, size_t why_bytes)
{
	struct link_address address;
	char text[256];

	why[0] = 0;
	if (!config_name_is_good(vm->name))
		snprintf(why, why_bytes,
			 "`%.40s` cannot be a VM's name here: use up to %d letters, digits, . _ -",
			 vm->name, DAEMON_NAME_MAX - 1);
	else if (!vm->pid == !vm->qmp[0])
		snprintf(why, why_bytes, "VM %s: give either pid or qmp", vm->name);
	else if (vm->pid > INT32_MAX)
		snprintf(why, why_bytes, "VM %s: pid: no such process number", vm->name);
	else if (vm->cpu_permille > 64000)
		snprintf(why, why_bytes, "VM %s: decoder_cpu_permille: 1000 is one CPU", vm->name);
	else if (vm->flight && (vm->flight_ns < 1000000000 || vm->flight_bytes < 1 << 20))
		snprintf(why, why_bytes,
			 "VM %s: flight_time is at least 1s and flight_size at least 1M", vm->name);
	else if (vm->flight && vm->stall_ns < 1000000)
		snprintf(why, why_bytes, "VM %s: stall: at least 1ms", vm->name);
	else if (vm->guest_handlers_over_ns && vm->guest_level != CAPTURE_SUMMARY)
		snprintf(why, why_bytes, "VM %s: guest_handlers_over needs guest_level = summary",
			 vm->name);
	else if (vm->guest_handlers_over_ns > CONFIG_HANDLER_OVER_MAX_NS)
		snprintf(why, why_bytes, "VM %s: guest_handlers_over: at most 1s", vm->name);
	else if (vm->channel[0] && link_address_parse(vm->channel, &address, text, sizeof(text)))
		snprintf(why, why_bytes, "VM %s: channel: %s", vm->name, text);
	return why[0] || events_check(vm, why, why_bytes) || triggers_check(vm, why, why_bytes)
		       ? -EINVAL
		       : 0;
}

int vm_configs_check(const struct vm_config *a, const struct vm_config *b, char *why,
		     size_t why_bytes)
{
	uint32_t port_a, port_b, cid_a, cid_b;

	if (!strcmp(a->name, b->name) || !link_address_vsock(a->channel, &port_a, &cid_a) ||
	    !link_address_vsock(b->channel, &port_b, &cid_b) || port_a != port_b || cid_a != cid_b)
		return 0;
	snprintf(why, why_bytes,
		 "VM %s: channel: VM %s waits for the same guests on vsock port %u; give each VM "
		 "its own vsock:CID:%u",
		 b->name, a->name, port_b, port_b);
	return -EINVAL;
}

/* ---- the daemon ---- */

/* Writes a size as a user writes it in the file. */
static void size_write(uint64_t bytes, char out[32])
{
	if (bytes % (1 << 20))
		snprintf(out, 32, "%lluK", (unsigned long long)(bytes + 1023) >> 10);
	else
		snprintf(out, 32, "%lluM", (unsigned long long)bytes >> 20);
}

/* Each file begins with the content of the flight recorder, so it must be larger than that. */
static int file_bytes_check(const struct daemon_config *c, const struct vm_config *vm, char *why,
			    size_t why_bytes)
{
	char flight[32], least[32];

	if (!vm->flight || c->file_bytes / 2 >= vm->flight_bytes)
		return 0;
	size_write(vm->flight_bytes, flight);
	size_write(2 * vm->flight_bytes, least);
	snprintf(why, why_bytes,
		 "file_size: at least twice flight_size, which is %s for %s%s: write file_size = "
		 "%s or more, or a smaller flight_size",
		 flight, vm->name[0] ? "VM " : "a VM that is attached later", vm->name, least);
	return -EINVAL;
}

/* Moves to the next word of a list. Returns its length, 0 at the end of the list. */
static size_t word_next(const char **list)
{
	*list += strspn(*list, ", \t");
	return strcspn(*list, ", \t");
}

bool daemon_config_discovers(const struct daemon_config *c, const char *what)
{
	const char *list = c->discover;
	size_t len;

	for (; (len = word_next(&list)); list += len) {
		if (len == strlen(what) && !strncmp(list, what, len))
			return true;
	}
	return false;
}

void daemon_config_agents(const struct daemon_config *c, char *out, size_t out_bytes)
{
	const char *name = strrchr(c->control, '/');

	if (c->agents[0])
		snprintf(out, out_bytes, "%s", c->agents);
	else
		snprintf(out, out_bytes, "%.*sagents.sock", name ? (int)(name + 1 - c->control) : 0,
			 c->control);
}

static int attach_check(const struct daemon_config *c, char *why, size_t why_bytes)
{
	char agents[DAEMON_PATH_MAX];

	if (strcmp(c->libvirt_attach, "no") && strcmp(c->libvirt_attach, "all") &&
	    strcmp(c->libvirt_attach, "labelled")) {
		snprintf(why, why_bytes, "libvirt_attach: `%.40s`: write no, all or labelled",
			 c->libvirt_attach);
		return -EINVAL;
	}
	if (!strcmp(c->libvirt_attach, "no"))
		return 0;
	if (!strcmp(c->libvirt, "no") || !daemon_config_discovers(c, "libvirt")) {
		snprintf(why, why_bytes,
			 "libvirt_attach: no domain is found: write libvirt = auto, and discover "
			 "with libvirt in it");
		return -EINVAL;
	}
	daemon_config_agents(c, agents, sizeof(agents));
	if (agents[0] == '/' && !agents[strcspn(agents, "<>&'\"")])
		return 0;
	snprintf(why, why_bytes,
		 "libvirt_attach: QEMU connects to the socket `agents`: write its path from the "
		 "root, without < > & ' \"");
	return -EINVAL;
}

static int discover_check(const struct daemon_config *c, char *why, size_t why_bytes)
{
	const char *list = c->discover;
	size_t len;

	for (; (len = word_next(&list)); list += len) {
		if ((len == 7 && !strncmp(list, "libvirt", 7)) ||
		    (len == 3 && !strncmp(list, "kvm", 3)))
			continue;
		snprintf(why, why_bytes, "discover: `%.*s`: write libvirt, kvm or both", (int)len,
			 list);
		return -EINVAL;
	}
	if (c->discover_per_user < 1 || c->discover_per_user > DAEMON_VMS_MAX) {
		snprintf(why, why_bytes, "discover_per_user: 1 to %d", DAEMON_VMS_MAX);
		return -EINVAL;
	}
	return 0;
}

static int outbox_check(const struct daemon_config *c, char *why, size_t why_bytes)
{
	struct host_facts facts;

	why[0] = 0;
	if (c->outbox_budget_bytes < 16 << 20)
		snprintf(why, why_bytes, "outbox_budget: at least 16M");
	else if (!c->outbox_rate || c->outbox_rate > 1000000)
		snprintf(why, why_bytes, "outbox_rate: 1 to 1000000 per minute");
	else if (c->figures_every_ns && c->figures_every_ns != UINT64_MAX &&
		 (c->figures_every_ns < 10000000000 || c->figures_every_ns > 86400000000000))
		snprintf(why, why_bytes, "figures_every: 10s to 24h, or no");
	else if (c->ship_timeout_ns < 1000000000)
		snprintf(why, why_bytes, "ship_timeout: at least 1s");
	else if (host_labels_parse(c->labels, &facts, why, why_bytes))
		return -EINVAL;
	return why[0] ? -EINVAL : 0;
}

static int pairs_check(const struct daemon_config *c, char *why, size_t why_bytes)
{
	char text[256];

	for (size_t i = 0; i < c->n_pairs; i++) {
		if (!pair_definition_check(&c->pairs[i], text, sizeof(text)))
			continue;
		snprintf(why, why_bytes, "pair %s: %s", c->pairs[i].name, text);
		return -EINVAL;
	}
	return 0;
}

static int page_check(const struct daemon_config *c, char *why, size_t why_bytes)
{
	if (!strncmp(c->page, "listen:tcp:", 11) && !*c->page_token) {
		snprintf(why, why_bytes,
			 "page: over TCP it needs page_token, a file with a token; without one, "
			 "listen:unix:PATH");
		return -EINVAL;
	}
	return 0;
}

int daemon_config_check(const struct daemon_config *c, char *why, size_t why_bytes)
{
	const size_t socket_max = sizeof(((struct sockaddr_un *)0)->sun_path);
	struct vm_config any;

	if (!c->control[0] || strlen(c->control) >= socket_max) {
		snprintf(why, why_bytes, "control: a socket's path has 1 to %zu characters",
			 socket_max - 1);
		return -EINVAL;
	}
	if (c->file_bytes < 1 << 20) {
		snprintf(why, why_bytes, "file_size: at least 1M");
		return -EINVAL;
	}
	if (c->disk_budget_bytes < 2 * c->file_bytes) {
		snprintf(why, why_bytes, "disk_budget: at least twice file_size (%llu)",
			 (unsigned long long)c->file_bytes);
		return -EINVAL;
	}
	if (c->file_ns < 1000000000) {
		snprintf(why, why_bytes, "file_time: at least 1s");
		return -EINVAL;
	}
	if (!c->report_jobs || c->report_jobs > REPORT_JOBS_MAX) {
		snprintf(why, why_bytes, "report_jobs: 1 to %d", REPORT_JOBS_MAX);
		return -EINVAL;
	}
	if (attach_check(c, why, why_bytes) || discover_check(c, why, why_bytes) ||
	    outbox_check(c, why, why_bytes) || pairs_check(c, why, why_bytes) ||
	    page_check(c, why, why_bytes))
		return -EINVAL;
	if (!c->n_vms) {
		vm_config_default(&any);
		if (file_bytes_check(c, &any, why, why_bytes))
			return -EINVAL;
	}
	for (size_t i = 0; i < c->n_vms; i++) {
		int err = vm_config_check(&c->vms[i], why, why_bytes);

		for (size_t j = 0; j < i && !err; j++)
			err = vm_configs_check(&c->vms[j], &c->vms[i], why, why_bytes);
		if (!err)
			err = file_bytes_check(c, &c->vms[i], why, why_bytes);
		if (err)
			return err;
	}
	return 0;
}
