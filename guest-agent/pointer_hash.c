// SPDX-License-Identifier: GPL-2.0-only
#include "guest-agent/pointer_hash.h"

#include <errno.h>
#include <sys/random.h>

#define KERNEL_BEGIN 0xff00000000000000ull /* with 57 bits of address; with 48 it is above */
#define ERRNO_BEGIN  0xfffffffffffff001ull /* linux/err.h: MAX_ERRNO */

int pointer_hash_init(struct pointer_hash *h)
{
	return getrandom(h->key, sizeof(h->key), 0) == sizeof(h->key) ? 0 : -EIO;
}

static uint64_t rotate(uint64_t x, unsigned int by)
{
	return x << by | x >> (64 - by);
}

static void rounds(uint64_t v[4], int n)
{
	while (n--) {
		v[0] += v[1];
		v[2] += v[3];
		v[1] = rotate(v[1], 13) ^ v[0];
		v[3] = rotate(v[3], 16) ^ v[2];
		v[0] = rotate(v[0], 32) + v[3];
		v[2] += v[1];
		v[1] = rotate(v[1], 17) ^ v[2];
		v[3] = rotate(v[3], 21) ^ v[0];
		v[2] = rotate(v[2], 32);
	}
}

uint64_t pointer_hash(const struct pointer_hash *h, uint64_t pointer)
{
	const uint64_t last = 8ull << 56; /* the length, and no bytes beyond the word */
	uint64_t v[4] = {h->key[0] ^ 0x736f6d6570736575, h->key[1] ^ 0x646f72616e646f6d,
			 h->key[0] ^ 0x6c7967656e657261, h->key[1] ^ 0x7465646279746573};

	if (!pointer)
		return 0;
	v[3] ^= pointer;
	rounds(v, 2);
	v[0] ^= pointer;
	v[3] ^= last;
	rounds(v, 2);
	v[0] ^= last;
	v[2] ^= 0xff;
	rounds(v, 4);
	return (v[0] ^ v[1] ^ v[2] ^ v[3]) & ((1ull << POINTER_HASH_BITS) - 1);
}

bool pointer_hash_suspects(uint64_t number)
{
	return number >= KERNEL_BEGIN && number < ERRNO_BEGIN;
}
