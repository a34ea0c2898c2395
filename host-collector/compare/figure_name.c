/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/compare/figure_name.h"

#include <fnmatch.h>
#include <string.h>

#include "host-collector/model/exit_name.h"

static const char prefix[] = "exit.";

static struct figure_name name_make(const char *exit)
{
	struct figure_name name;

	snprintf(name.text, sizeof(name.text), "%s%s", prefix, exit);
	for (char *c = name.text; *c; c++) {
		if (*c == ' ')
			*c = '_';
	}
	return name;
}

struct figure_name figure_name_of_exit(uint32_t isa, uint32_t reason)
{
	return name_make(exit_name(isa, reason).text);
}

/* Returns whether the figure's name contains the name of an exit. */
static bool exit_find(const char *name, uint32_t *isa, uint32_t *reason)
{
	const char *exit = name + strlen(prefix);

	if (strncmp(name, prefix, strlen(prefix)) != 0)
		return false;
	*isa = exit_name_isa(exit, strlen(exit));
	return exit_name_find(*isa, exit, strlen(exit), reason);
}

struct figure_name figure_name_current(const char *name)
{
	uint32_t isa, reason;
	struct figure_name same;

	if (exit_find(name, &isa, &reason))
		return figure_name_of_exit(isa, reason);
	snprintf(same.text, sizeof(same.text), "%s", name);
	return same;
}

bool figure_name_matches(const char *pattern, const char *name)
{
	uint32_t isa, reason;
	const char *alias;

	if (!fnmatch(pattern, name, 0))
		return true;
	if (!exit_find(name, &isa, &reason))
		return false;
	for (size_t i = 0; (alias = exit_name_alias(isa, reason, i)); i++) {
		if (!fnmatch(pattern, name_make(alias).text, 0))
			return true;
	}
	return false;
}
