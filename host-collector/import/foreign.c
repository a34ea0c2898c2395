/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/import/foreign.h"

#include <stdio.h>
#include <string.h>

static const struct foreign rows[] = {
	{"\x1f\x8b", "compressed (gzip)", "zcat"},
	{"\x28\xb5\x2f\xfd", "compressed (zstd)", "zstdcat"},
	{"\xfd"
	 "7zXZ",
	 "compressed (xz)", "xzcat"},
	{"BZh", "compressed (bzip2)", "bzcat"},
	{"PERFILE2", "perf's own format", "perf script --ns -i"},
	/* Only asked about in a build without libtracecmd, which reads these. */
	{"\027\010\104tracing",
	 "trace-cmd's own format, which this build does not read (build with -DVCPUSCOPE_TRACECMD=ON)",
	 "trace-cmd report -t -i"},
};

const struct foreign *foreign_of(const char *path)
{
	char begin[16] = "";
	FILE *f = fopen(path, "rb");
	size_t n;

	if (!f)
		return NULL;
	n = fread(begin, 1, sizeof(begin), f);
	fclose(f);
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		size_t bytes = strlen(rows[i].begins);

		if (n >= bytes && !memcmp(begin, rows[i].begins, bytes))
			return &rows[i];
	}
	return NULL;
}
