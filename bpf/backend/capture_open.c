/* SPDX-License-Identifier: GPL-2.0-only */
#include "bpf/backend/capture_open.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "bpf/backend/capture_bpf.h"
#include "bpf/capture/capture_internal.h"
#include "bpf/perf/capture_perf.h"

static const struct choice {
	const struct capture_backend *first, *second; /* the second is used if the first fails */
} choices[] = {
	[CAPTURE_BY_ANY] = {&capture_backend_bpf, &capture_backend_perf},
	[CAPTURE_BY_BPF] = {&capture_backend_bpf, NULL},
	[CAPTURE_BY_PERF] = {&capture_backend_perf, NULL},
};

static int backend_open(const struct capture_backend *backend,
			const struct capture_options *options, struct capture **out, char *why,
			size_t why_bytes)
{
	const int error = backend->open(options, out, why, why_bytes);

	if (!error) {
		(*out)->backend = backend;
		why[0] = '\0';
	}
	return error;
}

int capture_open(const struct capture_options *options, struct capture **out, char *why,
		 size_t why_bytes)
{
	const struct choice *choice = &choices[options->backend];
	char first_why[256] = "", second_why[256] = "";
	int second = 0;
	int error = backend_open(choice->first, options, out, first_why, sizeof(first_why));

	if (error && choice->second)
		second = backend_open(choice->second, options, out, second_why, sizeof(second_why));
	if (error && choice->second && !second) {
		snprintf((*out)->notice, sizeof((*out)->notice), "%s: capturing through perf",
			 first_why);
		error = 0;
	}
	if (!error && options->sample_hz && (*out)->backend == &capture_backend_perf) {
		const size_t used = strlen((*out)->notice);

		snprintf((*out)->notice + used, sizeof((*out)->notice) - used,
			 "%sno samples of stacks through perf", used ? ", " : "");
	}
	/* If both lack the same rights, one reason is enough. Otherwise each backend lacks
	 * something else, and either would do. */
	if (why && why_bytes && error && error != -EPERM && second && second_why[0])
		snprintf(why, why_bytes, "%s; nor does perf do: %s", first_why, second_why);
	else if (why && why_bytes)
		snprintf(why, why_bytes, "%s", error ? first_why : "");
	if (error)
		*out = NULL;
	return error;
}
