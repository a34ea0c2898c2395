/* SPDX-License-Identifier: GPL-2.0-only */
/* Replaces addresses of this guest's memory by a keyed hash: equal pointers stay equal, so that
 * they can be the key of a pair, and nobody learns where the kernel lies (KASLR). */
#ifndef AGENT_POINTER_HASH_H
#define AGENT_POINTER_HASH_H

#include <stdbool.h>
#include <stdint.h>

enum { POINTER_HASH_BITS = 48 }; /* fewer bytes on the wire; 2^20 pointers collide with 1 in 500 */

struct pointer_hash {
	uint64_t key[2]; /* random; the same as long as the agent runs */
};

/* Chooses a random key. Returns 0, or -EIO if there are no random numbers. */
int pointer_hash_init(struct pointer_hash *h);
/* Returns the lower POINTER_HASH_BITS of SipHash-2-4 (Aumasson and Bernstein, 2012) of the 8 bytes
 * of `pointer`; 0 of 0, because NULL says something and gives nothing away. */
uint64_t pointer_hash(const struct pointer_hash *h, uint64_t pointer);
/* Returns true if a number without a type of its own can be an address of the kernel's half. Small
 * negative numbers, as of an errno, are none. */
bool pointer_hash_suspects(uint64_t number);

#endif
