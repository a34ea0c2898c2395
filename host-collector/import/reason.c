// SPDX-License-Identifier: GPL-2.0-only
#include "host-collector/import/reason.h"

#include <string.h>

#include "host-collector/model/exit_name.h"
#include "proto/event_fields.h"

bool import_reason_parse(const char *name, size_t len, struct vs_event *e)
{
	static const char prefix[] = "EXIT_";
	bool plugin = len > strlen(prefix) && !strncmp(name, prefix, strlen(prefix));
	enum kvm_isa isa = plugin ? KVM_ISA_SVM : exit_name_isa(name, len);
	uint32_t reason = import_reason_unknown;
	bool known;

	if (plugin) {
		name += strlen(prefix);
		len -= strlen(prefix);
	}
	known = exit_name_find(isa, name, len, &reason);
	/* KVM of 2010 wrote VMX's names in lower case, too. */
	if (!known && !plugin && isa == KVM_ISA_SVM &&
	    exit_name_find(KVM_ISA_VMX, name, len, &reason)) {
		isa = KVM_ISA_VMX;
		known = true;
	}
	ev_set_kvm_exit_reason(e, reason);
	ev_set_kvm_exit_isa(e, isa);
	return known;
}
