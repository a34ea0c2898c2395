# SPDX-License-Identifier: GPL-2.0-only
"""The quickstart's scene, which is the same on every bed: a guest with a load, a recorder on its host, then a
healthy computation and three real stalls. The program that provokes each stall also measures it.

A Place is where commands run: this machine, bed B's host, or a guest. A scene needs a host Place, a guest
Place and the guest's QEMU.
"""
import json
import os
import shlex
import subprocess
import time

import machine
import state_times

# Which verdict is right, which vCPU state must have lasted as long as the provoker measured, and
# who must be named: on which side, with the name that provoke gives its task.
STALLS = (
    {"action": "sigstop", "verdict": "vm_paused", "state": "stopped", "side": "host",
     "title": "SIGSTOP to the VM's process for 400 ms"},
    {"action": "hog", "verdict": "vcpu_not_scheduled", "state": "runnable", "side": "host",
     "title": "a real-time task on the vCPU's pCPU for 500 ms"},
    {"action": "stall", "verdict": "guest_spin", "state": "guest", "side": "guest",
     "title": "a guest module that spins with preemption off for 600 ms"},
)
HOST_CPU, VCPU_CPU = 0, 1  # where the host's programs go, and the vCPU
COMPUTE_MS = 2000
METERED_CPUS = (HOST_CPU, VCPU_CPU)  # QEMU's main thread, which makes an emulated guest's ticks, too
PAUSE_S = 1.2  # between stalls
INTERFERENCE_MS = 20  # a gap that can move a share by its tolerance
RECORD_START_MAX_S = 60
AGENT_START_MAX_S = 30  # heard by the recorder; it dials again after a while
RECORD_STOP_MAX_S = 150  # a busy kernel takes its time to let go of each event of perf's
SETTLE_S = 2
RECORD_MAX_S = 600


class SceneError(Exception):
    pass


class ThisMachine:
    """Commands run here; `programs` is a list of folders put before PATH."""

    def __init__(self, programs):
        self._environment = dict(os.environ, PATH=":".join([*programs, os.environ["PATH"]]))

    def run(self, command, timeout_s=60):
        done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, timeout=timeout_s,
                              env=self._environment, stdin=subprocess.DEVNULL)
        if done.returncode:
            raise SceneError(f"'{command}' ended with {done.returncode}: "
                             f"{(done.stderr + done.stdout).strip()[-800:]}")
        return done.stdout

    def get(self, path):
        with open(path, "rb") as f:
            return f.read()


class NestedGuest:
    """The guest inside bed B's host, reached through it."""

    def __init__(self, host):
        self._host = host

    def run(self, command, timeout_s=60):
        try:
            return self._call(command, timeout_s)
        except machine.EmulatorFault:
            raise
        except machine.MachineError as error:
            self.check_alive(error)
            raise

    def _call(self, command, timeout_s):
        return self._host.run(f"bed-control call /run/guest/control {shlex.quote(command)}",
                              timeout_s=timeout_s)

    def check_alive(self, error):
        """Raises EmulatorFault if the nested guest answers nothing any more: the emulator loses an interrupt
        now and then."""
        try:
            self._call("true", 20)
        except machine.MachineError:
            said = self._host.guest_failure(f"the nested guest stands still: {str(error)[:300]}")
            raise machine.EmulatorFault(str(said)) from None

    def get(self, path):
        return self.run(f"cat {shlex.quote(path)}").encode()


class Scene:
    """`folder` is a folder on the host for the recording; `say` prints progress. An `emulated` machine
    can be held up by the machine underneath, which nothing inside can tell from a guest that spins:
    there meters note every such gap into truth["interference"]."""

    def __init__(self, host, guest, qemu_pid, channel, folder, say, emulated=False):
        self.host, self.guest, self._emulated = host, guest, emulated
        self.monitor = None  # a QMP socket for the recorder
        self._agent_runs = False
        self.record_arguments = ""
        self.backend = "auto"  # of the recorder
        self.qemu_pid, self.channel, self.folder, self._say = qemu_pid, channel, folder, say
        self.truth = {"stalls": [], "interference": [], "emulated": emulated}

    def place_threads(self):
        """The vCPU on its pCPU, QEMU's other threads on the other."""
        self.host.run(
            f"for t in /proc/{self.qemu_pid}/task/*; do case $(cat $t/comm 2>/dev/null) in "
            f"'CPU 0/'*) mask={1 << VCPU_CPU:x} ;; *) mask={1 << HOST_CPU:x} ;; esac; "
            "taskset -p $mask ${t##*/} || [ ! -e $t ]; done")  # some end just then

    def prepare(self):
        """Threads in their places, the agent and the test module in the guest."""
        self.place_threads()
        self.guest.run("insmod /root/stall.ko")
        self.agent_start()

    def agent_start(self, arguments=""):
        self.guest.run(f"vcpuscope-agent {arguments} >/root/agent.log 2>&1 </dev/null & "
                       "echo $! >/run/agent.pid")
        self._agent_runs = True

    def record_start(self):
        """Starts the recorder and waits until its file appears, which it does once programs are
        attached, until the agent is heard, and a little more for the clocks to meet."""
        agent_tries = AGENT_START_MAX_S * 5 if self._agent_runs else 0
        self._delay_around_ns = self.run_delay_ns()
        self.host.run(
            f"mkdir -p {self.folder}; cd {self.folder} || exit; rm -f record.* run.vcs; "
            f"{{ taskset {1 << HOST_CPU:x} vcpuscope record --pid {self.qemu_pid} "
            f"{f'--qmp {self.monitor} ' if self.monitor else ''}"
            f"--channel {self.channel} --backend {self.backend} {self.record_arguments} -o run.vcs "
            f"--for {RECORD_MAX_S}s >record.log 2>&1 & "
            "echo $! >record.pid; wait $!; echo $? >record.status; } >/dev/null 2>&1 </dev/null & "
            "i=0; while [ ! -s run.vcs ] && [ ! -e record.status ] && "
            f"[ $i -lt {RECORD_START_MAX_S * 5} ]; do sleep 0.2; i=$((i + 1)); done; "
            f"i=0; while [ $i -lt {agent_tries} ] && [ ! -e record.status ] && "
            "! grep -q 'on guest kernel' record.log; do sleep 0.2; i=$((i + 1)); done; "
            f"sleep {SETTLE_S}; [ -s run.vcs ] && [ ! -e record.status ] || "
            "{ tail -n 20 record.log; exit 1; }", timeout_s=RECORD_START_MAX_S + AGENT_START_MAX_S + 60)
        self._delay_inside_ns = self.run_delay_ns()

    def record_stop(self):
        """Ends the recording as Ctrl-C would and waits until it is closed."""
        inside_ns = self.run_delay_ns() - self._delay_inside_ns
        self.host.run(
            f"cd {self.folder} && kill -INT $(cat record.pid); i=0; "
            f"while [ ! -e record.status ] && [ $i -lt {RECORD_STOP_MAX_S * 10} ]; do sleep 0.1; "
            "i=$((i + 1)); done; "
            "[ \"$(cat record.status)\" = 0 ] || { tail -n 5 record.log; "
            "echo \"its status: $(cat record.status 2>&1)\"; "
            "for t in /proc/$(cat record.pid)/task/*; do cat $t/comm $t/stack; done; exit 1; }",
            timeout_s=RECORD_STOP_MAX_S + 60)
        self.truth["run_delay_ns"] = [inside_ns, self.run_delay_ns() - self._delay_around_ns]

    def meter_start(self):
        """On an emulated host: notes from now on when the machine underneath did not run it."""
        if not self._emulated:
            return
        for cpu in METERED_CPUS:
            self.host.run(f"cd {self.folder} && gap-meter {cpu} {INTERFERENCE_MS} >gaps.{cpu} 2>&1 "
                          f"</dev/null & echo $! >{self.folder}/gaps.{cpu}.pid")

    def meter_read(self):
        """Ends it and fills in truth["interference"]."""
        if not self._emulated:
            return
        for line in self.host.run(f"cd {self.folder} && kill $(cat gaps.*.pid); "
                                  "cat gaps.?").splitlines():
            begin, duration = map(int, line.split())
            self.truth["interference"].append({"begin_raw_ns": begin, "duration_ns": duration})

    def run_delay_ns(self, vcpu=0):
        """How long the host's own scheduler says that the vCPU thread has waited for a pCPU."""
        delay = self.host.run(
            f"for t in /proc/{self.qemu_pid}/task/*; do case $(cat $t/comm 2>/dev/null) in "
            f"'CPU {vcpu}/'*) cut -d' ' -f2 $t/schedstat ;; esac; done")
        if not delay:
            threads = self.host.run(f"cat /proc/{self.qemu_pid}/task/*/comm 2>&1 || true")
            raise RuntimeError(f"QEMU {self.qemu_pid} has no thread of vCPU {vcpu}; it has: {threads}")
        return int(delay)

    def guest_ran_ns(self):
        """{task: how long the guest's own scheduler believes that it has run}. This guest's account takes
        no steal off, so what the host denied a task on the CPU counts as its own time."""
        text = self.guest.run("for n in agent ticker compute; do [ ! -e /run/$n.pid ] || "
                              "echo $(cat /proc/$(cat /run/$n.pid)/comm /proc/$(cat /run/$n.pid)/schedstat); "
                              "done")
        return {comm: int(ran) for comm, ran, *_ in map(str.split, text.splitlines())}

    def hog(self, ms):
        """A real-time task takes the vCPU's pCPU: what it measured, and by how much each guest task's
        own time grew meanwhile."""
        before = self.guest_ran_ns()
        measured = json.loads(self.host.run(f"provoke hog {VCPU_CPU} {ms}"))
        after = self.guest_ran_ns()
        return {**measured, "guest_ran_ns": {comm: ran - before.get(comm, 0) for comm, ran in after.items()}}

    def play(self):
        """The healthy load, then the stalls; fills in the truth."""
        self.meter_start()
        self._say(f"the guest computes for {COMPUTE_MS // 1000} s: no incident may come of it")
        self.guest.run(f"provoke compute {COMPUTE_MS}")
        self.guest.run("provoke ticker 5000 >/dev/null 2>&1 </dev/null & echo $! >/run/ticker.pid; "
                       "provoke compute 600000 >/dev/null 2>&1 </dev/null & echo $! >/run/compute.pid")
        sigstop = f"taskset {1 << HOST_CPU:x} provoke sigstop {self.qemu_pid} 400"
        provokers = {
            "sigstop": lambda: json.loads(self.host.run(sigstop)),
            "hog": lambda: self.hog(500),
            "stall": lambda: json.loads(self.guest.run("provoke stall preempt 600")),
        }
        for stall in STALLS:
            time.sleep(PAUSE_S)
            self._say(f"stall: {stall['title']}")
            waited_ns = self.run_delay_ns()
            measured = provokers[stall["action"]]()
            waited_ns = self.run_delay_ns() - waited_ns
            self.truth["stalls"].append({**stall, **measured, "on_host_clock": stall["side"] == "host",
                                         "run_delay_ns": waited_ns})
        time.sleep(PAUSE_S)
        self.meter_read()
        self.guest.run("kill $(cat /run/ticker.pid) $(cat /run/compute.pid)")

    def report(self, threshold="100ms"):
        """(text, parsed JSON) of the recording."""
        command = f"cd {self.folder} && vcpuscope report run.vcs --than {threshold}"
        return self.host.run(f"{command} || [ $? = 5 ]"), state_times.check(json.loads(self.host.run(
            f"{command} --format json 2>report.log || [ $? = 5 ] || {{ cat report.log; exit 1; }}")))

    def table(self, name, recording="run.vcs"):
        """The rows of a table of figures."""
        text = self.host.run(
            f"cd {self.folder} && vcpuscope report {recording} {name} --top 0 --format json "
            "2>table.log || { cat table.log; exit 1; }", timeout_s=120)
        try:
            return json.loads(text)["rows"]
        except json.JSONDecodeError as error:
            raise SceneError(f"{name} of {recording}: {error}, in:\n{text[-2000:]}") from error

    def logs(self):
        """{file name: content} of what the programs said; a log that cannot be read says why."""
        wanted = {"record.log": (self.host, f"{self.folder}/record.log"),
                  "agent.log": (self.guest, "/root/agent.log")}
        found = {}
        for name, (place, path) in wanted.items():
            try:
                found[name] = place.get(path)
            except Exception as error:  # a log must not hide the failure it would explain
                found[name] = f"{error}\n".encode()
        return found
