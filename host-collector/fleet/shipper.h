/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Delivers the files of an outbox (outbox.h) with a command of the user, which gets the file as its
 * last argument. Exit code 0 means that it is delivered. Otherwise the file is tried again, after 1
 * s at first and after 10 min at most. A random part of each delay keeps the hosts of a fleet from
 * trying at the same time.
 *
 * Incidents and evidence are delivered in the order of their numbers, figures independently of
 * them. A segment that failed SHIPPER_SKIP_AFTER times is passed over and tried again later,
 * because the segment itself may be the cause. Evidence is never passed over: a later record may
 * name it.
 */
#ifndef FLEET_SHIPPER_H
#define FLEET_SHIPPER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SHIPPER_SKIP_AFTER = 8, SHIPPER_WORDS_MAX = 32 };

struct shipper;

struct shipper_options {
	const char *outbox;  /* the folder; it becomes the working directory */
	const char *command; /* command and arguments, see shipper_words(); no shell runs. The first
				word is an absolute path */
	uint64_t timeout_ms; /* of the command; then its process group is killed */
	bool verbose;        /* show what the command prints: it may hold secrets */
	void (*say)(void *context, const char *line);
	void *context;
};

/* Splits a command into words at spaces. A word in '..' or ".." may contain spaces. Stores pointers
 * into `text`, which is changed, and NULL after the last. Returns the number of words, or -EINVAL
 * with one line in `why`. */
int shipper_words(char *text, char *words[SHIPPER_WORDS_MAX + 1], char *why, size_t why_bytes);

/* Opens the outbox, with the rights that the caller has now; it may give up rights afterwards.
 * Returns 0, or -errno with one line in `why`; -EBUSY: another shipper works there. */
int shipper_open(const struct shipper_options *options, struct shipper **out, char *why,
		 size_t why_bytes);
void shipper_close(struct shipper *s); /* NULL is allowed */
/* Delivers at most one file, and waits for the command. now_ms: a monotonic time. Returns 1 if it
 * was delivered, 0 if it failed or nothing is due. */
int shipper_turn(struct shipper *s, uint64_t now_ms);
/* Returns the number of files that wait. */
size_t shipper_waiting(const struct shipper *s);

#endif
