/* SPDX-License-Identifier: GPL-2.0-only */
#include "bpf/capture/tracepoint_format.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

enum { FORMAT_BYTES_MAX = 65536 };

/* Opens the tracepoint's format file, wherever tracefs is mounted. Returns 0, -EACCES if tracefs
 * cannot be read, or -ENOENT. */
static int format_open(const char *system, const char *name, FILE **out)
{
	static const char *const roots[] = {"/sys/kernel/tracing", "/sys/kernel/debug/tracing"};
	char path[256];
	int error = -ENOENT;

	*out = NULL;
	for (size_t i = 0; i < 2 && !*out; i++) {
		snprintf(path, sizeof(path), "%s/events/%s/%s/format", roots[i], system, name);
		*out = fopen(path, "re");
		if (!*out && errno == EACCES)
			error = -EACCES;
	}
	return *out ? 0 : error;
}

int tracepoint_format_parse(struct tep_handle *tep, const char *system, const char *name,
			    struct tep_event **out)
{
	char *format;
	size_t bytes;
	FILE *f;
	int error = format_open(system, name, &f);

	*out = NULL;
	if (error)
		return error;
	format = malloc(FORMAT_BYTES_MAX);
	if (format) {
		bytes = fread(format, 1, FORMAT_BYTES_MAX, f);
		/* libtraceevent also returns an error for a print format that it cannot parse. The
		 * fields are valid then. */
		tep_parse_format(tep, out, format, bytes, system);
	}
	free(format);
	fclose(f);
	if (!format)
		return -ENOMEM;
	return *out ? 0 : -EPROTO;
}

int tracepoint_format_read(const char *system, const char *name, struct tracepoint_field *fields,
			   size_t n)
{
	struct tep_handle *tep = tep_alloc();
	struct tep_event *event;
	int error;

	if (!tep)
		return -ENOMEM;
	error = tracepoint_format_parse(tep, system, name, &event);
	for (size_t i = 0; i < n && !error; i++) {
		const struct tep_format_field *found =
			fields[i].name ? tep_find_field(event, fields[i].name) : NULL;

		fields[i].offset = found ? (unsigned int)found->offset : 0;
		fields[i].bytes = found ? (unsigned int)found->size : 0;
		fields[i].is_signed = found && found->flags & TEP_FIELD_IS_SIGNED;
	}
	tep_free(tep);
	return error;
}
