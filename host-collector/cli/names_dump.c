/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/cli/names_dump.h"

#include "host-collector/tables/figures.h"
#include "host-collector/tables/report_tables.h"
#include "host-collector/view/advice.h"
#include "host-collector/view/verdict_words.h"
#include "proto/program/options.h"

#define RECORD(to, kind, ...)                                                                      \
	options_dump_record(kind, (const char *const[]){__VA_ARGS__, NULL}, to)

static void verdicts_dump(FILE *to)
{
	for (int v = 0; v < VERDICT_COUNT; v++) {
		const struct verdict_words w = verdict_words((enum verdict)v);

		RECORD(to, "verdict", verdict_name((enum verdict)v), w.holds, w.contradicts,
		       w.advice);
	}
	for (int c = CONFIDENCE_DECIDED; c >= CONFIDENCE_UNDETERMINED; c--)
		RECORD(to, "confidence", confidence_name((enum confidence)c),
		       advice_of_confidence((enum confidence)c));
	for (int m = 0; m < MISSING_COUNT; m++)
		RECORD(to, "missing", missing_data_name((enum missing_data)m),
		       missing_data_meaning((enum missing_data)m),
		       advice_of_missing((enum missing_data)m));
}

static void states_dump(FILE *to)
{
	static const char *const meanings[] = {
#define X(NAME, name, meaning) [VCPU_##NAME] = meaning,
		VCPU_STATES(X)
#undef X
	};

	for (int s = 0; s < VCPU_STATE_COUNT; s++)
		RECORD(to, "state", vcpu_state_name((enum vcpu_state)s), meanings[s]);
}

static void tables_dump(FILE *to)
{
	static const char *const types[] = {[TABLE_TEXT] = "text",
					    [TABLE_COUNT] = "count",
					    [TABLE_NS] = "ns",
					    [TABLE_PERCENT] = "percent",
					    [TABLE_TIME] = "time"};
	const struct figures_kind *k;
	char per[128];

	for (size_t i = 0; (k = report_table_kind(i)); i++) {
		report_table_splits(k, per, sizeof(per));
		RECORD(to, "table", k->name, k->title ? k->title : "", per, k->than ? "than" : "");
		for (size_t c = 0; c < k->n_columns; c++)
			RECORD(to, "column", k->columns[c].column.name, k->columns[c].column.head,
			       types[k->columns[c].column.type]);
	}
}

void names_dump(FILE *to)
{
	verdicts_dump(to);
	states_dump(to);
	tables_dump(to);
}
