/* SPDX-License-Identifier: GPL-2.0-only */
/* Finds functions in ELF files by file offset. Caches the files that were used last. It runs in
 * the namer's process (bpf/isolation/naming.h), because the files may be hostile. */
#ifndef AGENT_SYMBOL_FILE_H
#define AGENT_SYMBOL_FILE_H

#include <stdbool.h>
#include <stdint.h>

#include "bpf/isolation/naming.h"

struct symbol_files;
struct symbol_file;

/* Returns NULL if out of memory. */
struct symbol_files *symbol_files_new(void);
/* Returns the file of modules[index] of the process that is being named; reads it if it is not
 * cached. NULL if it cannot be opened. Valid until the next call. */
struct symbol_file *symbol_file_get(struct symbol_files *files, struct naming *n, size_t index);
/* Finds the function at `offset` of the file: its name and the distance of the offset from its
 * start, bytes. If there is none, returns false and leaves both unchanged. */
bool symbol_file_lookup(const struct symbol_file *file, uint64_t offset, char name[VS_TEXT_MAX],
			uint64_t *distance);

#endif
