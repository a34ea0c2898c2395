/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/view/verdict_words.h"

static const struct verdict_words words[VERDICT_COUNT] = {
	[VERDICT_UNDETERMINED] =
		{.advice = "Record again with the data that is listed as missing. If nothing is "
			   "missing, read the evidence: no known cause explains half of the time."},
	[VERDICT_VCPU_NOT_SCHEDULED] =
		{.holds = "the vCPU thread is ready to run and another task runs instead",
		 .contradicts =
			 "the guest's ticks went on; a wait that lasts, under a CPU quota, may "
			 "be throttling",
		 .advice = "Keep other work off the pCPU: pin vCPU threads and host tasks to "
			   "different pCPUs (cpuset, virsh vcpupin), or give the VM more weight "
			   "(cpu.weight). The table `culprits` sums who held the pCPUs."},
	[VERDICT_LOCK_HOLDER_PREEMPTED] =
		{.holds = "the guest spins (PAUSE exits) or halts with a task to run, while "
			  "another of its vCPUs is kept from the guest",
		 .contradicts =
			 "only the end of the wait joins it to that vCPU; events are missing",
		 .advice = "Keep all vCPUs of this VM on pCPUs at the same time: no more vCPUs "
			   "than free pCPUs, pinned away from other work. Paravirtual spinlocks "
			   "in the guest shorten such waits."},
	[VERDICT_IPI_TARGET_PREEMPTED] =
		{.holds = "the guest has called another of its CPUs by an interrupt, which its "
			  "vCPU, kept from the guest, does not take",
		 .contradicts =
			 "only the end of the wait joins it to that vCPU; events are missing",
		 .advice = "Keep all vCPUs of this VM on pCPUs at the same time: no more vCPUs "
			   "than free pCPUs, pinned away from other work. The CPU feature "
			   "kvm-pv-tlb-flush avoids some of these calls."},
	[VERDICT_CGROUP_THROTTLED] =
		{.holds = "the vCPU thread is ready to run, not run, and its pCPU idles",
		 .contradicts = "the throttling itself was not seen",
		 .advice = "Raise or remove the CPU quota of the cgroup (cpu.max; libvirt: "
			   "vcpu_quota and emulator_quota), or give the VM fewer vCPUs."},
	[VERDICT_VMM_LOCK] =
		{.holds = "the vCPU thread sleeps where QEMU takes its big lock",
		 .contradicts =
			 "few of many short waits brought a stack; the guest's ticks went on",
		 .advice = "Find out what QEMU did with its big lock: the stack `woken from` "
			   "shows it. Give disks an iothread, and avoid slow monitor commands and "
			   "devices that QEMU emulates under this lock."},
	[VERDICT_STORAGE_BACKEND] =
		{.holds = "the vCPU thread sleeps in block I/O",
		 .contradicts =
			 "few of many short waits brought a stack; the guest's ticks went on",
		 .reason = "the vCPU thread waited {ns0} for a block device in the host",
		 .advice = "Check the storage below the VM's disks (iostat -x, the host's log). "
			   "With aio=io_uring or aio=native, cache=none and an iothread, vCPU "
			   "threads do not wait for it."},
	[VERDICT_MMU_CONTENTION] =
		{.holds = "the vCPU thread sleeps on a lock of the memory map",
		 .contradicts =
			 "few of many short waits brought a stack; the guest's ticks went on",
		 .reason = "the vCPU thread waited {ns0} for a lock of the VM's memory map",
		 .advice = "Find out what changes QEMU's memory map: ballooning, memory hotplug, "
			   "KSM, huge page collapse, or a tool that reads /proc/PID/smaps. "
			   "Preallocated guest memory avoids most of it."},
	[VERDICT_DEMAND_PAGING] =
		{.holds = "the vCPU thread sleeps in a page fault or userfault",
		 .contradicts =
			 "few stacks show what page faults waited for; the guest's ticks went on",
		 .advice = "Keep the guest's memory in RAM: no swap for the VM "
			   "(memory.swap.max=0, QEMU mem-lock=on), preallocated memory. After a "
			   "postcopy migration or a snapshot restore, it ends when all pages are "
			   "there."},
	[VERDICT_MIGRATION] =
		{.holds = "QEMU paused the VM while it migrated it",
		 .contradicts = "the guest's timer ticks went on meanwhile",
		 .reason = "QEMU paused the VM for {ns0} to complete its migration",
		 .advice = "This is the downtime of a live migration. To shorten it, lower "
			   "downtime-limit, give it more bandwidth (multifd), or migrate while "
			   "the guest writes less memory."},
	[VERDICT_VM_PAUSED] =
		{.holds = "the vCPU thread is stopped: a signal, a debugger, the freezer, QMP",
		 .contradicts = "the guest's timer ticks went on meanwhile; its VMM paused it, and "
				"notes of a migration may be missing",
		 .advice = "Find out why the process that the report names stopped the VM: a "
			   "backup, a debugger, the cgroup freezer, or QEMU's reaction to a disk "
			   "error (QMP query-status)."},
	[VERDICT_CLOCK_JUMP] =
		{.holds = "between two readings of the guest's clock it went ahead of the "
			  "host's, or back",
		 .contradicts =
			 "the clocks' error is as large; only the guest's own answers show when "
			 "it read its clock",
		 .advice = "Check what changed the guest's clock: a snapshot restore, a suspend "
			   "of the host, or a TSC that became unstable (the host's log). The "
			   "guest lost no CPU time."},
	[VERDICT_SPLIT_LOCK] =
		{.holds = "the vCPU thread sleeps where the host's kernel slows down split locks",
		 .contradicts = "no stack shows it",
		 .reason = "the guest locked memory across cache lines, and the host's kernel "
			   "held its vCPU back for {ns0}",
		 .advice = "Repair the program in the guest that locks memory across two cache "
			   "lines. Until then, kernel.split_lock_mitigate=0 on the host removes "
			   "the delay."},
	[VERDICT_INTERRUPT_LOST] =
		{.holds = "KVM accepted an interrupt and no handler ran, though the vCPU halted "
			  "or the guest went on",
		 .contradicts = "events are missing: its handler may be among them",
		 .advice = "Follow the interrupt with the tables `overdue` and `chains`. Update "
			   "the kernels of host and guest; to find the layer, try without APICv "
			   "or AVIC (module parameters of kvm_intel, kvm_amd)."},
	[VERDICT_TIMER_LATE] =
		{.holds = "ticks stop though the vCPU runs the guest, and no timer interrupt is "
			  "pending until one comes",
		 .contradicts = "nobody waited for the CPU: the guest may have stopped its tick; "
				"events are missing",
		 .reason = "the host delivered the guest's timer interrupt {ns0} late: none was "
			   "pending before",
		 .advice = "Look for what delays the host's timers on this pCPU: code with "
			   "interrupts off, firmware (hwlat tracer), or deep idle states."},
	[VERDICT_DEVICE_NO_COMPLETION] =
		{.holds = "QEMU does not end an access to a device, or the guest reads one "
			  "register of it again and again, and hardly writes",
		 .contradicts = "the guest's ticks went on",
		 .advice = "Look at the device that QEMU emulates at this address, and at the "
			   "disk, network or process behind it."},
	[VERDICT_HOST_MEMORY] =
		{.holds = "the vCPU thread sleeps in reclaim or compaction",
		 .contradicts =
			 "few of many short waits brought a stack; the guest's ticks went on",
		 .reason = "the vCPU thread had to free host memory for {ns0}",
		 .advice = "Free memory on the host, or raise the memory limit of the VM's cgroup "
			   "(memory.high, memory.max; memory.events counts). Preallocate the "
			   "guest's memory."},
	[VERDICT_HOST_LOCKUP] =
		{.holds = "the host's watchdog says that the vCPU's pCPU stands still",
		 .contradicts = "the guest's ticks went on",
		 .reason = "the host's watchdog reports that the vCPU's pCPU was stuck in the "
			   "host's kernel: {ns0} of the stall",
		 .advice = "Read the host's kernel log at this time: its watchdog printed what "
			   "the pCPU did. The cause is in the host's kernel, a driver or the "
			   "hardware."},
	[VERDICT_NESTED_UNOBSERVABLE] =
		{.holds = "the guest entered a nested guest and neither returned nor switched "
			  "tasks",
		 .contradicts =
			 "neither KVM's events nor ticks show that the guest ran; events are "
			 "missing",
		 .advice = "Record inside this VM, where the nested guest's vCPU threads can be "
			   "observed."},
	[VERDICT_GUEST_IRQ_STORM] =
		{.holds = "short interrupts take most of the run interval, thousands a second",
		 .contradicts =
			 "neither KVM's events nor ticks show that the guest ran; 1 in 200 of "
			 "the guest's events is missing",
		 .advice = "Find the source with the table `irq`: a device without interrupt "
			   "moderation, or a driver that does not acknowledge its interrupt."},
	[VERDICT_GUEST_SPIN] =
		{.holds = "something was denied while the vCPU ran the guest",
		 .contradicts =
			 "neither KVM's events nor ticks show that the guest ran; without all "
			 "of KVM's events, another vCPU of the VM did not run meanwhile; short "
			 "handlers were only counted",
		 .advice = "The cause is in the guest: look at the task or interrupt that the "
			   "report names. Its stacks (agent --sample-hz 99, then `vcpuscope "
			   "flame`) show what it does."},
};

struct verdict_words verdict_words(enum verdict v)
{
	struct verdict_words w = words[v];
	const char **const texts[] = {&w.holds, &w.contradicts, &w.reason, &w.advice};

	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
		if (!*texts[i])
			*texts[i] = "";
	}
	return w;
}
