/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * ELF files that processes have mapped, and the names of their functions. Each file is opened once
 * for all processes. The names are read once and found by binary search, because
 * dwfl_module_addrinfo() takes 50 us for each address.
 *
 * Runs only in the namer process (bpf/isolation/naming.h), because the files belong to other users.
 * So files are read with pread() and never mapped, and a part larger than in any real file is not
 * read.
 */
#ifndef RECORD_ELF_FILE_H
#define RECORD_ELF_FILE_H

#include <elfutils/libdwfl.h>
#include <stdint.h>

#include "bpf/isolation/naming.h"

struct elf_files;
struct elf_file;

/* NULL on ENOMEM. */
struct elf_files *elf_files_new(void);
void elf_files_free(struct elf_files *files);
/* Returns the number of open files. */
size_t elf_files_count(const struct elf_files *files);
/* Returns the file of modules[index] of the current stack's process, or NULL if it cannot be
 * opened. Borrowed from `files`. */
struct elf_file *elf_file_get(struct elf_files *files, struct naming *n, size_t index);
/* Returns a new reference for libdwfl, which calls elf_end(). NULL: not an ELF file. */
Elf *elf_file_borrow(struct elf_file *file);
/* Returns the name of the function that contains `address`, and the distance from its start in
 * *offset. dwfl_module: the module made from this file. Returns NULL if the file names no function
 * there. Valid as long as `file`. */
const char *elf_file_symbol(struct elf_file *file, struct naming *n, Dwfl_Module *dwfl_module,
			    uint64_t address, uint64_t *offset);

#endif
