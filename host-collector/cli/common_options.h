/* SPDX-License-Identifier: GPL-2.0-only */
/* Options that several commands have with the same meaning. `at`: the offset of the member in the
 * struct of the command's arguments. */
#ifndef CLI_COMMON_OPTIONS_H
#define CLI_COMMON_OPTIONS_H

#include <stddef.h>

#include "host-collector/tables/report_tables.h"
#include "host-collector/view/text.h"
#include "proto/program/options.h"

/* const char *; NULL or "-": standard output */
#define OUTPUT_OPTION_ROW(at)                                                                      \
	{                                                                                          \
		.name = "output", .letter = 'o', .type = OPTION_STRING, .offset = (at),            \
		.value = "FILE", .help = "write to this file; - is standard output (default -)"    \
	}

/* const char *: a word of TEXT_COLOUR, or NULL */
#define COLOR_OPTION_ROW(at)                                                                       \
	{                                                                                          \
		.name = "color", .type = OPTION_CHOICE, .offset = (at), .value = TEXT_COLOUR,      \
		.help = "use colors: auto does so on a terminal, unless NO_COLOR is set (default " \
			"auto)"                                                                    \
	}

/* at: offset of a struct report_table_request */
#define TABLE_THAN_PER_ROWS(at)                                                                    \
	{.name = "than",                                                                           \
	 .type = OPTION_DURATION,                                                                  \
	 .offset = (at) + offsetof(struct report_table_request, than_ns),                          \
	 .value = "100ms",                                                                         \
	 .help = "report stalls of at least this length (default 100ms); with TABLE: only "        \
		 "entries of at least this length (default: all)"},                                \
	{                                                                                          \
		.name = "per", .type = OPTION_CHOICE,                                              \
		.offset = (at) + offsetof(struct report_table_request, per),                       \
		.value = REPORT_TABLE_PER, .help = "with TABLE: split the rows by this"            \
	}
#define TABLE_TOP_ROW(at)                                                                          \
	{                                                                                          \
		.name = "top", .letter = 'n', .type = OPTION_NUMBER,                               \
		.offset = (at) + offsetof(struct report_table_request, top), .value = "N",         \
		.help = "with TABLE: show the first N rows; 0: all (default 20)"                   \
	}

#endif
