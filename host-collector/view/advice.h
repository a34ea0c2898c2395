/* SPDX-License-Identifier: GPL-2.0-only */
/* What to do about data that was not available, and what a confidence means. Reports, the manual
 * pages and the shell completion use these texts. */
#ifndef VIEW_ADVICE_H
#define VIEW_ADVICE_H

#include "host-collector/analyze/stall/report.h"

/* Returns one or two sentences for a person. Static string without line breaks. */
const char *advice_of_missing(enum missing_data m);
/* Returns a sentence that says what this confidence means. Static. */
const char *advice_of_confidence(enum confidence c);

#endif
