/* SPDX-License-Identifier: GPL-2.0-only */
/* Gives the words for a culprit of a stall. Not escaped: guests and host tasks choose names. */
#ifndef VIEW_CULPRIT_TEXT_H
#define VIEW_CULPRIT_TEXT_H

#include "host-collector/analyze/stall/report.h"

/* Returns what the culprit did: "held the pCPU". Static string. */
const char *culprit_role_text(const struct report_culprit *c);
/* Returns what the culprit is: "VM web2, vCPU 0", "7 tasks of such names", "all other tasks"; "" if
 * its name says all. By value, for use in an argument list. */
struct culprit_text {
	char text[192];
};
struct culprit_text culprit_what_text(const struct report_culprit *c);
/* Writes a short name of the culprit: the name and the id, such as "cpu-hog (266)"; without a name,
 * the kind of culprit. */
void culprit_name(const struct report_culprit *c, char *out, size_t out_bytes);

#endif
