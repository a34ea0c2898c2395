/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/fleet/segments.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static const struct {
	const char *word, *end;
} kinds[SEGMENT_KINDS] = {
	[SEGMENT_INCIDENTS] = {"incidents", ".jsonl"},
	[SEGMENT_FIGURES] = {"figures", ".jsonl"},
	[SEGMENT_EVIDENCE] = {"evidence", ".vcs"},
};

void segment_name(enum segment_kind kind, const char *first, const char *second, uint64_t seq,
		  char out[SEGMENT_NAME_MAX])
{
	snprintf(out, SEGMENT_NAME_MAX, "%s-%.32s-%.32s-%016llx%s", kinds[kind].word, first, second,
		 (unsigned long long)seq, kinds[kind].end);
}

static bool hex_skip(const char **at, size_t digits)
{
	if (strspn(*at, "0123456789abcdef") != digits)
		return false;
	*at += digits;
	return true;
}

static bool text_skip(const char **at, const char *text)
{
	const size_t len = strlen(text);

	if (strncmp(*at, text, len) != 0)
		return false;
	*at += len;
	return true;
}

bool segment_parse(const char *name, const char *more, struct segment *out)
{
	for (int k = 0; k < SEGMENT_KINDS; k++) {
		const char *at = name, *seq;

		if (!text_skip(&at, kinds[k].word) || !text_skip(&at, "-") ||
		    !hex_skip(&at, SEGMENT_ID_BYTES - 1) || !text_skip(&at, "-") ||
		    !hex_skip(&at, SEGMENT_ID_BYTES - 1) || !text_skip(&at, "-"))
			continue;
		seq = at;
		if (!hex_skip(&at, 16) || !text_skip(&at, kinds[k].end) || strcmp(at, more) != 0)
			continue;
		*out = (struct segment){.kind = (enum segment_kind)k,
					.seq = strtoull(seq, NULL, 16)};
		snprintf(out->name, sizeof(out->name), "%.*s", (int)(at - name), name);
		return true;
	}
	return false;
}

static int by_seq(const void *a, const void *b)
{
	const struct segment *x = a, *y = b;

	return (x->seq > y->seq) - (x->seq < y->seq);
}

static int list_add(struct segment **all, size_t n, const struct segment *one)
{
	struct segment *bigger = *all;

	if ((n & (n - 1)) == 0) /* full at each power of two */
		bigger = reallocarray(*all, n ? 2 * n : 1, sizeof(*bigger));
	if (!bigger)
		return -ENOMEM;
	bigger[n] = *one;
	*all = bigger;
	return 0;
}

long segments_list(const char *folder, const char *more, struct segment **out)
{
	DIR *dir = opendir(folder);
	struct dirent *entry;
	size_t n = 0;
	int err = 0;

	*out = NULL;
	if (!dir)
		return -errno;
	while (!err && (entry = readdir(dir))) {
		struct segment one;
		struct stat st;

		if (!segment_parse(entry->d_name, more, &one) ||
		    fstatat(dirfd(dir), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) ||
		    !S_ISREG(st.st_mode))
			continue;
		one.bytes = (uint64_t)st.st_size;
		one.modified_s = st.st_mtim.tv_sec;
		err = list_add(out, n, &one);
		n += !err;
	}
	closedir(dir);
	if (err) {
		free(*out);
		*out = NULL;
		return err;
	}
	if (n)
		qsort(*out, n, sizeof(**out), by_seq);
	return (long)n;
}
