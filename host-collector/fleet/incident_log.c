/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/fleet/incident_log.h"

#include <errno.h>
#include <fcntl.h>
#include <json.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "host-collector/fleet/segments.h"
#include "host-collector/util/json_get.h"
#include "proto/array.h"

enum { ID_BYTES = 32, LINE_BYTES_MAX = 1 << 20, PATH_BYTES = 4096 };

/* The position of a line in its file: the lines of a fleet do not fit into memory. */
struct place {
	char id[ID_BYTES];
	uint32_t seq, file;
	int64_t begin_ns;
	uint64_t offset;
};

struct incident_log {
	struct place *places;
	size_t n, capacity;
	char **files;
	size_t n_files;
	uint64_t skipped, newer;
};

struct incident_log *incident_log_new(void)
{
	return calloc(1, sizeof(struct incident_log));
}

void incident_log_free(struct incident_log *l)
{
	if (!l)
		return;
	for (size_t i = 0; i < l->n_files; i++)
		free(l->files[i]);
	free(l->files);
	free(l->places);
	free(l);
}

enum line_kind { LINE_RECORD, LINE_NEWER, LINE_OTHER };

/* Parses the id of a line and returns its kind. A schema of another version may use the same names
 * with other meanings. */
static enum line_kind place_of(struct json_object *o, struct place *out)
{
	static const char known[] = "vcpuscope.incident/2", family[] = "vcpuscope.incident/";
	const char *text = json_get_string(o, "schema"), *id = json_get_string(o, "incident_id");

	if (strcmp(text, known) != 0)
		return !strncmp(text, family, sizeof(family) - 1) &&
				       strtoul(text + sizeof(family) - 1, NULL, 10) > 2
			       ? LINE_NEWER
			       : LINE_OTHER;
	if (strlen(id) != ID_BYTES || !json_get(o, "seq") || !json_get(o, "begin_realtime_ns"))
		return LINE_OTHER;
	memcpy(out->id, id, ID_BYTES);
	out->seq = (uint32_t)json_get_int(o, "seq");
	out->begin_ns = json_get_int(o, "begin_realtime_ns");
	return LINE_RECORD;
}

static int place_add(struct incident_log *l, const struct place *place)
{
	if (ARRAY_RESERVE(&l->places, l->n, &l->capacity, 1024))
		return -ENOMEM;
	l->places[l->n++] = *place;
	return 0;
}

static int file_name_add(struct incident_log *l, const char *path)
{
	char **bigger = reallocarray(l->files, l->n_files + 1, sizeof(*bigger));

	if (!bigger)
		return -ENOMEM;
	l->files = bigger;
	l->files[l->n_files] = strdup(path);
	return l->files[l->n_files] ? (l->n_files++, 0) : -ENOMEM;
}

static int file_add(struct incident_log *l, const char *path)
{
	const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	FILE *f = fd < 0 ? NULL : fdopen(fd, "r");
	struct place place = {.file = (uint32_t)l->n_files};
	char *line = NULL;
	size_t bytes = 0;
	ssize_t len;
	int err = f ? file_name_add(l, path) : -errno;

	while (!err && (len = getline(&line, &bytes, f)) > 0) {
		/* The last line of a file that is being written may not be complete. */
		struct json_object *o = line[len - 1] == '\n' && len < LINE_BYTES_MAX
						? json_tokener_parse(line)
						: NULL;

		switch (o ? place_of(o, &place) : LINE_OTHER) {
		case LINE_RECORD:
			err = place_add(l, &place);
			break;
		case LINE_NEWER:
			l->newer++;
			break;
		case LINE_OTHER:
			l->skipped++;
		}
		json_object_put(o);
		place.offset += (uint64_t)len;
	}
	free(line);
	if (f)
		fclose(f);
	return err;
}

static int folder_add(struct incident_log *l, const char *folder, const char *more)
{
	struct segment *all;
	const long n = segments_list(folder, more, &all);
	char path[PATH_BYTES];
	int err = n < 0 ? (int)n : 0;

	for (long i = 0; i < n && !err; i++) {
		if (all[i].kind != SEGMENT_INCIDENTS)
			continue;
		snprintf(path, sizeof(path), "%s/%s%s", folder, all[i].name, more);
		err = file_add(l, path);
		if (err == -ENOENT)
			err = 0; /* it got another name meanwhile */
	}
	free(all);
	return err;
}

int incident_log_add(struct incident_log *l, const char *path)
{
	char sent[PATH_BYTES];
	struct stat st;
	int err;

	if (stat(path, &st))
		return -errno;
	if (!S_ISDIR(st.st_mode))
		return file_add(l, path);
	/* In the order in which a segment moves: none is missed, and one that is read twice counts
	 * once. */
	err = folder_add(l, path, SEGMENT_PART);
	if (!err)
		err = folder_add(l, path, "");
	snprintf(sent, sizeof(sent), "%s/" OUTBOX_SENT, path);
	if (!err && !stat(sent, &st))
		err = folder_add(l, sent, "");
	return err;
}

static int by_id(const void *a, const void *b)
{
	const struct place *x = a, *y = b;
	const int order = memcmp(x->id, y->id, ID_BYTES);

	return order ? order : (x->seq < y->seq) - (x->seq > y->seq);
}

static int by_begin(const void *a, const void *b)
{
	const struct place *x = a, *y = b;

	if (x->begin_ns != y->begin_ns)
		return x->begin_ns < y->begin_ns ? -1 : 1;
	return memcmp(x->id, y->id, ID_BYTES);
}

void incident_log_sort(struct incident_log *l)
{
	size_t kept = 0;

	if (!l->n)
		return;
	qsort(l->places, l->n, sizeof(*l->places), by_id);
	for (size_t i = 0; i < l->n; i++) {
		if (!kept || memcmp(l->places[kept - 1].id, l->places[i].id, ID_BYTES) != 0)
			l->places[kept++] = l->places[i];
	}
	l->n = kept;
	qsort(l->places, l->n, sizeof(*l->places), by_begin);
}

size_t incident_log_count(const struct incident_log *l)
{
	return l->n;
}

uint64_t incident_log_skipped(const struct incident_log *l)
{
	return l->skipped;
}

size_t incident_log_files(const struct incident_log *l)
{
	return l->n_files;
}

uint64_t incident_log_newer(const struct incident_log *l)
{
	return l->newer;
}

struct json_object *incident_log_get(const struct incident_log *l, size_t index)
{
	const struct place *p = index < l->n ? &l->places[index] : NULL;
	FILE *f = p ? fopen(l->files[p->file], "re") : NULL;
	struct json_object *o = NULL;
	char *line = NULL;
	size_t bytes = 0;

	if (f && !fseeko(f, (off_t)p->offset, SEEK_SET) && getline(&line, &bytes, f) > 0)
		o = json_tokener_parse(line);
	free(line);
	if (f)
		fclose(f);
	return o;
}
