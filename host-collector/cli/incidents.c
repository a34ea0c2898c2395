/* SPDX-License-Identifier: GPL-2.0-only */
/* `vcpuscope incidents`: lists the incidents in an outbox, or in segments collected from a fleet.
 */
#include <errno.h>
#include <glob.h>
#include <json.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "clock/sample.h"
#include "host-collector/cli/commands.h"
#include "host-collector/daemon/config.h"
#include "host-collector/fleet/incident_log.h"
#include "host-collector/util/csv.h"
#include "host-collector/util/duration.h"
#include "host-collector/util/escape.h"
#include "host-collector/util/json_get.h"

struct incidents_arguments {
	const char *config, *verdict, *vm, *host, *format;
	uint64_t since_ns; /* 0: all */
	struct option_list from;
};

static const struct option_spec incidents_option_table[] = {
	{.name = "DIR|GLOB",
	 .type = OPTION_OPERANDS,
	 .offset = offsetof(struct incidents_arguments, from),
	 .help = "outboxes, folders of segments, or segments (default: the daemon's outbox)"},
	{.name = "since",
	 .type = OPTION_DURATION,
	 .offset = offsetof(struct incidents_arguments, since_ns),
	 .value = "TIME",
	 .help = "only those that began less than TIME ago, for example 24h"},
	{.name = "verdict",
	 .type = OPTION_STRING,
	 .offset = offsetof(struct incidents_arguments, verdict),
	 .value = "NAME",
	 .help = "only those with this verdict or trigger"},
	{.name = "vm",
	 .type = OPTION_STRING,
	 .offset = offsetof(struct incidents_arguments, vm),
	 .value = "NAME|UUID",
	 .help = "only those of this VM, or with this VM as a culprit"},
	{.name = "host",
	 .type = OPTION_STRING,
	 .offset = offsetof(struct incidents_arguments, host),
	 .value = "NAME|ID",
	 .help = "only those of this host"},
	{.name = "format",
	 .type = OPTION_CHOICE,
	 .offset = offsetof(struct incidents_arguments, format),
	 .value = "text|json|csv",
	 .help = "text, the records as JSON lines, or CSV (default text)"},
	{.name = "config",
	 .type = OPTION_FILE,
	 .offset = offsetof(struct incidents_arguments, config),
	 .value = "FILE",
	 .help = "the daemon's configuration (default " DAEMON_CONFIG_PATH ")"},
};

/* ---- members ---- */

/* The verdict, or what fired. */
static const char *what_of(struct json_object *o)
{
	const char *verdict = json_get_text(o, "verdict"), *trigger = json_get_text(o, "trigger");

	return *verdict ? verdict : *trigger ? trigger : json_get_text(o, "record");
}

/* The culprit with the largest share; NULL: none. */
static struct json_object *culprit_of(struct json_object *o)
{
	return json_get_element(o, "culprits", 0);
}

static const char *culprit_text(struct json_object *o)
{
	static const char *const keys[] = {"vm_name", "unit", "comm", "role"};
	struct json_object *culprit = culprit_of(o);
	const char *text = "";

	for (size_t i = 0; culprit && !*text && i < sizeof(keys) / sizeof(keys[0]); i++)
		text = json_get_text(culprit, keys[i]);
	return text;
}

/* ---- what is wanted ---- */

static bool is_of(struct json_object *o, const char *wanted, const char *name, const char *id)
{
	return !strcmp(json_get_text(o, name), wanted) || !strcmp(json_get_text(o, id), wanted);
}

static bool concerns_vm(struct json_object *o, const char *vm)
{
	bool is = is_of(o, vm, "vm_name", "vm_uuid");

	for (size_t i = 0; !is && i < json_get_length(o, "culprits"); i++)
		is = is_of(json_get_element(o, "culprits", i), vm, "vm_name", "vm_uuid");
	return is;
}

static bool is_wanted(const struct incidents_arguments *a, struct json_object *o, int64_t now_ns)
{
	return (!a->since_ns ||
		json_get_int(o, "begin_realtime_ns") >= now_ns - (int64_t)a->since_ns) &&
	       (!a->verdict || !strcmp(what_of(o), a->verdict)) &&
	       (!a->vm || concerns_vm(o, a->vm)) &&
	       (!a->host || is_of(o, a->host, "host_name", "host_id"));
}

/* ---- output ---- */

static void time_text(int64_t ns, char out[32])
{
	const time_t s = ns / 1000000000;
	struct tm tm;

	gmtime_r(&s, &tm);
	strftime(out, 32, "%Y-%m-%dT%H:%M:%SZ", &tm);
}

static void text_show(struct json_object *o)
{
	char begin[32];

	time_text(json_get_int(o, "begin_realtime_ns"), begin);
	if (!strcmp(json_get_text(o, "record"), "loss")) {
		printf("%s  %-16s lost before delivery: %lld incidents, %lld figures, %lld "
		       "recordings (%s)\n",
		       begin, escape(json_get_text(o, "host_name")).text,
		       (long long)json_get_int(o, "lost_incidents"),
		       (long long)json_get_int(o, "lost_figures"),
		       (long long)json_get_int(o, "lost_evidence"),
		       escape(json_get_text(o, "loss_reason")).text);
	} else if (!strcmp(json_get_text(o, "record"), "sum")) {
		printf("%s  %-16s %lld more incidents of %lld VMs, above the host's rate\n", begin,
		       escape(json_get_text(o, "host_name")).text,
		       (long long)json_get_int(o, "count"), (long long)json_get_int(o, "vms"));
	} else {
		printf("%s  %-16s %-16s %4s  %9s  %-22s %-8s  %s\n", begin,
		       escape(json_get_text(o, "host_name")).text,
		       escape(json_get_text(o, "vm_name")).text,
		       escape(json_get_text(o, "vcpu")).text,
		       duration_text(json_get_int(o, "duration_ns")).text, escape(what_of(o)).text,
		       json_get_int(o, "ongoing") ? "lasts"
						  : escape(json_get_text(o, "confidence")).text,
		       escape(culprit_text(o)).text);
	}
}

static const char *const csv_keys[] = {
	"record",         "incident_id",    "begin_realtime_ns", "duration_ns", "count",
	"host_name",      "host_id",        "vm_name",           "vm_uuid",     "vm_owner",
	"vcpu",           "trigger",        "verdict",           "confidence",  "runner_up",
	"storage_driver", "storage_source", "evidence_folder"};
enum { N_CSV_KEYS = sizeof(csv_keys) / sizeof(csv_keys[0]) };

static void csv_begin(void)
{
	for (size_t i = 0; i < N_CSV_KEYS; i++)
		printf("%s,", csv_keys[i]);
	puts("culprit_vm_uuid,culprit");
}

static void csv_show(struct json_object *o)
{
	struct json_object *culprit = culprit_of(o);

	for (size_t i = 0; i < N_CSV_KEYS; i++) {
		if (json_object_is_type(json_get(o, csv_keys[i]), json_type_int))
			printf("%lld", (long long)json_get_int(o, csv_keys[i]));
		else
			csv_text_write(json_get_text(o, csv_keys[i]), stdout);
		putchar(',');
	}
	csv_text_write(json_get_text(culprit, "vm_uuid"), stdout);
	putchar(',');
	csv_text_write(culprit_text(o), stdout);
	putchar('\n');
}

static void show(struct json_object *o, const char *format)
{
	if (!strcmp(format, "json"))
		puts(json_object_to_json_string_ext(o, JSON_C_TO_STRING_PLAIN |
							       JSON_C_TO_STRING_NOSLASHESCAPE));
	else if (!strcmp(format, "csv"))
		csv_show(o);
	else
		text_show(o);
}

static void all_show(const struct incidents_arguments *a, const struct incident_log *l)
{
	const char *format = a->format ? a->format : "text";
	const int64_t now_ns = clock_realtime_ns();
	size_t shown = 0;

	if (!strcmp(format, "csv"))
		csv_begin();
	for (size_t i = 0; i < incident_log_count(l); i++) {
		struct json_object *o = incident_log_get(l, i);

		if (o && is_wanted(a, o, now_ns)) {
			if (!shown++ && !strcmp(format, "text"))
				printf("%-20s  %-16s %-16s %4s  %9s  %-22s %-8s  %s\n",
				       "BEGIN (UTC)", "HOST", "VM", "VCPU", "LENGTH", "VERDICT", "",
				       "CULPRIT");
			show(o, format);
		}
		json_object_put(o);
	}
	if (!shown && !strcmp(format, "text"))
		puts("no such incident");
	if (a->from.n && !incident_log_files(l))
		fputs("vcpuscope incidents: there are no segments: name the folders that have "
		      "incidents-*.jsonl, for example 'collected/*'\n",
		      stderr);
	if (incident_log_newer(l))
		fprintf(stderr,
			"vcpuscope incidents: %llu records are of a newer version; skipped: use a "
			"vcpuscope as new as that of their host\n",
			(unsigned long long)incident_log_newer(l));
	if (incident_log_skipped(l))
		fprintf(stderr,
			"vcpuscope incidents: %llu lines are not records of incidents; skipped\n",
			(unsigned long long)incident_log_skipped(l));
}

/* ---- input ---- */

static int pattern_add(struct incident_log *l, const char *pattern)
{
	glob_t found;
	int err = 0;

	if (glob(pattern, 0, NULL, &found)) {
		fprintf(stderr, "vcpuscope incidents: %s: no such file or folder\n", pattern);
		return -ENOENT;
	}
	for (size_t i = 0; i < found.gl_pathc && !err; i++) {
		err = incident_log_add(l, found.gl_pathv[i]);
		if (err)
			fprintf(stderr, "vcpuscope incidents: %s: %s\n", found.gl_pathv[i],
				strerror(-err));
	}
	globfree(&found);
	return err;
}

static int outbox_add_default(struct incident_log *l, const char *path)
{
	static struct daemon_config config; /* too large for the stack */
	char folder[DAEMON_PATH_MAX + 16], why[512];
	int err = 0;

	daemon_config_default(&config);
	if (!path && !access(DAEMON_CONFIG_PATH, F_OK))
		path = DAEMON_CONFIG_PATH;
	if (path)
		err = daemon_config_read(path, &config, why, sizeof(why));
	snprintf(folder, sizeof(folder), "%s/outbox", config.directory);
	daemon_config_fini(&config);
	if (err) {
		fprintf(stderr, "vcpuscope incidents: %s\n", why);
		return err;
	}
	err = incident_log_add(l, folder);
	if (err)
		fprintf(stderr, "vcpuscope incidents: %s: %s%s\n", folder, strerror(-err),
			err == -EACCES ? ": run it as root, or name segments that you may read"
				       : "");
	return err;
}

static int incidents_run(const struct command *self, int argc, char **argv)
{
	static struct incidents_arguments a; /* too large for the stack */
	struct incident_log *l;
	int err = 0;

	a = (struct incidents_arguments){0};
	if (options_read(self, argc, argv, &a))
		return COMMAND_USAGE;
	l = incident_log_new();
	if (!l)
		return COMMAND_TROUBLE;
	for (size_t i = 0; i < a.from.n && !err; i++)
		err = pattern_add(l, a.from.items[i]);
	if (!a.from.n)
		err = outbox_add_default(l, a.config);
	incident_log_sort(l);
	if (!err)
		all_show(&a, l);
	incident_log_free(l);
	return command_exit_of(err);
}

const struct command command_incidents = {
	.name = "incidents",
	.summary = "list the incidents of this host's daemon, or of many hosts",
	.options = incidents_option_table,
	.n_options = sizeof(incidents_option_table) / sizeof(incidents_option_table[0]),
	.examples =
		"  vcpuscope incidents --since 24h --verdict storage_backend\n"
		"  vcpuscope incidents --vm web1 --format json 'collected/*/incidents-*.jsonl'\n",
	.run = incidents_run,
};
