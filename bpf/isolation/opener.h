/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The process between who asks for names (namer.h) and the namer (naming.h). It keeps the rights
 * that it takes to open what another process has mapped, reads nothing of any file, and may hang in
 * open(): then it is killed. It starts the namer, ends it when a stack takes it too long, and
 * remembers the file that killed it.
 */
#ifndef ISOLATION_OPENER_H
#define ISOLATION_OPENER_H

#include "bpf/isolation/naming.h"

/* argv[0] of an opener: any program that uses namer.h asks opener_is_meant() first in main(). */
#define OPENER_NAME "vcpuscope-namer"

enum opener_descriptor { OPENER_ASKER = 3, OPENER_BAD_FILES = 4 };

bool opener_is_meant(int argc, char **argv);
/* Returns when the asking process is gone: what main() gives to _exit(). Of the two processes that
 * return from it one is the namer. */
int opener_main(const struct naming_body *body);

#endif
