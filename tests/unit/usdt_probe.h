/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Defines probes of a program (USDT) for tests. It replaces <sys/sdt.h>, which may not be
 * installed.
 *
 *   USDT_PROBE("provider", "name", "8@%0 -4@%1", "r"(number), "r"(negative));
 *
 * arguments: SIZE@OPERAND of each, separated by blanks; %N is the Nth of the operands that follow,
 * and a negative size means a signed number.
 */
#ifndef UNIT_USDT_PROBE_H
#define UNIT_USDT_PROBE_H

#define USDT_PROBE(provider, name, arguments, ...)                                                 \
	asm volatile("990: nop\n"                                                                  \
		     ".pushsection .note.stapsdt,\"\",\"note\"\n"                                  \
		     ".balign 4\n"                                                                 \
		     ".4byte 992f-991f, 994f-993f, 3\n"                                            \
		     "991: .asciz \"stapsdt\"\n"                                                   \
		     "992: .balign 4\n"                                                            \
		     "993: .8byte 990b\n"                                                          \
		     ".8byte _.stapsdt.base\n"                                                     \
		     ".8byte 0\n"                                                                  \
		     ".asciz \"" provider "\"\n"                                                   \
		     ".asciz \"" name "\"\n"                                                       \
		     ".asciz \"" arguments "\"\n"                                                  \
		     "994: .balign 4\n"                                                            \
		     ".popsection\n"                                                               \
		     ".ifndef _.stapsdt.base\n"                                                    \
		     ".pushsection .stapsdt.base,\"aG\",\"progbits\",.stapsdt.base,comdat\n"       \
		     ".weak _.stapsdt.base\n"                                                      \
		     ".hidden _.stapsdt.base\n"                                                    \
		     "_.stapsdt.base: .space 1\n"                                                  \
		     ".size _.stapsdt.base, 1\n"                                                   \
		     ".popsection\n"                                                               \
		     ".endif\n" ::__VA_ARGS__)

#endif
