/* SPDX-License-Identifier: GPL-2.0-only */
#include "proto/program/output.h"

#include <errno.h>
#include <string.h>

bool output_is_stdout(const char *path)
{
	return !path || !strcmp(path, "-");
}

const char *output_name(const char *path)
{
	return output_is_stdout(path) ? "standard output" : path;
}

int output_open(const char *path, FILE **to)
{
	*to = output_is_stdout(path) ? stdout : fopen(path, "we");
	return *to ? 0 : -errno;
}

int output_close(FILE *to)
{
	int err = 0;

	if (fflush(to))
		err = -errno;
	else if (ferror(to))
		err = -EIO;
	if (to != stdout && fclose(to) && !err)
		err = -errno;
	return err;
}
