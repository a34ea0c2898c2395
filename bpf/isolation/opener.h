/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The opener process, between the asking process (namer.h) and the namer (naming.h). It keeps the
 * rights that opening the mapped files of other users' processes needs, and reads no file. It may
 * hang in open(); then the asking process kills it. It starts the namer and ends it when a stack
 * takes too long. If a file killed the namer, the opener adds it to the list of bad files.
 */
#ifndef ISOLATION_OPENER_H
#define ISOLATION_OPENER_H

#include "bpf/isolation/naming.h"

/* argv[0] of an opener. main() of each program that uses namer.h calls opener_is_meant() first. */
#define OPENER_NAME "vcpuscope-namer"

enum opener_descriptor { OPENER_ASKER = 3, OPENER_BAD_FILES = 4 };

/* Returns whether this process was started as an opener. */
bool opener_is_meant(int argc, char **argv);
/* Runs the opener until the asking process is gone. Returns the exit code of the process. */
int opener_main(const struct naming_body *body);

#endif
