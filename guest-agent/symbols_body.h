/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The work of the agent's namer (bpf/isolation/naming.h): finds for each address of a stack the
 * function that contains it, in the symbol tables of the files that the process has mapped. An
 * address without a function gets its file and the offset in it. An address outside all files
 * remains an address.
 */
#ifndef AGENT_SYMBOLS_BODY_H
#define AGENT_SYMBOLS_BODY_H

#include "bpf/isolation/naming.h"

extern const struct naming_body symbols_body;

#endif
