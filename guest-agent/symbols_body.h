/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the agent's namer does (bpf/isolation/naming.h): each address of a stack gets the function
 * that holds it, by the symbol tables of the files that its process has mapped. What has no name
 * keeps its file and the offset in it; what lies in no file keeps its address.
 */
#ifndef AGENT_SYMBOLS_BODY_H
#define AGENT_SYMBOLS_BODY_H

#include "bpf/isolation/naming.h"

extern const struct naming_body symbols_body;

#endif
