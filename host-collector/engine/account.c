/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/engine/account.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host-collector/decode/config_text.h"
#include "proto/recording.h"
#include "proto/user_event.h"

/* Above this share of all pairs, violations are no accident, so the map is wrong: one in 1000.
 * AUDIT_REFUTES is the other limit. */
enum { REFUTED_SHARE = 1000 };

bool account_untrusted(const struct pipeline_source *s, const struct model *m)
{
	struct presence_count presence = model_presence(m, s->source);

	return s->clock_untrusted || audit_refutes(&presence.recent) ||
	       (presence.pieces >= AUDIT_REFUTES &&
		presence.violations * REFUTED_SHARE > presence.pairs);
}

static int clock_give(const struct pipeline_source *s, const struct model *m,
		      struct report_builder *b)
{
	struct presence_count presence = model_presence(m, s->source);
	struct report_clock clock = {
		.vm = s->source,
		.vm_name = s->name,
		.error_ns = s->clock_error_ns,
		.beside_pauses = s->beside_pauses,
		.beside_pauses_error_ns = s->beside_pauses_error_ns,
		.causality_pairs = s->causality_pairs + presence.pairs,
		.causality_violations = s->causality_violations + presence.violations,
		.disagreements = s->clock_disagreements,
		.contradiction_ns = s->clock_contradiction_ns,
		.untrusted = account_untrusted(s, m),
		.epochs = s->clock_epochs,
		.protection = s->protection,
	};

	if (clock.untrusted)
		clock.error_ns = UINT64_MAX;
	snprintf(clock.method, sizeof(clock.method), "%s",
		 clock.untrusted ? "untrusted" : s->clock_method);
	return report_builder_clock(b, &clock);
}

static void config_write(const struct message_config_reply *reply, char *out, size_t out_bytes)
{
	size_t used;

	out[0] = '\0';
	if (!reply)
		return;
	config_describe(&reply->in_force, out, out_bytes);
	for (size_t i = 0; i < reply->n_limits; i++) {
		used = strlen(out);
		if (used + 3 > out_bytes)
			return;
		memcpy(out + used, "; ", 3);
		config_limit_describe(&reply->limits[i], out + used + 2, out_bytes - used - 2);
	}
}

/* Appends the events that the user chose and that are missing. */
static void missing_write(const struct model *m, uint32_t source, char *out, size_t out_bytes)
{
	const struct message_user_event *e;
	uint32_t of;

	for (size_t i = 0; (e = user_events_at(model_user_events(m), i, &of)); i++) {
		const size_t used = strlen(out);

		/* The id may have had another meaning in an earlier session. */
		if (of != source || !(e->flags & (USER_FAILED | USER_DETACHED)) ||
		    user_events_find(model_user_events(m), of, e->id) != e)
			continue;
		snprintf(out + used, out_bytes - used, "%s%s:%s %s%s%s", used ? "; " : "",
			 e->system, e->name, e->flags & USER_FAILED ? "is missing" : "was detached",
			 *e->why ? ": " : "", e->why);
	}
}

static int loss_give(const struct pipeline_source *s, const struct model *m, uint64_t damaged_bytes,
		     struct report_builder *b)
{
	struct report_loss loss = {
		.source = s->source,
		.name = s->name,
		.emitted = s->emitted,
		.delivered = s->delivered,
		.dropped_kernel = s->dropped_kernel,
		.dropped_user = s->dropped_user,
		.lost_channel = s->lost_channel,
		.overdelivered = s->overdelivered,
		.missed = s->missed,
		.unplaced = s->unplaced,
		.unknown_events = s->unknown_events,
		.unknown_frames = s->unknown_frames,
		.lost_frames = s->lost_frames,
		.malformed_frames = s->malformed,
		.damaged_bytes = damaged_bytes,
		.late = s->late,
		.n_spans = s->losses->n,
	};

	memcpy(loss.aggregated, s->aggregated, sizeof(loss.aggregated));
	config_write(s->config, loss.config, sizeof(loss.config));
	if (s->look_period_ns)
		config_look_describe(s->look_period_ns, s->look_when, loss.config,
				     sizeof(loss.config));
	missing_write(m, s->source, loss.config, sizeof(loss.config));
	for (size_t i = 0; i < s->losses->n; i++) {
		const struct loss_span *span = &s->losses->spans[i];

		loss.spans[i] =
			(struct report_loss_span){span->begin, span->end, span->counts.kernel,
						  span->counts.user, span->counts.channel};
	}
	return report_builder_loss(b, &loss);
}

static int log_give(const struct pipeline *p, uint32_t vm, struct report_builder *b)
{
	const struct message_log_line *line;
	int err = 0;

	for (size_t i = 0; !err && (line = pipeline_log_line(p, vm, i)); i++)
		err = report_builder_log(b, vm, pipeline_log_boot(p, vm, i), line->dmesg_us,
					 line->text);
	return err;
}

static int wall_give(const struct pipeline *p, struct report_builder *b)
{
	struct report_wall_step step;
	struct host_ns begin, end;
	int64_t offset;
	int err = 0;

	if (!pipeline_span(p, &begin, &end) || !pipeline_wall_offset(p, begin, &offset))
		return 0;
	report_builder_wall(b, offset);
	for (size_t i = 0;
	     !err && clock_book_wall_step(pipeline_clocks(p), i, &step.t, &step.by_ns); i++)
		err = step.t.ns > begin.ns ? report_builder_wall_step(b, &step) : 0;
	return err;
}

static int reboots_give(const struct pipeline *p, uint32_t vm, struct report_builder *b)
{
	const struct reboot *x;
	int err = 0;

	for (size_t i = 0; !err && (x = pipeline_reboot(p, vm, i)); i++) {
		struct report_reboot reboot = {
			.vm = vm,
			.after = x->after,
			.until = x->until,
			.reset_known = x->reset_known,
			.reset = x->reset,
		};

		snprintf(reboot.why, sizeof(reboot.why), "%s", x->why);
		err = report_builder_reboot(b, &reboot);
	}
	return err;
}

int account_give(const struct pipeline *p, const struct model *m, uint64_t damaged_bytes,
		 struct report_builder *b)
{
	struct pipeline_source s;
	int err;

	report_builder_notes_clear(b);
	err = wall_give(p, b);
	for (size_t i = 0; !err && !pipeline_source_get(p, i, &s); i++) {
		bool host = s.source == VS_SOURCE_HOST;

		/* The source of damaged frames is unknown. They count for the host, which wrote
		 * the recording. */
		err = loss_give(&s, m, host ? damaged_bytes : 0, b);
		if (!err && !host)
			err = clock_give(&s, m, b);
		if (!err && !host)
			err = log_give(p, s.source, b);
		if (!err && !host)
			err = reboots_give(p, s.source, b);
	}
	return err;
}

bool account_dmesg(void *context, uint32_t vm, struct host_ns t, struct dmesg_time *out)
{
	struct pipeline *const *p = context;

	return *p && pipeline_dmesg(*p, vm, t, out);
}
