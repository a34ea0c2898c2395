// SPDX-License-Identifier: GPL-2.0-only
#include "guest-agent/configurer.h"

#include <string.h>

void configurer_init(struct configurer *c, const struct configurer_options *options)
{
	memset(c, 0, sizeof(*c));
	c->options = *options;
}

void configurer_ask(struct configurer *c, const struct message_config *asked)
{
	c->asked = *asked;
	c->waiting = true;
}

static void in_force(struct configurer *c, uint64_t now_ms, bool changed)
{
	c->applied_ms = now_ms;
	c->changed = changed;
	c->options.apply(c->options.context, &c->reply);
}

static void owners_again(struct configurer *c, uint64_t now_ms)
{
	memset(&c->reply, 0, sizeof(c->reply));
	limits_default(&c->options.limits, &c->reply.in_force);
	in_force(c, now_ms, false);
}

/* Returns true if the settings include something that the owner's settings do not: stacks, looks or
 * events. */
static bool has_extras(const struct configurer *c)
{
	const struct message_config *in_force = &c->reply.in_force;

	return in_force->sample_hz > c->options.limits.sample_hz || in_force->n_events ||
	       in_force->look_period_ns;
}

static void extras_drop(struct configurer *c, const char *what)
{
	const char *option = strcmp(what, "CPU") ? "--max-memory" : "--max-cpu";
	struct message_config_reply *r = &c->reply;

	if (r->in_force.sample_hz > c->options.limits.sample_hz) {
		r->in_force.sample_hz = c->options.limits.sample_hz;
		limits_say(r, CONFIG_SAMPLE_HZ, CONFIG_REASON_BUDGET,
			   "the agent's %s was used up (%s)", what, option);
	}
	if (r->in_force.look_period_ns) {
		r->in_force.look_period_ns = 0;
		limits_say(r, CONFIG_LOOK, CONFIG_REASON_BUDGET, "the agent's %s was used up (%s)",
			   what, option);
	}
	if (r->in_force.n_events) {
		r->in_force.n_events = 0;
		limits_say(r, CONFIG_EVENTS, CONFIG_REASON_BUDGET,
			   "the agent's %s was used up (%s)", what, option);
	}
}

/* Returns the name of the budget that is used up, or NULL. */
static const char *budget_check(struct configurer *c, const struct configurer_now *now)
{
	const struct configurer_options *o = &c->options;
	uint64_t used_ns = now->cpu_ns - c->window_cpu_ns, ms = now->ms - c->window_ms;

	if (o->memory_bytes && now->memory_bytes > o->memory_bytes)
		return "memory";
	if (c->measured && ms < CONFIGURER_WINDOW_MS)
		return NULL;
	if (!c->measured)
		used_ns = 0;
	c->measured = true;
	c->window_ms = now->ms;
	c->window_cpu_ns = now->cpu_ns;
	/* ns per ms * 1000 is permille of a CPU * 10^6. */
	return o->cpu_permille && ms && used_ns / ms > (uint64_t)o->cpu_permille * 1000 ? "CPU"
											: NULL;
}

static bool asked_apply(struct configurer *c, uint64_t now_ms)
{
	c->waiting = false;
	limits_apply(&c->options.limits, &c->asked, &c->reply);
	if (c->over)
		extras_drop(c, "CPU");
	in_force(c, now_ms, true);
	return true;
}

const struct message_config_reply *configurer_step(struct configurer *c,
						   const struct configurer_now *now)
{
	const char *used_up = budget_check(c, now);

	if (c->over && now->ms - c->over_ms >= CONFIGURER_BUDGET_MS)
		c->over = false;
	if (used_up && c->changed && has_extras(c)) {
		c->over = true;
		c->over_ms = now->ms;
		extras_drop(c, used_up);
		in_force(c, now->ms, true);
		return &c->reply;
	}
	if (!now->host) {
		c->waiting = false;
		if (c->changed)
			owners_again(c, now->ms);
		return NULL;
	}
	if (now->session != c->session) {
		c->session = now->session;
		c->session_ms = now->ms;
	}
	if (c->waiting && (!c->applied_ms || now->ms - c->applied_ms >= CONFIGURER_APPLY_MS)) {
		/* Of this session: what another host wanted is over. */
		c->session_ms = 0;
		return asked_apply(c, now->ms) ? &c->reply : NULL;
	}
	if (c->changed && !c->waiting && c->session_ms &&
	    now->ms - c->session_ms >= CONFIGURER_FORGET_MS) {
		c->session_ms = 0;
		owners_again(c, now->ms);
	}
	return NULL;
}
