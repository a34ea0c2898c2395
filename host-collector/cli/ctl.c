/* SPDX-License-Identifier: GPL-2.0-only */
/* `vcpuscope ctl`: controls the running daemon and shows its state. */
#include <json.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "host-collector/cli/commands.h"
#include "host-collector/cli/list_all.h"
#include "host-collector/daemon/config.h"
#include "host-collector/daemon/control.h"
#include "host-collector/record/collector.h"
#include "host-collector/util/escape.h"
#include "host-collector/util/json_get.h"
#include "proto/program/suggest.h"

enum { WORDS_MAX = 16 };

struct ctl_arguments {
	const char *control; /* NULL: the default; `list --all` then needs no daemon */
	const char *format;
	struct option_list words; /* the verb and its operands */
	bool all;                 /* list: look at this machine instead of asking the daemon */
};

static const char *text_of(struct json_object *o, const char *name)
{
	struct json_object *value = json_get(o, name);

	return value ? json_object_get_string(value) : "-";
}

/* For a terminal: an agent's version, for one, is what a guest wrote. */
static struct escaped shown(struct json_object *o, const char *name)
{
	return escape(text_of(o, name));
}

/* "pvclock +-0.1 us": how the guest's times are known. */
static const char *clock_text(struct json_object *vm, char *out, size_t out_bytes)
{
	if (!strcmp(text_of(vm, "clock"), "-"))
		return "-";
	if (!strcmp(text_of(vm, "clock"), "untrusted"))
		return "not proven";
	snprintf(out, out_bytes, "%s +-%.1f us", text_of(vm, "clock"),
		 (double)json_get_uint(vm, "clock_error_ns") / 1000);
	return out;
}

static void list_show(struct json_object *reply)
{
	printf("%-20s %-8s %5s %-8s %-13s %-8s %-22s %8s\n", "VM", "STATE", "VCPUS", "CHANNEL",
	       "CARRIER", "AGENT", "CLOCK", "LOST");
	for (size_t i = 0; i < json_get_length(reply, "vms"); i++) {
		struct json_object *vm = json_get_element(reply, "vms", i);
		const bool silent = !strcmp(text_of(vm, "channel"), "ok") &&
				    json_get_uint(vm, "agent_silent_ms") >= COLLECTOR_SILENT_MS;
		char clock[64];

		printf("%-20s %-8s %5llu %-8s %-13s %-8s %-22s %8llu\n", shown(vm, "vm").text,
		       text_of(vm, "state"), (unsigned long long)json_get_uint(vm, "vcpus"),
		       silent ? "silent" : text_of(vm, "channel"), text_of(vm, "carrier"),
		       shown(vm, "agent").text, clock_text(vm, clock, sizeof(clock)),
		       (unsigned long long)(json_get_uint(vm, "host_dropped") +
					    json_get_uint(vm, "guest_dropped")));
		if (silent)
			printf("  agent silent for %llu s\n",
			       (unsigned long long)json_get_uint(vm, "agent_silent_ms") / 1000);
		if (!strcmp(text_of(vm, "origin"), "kvm"))
			printf("  found by KVM: %s of uid %llu\n", shown(vm, "vmm").text,
			       (unsigned long long)json_get_uint(vm, "uid"));
		if (strcmp(text_of(vm, "why"), "-"))
			printf("  %s\n", shown(vm, "why").text);
		if (strcmp(text_of(vm, "channel_error"), "-"))
			printf("  channel: %s; tried again\n", shown(vm, "channel_error").text);
		if (!strcmp(text_of(vm, "recording"), "true"))
			printf("  recording to %s\n", shown(vm, "file").text);
		if (strcmp(text_of(vm, "recording_error"), "-"))
			printf("  not recording now: %s\n", text_of(vm, "recording_error"));
	}
}

static void outbox_show(struct json_object *reply)
{
	struct json_object *outbox = json_get(reply, "outbox");

	if (!outbox)
		return;
	printf("outbox: %.1f MiB, %llu segments and recordings wait, lost %llu incidents and %llu "
	       "figures\n",
	       (double)json_get_uint(outbox, "bytes") / (1 << 20),
	       (unsigned long long)json_get_uint(outbox, "waiting"),
	       (unsigned long long)json_get_uint(outbox, "incidents_lost"),
	       (unsigned long long)json_get_uint(outbox, "figures_lost"));
	if (json_get_uint(outbox, "refused"))
		printf("  the disk refuses to complete %llu segments: %s; tried again\n",
		       (unsigned long long)json_get_uint(outbox, "refused"),
		       shown(outbox, "refused_error").text);
	if (strcmp(text_of(outbox, "error"), "-") &&
	    strcmp(text_of(outbox, "error"), text_of(outbox, "refused_error")))
		printf("  not writing now: %s\n", shown(outbox, "error").text);
}

static void status_show(struct json_object *reply)
{
	struct json_object *capture = json_get(reply, "capture");

	printf("vcpuscope %s, up %.1f s, %llu VMs\n", text_of(reply, "version"),
	       (double)json_get_uint(reply, "uptime_ms") / 1000,
	       (unsigned long long)json_get_uint(reply, "vms"));
	printf("CPU %.3f s, memory %.1f MiB, %llu descriptors\n",
	       (double)json_get_uint(reply, "cpu_ns") / 1e9,
	       (double)json_get_uint(reply, "rss_bytes") / (1 << 20),
	       (unsigned long long)json_get_uint(reply, "descriptors"));
	printf("loop late by %llu ms at most (ever %llu ms, %llu ms without its waits for a CPU), "
	       "decoders died %llu times\n",
	       (unsigned long long)json_get_uint(reply, "loop_lag_ms"),
	       (unsigned long long)json_get_uint(reply, "loop_lag_ever_ms"),
	       (unsigned long long)json_get_uint(reply, "loop_lag_own_ever_ms"),
	       (unsigned long long)json_get_uint(reply, "decoder_deaths"));
	printf("the host's events: %llu for %llu VMs from %llu captures, lost %llu\n",
	       (unsigned long long)json_get_uint(capture, "emitted"),
	       (unsigned long long)json_get_uint(capture, "vms"),
	       (unsigned long long)json_get_uint(capture, "captures"),
	       (unsigned long long)(json_get_uint(capture, "dropped") +
				    json_get_uint(capture, "missed")));
	printf("recordings in %s: %.1f MiB\n", text_of(reply, "directory"),
	       (double)json_get_uint(reply, "recordings_bytes") / (1 << 20));
	outbox_show(reply);
	if (json_get_uint(reply, "incidents_waiting") || json_get_uint(reply, "reports_running"))
		printf("incidents whose reports are being made: %llu, and %llu wait\n",
		       (unsigned long long)json_get_uint(reply, "reports_running"),
		       (unsigned long long)json_get_uint(reply, "incidents_waiting"));
}

static void snapshot_show(struct json_object *reply)
{
	printf("%s\n", text_of(reply, "directory"));
}

static const struct verb {
	const char *name;
	const char *wants; /* operands, as messages show them */
	size_t least, most;
	void (*show)(struct json_object *reply);
} verbs[] = {
	{"list", "", 0, 0, list_show},
	{"status", "", 0, 0, status_show},
	{"attach", "VM KEY=VALUE...", 2, WORDS_MAX, NULL},
	{"detach", "VM", 1, 1, NULL},
	{"record", "VM start|stop", 2, 2, NULL},
	{"level", "VM detail|summary", 2, 2, NULL},
	{"snapshot", "VM", 1, 1, snapshot_show},
	{"rescan", "", 0, 0, NULL},
	{"reload", "", 0, 0, NULL},
	{"stop", "", 0, 0, NULL},
};

/* Makes the daemon's request. Reports a word that is not KEY=VALUE and returns NULL. */
static struct json_object *request_make(const struct command *self, const struct verb *verb,
					const struct ctl_arguments *a)
{
	struct json_object *request = json_object_new_object();
	const char *const *words = a->words.items;
	const size_t n = a->words.n;

	json_object_object_add(request, "command", json_object_new_string(verb->name));
	if (n > 1)
		json_object_object_add(request, "vm", json_object_new_string(words[1]));
	if (n == 3 && strcmp(verb->name, "attach"))
		json_object_object_add(request, "what", json_object_new_string(words[2]));
	for (size_t i = 2; i < n && !strcmp(verb->name, "attach"); i++) {
		const char *equals = strchr(words[i], '=');
		char key[64];

		if (!equals || (size_t)(equals - words[i]) >= sizeof(key)) {
			fprintf(stderr,
				"vcpuscope %s: %s: expected KEY=VALUE, see docs/daemon.md\n",
				self->name, words[i]);
			json_object_put(request);
			return NULL;
		}
		snprintf(key, sizeof(key), "%.*s", (int)(equals - words[i]), words[i]);
		json_object_object_add(request, key, json_object_new_string(equals + 1));
	}
	return request;
}

static int reply_show(const struct command *self, const struct verb *verb, const char *format,
		      struct json_object *reply)
{
	if (!json_object_get_boolean(json_get(reply, "ok"))) {
		fprintf(stderr, "vcpuscope %s: %s\n", self->name, shown(reply, "error").text);
		return COMMAND_TROUBLE;
	}
	if (!strcmp(format, "json"))
		puts(json_object_to_json_string_ext(reply, JSON_C_TO_STRING_PLAIN));
	else if (verb->show)
		verb->show(reply);
	return COMMAND_OK;
}

/* Reports an unknown or missing verb. */
static const struct verb *verb_find(const char *name)
{
	struct suggest s;

	suggest_begin(&s, name, strlen(name));
	for (size_t i = 0; i < sizeof(verbs) / sizeof(verbs[0]); i++) {
		if (!strcmp(verbs[i].name, name))
			return &verbs[i];
		suggest_try(&s, verbs[i].name);
	}
	if (s.best)
		fprintf(stderr, "vcpuscope ctl: unknown verb '%s'; did you mean '%s'?\n", name,
			s.best);
	else
		fprintf(stderr, "vcpuscope ctl: unknown verb '%s'; see `vcpuscope ctl --help`\n",
			name);
	return NULL;
}

/* Asks the daemon for what the words say. */
static int words_run(const struct command *self, const struct ctl_arguments *a)
{
	const struct verb *verb = verb_find(a->words.items[0]);
	struct json_object *request, *reply;
	char why[512];
	int err;

	if (!verb)
		return COMMAND_USAGE;
	if (a->words.n - 1 < verb->least || a->words.n - 1 > verb->most) {
		fprintf(stderr, "usage: vcpuscope %s%s %s\n", self == &command_ctl ? "ctl " : "",
			verb->name, verb->wants);
		return COMMAND_USAGE;
	}
	request = request_make(self, verb, a);
	if (!request)
		return COMMAND_USAGE;
	err = control_ask(a->control ? a->control : DAEMON_CONTROL_PATH, request, &reply, why,
			  sizeof(why));
	json_object_put(request);
	if (err) {
		fprintf(stderr, "vcpuscope %s: %s\n", self->name, why);
		return COMMAND_TROUBLE;
	}
	err = reply_show(self, verb, a->format, reply);
	json_object_put(reply);
	return err;
}

static int ctl_run(const struct command *self, int argc, char **argv)
{
	struct ctl_arguments a = {.format = "text"};

	if (options_read(self, argc, argv, &a))
		return COMMAND_USAGE;
	return words_run(self, &a);
}

/* A command that is one verb: `vcpuscope snapshot VM` is `vcpuscope ctl snapshot VM`. */
static int verb_run(const struct command *self, int argc, char **argv)
{
	struct ctl_arguments a = {.format = "text", .words = {.items = {self->name}, .n = 1}};

	if (options_read(self, argc, argv, &a))
		return COMMAND_USAGE;
	return a.all ? list_all(a.control, a.format) : words_run(self, &a);
}

#define ROW(field) offsetof(struct ctl_arguments, field)
#define CONTROL_ROWS                                                                               \
	{.name = "control",                                                                        \
	 .type = OPTION_STRING,                                                                    \
	 .offset = ROW(control),                                                                   \
	 .value = "PATH",                                                                          \
	 .help = "the daemon's control socket (default " DAEMON_CONTROL_PATH ")"},                 \
	{                                                                                          \
		.name = "format", .type = OPTION_CHOICE, .offset = ROW(format),                    \
		.value = "text|json",                                                              \
		.help = "text for people, or json: the daemon's answer (default text)"             \
	}

static const struct option_spec ctl_option_table[] = {
	{.name = "VERB",
	 .type = OPTION_OPERANDS,
	 .required = true,
	 .offset = ROW(words),
	 .help = "what to do, and with which VM; see above"},
	CONTROL_ROWS,
};

const struct command command_ctl = {
	.name = "ctl",
	.summary = "control the running daemon and show its state",
	.usage =
		"VERB [VM] [...] [options]\n"
		"  list                       show the VMs, their channels and losses\n"
		"  status                     show the state of the daemon\n"
		"  attach VM KEY=VALUE...     watch a VM (keys as in the configuration)\n"
		"  detach VM                  stop watching a VM\n"
		"  record VM start|stop       start or stop recording a VM\n"
		"  level VM detail|summary    set the level of a VM's host events\n"
		"  snapshot VM                save the flight recorder of a VM; prints the folder, which\n"
		"                             appears when its reports are complete\n"
		"  rescan                     read libvirt's domains again\n"
		"  reload                     read the configuration again (like SIGHUP)\n"
		"  stop                       end the daemon",
	.options = ctl_option_table,
	.n_options = sizeof(ctl_option_table) / sizeof(ctl_option_table[0]),
	.examples =
		"  sudo vcpuscope ctl attach web1 qmp=/run/web1.qmp channel=/run/web1.sock record=yes\n"
		"  sudo vcpuscope ctl list\n"
		"  sudo vcpuscope ctl record web1 stop\n"
		"  sudo vcpuscope ctl status --format json\n",
	.run = ctl_run,
};

static const struct option_spec snapshot_option_table[] = {
	{.name = "VM",
	 .type = OPTION_OPERANDS,
	 .required = true,
	 .offset = ROW(words),
	 .help = "the name of the VM in the daemon"},
	CONTROL_ROWS,
};

const struct command command_snapshot = {
	.name = "snapshot",
	.summary = "save the flight recorder of a VM to an incident folder now",
	.usage = "VM [options]",
	.options = snapshot_option_table,
	.n_options = sizeof(snapshot_option_table) / sizeof(snapshot_option_table[0]),
	.examples =
		"  sudo vcpuscope snapshot web1   # prints the folder with the recording and the reports\n",
	.run = verb_run,
};

static const struct option_spec list_option_table[] = {
	{.name = "all",
	 .type = OPTION_FLAG,
	 .offset = ROW(all),
	 .help = "list all VMs of this machine, watched or not, of any VMM; needs no daemon"},
	CONTROL_ROWS,
};

const struct command command_list = {
	.name = "list",
	.summary = "list the VMs of the daemon and their losses, or all VMs (--all)",
	.usage = "[options]",
	.options = list_option_table,
	.n_options = sizeof(list_option_table) / sizeof(list_option_table[0]),
	.examples =
		"  sudo vcpuscope list\n"
		"  sudo vcpuscope list --all   # all VMs, also of Firecracker, in containers, ...\n",
	.run = verb_run,
};
