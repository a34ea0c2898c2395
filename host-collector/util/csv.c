/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/util/csv.h"

#include <stdbool.h>
#include <string.h>

#include "host-collector/util/escape.h"

/* A spreadsheet would take a text that begins so for a formula. */
static bool is_formula(const char *text)
{
	return *text && strchr("=+-@", *text);
}

void csv_text_write(const char *text, FILE *out)
{
	struct escaped safe = escape(text);

	fputc('"', out);
	if (is_formula(safe.text))
		fputc('\'', out);
	for (const char *p = safe.text; *p; p++) {
		if (*p == '"')
			fputc('"', out);
		fputc(*p, out);
	}
	fputc('"', out);
}
