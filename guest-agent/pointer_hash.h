/* SPDX-License-Identifier: GPL-2.0-only */
/* Replaces addresses of this guest's memory by a keyed hash. Equal pointers have equal hashes, so a
 * hash can be the key of a pair. The hash does not reveal the kernel's addresses (KASLR). */
#ifndef AGENT_POINTER_HASH_H
#define AGENT_POINTER_HASH_H

#include <stdbool.h>
#include <stdint.h>

/* 48 bits save bytes on the wire. The probability that any two of 2^20 pointers collide is 1 in
 * 500. */
enum { POINTER_HASH_BITS = 48 };

struct pointer_hash {
	uint64_t key[2]; /* random; the same as long as the agent runs */
};

/* Chooses a random key. Returns 0, or -EIO if there are no random numbers. */
int pointer_hash_init(struct pointer_hash *h);
/* Returns the lower POINTER_HASH_BITS of SipHash-2-4 (Aumasson and Bernstein, 2012) of the 8 bytes
 * of `pointer`. The hash of 0 is 0: a reader can see a NULL pointer, which reveals no address. */
uint64_t pointer_hash(const struct pointer_hash *h, uint64_t pointer);
/* Returns true if a number that is not declared as a pointer may be an address in the kernel's
 * half. Small negative numbers, such as -errno, are no addresses. */
bool pointer_hash_suspects(uint64_t number);

#endif
