/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/cli/guest_options.h"

#include <string.h>

#include "host-collector/decode/config_text.h"

int guest_arguments_read(const struct guest_arguments *arguments, uint64_t sample_hz,
			 struct message_config *out, char *why, size_t why_bytes)
{
	int err = 0;

	memset(out, 0, sizeof(*out));
	if (arguments->events)
		err = config_events_parse(arguments->events, out, why, why_bytes);
	if (!err)
		err = config_level_parse(arguments->level, arguments->handlers_over_ns, out, why,
					 why_bytes);
	if (!err && arguments->task_filter)
		err = config_tasks_parse(arguments->task_filter, out, why, why_bytes);
	if (sample_hz) {
		out->asks |= 1u << CONFIG_SAMPLE_HZ;
		out->sample_hz = (uint32_t)sample_hz;
	}
	return err;
}
