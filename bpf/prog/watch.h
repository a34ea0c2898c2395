/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Watched tasks of a host: tasks that belong to no VM, but whose hits of chosen events become
 * events. For the host's BPF programs, and for user space without them (VS_WATCH_ONLY_NUMBERS).
 *
 * A watched process stays in its map until the kernel frees its id. So its hits are captured up to
 * its end. Processes that it creates are watched from their start.
 */
#ifndef PROG_WATCH_H
#define PROG_WATCH_H

enum {
	VS_WATCHED_THREADS_MAX = 1024,
	VS_WATCHED_PROCESSES_MAX = 4096,
	VS_WATCHED_CGROUPS_MAX = 8,
	/* What is watched: bits of `watching`. */
	VS_WATCHES_THREADS = 1,
	VS_WATCHES_PROCESSES = 2,
	VS_WATCHES_CGROUPS = 4,
};

#ifndef VS_WATCH_ONLY_NUMBERS

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, VS_WATCHED_THREADS_MAX);
	__type(key, __s32);
	__type(value, __u32);
} watched_threads SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, VS_WATCHED_PROCESSES_MAX);
	__type(key, __s32);
	__type(value, __u32);
} watched_processes SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_CGROUP_ARRAY);
	__uint(max_entries, VS_WATCHED_CGROUPS_MAX);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, sizeof(__u32));
} watched_cgroups SEC(".maps");

/* False on a kernel without cgroups; the map then has another type. */
const volatile bool with_cgroups;
__u32 watching, n_watched_cgroups;
/* Number of processes that watched processes created and that are not watched, because there was no
 * room. */
__u64 unwatched;

/* Returns whether the current task is watched. */
static __always_inline bool current_is_watched(void)
{
	const __u32 what = *(volatile __u32 *)&watching;
	const __u64 ids = bpf_get_current_pid_tgid();
	const __s32 tid = (__s32)ids, tgid = (__s32)(ids >> 32);

	if (!what)
		return false;
	if (what & VS_WATCHES_THREADS && bpf_map_lookup_elem(&watched_threads, &tid))
		return true;
	if (what & VS_WATCHES_PROCESSES && bpf_map_lookup_elem(&watched_processes, &tgid))
		return true;
	if (!with_cgroups || !(what & VS_WATCHES_CGROUPS))
		return false;
	for (__u32 i = 0; i < VS_WATCHED_CGROUPS_MAX; i++) {
		if (i >= *(volatile __u32 *)&n_watched_cgroups)
			break;
		if (bpf_current_task_under_cgroup(&watched_cgroups, i) == 1)
			return true;
	}
	return false;
}

/* Attached while processes or threads are watched. */
VS_TRACEPOINT(task_newtask)
int BPF_PROG(vs_u_newtask, struct task_struct *p)
{
	const __s32 parent = (__s32)(bpf_get_current_pid_tgid() >> 32), tgid = VS_READ(p, tgid);
	const __u32 yes = 1;

	if (tgid == parent || !bpf_map_lookup_elem(&watched_processes, &parent))
		return 0;
	if (bpf_map_update_elem(&watched_processes, &tgid, &yes, BPF_ANY))
		__sync_fetch_and_add(&unwatched, 1);
	return 0;
}

/* The kernel frees the task. The id of a process is that of its first thread, also after another
 * thread has called execve(). */
VS_TRACEPOINT(sched_process_free)
int BPF_PROG(vs_u_free, struct task_struct *p)
{
	const __s32 tid = VS_READ(p, pid);

	bpf_map_delete_elem(&watched_threads, &tid);
	bpf_map_delete_elem(&watched_processes, &tid);
	return 0;
}

#endif
#endif
