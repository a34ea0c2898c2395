/* SPDX-License-Identifier: GPL-2.0-only */
/* A set of the users of a capture (backend/capture_shared.h), by number. */
#ifndef CAPTURE_USER_SET_H
#define CAPTURE_USER_SET_H

#include <stdbool.h>
#include <stdint.h>

enum { USER_SET_MAX = 512, USER_SET_WORDS = USER_SET_MAX / 64 };

/* All members 0: the empty set. Users are below USER_SET_MAX. */
struct user_set {
	uint64_t words[USER_SET_WORDS];
};

static inline void user_set_add(struct user_set *s, unsigned int user)
{
	s->words[user / 64] |= (uint64_t)1 << user % 64;
}

static inline void user_set_remove(struct user_set *s, unsigned int user)
{
	s->words[user / 64] &= ~((uint64_t)1 << user % 64);
}

static inline bool user_set_has(const struct user_set *s, unsigned int user)
{
	return s->words[user / 64] >> user % 64 & 1;
}

static inline bool user_set_is_empty(const struct user_set *s)
{
	uint64_t any = 0;

	for (unsigned int i = 0; i < USER_SET_WORDS; i++)
		any |= s->words[i];
	return !any;
}

/* Adds the members of `more`. */
static inline void user_set_join(struct user_set *s, const struct user_set *more)
{
	for (unsigned int i = 0; i < USER_SET_WORDS; i++)
		s->words[i] |= more->words[i];
}

/* Removes all members that `others` does not have. */
static inline void user_set_keep(struct user_set *s, const struct user_set *others)
{
	for (unsigned int i = 0; i < USER_SET_WORDS; i++)
		s->words[i] &= others->words[i];
}

/* Removes a member and returns it; -1 if the set is empty. */
static inline int user_set_take(struct user_set *s)
{
	for (unsigned int i = 0; i < USER_SET_WORDS; i++) {
		if (s->words[i]) {
			const int user = __builtin_ctzll(s->words[i]);

			s->words[i] &= s->words[i] - 1;
			return (int)i * 64 + user;
		}
	}
	return -1;
}

#endif
