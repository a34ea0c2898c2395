/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Writes the result of a gate as text for users and as JSON, JUnit XML and TAP 13 for CI servers.
 */
#ifndef COMPARE_GATE_TEXT_H
#define COMPARE_GATE_TEXT_H

#include <stdio.h>

#include "host-collector/compare/gate.h"

struct gate_view {
	bool all;         /* text: show rows that did not move, too */
	const char *next; /* command that shows details of a moved row; NULL: none */
};

/* These functions return 0, -ENOMEM or -EIO. */
int gate_write_text(const struct gate_result *r, const struct gate_view *view, FILE *to);
/* Writes one object of schema vcpuscope.gate/1 (docs/gate.md). */
int gate_write_json(const struct gate_result *r, const struct gate_view *view, FILE *to);
int gate_write_junit(const struct gate_result *r, const struct gate_view *view, FILE *to);
int gate_write_tap(const struct gate_result *r, const struct gate_view *view, FILE *to);

#endif
