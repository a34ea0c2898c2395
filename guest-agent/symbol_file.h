/* SPDX-License-Identifier: GPL-2.0-only */
/* The functions of ELF files, by where they lie in the file; the files used last are kept. Runs in
 * the namer's process (bpf/isolation/naming.h): the files are anybody's. */
#ifndef AGENT_SYMBOL_FILE_H
#define AGENT_SYMBOL_FILE_H

#include <stdbool.h>
#include <stdint.h>

#include "bpf/isolation/naming.h"

struct symbol_files;
struct symbol_file;

/* NULL on ENOMEM. */
struct symbol_files *symbol_files_new(void);
/* The file of modules[index] of the process at work: reads it unless it is known. NULL if it cannot
 * be opened. Valid until the next call. */
struct symbol_file *symbol_file_get(struct symbol_files *files, struct naming *n, size_t index);
/* The function that holds the byte at `offset` of the file: its name, and how far into it. Leaves
 * both alone and returns false if there is none. */
bool symbol_file_lookup(const struct symbol_file *file, uint64_t offset, char name[VS_TEXT_MAX],
			uint64_t *distance);

#endif
