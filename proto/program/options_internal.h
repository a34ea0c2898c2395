/* SPDX-License-Identifier: GPL-2.0-only */
/* Shared by the parser, the help and the dump. */
#ifndef PROGRAM_OPTIONS_INTERNAL_H
#define PROGRAM_OPTIONS_INTERNAL_H

#include "proto/program/options.h"

/* The options that every command has. */
extern const struct option_spec option_help, option_version;

/* Returns whether the row is an argument without dashes. */
bool option_is_operand(const struct option_spec *spec);

#endif
