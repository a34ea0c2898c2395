/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/compare/gate_rules.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "host-collector/compare/figure_name.h"
#include "proto/program/value.h"

enum { LINE_MAX_BYTES = 1024, WORDS_MAX = 16, FILE_BYTES_MAX = 1 << 20 };

struct parser {
	const char *name;
	unsigned line;
	struct gate_rules *out;
	char *why;
	size_t why_bytes;
};

static int __attribute__((format(printf, 2, 3)))
wrong(const struct parser *p, const char *format, ...)
{
	char what[256];
	va_list args;

	va_start(args, format);
	vsnprintf(what, sizeof(what), format, args);
	va_end(args);
	snprintf(p->why, p->why_bytes, "%s: line %u: %s", p->name, p->line, what);
	return -EINVAL;
}

/* A number greater than 0, less than a limit that no figure reaches, with this unit. */
static bool number_read(const char *text, const char *unit, double *value)
{
	char *end;

	if (!((text[0] >= '0' && text[0] <= '9') || text[0] == '.'))
		return false;
	*value = strtod(text, &end);
	return end != text && !strcmp(end, unit) && *value > 0 && *value < 1e15;
}

static bool time_read(const char *text, double *ns)
{
	uint64_t whole;

	if (duration_parse(text, &whole))
		return false;
	*ns = (double)whole;
	return true;
}

static int limit_read(const struct parser *p, const char *what, const char *text,
		      struct gate_rule *rule)
{
	bool share = rule->statistic == RUN_SHARE, rate = rule->statistic == RUN_RATE;

	if (!strcmp(what, "max")) {
		if (share  ? number_read(text, "%", &rule->max)
		    : rate ? number_read(text, "", &rule->max)
			   : time_read(text, &rule->max))
			return 0;
		return wrong(p, "max %s: want %s", text,
			     share  ? "a percentage, such as 5%"
			     : rate ? "a number a second"
				    : "a time, such as 200us");
	}
	if (number_read(text, share ? "pp" : "%",
			!strcmp(what, "soft") ? &rule->soft : &rule->hard))
		return 0;
	return wrong(p, "%s %s: want %s", what, text,
		     share ? "percentage points, such as 0.5pp" : "a percentage, such as 5%");
}

static int gate_read(const struct parser *p, char **words, size_t n)
{
	struct gate_rule rule = {.soft = (double)NAN, .hard = (double)NAN, .max = (double)NAN};
	int err;

	if (n < 4)
		return wrong(p, "want gate FIGURE STATISTIC and a limit: soft, hard or max");
	if (strlen(words[1]) >= FIGURE_NAME_MAX)
		return wrong(p, "%.20s...: longer than any figure's name", words[1]);
	snprintf(rule.figure, sizeof(rule.figure), "%s", words[1]);
	rule.statistic = run_statistic_find(words[2]);
	if (rule.statistic == RUN_STATISTIC_COUNT)
		return wrong(p,
			     "%s: no such statistic: mean, p50, p90, p95, p99, p99.9, rate, share",
			     words[2]);
	for (size_t i = 3; i < n; i++) {
		if (!strcmp(words[i], "optional")) {
			rule.optional = true;
			continue;
		}
		if (strcmp(words[i], "soft") && strcmp(words[i], "hard") && strcmp(words[i], "max"))
			return wrong(p, "%s: want soft, hard, max or optional", words[i]);
		if (i + 1 == n)
			return wrong(p, "%s: its number is missing", words[i]);
		err = limit_read(p, words[i], words[i + 1], &rule);
		if (err)
			return err;
		i++;
	}
	if (isnan(rule.soft) && isnan(rule.hard) && isnan(rule.max))
		return wrong(p, "no limit: want soft, hard or max");
	if (rule.soft > rule.hard)
		return wrong(p, "the soft limit is above the hard one");
	if (p->out->n == GATE_RULES_MAX)
		return wrong(p, "more than %d gates", GATE_RULES_MAX);
	p->out->rules[p->out->n++] = rule;
	return 0;
}

static int line_read(const struct parser *p, char *line)
{
	char *words[WORDS_MAX], *rest = NULL;
	double number;
	size_t n = 0;

	line[strcspn(line, "#")] = '\0';
	for (char *word = strtok_r(line, " \t\r", &rest); word;
	     word = strtok_r(NULL, " \t\r", &rest)) {
		if (n == WORDS_MAX)
			return wrong(p, "more than %d words", WORDS_MAX);
		words[n++] = word;
	}
	if (!n)
		return 0;
	if (!strcmp(words[0], "gate"))
		return gate_read(p, words, n);
	if (!strcmp(words[0], "false_alarms")) {
		if (n != 2 || !number_read(words[1], "%", &number) || number > 50)
			return wrong(p, "want false_alarms and a percentage up to 50%%");
		p->out->false_alarms = number / 100;
		return 0;
	}
	if (!strcmp(words[0], "min_runs")) {
		if (n != 2 || !number_read(words[1], "", &number) || number < 2 ||
		    number > RUN_SET_MAX || number != floor(number))
			return wrong(p, "want min_runs and a whole number from 2 on");
		p->out->min_runs = (size_t)number;
		return 0;
	}
	return wrong(p, "%.40s: want gate, false_alarms or min_runs", words[0]);
}

int gate_rules_parse(const char *text, const char *name, struct gate_rules *out, char *why,
		     size_t why_bytes)
{
	struct parser p = {.name = name, .out = out, .why = why, .why_bytes = why_bytes};

	*out = (struct gate_rules){.false_alarms = 0.025, .min_runs = 5};
	while (*text) {
		size_t len = strcspn(text, "\n");
		char line[LINE_MAX_BYTES];
		int err;

		p.line++;
		if (len >= sizeof(line))
			return wrong(&p, "longer than %d bytes", LINE_MAX_BYTES - 1);
		memcpy(line, text, len);
		line[len] = '\0';
		err = line_read(&p, line);
		if (err)
			return err;
		text += len + (text[len] == '\n');
	}
	return out->n ? 0 : wrong(&p, "no gate in it: nothing would be tested");
}

int gate_rules_read(const char *path, struct gate_rules *out, char *why, size_t why_bytes)
{
	char *text = NULL;
	FILE *from;
	size_t len;
	int err;

	if (!path)
		return gate_rules_parse(gate_rules_default, "default gates", out, why, why_bytes);
	from = fopen(path, "r");
	if (!from) {
		err = -errno;
		snprintf(why, why_bytes, "%s: cannot open: %s", path, strerror(-err));
		return err;
	}
	text = malloc(FILE_BYTES_MAX + 1);
	len = text ? fread(text, 1, FILE_BYTES_MAX, from) : 0;
	err = !text ? -ENOMEM : ferror(from) ? -EIO : !feof(from) ? -EFBIG : 0;
	fclose(from);
	if (err) {
		snprintf(why, why_bytes, "%s: cannot read: %s", path, strerror(-err));
	} else {
		text[len] = '\0';
		err = gate_rules_parse(text, path, out, why, why_bytes);
	}
	free(text);
	return err;
}

const struct gate_rule *gate_rules_find(const struct gate_rules *rules, const char *figure)
{
	for (size_t i = 0; i < rules->n; i++) {
		if (figure_name_matches(rules->rules[i].figure, figure))
			return &rules->rules[i];
	}
	return NULL;
}

int gate_rules_need(struct gate_rules *rules, const char *figure, char *why, size_t why_bytes)
{
	if (!gate_rules_find(rules, figure)) {
		snprintf(why, why_bytes, "no gate is for the figure %s; add a line to gates.conf",
			 figure);
		return -EINVAL;
	}
	if (rules->n_needed == GATE_NEEDED_MAX) {
		snprintf(why, why_bytes, "more than %d figures are required", GATE_NEEDED_MAX);
		return -EINVAL;
	}
	snprintf(rules->needed[rules->n_needed++], FIGURE_NAME_MAX, "%s", figure);
	return 0;
}
