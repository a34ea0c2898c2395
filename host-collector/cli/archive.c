/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/cli/archive.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { BLOCK_BYTES = 512, PART_BYTES = 1 << 16 };

/* A header of POSIX.1-1988 (pax(1), "ustar Interchange Format"); numbers are octal texts. */
struct header {
	char name[100], mode[8], uid[8], gid[8], size[12], mtime[12], checksum[8], type,
		linkname[100], magic[6], version[2], uname[32], gname[32], major[8], minor[8],
		prefix[155], rest[12];
};
_Static_assert(sizeof(struct header) == BLOCK_BYTES, "a header is one block");

static void header_write(FILE *to, const char *name, uint64_t bytes, time_t modified)
{
	struct header h = {.type = '0', .magic = "ustar", .version = {'0', '0'}};
	const unsigned char *at = (const unsigned char *)&h;
	unsigned int sum = 0;

	snprintf(h.name, sizeof(h.name), "%s", name);
	snprintf(h.mode, sizeof(h.mode), "%07o", 0600);
	snprintf(h.uid, sizeof(h.uid), "%07o", 0);
	snprintf(h.gid, sizeof(h.gid), "%07o", 0);
	snprintf(h.size, sizeof(h.size), "%011llo", (unsigned long long)bytes);
	snprintf(h.mtime, sizeof(h.mtime), "%011llo", (unsigned long long)modified);
	/* The sum counts its own field as spaces. */
	memset(h.checksum, ' ', sizeof(h.checksum));
	for (size_t i = 0; i < sizeof(h); i++)
		sum += at[i];
	snprintf(h.checksum, sizeof(h.checksum) - 1, "%06o", sum);
	fwrite(&h, sizeof(h), 1, to);
}

int archive_add(FILE *to, const char *name, int from, time_t modified)
{
	static const char zeros[BLOCK_BYTES];
	char part[PART_BYTES];
	struct stat st;
	off_t at = 0;

	if (strlen(name) >= sizeof(((struct header *)0)->name))
		return -EINVAL;
	if (fstat(from, &st))
		return -errno;
	if (st.st_size >= (off_t)1 << 33)
		return -EFBIG;
	header_write(to, name, (uint64_t)st.st_size, modified);
	while (at < st.st_size) {
		const off_t left = st.st_size - at;
		ssize_t n = pread(from, part, left < PART_BYTES ? (size_t)left : PART_BYTES, at);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n ? -errno : -EIO;
		fwrite(part, 1, (size_t)n, to);
		at += n;
	}
	fwrite(zeros, 1, (size_t)(-st.st_size & (BLOCK_BYTES - 1)), to);
	return 0;
}

void archive_end(FILE *to)
{
	static const char zeros[2 * BLOCK_BYTES];

	fwrite(zeros, 1, sizeof(zeros), to);
}
