// SPDX-License-Identifier: GPL-2.0-only
#include "guest-agent/arguments.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "guest-agent/channel.h"

enum option_type { OPTION_FLAG, OPTION_TEXT, OPTION_NUMBER };

static const struct option_row {
	const char *name, *value;
	enum option_type type;
	size_t offset;
	unsigned int min, max;
	const char *help;
} rows[] = {
	{"connect", "ADDRESS", OPTION_TEXT, offsetof(struct arguments, connect), 0, 0,
	 "the host: port:NAME (a virtio-serial port), vsock:CID:PORT (CID 2 is\n"
	 "the host), tls:ADDRESS:PORT, tcp:ADDRESS:PORT (numeric), unix:PATH, or\n"
	 "auto: port:" AGENT_PORT_NAME ", else vsock:2:7431 [auto]"},
	{"psk", "FILE", OPTION_TEXT, offsetof(struct arguments, psk), 0, 0,
	 "for tls: a line IDENTITY:KEY, the key in hexadecimal digits"},
	{"insecure-plain-tcp", NULL, OPTION_FLAG, offsetof(struct arguments, insecure_plain_tcp), 0,
	 0, "allow tcp: to another machine, for all to read and change"},
	{"interval", "MS", OPTION_NUMBER, offsetof(struct arguments, interval_ms), 1, 100,
	 "time between two looks at the kernel's rings [20]"},
	{"backlog", "MIB", OPTION_NUMBER, offsetof(struct arguments, backlog_mib), 1, 1024,
	 "memory for events that wait for the host; the oldest go first [4]"},
	{"ring", "MIB", OPTION_NUMBER, offsetof(struct arguments, ring_mib), 1, 1024,
	 "size of the kernel's rings, all CPUs together [4]"},
	{"backend", "NAME", OPTION_TEXT, offsetof(struct arguments, backend), 0, 0,
	 "how to capture: bpf, perf, or auto: perf if BPF does not work here [auto]"},
	{"sample-hz", "N", OPTION_NUMBER, offsetof(struct arguments, sample_hz), 1, 10000,
	 "look so often per second where each CPU's task is, and wherever one goes to\n"
	 "sleep: stacks for flame graphs [none]"},
	{"max-sample-hz", "N", OPTION_NUMBER, offsetof(struct arguments, max_sample_hz), 0, 10000,
	 "how much of that the host may ask for at most; 0: nothing [100]"},
	{"handlers-over", "US", OPTION_NUMBER, offsetof(struct arguments, handlers_over_us), 1,
	 1000000,
	 "handlers of interrupts and softirqs that take less and wake nobody become\n"
	 "no events but are counted; a host may ask for a longer time only [none]"},
	{"max-cpu", "PERCENT", OPTION_NUMBER, offsetof(struct arguments, max_cpu), 1, 100,
	 "of one CPU: what the host asked for on top ends when this agent uses more [20]"},
	{"max-memory", "MIB", OPTION_NUMBER, offsetof(struct arguments, max_memory), 8, 4096,
	 "the same for its memory [64]"},
	{"no-host-config", NULL, OPTION_FLAG, offsetof(struct arguments, no_host_config), 0, 0,
	 "the host may change nothing of what is told"},
	{"run-for", "SECONDS", OPTION_NUMBER, offsetof(struct arguments, run_for_s), 1, 86400,
	 "end after this time"},
	{"no-kernel-log", NULL, OPTION_FLAG, offsetof(struct arguments, no_kernel_log), 0, 0,
	 "do not forward lines of /dev/kmsg"},
	{"no-realtime", NULL, OPTION_FLAG, offsetof(struct arguments, no_realtime), 0, 0,
	 "run at normal priority, not SCHED_RR 1; a busy guest may lose events"},
	{"help", NULL, OPTION_FLAG, offsetof(struct arguments, help), 0, 0, "this text"},
	{"version", NULL, OPTION_FLAG, offsetof(struct arguments, version), 0, 0, "the version"},
};

enum { N_ROWS = sizeof(rows) / sizeof(rows[0]) };

static const char help_head[] =
	"Usage: vcpuscope-agent [--connect ADDRESS] [options]\n"
	"Watches this guest's scheduler and interrupts and sends what it sees to vcpuscope on the "
	"host.\n"
	"\n";

static const char help_tail[] =
	"\n"
	"Examples:\n"
	"  vcpuscope-agent                              over virtio-serial, or vsock\n"
	"  vcpuscope-agent --connect vsock:2:7431       over vsock\n"
	"  vcpuscope-agent --connect tls:10.0.2.2:7431 --psk /etc/vcpuscope/psk\n"
	"  vcpuscope-agent --connect unix:/run/v.sock --run-for 10\n"
	"\n"
	"Needs root and a kernel with BPF and BTF (Debian 12 has both), or else perf and tracefs. The\n"
	"host may come later and go away at any time. SIGINT or SIGTERM ends it.\n"
	"\n"
	"The host may ask to be told less (record --guest-events, --guest-level, --guest-task-filter),\n"
	"and for stacks up to --max-sample-hz. It can turn on nothing that is turned off here.\n"
	"\n"
	"Exit codes: 0 ended as asked, 1 internal failure, 2 wrong usage, 3 no channel to the host,\n"
	"4 this kernel cannot be traced.\n";

void arguments_help(FILE *to)
{
	fputs(help_head, to);
	for (size_t i = 0; i < N_ROWS; i++) {
		char left[64];

		snprintf(left, sizeof(left), "--%s %s", rows[i].name,
			 rows[i].value ? rows[i].value : "");
		fprintf(to, "  %-17s ", left);
		for (const char *c = rows[i].help; *c; c++) {
			fputc(*c, to);
			if (*c == '\n')
				fprintf(to, "%20s", "");
		}
		fputc('\n', to);
	}
	fputs(help_tail, to);
}

/* Newlines as escapes: a record is a line. */
static void field_write(const char *text, FILE *to)
{
	fputc('\t', to);
	for (; *text; text++) {
		if (*text == '\n')
			fputs("\\n", to);
		else
			fputc(*text, to);
	}
}

void arguments_dump(FILE *to)
{
	static const char *const types[] = {
		[OPTION_FLAG] = "flag", [OPTION_TEXT] = "string", [OPTION_NUMBER] = "number"};

	fprintf(to, "program\tvcpuscope-agent\t" VCPUSCOPE_VERSION
		    "\twatch this guest for vcpuscope on its host\n");
	for (size_t i = 0; i < N_ROWS; i++) {
		fputs("option", to);
		field_write(rows[i].name, to);
		field_write(types[rows[i].type], to);
		field_write(rows[i].value ? rows[i].value : "", to);
		field_write("", to);
		field_write(rows[i].help, to);
		fputc('\n', to);
	}
	fputs("text", to);
	field_write(help_tail, to);
	fputc('\n', to);
}

static const struct option_row *row_find(const char *name, size_t len)
{
	for (size_t i = 0; i < N_ROWS; i++)
		if (strlen(rows[i].name) == len && strncmp(rows[i].name, name, len) == 0)
			return &rows[i];
	return NULL;
}

static int row_apply(const struct option_row *row, const char *value, struct arguments *out,
		     char *why, size_t why_bytes)
{
	void *field = (char *)out + row->offset;
	unsigned long number;
	char *end;

	switch (row->type) {
	case OPTION_FLAG:
		*(bool *)field = true;
		return 0;
	case OPTION_TEXT:
		*(const char **)field = value;
		return 0;
	case OPTION_NUMBER:
		break;
	}
	errno = 0;
	number = strtoul(value, &end, 10);
	if (errno || end == value || *end || number < row->min || number > row->max) {
		snprintf(why, why_bytes, "--%s %s: give a whole number from %u to %u", row->name,
			 value, row->min, row->max);
		return -EINVAL;
	}
	*(unsigned int *)field = (unsigned int)number;
	return 0;
}

int arguments_parse(int argc, char **argv, struct arguments *out, char *why, size_t why_bytes)
{
	*out = (struct arguments){
		.connect = "auto",
		.backend = "auto",
		.interval_ms = 20,
		.backlog_mib = 4,
		.ring_mib = 4,
		.max_sample_hz = 100,
		.max_cpu = 20,
		.max_memory = 64,
	};
	for (int i = 1; i < argc; i++) {
		const char *name = argv[i], *value = NULL;
		const struct option_row *row = NULL;
		size_t len;
		int err;

		if (strncmp(name, "--", 2) == 0) {
			name += 2;
			len = strcspn(name, "=");
			row = row_find(name, len);
			if (name[len] == '=')
				value = name + len + 1;
		}
		if (!row) {
			snprintf(why, why_bytes, "unknown argument '%s': see --help", argv[i]);
			return -EINVAL;
		}
		if (row->type == OPTION_FLAG && value) {
			snprintf(why, why_bytes, "--%s takes no value", row->name);
			return -EINVAL;
		}
		if (row->type != OPTION_FLAG && !value) {
			if (i + 1 == argc) {
				snprintf(why, why_bytes, "--%s needs a value: %s", row->name,
					 row->value);
				return -EINVAL;
			}
			value = argv[++i];
		}
		err = row_apply(row, value, out, why, why_bytes);
		if (err)
			return err;
	}
	return 0;
}
