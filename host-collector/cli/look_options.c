/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/cli/look_options.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "bpf/chosen/look_condition.h"

/* Of the host or of the guest. */
struct side {
	enum event_side side;
	uint64_t period_ns;
	const char *when;
	const char *look_name, *when_name;
};

static int side_read(const struct side *s, struct capture_look *out)
{
	struct expr_error error;
	char what[64];
	int err;

	*out = (struct capture_look){0};
	if (!s->period_ns && !s->when)
		return COMMAND_OK;
	if (!s->when) {
		fprintf(stderr,
			"vcpuscope record: %s needs a condition: give %s EXPR; --sample-hz takes "
			"stacks without one\n",
			s->look_name, s->when_name);
		return COMMAND_USAGE;
	}
	if (!s->period_ns) {
		fprintf(stderr, "vcpuscope record: %s needs %s PERIOD\n", s->when_name,
			s->look_name);
		return COMMAND_USAGE;
	}
	if (strlen(s->when) >= VS_LOOK_WHEN_MAX) {
		fprintf(stderr, "vcpuscope record: %s: at most %d characters\n", s->when_name,
			VS_LOOK_WHEN_MAX - 1);
		return COMMAND_USAGE;
	}
	out->period_ns = s->period_ns;
	err = look_condition_compile(s->when, s->side, false, out, &error);
	if (!err)
		return COMMAND_OK;
	snprintf(what, sizeof(what), "vcpuscope record: %s", s->when_name);
	if (err == -ENOMEM)
		fprintf(stderr, "%s: out of memory\n", what);
	else
		expr_error_print(&error, what, s->when, stderr);
	return err == -ENOMEM ? COMMAND_TROUBLE : COMMAND_USAGE;
}

bool look_arguments_any(const struct look_arguments *a)
{
	return a->period_ns || a->when;
}

int look_arguments_read(const struct look_arguments *a, struct capture_look *out,
			struct message_config *guest)
{
	const struct side host = {EVENT_HOST, a->period_ns, a->when, "--look", "--when"};
	const struct side in_guest = {EVENT_GUEST, a->guest_period_ns, a->guest_when,
				      "--guest-look", "--guest-when"};
	struct capture_look unused;
	int code = side_read(&host, out);

	if (code)
		return code;
	/* The agent compiles it again: it trusts no host. */
	code = side_read(&in_guest, &unused);
	if (code || !unused.period_ns)
		return code;
	guest->asks |= 1u << CONFIG_LOOK;
	guest->look_period_ns = unused.period_ns;
	snprintf(guest->look_when, sizeof(guest->look_when), "%s", a->guest_when);
	return COMMAND_OK;
}
