/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Names of kernel code addresses, from /proc/kallsyms: read once (100 ms, 5 MiB for 120,000
 * symbols), then a binary search.
 */
#ifndef SYMBOLS_KERNEL_SYMBOLS_H
#define SYMBOLS_KERNEL_SYMBOLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct kallsyms;

/* path: NULL for /proc/kallsyms. 0, -errno, -EACCES if the kernel hides its addresses from us
 * (kernel.kptr_restrict), -ENODATA if there is no code symbol. */
int kallsyms_load(const char *path, struct kallsyms **out);
/* *k becomes the symbols of the running kernel, read again only if modules were loaded or unloaded
 * since. 0; or as above, then *k is NULL. */
int kallsyms_refresh(struct kallsyms **k);
void kallsyms_free(struct kallsyms *k);
size_t kallsyms_count(const struct kallsyms *k);

struct kallsyms_symbol {
	const char *name;
	const char *module; /* "" for the kernel proper */
	uint64_t offset;    /* of the address from the symbol */
};
/* The code symbol at or before `address`; false if it lies before the first. */
bool kallsyms_lookup(const struct kallsyms *k, uint64_t address, struct kallsyms_symbol *out);

#endif
