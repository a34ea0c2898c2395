/* SPDX-License-Identifier: GPL-2.0-only */
/* Writes a report as JSON, schema vcpuscope.report/1 (docs/report-json.md). */
#ifndef VIEW_JSON_H
#define VIEW_JSON_H

#include <stdio.h>

#include "host-collector/analyze/stall/report.h"

/* Writes one object and a newline. `pretty`: indented, else on one line. Returns 0, -ENOMEM or
 * -EIO. */
int json_report_write(const struct report *r, bool pretty, FILE *out);
/* Writes the array `headline` of that object. Returns 0, -ENOMEM or -EIO. */
int json_headline_write(const struct report *r, FILE *out);

#endif
