/* SPDX-License-Identifier: GPL-2.0-only */
/* Unpacks the frames of a recording, for the tools of tests. */
#ifndef TESTS_RECORDING_ENTRIES_H
#define TESTS_RECORDING_ENTRIES_H

#include "proto/codec.h"
#include "proto/recording.h"

struct recording_visitor {
	/* Called for a batch. Returns 0, or -errno to end the reading. */
	int (*batch)(void *context, uint32_t source, const struct batch *b);
	/* Called for a frame of any other kind; may be NULL. Returns as `batch` does. */
	int (*message)(void *context, uint32_t source, uint8_t kind, const uint8_t *payload,
		       size_t len);
	void *context;
};

/* Visits every entry in the order of the file. Pointers are valid during the call of the visitor.
 * Returns 0 or -errno. */
int recording_visit(const char *path, const struct recording_visitor *visitor);

/*
 * The main() of a tool whose one argument is a recording. Visits the recording and prints errors to
 * standard error. Returns the exit status: 0, 1 if the recording cannot be read to its end, 2 if
 * there is not exactly one argument.
 */
int recording_visit_argument(int argc, char **argv, const struct recording_visitor *visitor);

#endif
