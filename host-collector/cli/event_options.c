/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/cli/event_options.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

int event_arguments_read(const struct event_arguments *a, const char *command, bool no_guest,
			 struct chosen_events **out, struct message_config *guest)
{
	struct expr_error error = {0};
	char what[64];

	*out = NULL;
	if (!a->events.n)
		return COMMAND_OK;
	*out = calloc(1, sizeof(**out));
	for (size_t i = 0; *out && i < a->events.n; i++) {
		const int err = chosen_events_add(*out, guest, a->events.items[i], &error);

		if (!err)
			continue;
		if (err == -ENOMEM)
			break;
		snprintf(what, sizeof(what), "vcpuscope %s: -e", command);
		/* Without rights, the text is not at fault. */
		if (err == -EACCES)
			fprintf(stderr, "%s: %s\n", what, error.text);
		else
			expr_error_print(&error, what, a->events.items[i], stderr);
		free(*out);
		*out = NULL;
		return err == -EACCES ? COMMAND_UNSUPPORTED : COMMAND_USAGE;
	}
	if (!*out) {
		fprintf(stderr, "vcpuscope %s: out of memory\n", command);
		return COMMAND_TROUBLE;
	}
	if (!no_guest || !guest->n_events)
		return COMMAND_OK;
	fprintf(stderr, "vcpuscope %s: -e guest:... and --no-guest cannot be combined\n", command);
	free(*out);
	*out = NULL;
	return COMMAND_USAGE;
}
