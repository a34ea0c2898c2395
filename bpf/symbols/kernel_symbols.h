/* SPDX-License-Identifier: GPL-2.0-only */
/* Finds the names of kernel code addresses. Loading reads /proc/kallsyms (100 ms, 5 MiB for 120,000
 * symbols); a lookup is a binary search. */
#ifndef SYMBOLS_KERNEL_SYMBOLS_H
#define SYMBOLS_KERNEL_SYMBOLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct kallsyms;

/* Loads the symbols. path: NULL for /proc/kallsyms. Returns 0 or -errno: -EACCES (the kernel hides
 * its addresses, kernel.kptr_restrict), -ENODATA (no code symbol). */
int kallsyms_load(const char *path, struct kallsyms **out);
/* Replaces *k by the symbols of the running kernel if *k is NULL, or if modules were loaded or
 * unloaded since *k was read. Returns 0, or -errno as kallsyms_load(). After an error *k is NULL.
 */
int kallsyms_refresh(struct kallsyms **k);
void kallsyms_free(struct kallsyms *k);
/* Returns the number of symbols. */
size_t kallsyms_count(const struct kallsyms *k);

struct kallsyms_symbol {
	const char *name;
	const char *module; /* "" for the kernel itself */
	uint64_t offset;    /* distance of the address from the symbol's start, in bytes */
};
/* Finds the last code symbol at or before `address`. Returns false if there is none. The strings of
 * `out` are borrowed from `k`. */
bool kallsyms_lookup(const struct kallsyms *k, uint64_t address, struct kallsyms_symbol *out);
/* Returns how many of the frames (leaf first) belong to an interrupt of the task, up to the entry
 * of the outermost one; 0: none of them is such an entry. The frames after these belong to the code
 * that was interrupted. Finds the entries of x86 by name (asm_sysvec_*, asm_common_interrupt);
 * always 0 on other architectures. */
size_t kallsyms_interrupt_frames(const struct kallsyms *k, const uint64_t *frames, size_t n);

#endif
