// SPDX-License-Identifier: GPL-2.0-only
#include "guest-agent/steal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "clock/arch/counter.h"
#include "clock/sample.h"
#include "proto/proc_file.h"

enum {
	STEAL_FIELD = 7, /* after user nice system idle iowait irq softirq */
	/* The CPUs' lines come first; what follows is of no use here. */
	STAT_BYTES = 256 * 1024,
};

/* "cpu3 1 2 3 ...": which CPU, and where its figures begin. */
static const char *cpu_line(const char *line, unsigned long *cpu)
{
	char *end;

	if (strncmp(line, "cpu", 3) || line[3] < '0' || line[3] > '9')
		return NULL;
	*cpu = strtoul(line + 3, &end, 10);
	return *end == ' ' && *cpu < VS_CPUS_MAX ? end : NULL;
}

static bool field_read(const char *at, int index, uint64_t *value)
{
	char *end;

	for (int i = 0; i <= index; i++, at = end) {
		if (*at != ' ')
			return false;
		errno = 0;
		*value = strtoull(at, &end, 10);
		if (end == at || errno)
			return false;
	}
	return true;
}

void steal_parse(const char *stat, uint64_t unit_ns, struct message_steal *m)
{
	m->n_cpus = 0;
	for (const char *line = stat; line && !strncmp(line, "cpu", 3);) {
		const char *next = strchr(line, '\n'), *fields;
		unsigned long cpu;
		uint64_t units;

		/* A line without its end was cut. */
		fields = next ? cpu_line(line, &cpu) : NULL;
		if (fields && field_read(fields, STEAL_FIELD, &units) && m->n_cpus < VS_CPUS_MAX)
			m->cpus[m->n_cpus++] = (struct message_cpu_steal){
				.cpu = (uint32_t)cpu, .steal_ns = units * unit_ns};
		line = next ? next + 1 : NULL;
	}
}

bool steal_clock_present(void)
{
	return counter_steal_clock_present();
}

void steal_read(bool clock, struct message_steal *m)
{
	char *text = malloc(STAT_BYTES);
	long hz = sysconf(_SC_CLK_TCK);
	uint64_t before, after;

	memset(m, 0, sizeof(*m));
	if (!text || hz <= 0)
		goto out;
	before = clock_tsc_read();
	if (proc_file_read("/proc/stat", text, STAT_BYTES) <= 0)
		goto out;
	after = clock_tsc_read();
	m->known = true;
	m->clock = clock;
	m->time = before + (after - before) / 2;
	m->err = (after - before + 1) / 2;
	m->unit_ns = 1000000000 / (uint64_t)hz;
	steal_parse(text, m->unit_ns, m);
out:
	free(text);
}
