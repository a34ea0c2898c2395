/* SPDX-License-Identifier: GPL-2.0-only */
#include "proto/vm_protection.h"

#include <stddef.h>
#include <string.h>

static const struct protection {
	const char *name, *title;
} protections[] = {
#define X(NAME, number, name, title) [VM_PROTECTION_##NAME] = {name, title},
	VM_PROTECTIONS(X)
#undef X
};

static const struct protection *protection_of(uint32_t number)
{
	return &protections[number <= VM_PROTECTION_LAST ? number : VM_PROTECTION_OTHER];
}

const char *vm_protection_name(uint32_t protection)
{
	return protection == VM_PROTECTION_NONE ? "" : protection_of(protection)->name;
}

const char *vm_protection_title(uint32_t protection)
{
	return protection == VM_PROTECTION_NONE ? "" : protection_of(protection)->title;
}

enum vm_protection vm_protection_find(const char *name)
{
	for (int i = VM_PROTECTION_NONE + 1; i <= VM_PROTECTION_LAST; i++) {
		if (!strcmp(protections[i].name, name))
			return (enum vm_protection)i;
	}
	return VM_PROTECTION_NONE;
}
