/* SPDX-License-Identifier: GPL-2.0-only */
/* The functions of ELF files, by where they lie in the file; the files used last are kept. */
#ifndef AGENT_SYMBOL_FILE_H
#define AGENT_SYMBOL_FILE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "proto/message.h"

struct symbol_files;
struct symbol_file;

/* NULL on ENOMEM. */
struct symbol_files *symbol_files_new(void);
void symbol_files_free(struct symbol_files *files);
/* The file of this device and inode, which are those of `path`: reads it unless it is known. NULL
 * if it is no ELF file, or cannot be read. Valid until the next call. */
struct symbol_file *symbol_file_get(struct symbol_files *files, dev_t device, ino_t inode,
				    const char *path);
/* The function that holds the byte at `offset` of the file: its name, and how far into it. Leaves
 * both alone and returns false if there is none. */
bool symbol_file_lookup(const struct symbol_file *file, uint64_t offset, char name[VS_TEXT_MAX],
			uint64_t *distance);

#endif
