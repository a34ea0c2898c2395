/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * ELF files that processes have mapped, each read once for all processes, with the names of their
 * functions, dumped once and then found by binary search (dwfl_module_addrinfo takes 50 us each).
 * Runs in the namer's process only (bpf/isolation/naming.h): the files are anybody's, so they are
 * read with pread() and never mapped, and what is larger than a real file's part is not read.
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
size_t elf_files_count(const struct elf_files *files);
/* The file of modules[index] of the process at work; NULL: not to be had. Borrowed from `files`. */
struct elf_file *elf_file_get(struct elf_files *files, struct naming *n, size_t index);
/* What libdwfl gets; it ends it. NULL: no ELF file. */
Elf *elf_file_borrow(struct elf_file *file);
/* The function that holds `address` of dwfl_module, which has this file: its name and the distance
 * from its start. NULL if the file names none there (stripped, or no function). Valid as long as
 * the files. */
const char *elf_file_symbol(struct elf_file *file, struct naming *n, Dwfl_Module *dwfl_module,
			    uint64_t address, uint64_t *offset);

#endif
