/* SPDX-License-Identifier: GPL-2.0-only */
/* The order of stores, for BPF programs. stores_before(word) makes all stores before it visible
 * before all stores after it; `word` is any 64-bit word that may be written. */
#ifndef BPF_ARCH_STORES_H
#define BPF_ARCH_STORES_H

#if defined(__TARGET_ARCH_x86)
/* x86 keeps the order of stores; the compiler must do so, too. */
#define stores_before(word) asm volatile("" ::: "memory")
#else
/* BPF has no barrier, but an atomic operation whose result is used is one. */
#define stores_before(word)                                                                        \
	do {                                                                                       \
		__u64 seen = __sync_fetch_and_add(&(word), 0);                                     \
		asm volatile("" : : "r"(seen) : "memory");                                         \
	} while (0)
#endif

#endif
