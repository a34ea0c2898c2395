// SPDX-License-Identifier: GPL-2.0-only
#include "guest-agent/arguments.h"

#include <stddef.h>

#include "guest-agent/channel.h"
#include "guest-agent/event_policy.h"

#define MIB (1ull << 20)
#define MS  1000000ull

#define ROW(field) offsetof(struct arguments, field)
static const struct option_spec agent_option_table[] = {
	{.name = "connect",
	 .letter = 'c',
	 .type = OPTION_STRING,
	 .offset = ROW(connect),
	 .value = "ADDRESS",
	 .help = "the host: port:NAME (a virtio-serial port), vsock:CID:PORT (CID 2 is the host), "
		 "tls:ADDRESS:PORT, tcp:ADDRESS:PORT (numeric), unix:PATH, or "
		 "auto: port:" AGENT_PORT_NAME ", else vsock:2:7431 (default auto)"},
	{.name = "psk",
	 .type = OPTION_STRING,
	 .offset = ROW(psk),
	 .value = "FILE",
	 .help = "with tls: the file with one line IDENTITY:KEY, KEY in hexadecimal digits"},
	{.name = "insecure-plain-tcp",
	 .type = OPTION_FLAG,
	 .offset = ROW(insecure_plain_tcp),
	 .help = "allow tcp: to another machine; others can then read and change the data"},
	{.name = "interval",
	 .letter = 'i',
	 .type = OPTION_DURATION,
	 .offset = ROW(interval_ns),
	 .value = "TIME",
	 .min = 1 * MS,
	 .max = 100 * MS,
	 .bare_unit = "ms",
	 .help = "time between two looks at the kernel's rings; longer while few events come and "
		 "the rings are large (default 20ms)"},
	{.name = "backlog",
	 .type = OPTION_SIZE,
	 .offset = ROW(backlog_bytes),
	 .value = "SIZE",
	 .min = 1 * MIB,
	 .max = 1024 * MIB,
	 .bare_unit = "M",
	 .help = "memory for events that wait for the host; if it is full, the oldest are dropped "
		 "(default 4M)"},
	{.name = "ring",
	 .type = OPTION_SIZE,
	 .offset = ROW(ring_bytes),
	 .value = "SIZE",
	 .min = 1 * MIB,
	 .max = 1024 * MIB,
	 .bare_unit = "M",
	 .help = "size of the kernel's rings, all CPUs together (default 5M)"},
	{.name = "backend",
	 .type = OPTION_CHOICE,
	 .offset = ROW(backend),
	 .value = "auto|bpf|perf",
	 .help = "how to capture events; auto uses BPF, or perf where BPF does not work (default "
		 "auto)"},
	{.name = "sample-hz",
	 .type = OPTION_NUMBER,
	 .offset = ROW(sample_hz),
	 .value = "N",
	 .min = 1,
	 .max = 10000,
	 .help = "sample the stack of each CPU's task N times per second, and the stack of each "
		 "task that goes to sleep, for flame graphs (default: no stacks)"},
	{.name = "max-sample-hz",
	 .type = OPTION_NUMBER,
	 .offset = ROW(max_sample_hz),
	 .value = "N",
	 .max = 10000,
	 .help = "highest rate of stack samples, or of ticks of record --guest-look, that the host "
		 "may request; 0: none (default 100)"},
	{.name = "handlers-over",
	 .type = OPTION_DURATION,
	 .offset = ROW(handlers_over_ns),
	 .value = "TIME",
	 .min = 1000,
	 .max = 1000 * MS,
	 .bare_unit = "us",
	 .help = "count handlers of interrupts and softirqs that take less time and wake nobody, "
		 "instead of sending each; the host can only request a longer time (default: "
		 "send all)"},
	{.name = "max-cpu",
	 .type = OPTION_PERCENT,
	 .offset = ROW(max_cpu_percent),
	 .value = "PERCENT",
	 .min = 1,
	 .max = 100,
	 .bare_unit = "%",
	 .help = "above this share of one CPU, the agent ends the stack samples, looks and events "
		 "that the host requested, and refuses new ones for 60 s (default 20%)"},
	{.name = "max-memory",
	 .type = OPTION_SIZE,
	 .offset = ROW(max_memory_bytes),
	 .value = "SIZE",
	 .min = 8 * MIB,
	 .max = 4096 * MIB,
	 .bare_unit = "M",
	 .help = "do the same as for --max-cpu if the agent uses more memory than this "
		 "(default 64M)"},
	{.name = "policy",
	 .type = OPTION_STRING,
	 .offset = ROW(policy),
	 .value = "FILE",
	 .help = "which events the host may request (record -e guest:...), see below (default " EVENT_POLICY_PATH
		 ", if it exists)"},
	{.name = "no-host-config",
	 .type = OPTION_FLAG,
	 .offset = ROW(no_host_config),
	 .help = "refuse all requests of the host for more, fewer or other events"},
	{.name = "run-for",
	 .type = OPTION_DURATION,
	 .offset = ROW(run_for_ns),
	 .value = "TIME",
	 .min = 1000 * MS,
	 .max = 86400 * 1000 * MS,
	 .bare_unit = "s",
	 .help = "end after this time (default: run until SIGINT or SIGTERM)"},
	{.name = "no-kernel-log",
	 .type = OPTION_FLAG,
	 .offset = ROW(no_kernel_log),
	 .help = "do not forward lines of /dev/kmsg"},
	{.name = "no-realtime",
	 .type = OPTION_FLAG,
	 .offset = ROW(no_realtime),
	 .help = "run at normal priority instead of SCHED_RR 1; a busy guest may lose events"},
	{.name = "doctor",
	 .type = OPTION_FLAG,
	 .offset = ROW(doctor),
	 .help = "show what can be captured in this guest, what is missing and what to do; connect "
		 "to nobody"},
};

const struct command agent_command = {
	.program = "vcpuscope-agent",
	.summary = "record this guest's scheduler and interrupts for vcpuscope on the host",
	.usage = "[--connect ADDRESS] [options]",
	.options = agent_option_table,
	.n_options = sizeof(agent_option_table) / sizeof(agent_option_table[0]),
	.notes =
		"The agent needs root, and a kernel with BPF and BTF (such as Debian 12's) or with "
		"perf and\n"
		"tracefs. The host may connect later, and disconnect at any time.\n"
		"\n"
		"The host can request fewer events (record --guest-events, --guest-level,\n"
		"--guest-task-filter) and stack samples up to --max-sample-hz. It cannot turn on what\n"
		"these options turn off.\n"
		"\n"
		"The host can also request tracepoints of this kernel (-e guest:SYSTEM:NAME) that the\n"
		"policy file allows. The lines of this file are KEY = VALUE; # begins a comment:\n"
		"  allow = PATTERN ...   tracepoints, as SYSTEM:NAME with * and ?; or no. Default: "
		"sched:* irq:*\n"
		"                        irq_vectors:* timer:* workqueue:* block:* power:* rcu:*\n"
		"  kprobes = PATTERN ... functions of the kernel (default no)\n"
		"  strings = yes|no      texts, such as names of tasks and files (default no)\n"
		"  max_events = N        up to 16 (default 16)\n"
		"  rate = N              hits per second and CPU, all events together (default 20000)\n"
		"The agent sends pointers as hashes with a random key. It only counts the hits above "
		"the rate. If\n"
		"they outnumber the other hits for 2 s, the agent detaches the event with the most "
		"hits.\n",
	.exits = "  0  ended by --run-for or a signal; --doctor: the agent can capture\n"
		 "  1  internal failure\n"
		 "  2  wrong usage\n"
		 "  3  no channel to the host\n"
		 "  4  this kernel cannot be traced\n",
	.examples =
		"  vcpuscope-agent                          # over virtio-serial, or else vsock\n"
		"  vcpuscope-agent --connect vsock:2:7431   # over vsock\n"
		"  vcpuscope-agent --connect tls:10.0.2.2:7431 --psk /etc/vcpuscope/psk\n"
		"  vcpuscope-agent --connect unix:/run/v.sock --run-for 10s\n"
		"  vcpuscope-agent --doctor                 # what works in this guest?\n",
};

void arguments_default(struct arguments *out)
{
	*out = (struct arguments){
		.connect = "auto",
		.backend = "auto",
		.interval_ns = 20 * MS,
		.backlog_bytes = 4 * MIB,
		.ring_bytes = 5 * MIB, /* rings of a power of two of events, with 2, 4, 8... CPUs */
		.max_sample_hz = 100,
		.max_cpu_percent = 20,
		.max_memory_bytes = 64 * MIB,
	};
}
