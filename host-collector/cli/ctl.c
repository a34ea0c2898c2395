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

enum { WORDS_MAX = 16 };

struct ctl_words {
	const char *typed; /* the command's name: ctl, or its verb alone */
	const char *control, *format;
	size_t n;
	const char *words[WORDS_MAX];
};

static const char *text_of(struct json_object *o, const char *name)
{
	struct json_object *value = NULL;

	return json_object_object_get_ex(o, name, &value) ? json_object_get_string(value) : "-";
}

/* For a terminal: an agent's version, for one, is what a guest wrote. */
static struct escaped shown(struct json_object *o, const char *name)
{
	return escape(text_of(o, name));
}

static uint64_t number_of(struct json_object *o, const char *name)
{
	struct json_object *value = NULL;

	return json_object_object_get_ex(o, name, &value) ? json_object_get_uint64(value) : 0;
}

/* "pvclock +-0.1 us": how the guest's times are known. */
static const char *clock_text(struct json_object *vm, char *out, size_t out_bytes)
{
	if (!strcmp(text_of(vm, "clock"), "-"))
		return "-";
	if (!strcmp(text_of(vm, "clock"), "untrusted"))
		return "not proven";
	snprintf(out, out_bytes, "%s +-%.1f us", text_of(vm, "clock"),
		 (double)number_of(vm, "clock_error_ns") / 1000);
	return out;
}

static void list_show(struct json_object *reply)
{
	struct json_object *vms = NULL;

	json_object_object_get_ex(reply, "vms", &vms);
	printf("%-20s %-8s %5s %-8s %-13s %-8s %-22s %8s\n", "VM", "STATE", "VCPUS", "CHANNEL",
	       "CARRIER", "AGENT", "CLOCK", "LOST");
	for (size_t i = 0; vms && i < json_object_array_length(vms); i++) {
		struct json_object *vm = json_object_array_get_idx(vms, i);
		const bool silent = !strcmp(text_of(vm, "channel"), "ok") &&
				    number_of(vm, "agent_silent_ms") >= COLLECTOR_SILENT_MS;
		char clock[64];

		printf("%-20s %-8s %5llu %-8s %-13s %-8s %-22s %8llu\n", shown(vm, "vm").text,
		       text_of(vm, "state"), (unsigned long long)number_of(vm, "vcpus"),
		       silent ? "silent" : text_of(vm, "channel"), text_of(vm, "carrier"),
		       shown(vm, "agent").text, clock_text(vm, clock, sizeof(clock)),
		       (unsigned long long)(number_of(vm, "host_dropped") +
					    number_of(vm, "guest_dropped")));
		if (silent)
			printf("  agent silent for %llu s\n",
			       (unsigned long long)number_of(vm, "agent_silent_ms") / 1000);
		if (!strcmp(text_of(vm, "origin"), "kvm"))
			printf("  found by KVM: %s of uid %llu\n", shown(vm, "vmm").text,
			       (unsigned long long)number_of(vm, "uid"));
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

static void status_show(struct json_object *reply)
{
	struct json_object *capture = NULL;

	printf("vcpuscope %s, up %.1f s, %llu VMs\n", text_of(reply, "version"),
	       (double)number_of(reply, "uptime_ms") / 1000,
	       (unsigned long long)number_of(reply, "vms"));
	printf("CPU %.3f s, memory %.1f MiB, %llu descriptors\n",
	       (double)number_of(reply, "cpu_ns") / 1e9,
	       (double)number_of(reply, "rss_bytes") / (1 << 20),
	       (unsigned long long)number_of(reply, "descriptors"));
	printf("loop late by %llu ms at most (ever %llu ms), decoders died %llu times\n",
	       (unsigned long long)number_of(reply, "loop_lag_ms"),
	       (unsigned long long)number_of(reply, "loop_lag_ever_ms"),
	       (unsigned long long)number_of(reply, "decoder_deaths"));
	json_object_object_get_ex(reply, "capture", &capture);
	printf("the host's events: %llu for %llu VMs from %llu captures, lost %llu\n",
	       (unsigned long long)number_of(capture, "emitted"),
	       (unsigned long long)number_of(capture, "vms"),
	       (unsigned long long)number_of(capture, "captures"),
	       (unsigned long long)(number_of(capture, "dropped") + number_of(capture, "missed")));
	printf("recordings in %s: %.1f MiB\n", text_of(reply, "directory"),
	       (double)number_of(reply, "recordings_bytes") / (1 << 20));
	if (number_of(reply, "incidents_waiting") || number_of(reply, "reports_running"))
		printf("incidents whose reports are being made: %llu, and %llu wait\n",
		       (unsigned long long)number_of(reply, "reports_running"),
		       (unsigned long long)number_of(reply, "incidents_waiting"));
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
	{"attach", "VM KEY=VALUE..", 2, WORDS_MAX, NULL},
	{"detach", "VM", 1, 1, NULL},
	{"record", "VM start|stop", 2, 2, NULL},
	{"level", "VM detail|summary", 2, 2, NULL},
	{"snapshot", "VM", 1, 1, snapshot_show},
	{"rescan", "", 0, 0, NULL},
	{"reload", "", 0, 0, NULL},
	{"stop", "", 0, 0, NULL},
};

/* Options may stand anywhere; the rest are words. 0 or COMMAND_USAGE. */
static int words_take(int argc, char **argv, struct ctl_words *w)
{
	static const struct {
		const char *name;
		size_t offset;
	} options[] = {{"--control", offsetof(struct ctl_words, control)},
		       {"--format", offsetof(struct ctl_words, format)}};

	for (int i = 1; i < argc; i++) {
		size_t o = 0;

		if (strncmp(argv[i], "--", 2)) {
			if (w->n == WORDS_MAX) {
				fprintf(stderr, "vcpuscope %s: too many words\n", w->typed);
				return COMMAND_USAGE;
			}
			w->words[w->n++] = argv[i];
			continue;
		}
		while (o < 2 && strncmp(argv[i], options[o].name, strlen(options[o].name)))
			o++;
		if (o < 2 && argv[i][strlen(options[o].name)] == '=')
			*(const char **)((char *)w + options[o].offset) =
				argv[i] + strlen(options[o].name) + 1;
		else if (o < 2 && !argv[i][strlen(options[o].name)] && i + 1 < argc)
			*(const char **)((char *)w + options[o].offset) = argv[++i];
		else {
			fprintf(stderr,
				"vcpuscope %s: %s: no such option, or its value is missing; see "
				"`vcpuscope %s --help`\n",
				w->typed, argv[i], w->typed);
			return COMMAND_USAGE;
		}
	}
	return 0;
}

/* NULL: a word is no KEY=VALUE, said. */
static struct json_object *request_make(const struct verb *verb, const struct ctl_words *w)
{
	struct json_object *request = json_object_new_object();

	json_object_object_add(request, "command", json_object_new_string(verb->name));
	if (w->n > 1)
		json_object_object_add(request, "vm", json_object_new_string(w->words[1]));
	if (w->n == 3 && strcmp(verb->name, "attach"))
		json_object_object_add(request, "what", json_object_new_string(w->words[2]));
	for (size_t i = 2; i < w->n && !strcmp(verb->name, "attach"); i++) {
		const char *equals = strchr(w->words[i], '=');
		char key[64];

		if (!equals || (size_t)(equals - w->words[i]) >= sizeof(key)) {
			fprintf(stderr, "vcpuscope %s: %s: write KEY=VALUE, as in docs/daemon.md\n",
				w->typed, w->words[i]);
			json_object_put(request);
			return NULL;
		}
		snprintf(key, sizeof(key), "%.*s", (int)(equals - w->words[i]), w->words[i]);
		json_object_object_add(request, key, json_object_new_string(equals + 1));
	}
	return request;
}

static int reply_show(const struct verb *verb, const struct ctl_words *w, struct json_object *reply)
{
	struct json_object *ok = NULL;

	if (!json_object_object_get_ex(reply, "ok", &ok) || !json_object_get_boolean(ok)) {
		fprintf(stderr, "vcpuscope %s: %s\n", w->typed, shown(reply, "error").text);
		return COMMAND_TROUBLE;
	}
	if (!strcmp(w->format, "json"))
		puts(json_object_to_json_string_ext(reply, JSON_C_TO_STRING_PLAIN));
	else if (verb->show)
		verb->show(reply);
	return COMMAND_OK;
}

static int ctl_run(const struct command *self, int argc, char **argv)
{
	struct ctl_words w = {
		.typed = self->name, .control = DAEMON_CONTROL_PATH, .format = "text"};
	struct json_object *request, *reply;
	const struct verb *verb = NULL;
	char why[512];
	int err;

	if (words_take(argc, argv, &w))
		return COMMAND_USAGE;
	for (size_t i = 0; i < sizeof(verbs) / sizeof(verbs[0]) && w.n; i++) {
		if (!strcmp(verbs[i].name, w.words[0]))
			verb = &verbs[i];
	}
	if (!verb) {
		fprintf(stderr, "vcpuscope ctl: what? see `vcpuscope ctl --help`\n");
		return COMMAND_USAGE;
	}
	if (w.n - 1 < verb->least || w.n - 1 > verb->most) {
		fprintf(stderr, "usage: vcpuscope %s%s %s\n", self == &command_ctl ? "ctl " : "",
			verb->name, verb->wants);
		return COMMAND_USAGE;
	}
	request = request_make(verb, &w);
	if (!request)
		return COMMAND_USAGE;
	err = control_ask(w.control, request, &reply, why, sizeof(why));
	json_object_put(request);
	if (err) {
		fprintf(stderr, "vcpuscope %s: %s\n", w.typed, why);
		return COMMAND_TROUBLE;
	}
	err = reply_show(verb, &w, reply);
	json_object_put(reply);
	return err;
}

/* `vcpuscope snapshot ..` is `vcpuscope ctl snapshot ..`; so is list. */
static int alias_run(const struct command *self, int argc, char **argv)
{
	char verb[16], *words[WORDS_MAX + 2] = {argv[0], verb};

	if (argc > WORDS_MAX) {
		fprintf(stderr, "vcpuscope %s: too many words\n", self->name);
		return COMMAND_USAGE;
	}
	snprintf(verb, sizeof(verb), "%s", self->name);
	for (int i = 1; i < argc; i++)
		words[i + 1] = argv[i];
	return ctl_run(self, argc + 1, words);
}

static const struct option_spec ctl_option_table[] = {
	{"control", OPTION_STRING, offsetof(struct ctl_words, control), "PATH",
	 "the daemon's control socket (default " DAEMON_CONTROL_PATH ")", false},
	{"format", OPTION_CHOICE, offsetof(struct ctl_words, format), "text|json",
	 "for people, or the daemon's answer as it is", false},
};

const struct command command_ctl = {
	.name = "ctl",
	.summary = "tell the running daemon what to do",
	.usage =
		"VERB [VM] [..] [options]\n"
		"  list                       the VMs, their channels, what was lost\n"
		"  status                     the daemon itself\n"
		"  attach VM KEY=VALUE..      watch a VM (keys as in the configuration)\n"
		"  detach VM\n"
		"  record VM start|stop\n"
		"  level VM detail|summary\n"
		"  snapshot VM                write what the flight recorder holds: prints the folder,\n"
		"                             which is there when its reports are made\n"
		"  rescan                     look at libvirt's domains again\n"
		"  reload                     read the configuration again (as SIGHUP)\n"
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

const struct command command_snapshot = {
	.name = "snapshot",
	.summary = "have the daemon write what its flight recorder holds of a VM",
	.usage = "VM [options]",
	.options = ctl_option_table,
	.n_options = sizeof(ctl_option_table) / sizeof(ctl_option_table[0]),
	.examples = "  sudo vcpuscope snapshot web1   # prints the folder: recording and reports\n",
	.run = alias_run,
};

struct list_arguments {
	const char *control, *format;
	bool all;
};

/* `vcpuscope list` is `vcpuscope ctl list`, unless it is to look for itself. */
static int list_run(const struct command *self, int argc, char **argv)
{
	struct list_arguments a = {.format = "text"};

	if (options_parse_or_say(self, argc, argv, &a))
		return COMMAND_USAGE;
	return a.all ? list_all(a.control, a.format) : alias_run(self, argc, argv);
}

static const struct option_spec list_option_table[] = {
	{"all", OPTION_FLAG, offsetof(struct list_arguments, all), NULL,
	 "every VM of this machine, watched or not, whatever its VMM; needs no daemon", false},
	{"control", OPTION_STRING, offsetof(struct list_arguments, control), "PATH",
	 "the daemon's control socket (default " DAEMON_CONTROL_PATH ")", false},
	{"format", OPTION_CHOICE, offsetof(struct list_arguments, format), "text|json",
	 "for people, or for scripts", false},
};

const struct command command_list = {
	.name = "list",
	.summary =
		"the VMs that the daemon watches: channel, agent, clock, losses; or all VMs here",
	.usage = "[options]",
	.options = list_option_table,
	.n_options = sizeof(list_option_table) / sizeof(list_option_table[0]),
	.examples =
		"  sudo vcpuscope list\n"
		"  sudo vcpuscope list --all   # also those of Firecracker, in containers, ..\n",
	.run = list_run,
};
