/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Names of figures that contain the name of a VM-exit: "exit.HLT", "exit.PF_excp". A blank becomes
 * '_', because the words of gates.conf end at blanks.
 *
 * Baselines and gates that earlier versions or users wrote may have other names for an exit
 * (model/exit_name.h). They mean the same figure.
 */
#ifndef COMPARE_FIGURE_NAME_H
#define COMPARE_FIGURE_NAME_H

#include "host-collector/compare/run_summary.h"

struct figure_name {
	char text[FIGURE_NAME_MAX];
};

struct figure_name figure_name_of_exit(uint32_t isa, uint32_t reason);
/* Returns the current name of a figure: the same one, except for an exit with another name. */
struct figure_name figure_name_current(const char *name);
/* Returns whether a pattern of gates.conf matches a current name, or another name of its exit. */
bool figure_name_matches(const char *pattern, const char *name);

#endif
