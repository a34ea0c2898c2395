/* SPDX-License-Identifier: GPL-2.0-only */
#include "proto/program/columns.h"

#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { COLUMNS_MOST = 1000 };

unsigned text_columns(FILE *out)
{
	const char *variable = getenv("COLUMNS");
	unsigned long columns = variable ? strtoul(variable, NULL, 10) : 0;
	struct winsize size;
	int fd = out ? fileno(out) : -1;

	if (out && fd < 0)
		return TEXT_COLUMNS;
	if (!columns && isatty(fd) && !ioctl(fd, TIOCGWINSZ, &size))
		columns = size.ws_col;
	if (!columns || columns > COLUMNS_MOST)
		return TEXT_COLUMNS;
	return columns < TEXT_COLUMNS_LEAST ? TEXT_COLUMNS_LEAST : (unsigned)columns;
}
