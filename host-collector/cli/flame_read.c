/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/cli/flame_read.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "host-collector/engine/replay.h"
#include "host-collector/view/folded_text.h"

/* Watches the recording's time, to cut it into slices. */
struct slicer {
	const struct flame_slices *slices;
	struct flame *flame;
	struct host_ns begin;
	int64_t slice_ns;
	size_t done;
	int err;
};

void flame_reading_end(struct flame_reading *r)
{
	pipeline_free(r->pipeline);
	model_free(r->model);
	flame_free(r->flame);
	folded_free(r->text);
	*r = (struct flame_reading){0};
}

struct folded *flame_reading_stacks(const struct flame_reading *r)
{
	return r->flame ? flame_stacks(r->flame) : r->text;
}

static bool guest_seen(const struct flame_reading *r)
{
	uint32_t vms[MODEL_VMS_MAX];
	size_t n = model_vms(r->model, vms, MODEL_VMS_MAX);

	for (size_t i = 0; i < n; i++) {
		if (model_data_of(r->model, vms[i]).guest_events)
			return true;
	}
	return false;
}

/* ---- slices ---- */

/* All but the last, which ends when everything has been counted. */
static void slices_until(struct slicer *s, struct host_ns t)
{
	while (!s->err && s->done + 1 < s->slices->count &&
	       t.ns >= s->begin.ns + (int64_t)(s->done + 1) * s->slice_ns) {
		s->err = s->slices->take(s->slices->context, s->done, flame_stacks(s->flame));
		s->done++;
	}
}

static void guest_take(void *context, const struct guest_instant *i)
{
	slices_until(context, i->t);
}

static void host_take(void *context, const struct host_instant *i)
{
	slices_until(context, i->t);
}

/* When the recording begins and how long it is. */
static int span_read(const char *path, struct host_ns *begin, int64_t *ns, char *why,
		     size_t why_bytes)
{
	struct pipeline_options options = {.model = model_new()};
	struct pipeline *p = options.model ? pipeline_new(&options) : NULL;
	struct recording_info info;
	int err = p ? replay_run(p, path, &info, why, why_bytes) : -ENOMEM;

	if (!err) {
		*begin = model_begin(options.model);
		*ns = model_now(options.model).ns - begin->ns;
	}
	pipeline_free(p);
	model_free(options.model);
	return err;
}

/* ---- reading ---- */

bool flame_is_text(const char *path)
{
	static const char *const suffixes[] = {".folded", ".collapsed", ".txt"};
	size_t len = strlen(path);

	for (size_t i = 0; i < sizeof(suffixes) / sizeof(*suffixes); i++) {
		size_t n = strlen(suffixes[i]);

		if (len > n && !strcmp(path + len - n, suffixes[i]))
			return true;
	}
	return false;
}

static int text_read(const char *path, const struct flame_slices *slices, struct flame_reading *r,
		     char *why, size_t why_bytes)
{
	FILE *from = fopen(path, "r");
	size_t line = 0;
	int err;

	if (!from) {
		err = -errno;
		snprintf(why, why_bytes, "%s: cannot open: %s", path, strerror(-err));
		return err;
	}
	r->text = folded_new();
	err = r->text ? folded_text_read(from, r->text, NULL, &line) : -ENOMEM;
	fclose(from);
	if (err == -EBADMSG)
		snprintf(why, why_bytes, "%s: line %zu is not a folded stack (\"a;b;c 12\")", path,
			 line);
	else if (err)
		snprintf(why, why_bytes, "%s: cannot read: %s", path, strerror(-err));
	else if (slices)
		err = slices->take(slices->context, 0, r->text);
	r->slices = slices ? 1 : 0;
	return err;
}

/* Fewer slices than wanted for a recording too short to be cut. */
static int recording_read(const char *path, const struct flame_options *o,
			  const struct flame_slices *slices, struct flame_reading *r, char *why,
			  size_t why_bytes)
{
	struct pipeline_options pipeline_options = {0};
	struct slicer slicer = {.slices = slices};
	struct model_observer observer = {
		.guest_instant = guest_take, .host_instant = host_take, .context = &slicer};
	const bool cut = o->time && o->time->cut;
	int64_t span_ns = 0;
	int err = 0;

	if (cut) {
		slicer.begin = o->time->from;
		span_ns = o->time->until.ns - o->time->from.ns;
	} else if (slices) {
		err = span_read(path, &slicer.begin, &span_ns, why, why_bytes);
	}
	if (err)
		return err;
	r->model = pipeline_options.model = model_new();
	r->flame = r->model ? flame_new(r->model, o) : NULL;
	r->pipeline = r->flame ? pipeline_new(&pipeline_options) : NULL;
	if (!r->pipeline || (slices && model_observe(r->model, &observer)))
		return -ENOMEM;
	slicer.flame = r->flame;
	slicer.slice_ns = slices && span_ns > 0 ? span_ns / (int64_t)slices->count + 1 : INT64_MAX;
	err = replay_run(r->pipeline, path, &r->info, why, why_bytes);
	if (!err)
		err = flame_finish(r->flame);
	if (!err)
		err = slicer.err;
	if (!err && slices) {
		slices_until(&slicer, (struct host_ns){slicer.begin.ns + span_ns});
		err = slices->take(slices->context, slicer.done, flame_stacks(r->flame));
		r->slices = slicer.done + 1;
	}
	r->seconds =
		(double)(narrow_end(o->time, r->model).ns - narrow_begin(o->time, r->model).ns) /
		1e9;
	r->guest = guest_seen(r);
	return err;
}

int flame_read(const char *path, const struct flame_options *o, const struct flame_slices *slices,
	       struct flame_reading *r, char *why, size_t why_bytes)
{
	snprintf(why, why_bytes, "%s: out of memory", path);
	*r = (struct flame_reading){0};
	if (flame_is_text(path))
		return text_read(path, slices, r, why, why_bytes);
	return recording_read(path, o, slices, r, why, why_bytes);
}
