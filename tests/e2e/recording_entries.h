/* SPDX-License-Identifier: GPL-2.0-only */
/* A recording's frames, unpacked, for the tests' own tools. */
#ifndef TESTS_RECORDING_ENTRIES_H
#define TESTS_RECORDING_ENTRIES_H

#include "proto/codec.h"
#include "proto/recording.h"

struct recording_visitor {
	/* Of a batch. 0 or -errno, which ends the reading. */
	int (*batch)(void *context, uint32_t source, const struct batch *b);
	/* Of any other kind; NULL: none. 0 or -errno. */
	int (*message)(void *context, uint32_t source, uint8_t kind, const uint8_t *payload,
		       size_t len);
	void *context;
};

/* Visits every entry in its order; what was handed over is valid during the call. 0 or -errno. */
int recording_visit(const char *path, const struct recording_visitor *visitor);

/*
 * The main() of a tool whose one argument is a recording: visits it, and says on standard error
 * what is wrong. Returns the exit status: 0, 1 if the recording cannot be read to its end, 2 if
 * there is not one argument.
 */
int recording_visit_argument(int argc, char **argv, const struct recording_visitor *visitor);

#endif
