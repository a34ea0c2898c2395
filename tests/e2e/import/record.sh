#!/usr/bin/env bash
# Two trace-cmd recordings of this machine at once, as if of a host and its guest, while "$2..." runs.
# usage: unshare -m record.sh FOLDER PREFIX COMMAND...
set -eu
folder=$1 prefix=$2
shift 2
# Some machines forbid the function tracer's files, which trace-cmd insists on resetting: hand it
# others, in this mount namespace. Buffer instances of their own keep other tracers out.
echo 1 >"$folder/one"
hide() { [ ! -e "$1" ] || mount --bind "$folder/one" "$1"; }
if ! : 2>/dev/null >>/sys/kernel/tracing/set_ftrace_filter; then
	hide /proc/sys/kernel/ftrace_enabled
	for at in /sys/kernel/tracing /sys/kernel/tracing/instances/"$prefix"-{host,guest}; do
		for f in set_ftrace_filter set_ftrace_notrace set_ftrace_pid \
			set_ftrace_notrace_pid set_graph_function set_graph_notrace; do
			hide "$at/$f"
		done
	done
fi
cd "$folder"
events="-e sched:sched_switch -e sched:sched_wakeup -e sched:sched_waking"
events="$events -e sched:sched_migrate_task -e irq:softirq_entry -e irq:softirq_exit"
events="$events -e sched:sched_process_wait" # one without a type
exec trace-cmd record -q -B "$prefix-host" -C mono -b 8192 -o host.dat $events \
	trace-cmd record -q -B "$prefix-guest" -C mono -b 8192 -o guest.dat $events "$@"
