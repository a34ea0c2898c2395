// SPDX-License-Identifier: GPL-2.0-only
/* Parses the words of flame_options. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "host-collector/analyze/flame/flame.h"

static const char *const kind_names[FLAME_KIND_COUNT] = {
#define X(NAME, name, ...) [FLAME_##NAME] = name,
	FLAME_KINDS(X)
#undef X
};

static const char *const task_state_names[FLAME_TASK_STATE_COUNT] = {
#define X(NAME, name) [FLAME_TASK_##NAME] = name,
	FLAME_TASK_STATES(X)
#undef X
};

int flame_kind_parse(const char *text, enum flame_kind *kind)
{
	for (int i = 0; i < FLAME_KIND_COUNT; i++) {
		if (!strcmp(text, kind_names[i])) {
			*kind = (enum flame_kind)i;
			return 0;
		}
	}
	return -EINVAL;
}

enum flame_subject flame_subject_of(enum flame_kind kind)
{
	return kind == FLAME_WALL || kind == FLAME_ONCPU ? FLAME_OF_TASKS : FLAME_OF_VCPUS;
}

static const char *state_name(enum flame_subject subject, int i)
{
	if (subject == FLAME_OF_TASKS)
		return i < FLAME_TASK_STATE_COUNT ? task_state_names[i] : NULL;
	return i < VCPU_STATE_COUNT ? vcpu_state_name((enum vcpu_state)i) : NULL;
}

static uint32_t state_bits(enum flame_subject subject, const char *word, size_t len)
{
	const char *name;

	if (subject == FLAME_OF_VCPUS && len == strlen("running") && !strncmp(word, "running", len))
		return 1u << VCPU_GUEST | 1u << VCPU_KVM | 1u << VCPU_VMM;
	for (int i = 0; (name = state_name(subject, i)); i++) {
		if (len == strlen(name) && !strncmp(word, name, len))
			return 1u << i;
	}
	return 0;
}

int flame_states_parse(enum flame_subject subject, const char *text, uint32_t *states, char *why,
		       size_t why_bytes)
{
	const bool without = *text == '-';
	uint32_t named = 0;

	if (!strcmp(text, "all")) {
		*states = ~0u;
		return 0;
	}
	text += without;
	for (size_t len; *text; text += len + (text[len] == ',')) {
		uint32_t bits;

		len = strcspn(text, ",");
		bits = state_bits(subject, text, len);
		if (!bits) {
			int n = snprintf(why, why_bytes,
					 "no state '%.*s' of a %s; there are:", (int)len, text,
					 subject == FLAME_OF_TASKS ? "guest's task" : "vCPU");

			for (int i = 0; state_name(subject, i) && n > 0 && (size_t)n < why_bytes;
			     i++)
				n += snprintf(why + n, why_bytes - (size_t)n, " %s",
					      state_name(subject, i));
			return -EINVAL;
		}
		named |= bits;
	}
	*states = without ? ~named : named;
	return 0;
}
