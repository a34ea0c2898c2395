// SPDX-License-Identifier: GPL-2.0-only
#include "proto/message_config.h"

const char *event_class_name(uint32_t class)
{
	static const char *const names[] = {
#define X(number, NAME, name, ...) [EVENT_CLASS_##NAME] = (name),
		VS_EVENT_CLASSES(X)
#undef X
	};

	return names[class];
}
