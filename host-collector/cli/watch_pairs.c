/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/cli/watch_pairs.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "host-collector/analyze/event/pair_line.h"
#include "host-collector/analyze/event/pair_watch.h"
#include "host-collector/engine/pair_evidence.h"
#include "host-collector/util/duration.h"
#include "host-collector/util/escape.h"
#include "host-collector/util/wrap.h"
#include "host-collector/view/pair_text.h"
#include "host-collector/view/text_time.h"
#include "proto/program/value.h"

struct watch_pairs {
	const struct live *live;
	const struct model *model;
	struct watch_pairs_options options;
	struct pair_watch *watch;
	uint64_t printed;
};

int watch_pairs_read(const struct watch_pairs_arguments *a, struct pair_figure_list *out, char *why,
		     size_t why_bytes)
{
	const size_t n = a->than.n;
	int err = pair_list_parse(&a->pairs, PAIR_NAME_BYTES - 1, out, why, why_bytes);

	if (err)
		return err;
	if (n > 1 && n != out->n) {
		snprintf(why, why_bytes,
			 "--pair-than: give one for all pairs, or one for each --pair in their "
			 "order");
		return -EINVAL;
	}
	if (n && !out->n) {
		snprintf(why, why_bytes, "--pair-than needs --pair");
		return -EINVAL;
	}
	for (size_t i = 0; i < out->n && n; i++) {
		const char *text = a->than.items[n > 1 ? i : 0];

		if (duration_parse(text, &out->items[i].than_ns)) {
			snprintf(why, why_bytes,
				 "--pair-than: expected a time such as 1ms, found '%.40s'", text);
			return -EINVAL;
		}
	}
	return 0;
}

/* The wall time at which the pair began. */
static struct time_text begin_text(const struct watch_pairs *w, const struct pair *pair)
{
	const struct host_ns t = pair->from.t;
	struct time_text text;
	int64_t offset_ns;

	if (!pipeline_wall_offset(live_pipeline(w->live), t, &offset_ns) ||
	    !time_wall(t.ns + offset_ns, false, &text))
		snprintf(text.text, sizeof(text.text), "+%.6f s",
			 (double)(t.ns - model_begin(w->model).ns) / 1e9);
	return text;
}

static void text_write(const struct watch_pairs *w, const struct pair_definition *d,
		       const struct pair *pair)
{
	const struct pair_end *on = pair->from.vcpu_known ? &pair->from : &pair->to;
	char key[2 * PAIR_KEY_BYTES], vcpu[24] = "", error[32] = "error unbounded", line[512];

	if (on->vcpu_known)
		snprintf(vcpu, sizeof(vcpu), ", vCPU %" PRIu32, on->vcpu);
	if (pair->error_ns != UINT64_MAX)
		snprintf(error, sizeof(error), "+-%.20s", duration_digits(pair->error_ns).text);
	snprintf(line, sizeof(line), "%s  %s%.128s%s%spair %s took %s (%s), key %s%s",
		 begin_text(w, pair).text, on->vm_known ? "VM " : "",
		 on->vm_known ? model_vm_name(w->model, on->vm) : "", vcpu,
		 on->vm_known ? ": " : "", d->name,
		 duration_digits((uint64_t)pair->duration_ns).text, error,
		 pair_key_text(&pair->key, key, sizeof(key)),
		 pair->is_call ? "" : "; events were lost between both, so it may be wrong");
	if (w->options.terminal)
		wrap_print(w->options.out, "%s\n", escape(line).text);
	else
		fprintf(w->options.out, "%s\n", escape(line).text);
}

static void on_pair(void *context, const struct pair_definition *d,
		    const struct event_choices *choices, const struct pair *pair)
{
	struct watch_pairs *w = context;
	const struct pair_line_options options = {choices, w->model, d->name};

	if (w->options.json)
		pair_line_write(pair, &options, w->options.out);
	else
		text_write(w, d, pair);
	w->printed++;
}

static void on_uncounted(void *context, const struct pair_definition *d,
			 const struct pair_unknown *why)
{
	struct watch_pairs *w = context;
	char line[512];

	w->options.say(w->options.context, pair_uncounted_text(d, why, line, sizeof(line)));
}

struct watch_pairs *watch_pairs_new(const struct live *l, struct model *m,
				    const struct watch_pairs_options *options)
{
	struct watch_pairs *w = calloc(1, sizeof(*w));
	const struct pair_watch_options watch = {.definitions = options->list->items,
						 .n = options->list->n,
						 .each = on_pair,
						 .with_fields = options->json,
						 .uncounted = on_uncounted,
						 .context = w};

	if (!w)
		return NULL;
	w->live = l;
	w->model = m;
	w->options = *options;
	w->watch = pair_watch_new(m, &watch);
	if (w->watch)
		return w;
	free(w);
	return NULL;
}

void watch_pairs_free(struct watch_pairs *w)
{
	if (!w)
		return;
	pair_watch_free(w->watch);
	free(w);
}

uint64_t watch_pairs_tick(struct watch_pairs *w)
{
	const uint64_t n = w->printed;

	pair_watch_tick(w->watch);
	w->printed = 0;
	return n;
}

int watch_pairs_finish(struct watch_pairs *w)
{
	return pair_watch_finish(w->watch);
}

void watch_pairs_evidence(const struct watch_pairs *w, struct incident *incident)
{
	pair_evidence_watched(w->watch, incident);
}
