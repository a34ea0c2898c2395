/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The mapped ELF files of one process, for libdwfl: which they are, how to open them (through
 * /proc/PID/map_files, so that a QEMU in another mount namespace, or one that was upgraded while
 * running, is read from the very file it runs), and their function names, dumped once and then
 * found by binary search (dwfl_module_addrinfo takes 50 us each).
 */
#ifndef RECORD_MODULE_H
#define RECORD_MODULE_H

#include <elfutils/libdwfl.h>
#include <stdint.h>
#include <sys/types.h>

struct module_list;

/* NULL on ENOMEM. */
struct module_list *module_list_new(pid_t pid);
void module_list_free(struct module_list *list);
/* Tells `dwfl` what the process has mapped now. 0, -ESRCH if it is gone, -errno. */
int module_list_report(struct module_list *list, Dwfl *dwfl);
/* For Dwfl_Callbacks. */
int module_find_elf(Dwfl_Module *dwfl_module, void **userdata, const char *name, Dwarf_Addr base,
		    char **file_name, Elf **elf);

/* The function that `address` lies in: its name and the distance from its start. NULL if the
 * module names none there (stripped, or not a function). Valid as long as the Dwfl. */
const char *module_symbol(Dwfl_Module *dwfl_module, uint64_t address, uint64_t *offset);

#endif
