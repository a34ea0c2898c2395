// SPDX-License-Identifier: GPL-2.0-only
#include "guest-agent/cpus.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* "processor\t: 3": the value if the line has exactly this key. */
static bool line_value(const char *line, const char *key, uint32_t *value)
{
	size_t n = strlen(key);
	unsigned long parsed;
	char *end;

	if (strncmp(line, key, n) != 0)
		return false;
	line += n + strspn(line + n, " \t");
	if (*line++ != ':')
		return false;
	line += strspn(line, " \t");
	errno = 0;
	parsed = strtoul(line, &end, 10);
	if (end == line || errno || parsed > UINT32_MAX)
		return false;
	*value = (uint32_t)parsed;
	return true;
}

struct cpus_parser {
	struct message_cpu *cpus;
	size_t n, max;
	bool in_processor;
	uint32_t processor;
};

static void parser_line(struct cpus_parser *p, const char *line)
{
	uint32_t apic_id;

	if (line_value(line, "processor", &p->processor)) {
		p->in_processor = true;
	} else if (p->in_processor && line_value(line, "apicid", &apic_id)) {
		if (p->n < p->max)
			p->cpus[p->n++] =
				(struct message_cpu){.cpu = p->processor, .apic_id = apic_id};
		p->in_processor = false;
	}
}

size_t cpus_parse(const char *cpuinfo, struct message_cpu *cpus, size_t max)
{
	struct cpus_parser parser = {.cpus = cpus, .max = max};

	for (const char *line = cpuinfo; line && *line;) {
		const char *end = strchr(line, '\n');

		parser_line(&parser, line);
		line = end ? end + 1 : NULL;
	}
	return parser.n;
}

long cpus_read(struct message_cpu *cpus, size_t max)
{
	struct cpus_parser parser = {.cpus = cpus, .max = max};
	FILE *file = fopen("/proc/cpuinfo", "re");
	size_t capacity = 0;
	char *line = NULL;

	if (!file)
		return -errno;
	while (getline(&line, &capacity, file) >= 0)
		parser_line(&parser, line);
	free(line);
	fclose(file);
	return (long)parser.n;
}
