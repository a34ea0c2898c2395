/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/view/advice.h"

static const char *const missing[MISSING_COUNT] = {
	[MISSING_KVM_EVENTS] =
		"Record where KVM's tracepoints exist; `vcpuscope doctor` shows whether they do.",
	[MISSING_GUEST_EVENTS] = "Run vcpuscope-agent in the guest and give --channel.",
	[MISSING_HOST_EVENTS] = "Record on the host that runs the VM, not in the guest alone.",
	[MISSING_LOST_EVENTS] =
		"Lose fewer events: larger rings (agent: --ring), or --level summary.",
	[MISSING_CLOCK_MAP] =
		("Record for longer, or with a kvm-clock or TSC clock source in the guest; "
		 "`vcpuscope clock` shows the error."),
	[MISSING_STACKS] = "Record stacks of shorter waits too (--stacks-over).",
	[MISSING_HANDLERS] = "Record the guest at level detail.",
	[MISSING_NOTES] = "Record again: parts of the host's stream are missing.",
	[MISSING_CLOCK_PROOF] =
		("This is how a protected guest is recorded: verdicts that join the guest's events to "
		 "the host's are at most likely."),
};

const char *advice_of_missing(enum missing_data m)
{
	return missing[m];
}

const char *advice_of_confidence(enum confidence c)
{
	static const char *const meanings[] = {
		[CONFIDENCE_UNDETERMINED] = "the evidence explains too little of the time",
		[CONFIDENCE_LIKELY] =
			"the evidence points to this cause, but does not exclude others",
		[CONFIDENCE_DECIDED] = "the evidence excludes all other causes",
	};

	return meanings[c];
}
