/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/daemon/vm_source.h"

#include <stdarg.h>
#include <stdio.h>

enum { LINE_BYTES = 512 };

static void line_say(const struct vm_source *s, const char *vm, const char *format, va_list args)
{
	char text[LINE_BYTES];

	vsnprintf(text, sizeof(text), format, args);
	s->say(s->context, vm, text);
}

void vm_source_say(const struct vm_source *s, const char *vm, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	line_say(s, vm, format, args);
	va_end(args);
}

void candidate_report(const struct vm_source *s, struct candidate *c, const char *format, ...)
{
	va_list args;

	if (c->reported)
		return;
	c->reported = true;
	va_start(args, format);
	line_say(s, "", format, args);
	va_end(args);
}

bool candidate_attach(const struct vm_source *s, struct candidate *c,
		      const struct vm_config *config, enum vm_origin origin, const char *what)
{
	char why[LINE_BYTES];

	if (vm_daemon_attach(s->daemon, config, origin, why, sizeof(why))) {
		candidate_report(s, c, "%s is not watched: %s", what, why);
		return false;
	}
	*c = (struct candidate){.attached = true};
	snprintf(c->vm, sizeof(c->vm), "%s", config->name);
	return true;
}

void candidate_detach(const struct vm_source *s, struct candidate *c)
{
	if (c->attached)
		vm_daemon_detach(s->daemon, c->vm);
	c->attached = false;
}

bool candidate_name(struct vm_config *config, const char *name)
{
	char why[256];

	snprintf(config->name, sizeof(config->name), "%s", name);
	return config->name[0] && !vm_config_check(config, why, sizeof(why));
}
