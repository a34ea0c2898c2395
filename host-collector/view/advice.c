/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/view/advice.h"

static const char *const verdicts[VERDICT_COUNT] = {
	[VERDICT_UNDETERMINED] =
		"Record again with the data that is listed as missing. If nothing is missing, read "
		"the evidence: no known cause explains half of the time.",
	[VERDICT_VCPU_NOT_SCHEDULED] =
		"Keep other work off the pCPU: pin vCPU threads and host tasks to different pCPUs "
		"(cpuset, virsh vcpupin), or give the VM more weight (cpu.weight). The table "
		"`culprits` sums who held the pCPUs.",
	[VERDICT_LOCK_HOLDER_PREEMPTED] =
		"Keep all vCPUs of this VM on pCPUs at the same time: no more vCPUs than free "
		"pCPUs, pinned away from other work. Paravirtual spinlocks in the guest shorten "
		"such waits.",
	[VERDICT_IPI_TARGET_PREEMPTED] =
		"Keep all vCPUs of this VM on pCPUs at the same time: no more vCPUs than free "
		"pCPUs, pinned away from other work. The CPU feature kvm-pv-tlb-flush avoids some "
		"of these calls.",
	[VERDICT_CGROUP_THROTTLED] =
		"Raise or remove the CPU quota of the cgroup (cpu.max; libvirt: vcpu_quota and "
		"emulator_quota), or give the VM fewer vCPUs.",
	[VERDICT_VMM_LOCK] =
		"Find out what QEMU did with its big lock: the stack `woken from` shows it. Give "
		"disks an iothread, and avoid slow monitor commands and devices that QEMU emulates "
		"under this lock.",
	[VERDICT_STORAGE_BACKEND] =
		"Check the storage below the VM's disks (iostat -x, the host's log). With "
		"aio=io_uring or aio=native, cache=none and an iothread, vCPU threads do not wait "
		"for it.",
	[VERDICT_MMU_CONTENTION] =
		"Find out what changes QEMU's memory map: ballooning, memory hotplug, KSM, huge "
		"page collapse, or a tool that reads /proc/PID/smaps. Preallocated guest memory "
		"avoids most of it.",
	[VERDICT_DEMAND_PAGING] =
		"Keep the guest's memory in RAM: no swap for the VM (memory.swap.max=0, QEMU "
		"mem-lock=on), preallocated memory. After a postcopy migration or a snapshot "
		"restore, it ends when all pages are there.",
	[VERDICT_MIGRATION] =
		"This is the downtime of a live migration. To shorten it, lower downtime-limit, "
		"give it more bandwidth (multifd), or migrate while the guest writes less memory.",
	[VERDICT_VM_PAUSED] =
		"Find out why the process that the report names stopped the VM: a backup, a "
		"debugger, the cgroup freezer, or QEMU's reaction to a disk error (QMP "
		"query-status).",
	[VERDICT_CLOCK_JUMP] =
		"Check what changed the guest's clock: a snapshot restore, a suspend of the host, "
		"or a TSC that became unstable (the host's log). The guest lost no CPU time.",
	[VERDICT_SPLIT_LOCK] =
		"Repair the program in the guest that locks memory across two cache lines. Until "
		"then, kernel.split_lock_mitigate=0 on the host removes the delay.",
	[VERDICT_INTERRUPT_LOST] =
		"Follow the interrupt with the tables `overdue` and `chains`. Update the kernels "
		"of host and guest; to find the layer, try without APICv or AVIC (module "
		"parameters of kvm_intel, kvm_amd).",
	[VERDICT_TIMER_LATE] =
		"Look for what delays the host's timers on this pCPU: code with interrupts off, "
		"firmware (hwlat tracer), or deep idle states.",
	[VERDICT_DEVICE_NO_COMPLETION] =
		"Look at the device that QEMU emulates at this address, and at the disk, network or "
		"process behind it.",
	[VERDICT_HOST_MEMORY] =
		"Free memory on the host, or raise the memory limit of the VM's cgroup "
		"(memory.high, memory.max; memory.events counts). Preallocate the guest's memory.",
	[VERDICT_HOST_LOCKUP] =
		"Read the host's kernel log at this time: its watchdog printed what the pCPU did. "
		"The cause is in the host's kernel, a driver or the hardware.",
	[VERDICT_NESTED_UNOBSERVABLE] =
		"Record inside this VM, where the nested guest's vCPU threads can be observed.",
	[VERDICT_GUEST_IRQ_STORM] =
		"Find the source with the table `irq`: a device without interrupt moderation, or "
		"a driver that does not acknowledge its interrupt.",
	[VERDICT_GUEST_SPIN] =
		"The cause is in the guest: look at the task or interrupt that the report names. "
		"Its stacks (agent --sample-hz 99, then `vcpuscope flame`) show what it does.",
};

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
};

const char *advice_of_verdict(enum verdict v)
{
	return verdicts[v];
}

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
