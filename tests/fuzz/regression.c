// SPDX-License-Identifier: GPL-2.0-only
/* Runs a fuzz target without a fuzzer on every file of the named folders: whole, cut at every
 * length, and with every byte replaced by a few others. An error is a trap of the target, or a
 * report of a sanitizer. */
#include "fuzz.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SEED_BYTES_MAX = 4096 }; /* of which all variants are tried; larger ones run whole */

static unsigned long run_exact(const uint8_t *data, size_t len)
{
	uint8_t *exact = malloc(len + 1);

	if (!exact)
		return 0;
	memcpy(exact, data, len);
	LLVMFuzzerTestOneInput(exact, len);
	free(exact);
	return 1;
}

static unsigned long run_variants(uint8_t *data, size_t len)
{
	static const uint8_t flips[] = {0x01, 0x80, 0x7f, 0xff};
	unsigned long runs = run_exact(data, len);

	if (len > SEED_BYTES_MAX)
		return runs;
	for (size_t cut = 0; cut < len; cut++)
		runs += run_exact(data, cut);
	for (size_t at = 0; at < len; at++)
		for (size_t f = 0; f < sizeof(flips); f++) {
			data[at] ^= flips[f];
			runs += run_exact(data, len);
			data[at] ^= flips[f];
		}
	return runs;
}

static unsigned long run_file(const char *path)
{
	FILE *file = fopen(path, "rb");
	unsigned long runs = 0;
	uint8_t *data = malloc(1 << 20);

	if (file && data)
		runs = run_variants(data, fread(data, 1, 1 << 20, file));
	free(data);
	if (file)
		fclose(file);
	return runs;
}

int main(int argc, char **argv)
{
	unsigned long runs = 0;

	for (int i = 1; i < argc; i++) {
		DIR *folder = opendir(argv[i]);
		struct dirent *entry;

		while (folder && (entry = readdir(folder))) {
			char path[4096];

			if (entry->d_name[0] == '.')
				continue;
			snprintf(path, sizeof(path), "%s/%s", argv[i], entry->d_name);
			runs += run_file(path);
		}
		if (folder)
			closedir(folder);
	}
	printf("%lu inputs\n", runs);
	return runs ? 0 : 1;
}
