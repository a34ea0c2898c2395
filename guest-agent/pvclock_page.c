// SPDX-License-Identifier: GPL-2.0-only
#include "guest-agent/pvclock_page.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "clock/pvclock.h"
#include "proto/proc_file.h"

enum {
	PAGE = 4096,
	TRIES = 16,                /* the host writes for well under a microsecond */
	RATE_TOLERANCE_PPM = 2000, /* a guest measures its TSC badly in its first seconds */
};

/* struct pvclock_vcpu_time_info, arch/x86/include/asm/pvclock-abi.h */
struct abi_page {
	uint32_t version;
	uint32_t pad0;
	uint64_t tsc_timestamp;
	uint64_t system_time;
	uint32_t tsc_to_system_mul;
	int8_t tsc_shift;
	uint8_t flags;
	uint8_t pad[2];
};
_Static_assert(sizeof(struct abi_page) == 32, "the ABI's");

/* Linux 6.13 and later map the clocks' pages as [vvar_vclock], kvmclock's first; before, [vvar] has
 * the kernel's own data first and kvmclock's page second. */
static const struct {
	const char *name;
	unsigned page;
} mappings[] = {{"[vvar_vclock]", 0}, {"[vvar]", 1}};

static const volatile void *mapping_find(const char *name, unsigned page)
{
	const volatile void *found = NULL;
	FILE *maps = fopen("/proc/self/maps", "re");
	char line[512];

	while (maps && !found && fgets(line, sizeof(line), maps)) {
		uint64_t begin, end;

		line[strcspn(line, "\n")] = '\0';
		if (strlen(line) >= strlen(name) &&
		    !strcmp(line + strlen(line) - strlen(name), name) &&
		    sscanf(line, "%" SCNx64 "-%" SCNx64, &begin, &end) == 2 &&
		    end - begin >= (page + 1ull) * PAGE)
			found = (const volatile void *)(uintptr_t)(begin + page * PAGE);
	}
	if (maps)
		fclose(maps);
	return found;
}

void pvclock_page_init(struct pvclock_page *p, uint64_t tsc_hz)
{
	*p = (struct pvclock_page){.tsc_hz = tsc_hz};
	for (size_t i = 0; i < sizeof(mappings) / sizeof(mappings[0]) && !p->at; i++)
		p->at = mapping_find(mappings[i].name, mappings[i].page);
}

/* If the kernel has no kvmclock, an access to the page raises SIGBUS. A system call returns EFAULT
 * instead. */
static bool page_is_readable(const volatile void *at)
{
	int ends[2];
	bool readable;

	if (pipe2(ends, O_CLOEXEC | O_NONBLOCK))
		return false;
	readable = write(ends[1], (const void *)(uintptr_t)at, sizeof(struct abi_page)) ==
		   sizeof(struct abi_page);
	close(ends[0]);
	close(ends[1]);
	return readable;
}

static bool rate_is_the_tscs(const struct pvclock *p, uint64_t tsc_hz)
{
	const struct pvclock from_zero = {.mul = p->mul, .shift = p->shift};
	int64_t ns = (int64_t)pvclock_from_tsc(&from_zero, (struct guest_tsc){tsc_hz}).ns;

	return llabs(ns - 1000000000) <= 1000ll * RATE_TOLERANCE_PPM;
}

void pvclock_page_read(struct pvclock_page *p, struct message_vm_clock_pvclock *out)
{
	const volatile struct abi_page *page = p->at;

	memset(out, 0, sizeof(*out));
	if (!p->readable)
		p->readable = p->at && page_is_readable(p->at);
	if (!p->readable)
		return;
	for (int i = 0; i < TRIES; i++) {
		/* The host makes the version odd, writes, makes it even; x86 keeps loads in order.
		 */
		const uint32_t version = page->version;
		const struct pvclock line = {
			.tsc_timestamp = page->tsc_timestamp,
			.system_time = page->system_time,
			.mul = page->tsc_to_system_mul,
			.shift = page->tsc_shift,
			.flags = page->flags,
		};

		if (version & 1 || page->version != version)
			continue;
		if (!version || !pvclock_valid(&line) || !rate_is_the_tscs(&line, p->tsc_hz))
			return;
		*out = (struct message_vm_clock_pvclock){
			.known = true,
			.shift = line.shift,
			.flags = line.flags,
			.mul = line.mul,
			.version = version,
			.tsc_timestamp = line.tsc_timestamp,
			.system_time = line.system_time,
		};
		return;
	}
}

bool pvclock_is_clocksource(void)
{
	char name[32];

	return !proc_file_line("/sys/devices/system/clocksource/clocksource0/current_clocksource",
			       name, sizeof(name)) &&
	       !strcmp(name, "kvm-clock");
}
