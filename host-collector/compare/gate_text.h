/* SPDX-License-Identifier: GPL-2.0-only */
/* A gate's judgement for people (text) and for CI servers (JSON, JUnit XML, TAP 13). */
#ifndef COMPARE_GATE_TEXT_H
#define COMPARE_GATE_TEXT_H

#include <stdio.h>

#include "host-collector/compare/gate.h"

struct gate_view {
	bool all;         /* text: rows that did not move, too */
	const char *next; /* the command that shows more of what moved; NULL: none */
};

/* Each 0, -ENOMEM or -EIO. */
int gate_write_text(const struct gate_result *r, const struct gate_view *view, FILE *to);
/* One object, schema vcpuscope.gate/1 (docs/gate.md). */
int gate_write_json(const struct gate_result *r, const struct gate_view *view, FILE *to);
int gate_write_junit(const struct gate_result *r, const struct gate_view *view, FILE *to);
int gate_write_tap(const struct gate_result *r, const struct gate_view *view, FILE *to);

#endif
