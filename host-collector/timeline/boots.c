/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/timeline/boots.h"

#include <stdio.h>
#include <string.h>

bool boots_hello(struct boots *b, uint64_t session_id, const char *boot_id)
{
	bool another = *b->id && *boot_id && strcmp(b->id, boot_id) != 0;

	b->current += another;
	if (*boot_id)
		snprintf(b->id, sizeof(b->id), "%s", boot_id);
	b->sessions[b->n_sessions++ % BOOTS_SESSIONS] =
		(struct boots_session){session_id, b->current};
	return another;
}

uint32_t boots_of(const struct boots *b, uint64_t session_id, uint32_t otherwise)
{
	for (size_t i = b->n_sessions; i-- && b->n_sessions - i <= BOOTS_SESSIONS;) {
		if (b->sessions[i % BOOTS_SESSIONS].id == session_id)
			return b->sessions[i % BOOTS_SESSIONS].boot;
	}
	return otherwise;
}
